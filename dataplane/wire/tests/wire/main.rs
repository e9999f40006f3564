//! Tests of the wire crate through its public API, one scenario per file, in one binary so that they link once.

mod captures;
mod frame_bits;
mod frame_errors;
mod frame_padding;
mod frame_segments;
mod frame_truncated;
mod grh_area;
mod header_round_trips;
mod opcode_facts;
mod opcode_lengths;
mod opcode_order;
mod other_frames;
mod psn_arithmetic;
mod source_ports;
mod support;
mod syndromes;
mod templates;
mod types;
mod udp_checksum;
mod vectors_decode;
mod vectors_encode;
mod vectors_icrc;
mod vectors_invalid;
