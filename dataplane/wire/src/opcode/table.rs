//! The opcode table: one row per operation code, one per service (rocev2 facts, wire 7).

use super::ExtKind::{self, *};
use super::{Operation, PayloadRule, Position, Service};

/// One operation code: what a packet with it is.
pub(super) struct Row {
    /// Low five bits of the opcode.
    pub code: u8,
    /// Services that have it.
    pub services: &'static [Service],
    pub name: &'static str,
    pub operation: Operation,
    pub position: Position,
    /// Headers after the service's own.
    pub headers: &'static [ExtKind],
    pub payload: PayloadRule,
}

/// One service: its prefix is the enum's value, these are the headers that its packets carry first.
pub(super) struct ServiceRow {
    pub service: Service,
    pub name: &'static str,
    pub request_headers: &'static [ExtKind],
    pub response_headers: &'static [ExtKind],
}

#[rustfmt::skip]
pub(super) const SERVICES: [ServiceRow; Service::COUNT] = [
    ServiceRow { service: Service::Rc,  name: "RC",  request_headers: &[],            response_headers: &[] },
    ServiceRow { service: Service::Uc,  name: "UC",  request_headers: &[],            response_headers: &[] },
    ServiceRow { service: Service::Rd,  name: "RD",  request_headers: &[Rdeth, Deth], response_headers: &[Rdeth] },
    ServiceRow { service: Service::Ud,  name: "UD",  request_headers: &[Deth],        response_headers: &[] },
    ServiceRow { service: Service::Cnp, name: "",    request_headers: &[],            response_headers: &[] },
    ServiceRow { service: Service::Xrc, name: "XRC", request_headers: &[XrcEth],      response_headers: &[] },
];

/// All that carry messages of several packets.
const STREAMS: &[Service] = &[Service::Rc, Service::Uc, Service::Rd, Service::Xrc];
/// UD has single packets only.
const ANY: &[Service] = &[Service::Rc, Service::Uc, Service::Rd, Service::Ud, Service::Xrc];
/// Services that answer.
const RELIABLE: &[Service] = &[Service::Rc, Service::Rd, Service::Xrc];

#[rustfmt::skip]
pub(super) const ROWS: [Row; 27] = {
    use Operation::*;
    use PayloadRule::{Exactly, FullMtu, Nothing, OneToMtu, UpToMtu};
    use Position::*;
    use Service::{Cnp as CnpService, Rc, Rd, Xrc};
    const fn row(
        code: u8, services: &'static [Service], name: &'static str, operation: Operation, position: Position,
        headers: &'static [ExtKind], payload: PayloadRule,
    ) -> Row {
        Row { code, services, name, operation, position, headers, payload }
    }
    [
        row(0x00, STREAMS,      "SEND First",            Send,              First,  &[],                   FullMtu),
        row(0x01, STREAMS,      "SEND Middle",           Send,              Middle, &[],                   FullMtu),
        row(0x02, STREAMS,      "SEND Last",             Send,              Last,   &[],                   OneToMtu),
        row(0x03, STREAMS,      "SEND Last w/ Imm",      SendImm,           Last,   &[ImmDt],              OneToMtu),
        row(0x04, ANY,          "SEND Only",             Send,              Only,   &[],                   UpToMtu),
        row(0x05, ANY,          "SEND Only w/ Imm",      SendImm,           Only,   &[ImmDt],              UpToMtu),
        row(0x06, STREAMS,      "WRITE First",           Write,             First,  &[Reth],               FullMtu),
        row(0x07, STREAMS,      "WRITE Middle",          Write,             Middle, &[],                   FullMtu),
        row(0x08, STREAMS,      "WRITE Last",            Write,             Last,   &[],                   OneToMtu),
        row(0x09, STREAMS,      "WRITE Last w/ Imm",     WriteImm,          Last,   &[ImmDt],              OneToMtu),
        row(0x0A, STREAMS,      "WRITE Only",            Write,             Only,   &[Reth],               UpToMtu),
        row(0x0B, STREAMS,      "WRITE Only w/ Imm",     WriteImm,          Only,   &[Reth, ImmDt],        UpToMtu),
        row(0x0C, RELIABLE,     "READ Request",          ReadRequest,       Only,   &[Reth],               Nothing),
        row(0x0D, RELIABLE,     "READ Response First",   ReadResponse,      First,  &[Aeth],               FullMtu),
        row(0x0E, RELIABLE,     "READ Response Middle",  ReadResponse,      Middle, &[],                   FullMtu),
        row(0x0F, RELIABLE,     "READ Response Last",    ReadResponse,      Last,   &[Aeth],               OneToMtu),
        row(0x10, RELIABLE,     "READ Response Only",    ReadResponse,      Only,   &[Aeth],               UpToMtu),
        row(0x11, RELIABLE,     "Acknowledge",           Acknowledge,       Only,   &[Aeth],               Nothing),
        row(0x12, RELIABLE,     "ATOMIC Acknowledge",    AtomicAcknowledge, Only,   &[Aeth, AtomicAckEth], Nothing),
        row(0x13, RELIABLE,     "CmpSwap",               CompareSwap,       Only,   &[AtomicEth],          Nothing),
        row(0x14, RELIABLE,     "FetchAdd",              FetchAdd,          Only,   &[AtomicEth],          Nothing),
        row(0x15, &[Rd],        "RESYNC",                Resync,            Only,   &[],                   Nothing),
        row(0x16, &[Rc, Xrc],   "SEND Last w/ Inv",      SendInv,           Last,   &[Ieth],               OneToMtu),
        row(0x17, &[Rc, Xrc],   "SEND Only w/ Inv",      SendInv,           Only,   &[Ieth],               UpToMtu),
        row(0x1C, &[Rc],        "FLUSH",                 Flush,             Only,   &[Feth, Reth],         Nothing),
        row(0x1D, &[Rc],        "ATOMIC WRITE",          AtomicWrite,       Only,   &[Reth],               Exactly(8)),
        // rocev2 facts, congestion 2: the number is 0x81, the body sixteen reserved bytes.
        row(0x01, &[CnpService], "CNP",                  Cnp,               Only,   &[],                   Exactly(16)),
    ]
};
