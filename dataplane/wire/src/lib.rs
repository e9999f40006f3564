//! RoCEv2 on the wire: header values, the opcode table, frames in and out, and the iCRC.
//!
//! Serves the packet formats of the InfiniBand transport over UDP (RoCEv2) and over a GRH (RoCE v1). Everything here is a
//! pure function of bytes: no device, clock or table of objects. Nothing that a peer can send makes it panic, and nothing
//! on the packet path allocates ([`build_frame`] is for tests and simulators).
//!
//! | to … | use |
//! | --- | --- |
//! | take a received frame apart | [`Frame::parse`], [`Frame::ext`], [`Frame::verify_icrc`] |
//! | know what an opcode means | [`Opcode::info`], [`Opcode::of`] |
//! | send | [`HeaderTemplate`], [`ExtHeaders`], [`write_headers`], [`Icrc`] |
//! | name a number | [`Psn`], [`Qpn`], [`RKey`], [`Gid`], [`Mtu`] … |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod crc;
mod frame;
mod grh_area;
mod header;
mod icrc;
mod net;
mod opcode;
mod packet;
mod sport;
mod template;
mod types;

pub use frame::{Frame, FrameError, HEAD_LEN, Network};
pub use grh_area::{GRH_AREA_LEN, grh_area};
pub use header::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CNP_BODY, CREDITS_UNUSED, Deth, ExtHeader, Feth, Ieth, ImmDt,
    NakCode, Rdeth, Reth, Syndrome, XrcEth, credit_code, credits, rnr_timer_ns,
};
pub use icrc::{ICRC_LEN, Icrc, compute as compute_icrc, mask_headers};
pub use net::{
    EthernetHeader, Ipv4Header, Ipv6Header, OnesComplement, ROCE_PORT, UdpHeader, Vlan, ethertype, protocol,
};
pub use opcode::{ExtKind, Opcode, OpcodeInfo, Operation, PayloadRule, Position, Reply, Service};
pub use packet::{ExtHeaders, MAX_HEADERS_LEN, MAX_OVERHEAD, TxHeaders, build_frame, write_headers};
pub use sport::{
    flow_label_of_ports, flow_label_of_qpns, udp_sport, udp_sport_of_flow_label, udp_sport_of_qpn,
};
pub use template::{Addressing, HeaderTemplate, MixedFamilies, RoceVersion};
pub use types::{
    Gid, LKey, Mac, Msn, Mtu, OutOfRange, PKey, ParseGidError, ParseMacError, Psn, QKey, Qpn, RKey, packets,
};
