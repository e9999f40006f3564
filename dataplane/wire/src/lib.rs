//! RoCEv2 on the wire: header values, the opcode table, frames in and out, and the iCRC.
//!
//! Serves the packet formats of the InfiniBand transport over UDP (RoCEv2) and over a GRH (RoCE v1). Everything here is a
//! pure function of bytes: no device, clock or table of objects. Nothing that a peer can send makes it panic, and nothing
//! on the packet path allocates ([`build_frame`] is for tests and simulators).
//!
//! | to … | use |
//! | --- | --- |
//! | take a received frame apart | [`Frame::parse`], [`Frame::ext`], [`Frame::verify_icrc`] |
//! | take one apart that is like one before | [`Flow`] |
//! | know one that follows another | [`Run`], [`Frame::following`] |
//! | know what an opcode means | [`Opcode::info`], [`Opcode::of`] |
//! | send | [`HeaderTemplate`], [`ExtHeaders`], [`write_headers`], [`Icrc`] |
//! | read and write management datagrams | [`mad`] |
//! | name a number | [`Psn`], [`Qpn`], [`RKey`], [`Gid`], [`Mtu`] … |
//!
//! ```
//! use wire::*;
//!
//! let addressing = Addressing {
//!     version: RoceVersion::V2,
//!     smac: "02:00:00:00:00:0a".parse()?,
//!     dmac: "02:00:00:00:00:0b".parse()?,
//!     vlan: None,
//!     src: "192.0.2.10".parse()?,
//!     dst: "192.0.2.20".parse()?,
//!     traffic_class: 0,
//!     flow_label: 0,
//!     hop_limit: 64,
//!     udp_sport: udp_sport(0, Qpn::new(0x11), Qpn::new(0x12)),
//! };
//! let template = HeaderTemplate::new(&addressing)?;
//! let opcode = Opcode::of(Service::Rc, Operation::Write, Position::Only).expect("RC has WRITE");
//! let reth = Reth { va: 0x1000, rkey: RKey::new(0x1A2B), dma_len: 5 };
//!
//! let mut bytes = Vec::new();
//! let bth = Bth::new(opcode, Qpn::new(0x12), Psn::new(7));
//! build_frame(&template, &bth, &ExtHeaders::EMPTY.with(reth), 0, b"hello", &mut bytes);
//!
//! let frame = Frame::parse(&bytes, bytes.len())?;
//! frame.verify_icrc(&bytes, [&bytes[..]])?;
//! assert_eq!(frame.ext::<Reth>(&bytes), Some(reth));
//! assert_eq!(&bytes[frame.payload_offset()..][..frame.payload_len()], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod crc;
mod frame;
mod grh_area;
mod header;
mod icrc;
pub mod mad;
mod net;
mod opcode;
mod packet;
mod run;
mod sport;
mod template;
mod types;

pub use frame::{Flow, Frame, FrameError, HEAD_LEN, Network, Run};
pub use grh_area::{GRH_AREA_LEN, GrhArea, grh_area};
pub use header::{
    Aeth, AtomicAckEth, AtomicEth, Bth, CNP_BODY, CREDITS_UNUSED, Deth, ExtHeader, Feth, Ieth, ImmDt,
    NakCode, Rdeth, Reth, Syndrome, XrcEth, credit_code, credits, rnr_timer_ns,
};
pub use icrc::{ICRC_LEN, Icrc, compute as compute_icrc, mask_headers};
pub use net::{
    EthernetHeader, Ipv4Header, Ipv6Header, OnesComplement, ROCE_PORT, UdpHeader, Vlan, ethertype, protocol,
};
pub use opcode::{ExtKind, Opcode, OpcodeInfo, Operation, PayloadRule, Position, Reply, Service, Standing};
pub use packet::{ExtHeaders, MAX_HEADERS_LEN, MAX_OVERHEAD, TxHeaders, build_frame, write_headers};
pub use run::HeaderRun;
pub use sport::{
    flow_label_of_ports, flow_label_of_qpns, udp_sport, udp_sport_of_flow_label, udp_sport_of_qpn,
};
pub use template::{Addressing, HeaderTemplate, MixedFamilies, Reach, RoceVersion};
pub use types::{
    Gid, LKey, Mac, Msn, Mtu, OutOfRange, PKey, ParseGidError, ParseMacError, Psn, QKey, Qpn, RKey, Srqn,
    packets,
};
