//! Management datagrams (MADs): the 256-byte messages of QP 1 (rocev2 facts, CM 1 to 9).
//!
//! | to … | use |
//! | --- | --- |
//! | read or write the header that all have in common | [`MadHeader`] |
//! | read or write a message of connection management | [`CmMad`], [`CmMessage`] |
//! | name what a service listens for | [`ServiceId`], [`PortSpace`] |
//! | read or write the addresses in an rdma_cm request | [`IpAddressing`] |
//! | answer who asks for port counters | [`ClassPortInfo`], [`PortCounters`], [`PortCountersExtended`] |
//!
//! Everything parses from any bytes without a panic: numbers that the protocol does not know stay numbers, and whoever uses
//! them decides. What is reserved is written as zero and not read.

mod addressing;
mod area;
mod cm;
mod fields;
mod header;
mod perf;
mod service;

pub use addressing::{AddressingError, IpAddressing};
pub use area::Area;
pub use cm::{
    AlternatePath, Answered, Apr, AprStatus, CmMad, CmMessage, CommId, Drep, Dreq, Lap, MessageKind, Mra,
    PrimaryPath, Rej, RejectReason, Rep, Req, Rtu, SidrRep, SidrReq, SidrStatus, Transport,
};
pub use header::{MAD_LEN, MadError, MadHeader, class, method, status};
pub use perf::{ClassPortInfo, PERF_DATA_OFFSET, PortCounters, PortCountersExtended, perf_attribute};
pub use service::{PortSpace, ServiceId};
