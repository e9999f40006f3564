//! Tables for the packet path, computed from the rows at compile time: opcode → what it means, and the way back.

use super::table::{ROWS, Row, SERVICES};
use super::{ExtKind, Opcode, OpcodeInfo, Operation, Position, Reply, Service, Standing};
use crate::header::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Feth, Ieth, ImmDt, Rdeth, Reth, XrcEth};

/// In [`OPCODES`]: there is no such packet. (0xFF lies in the vendors' range.)
pub(super) const NO_OPCODE: u8 = 0xFF;

/// By opcode byte.
pub(super) static INFOS: [Option<OpcodeInfo>; 256] = INFO_VALUES;

/// By service, operation and position.
pub(super) static OPCODES: [[[u8; Position::COUNT]; Operation::COUNT]; Service::COUNT] = opcodes();

const fn len_of(kind: ExtKind) -> usize {
    match kind {
        ExtKind::Rdeth => Rdeth::LEN,
        ExtKind::Deth => Deth::LEN,
        ExtKind::XrcEth => XrcEth::LEN,
        ExtKind::Feth => Feth::LEN,
        ExtKind::Reth => Reth::LEN,
        ExtKind::AtomicEth => AtomicEth::LEN,
        ExtKind::Aeth => Aeth::LEN,
        ExtKind::AtomicAckEth => AtomicAckEth::LEN,
        ExtKind::ImmDt => ImmDt::LEN,
        ExtKind::Ieth => Ieth::LEN,
    }
}

const fn infos() -> [Option<OpcodeInfo>; 256] {
    let mut infos = [None; 256];
    let mut i = 0;
    while i < ROWS.len() {
        let row = &ROWS[i];
        let mut s = 0;
        while s < row.services.len() {
            let info = derive(row, row.services[s]);
            assert!(infos[info.opcode.0 as usize].is_none(), "two rows for one opcode");
            infos[info.opcode.0 as usize] = Some(info);
            s += 1;
        }
        i += 1;
    }
    infos
}

const fn derive(row: &Row, service: Service) -> OpcodeInfo {
    let service_row = &SERVICES[service.index()];
    assert!(service_row.service as u8 == service as u8, "SERVICES is in the order of the prefixes");
    let own =
        if row.operation.is_response() { service_row.response_headers } else { service_row.request_headers };
    let (offsets, end) = place(own, [0; ExtKind::COUNT], Bth::LEN);
    let (offsets, end) = place(row.headers, offsets, end);
    let (base, position) = (row.operation.base(), row.position);
    let is_response = row.operation.is_response();
    let inside = Standing::inside(service, base);
    OpcodeInfo {
        opcode: Opcode(service as u8 | row.code),
        service,
        operation: row.operation,
        position,
        payload: row.payload,
        name: row.name,
        base,
        is_response,
        takes_receive: matches!(row.operation, Operation::WriteImm)
            || matches!(base, Operation::Send) && position.begins(),
        completes_receive: matches!(row.operation, Operation::WriteImm)
            || matches!(base, Operation::Send) && position.ends(),
        reply: reply(row.operation, service),
        class: OpcodeInfo::class_of(service, is_response),
        comes: if position.begins() { Standing::BETWEEN } else { inside },
        leaves: if position.ends() { Standing::BETWEEN } else { inside },
        bounds: row.payload.bounds(),
        ext_len: (end - Bth::LEN) as u8,
        offsets,
    }
}

/// What a responder sends for a request that it has executed.
const fn reply(operation: Operation, service: Service) -> Reply {
    if operation.is_response() || matches!(service, Service::Uc | Service::Ud | Service::Cnp) {
        return Reply::Nothing;
    }
    match operation {
        Operation::CompareSwap | Operation::FetchAdd => Reply::AtomicAcknowledge,
        Operation::ReadRequest | Operation::Flush | Operation::AtomicWrite => Reply::ReadResponse,
        _ => Reply::Ack,
    }
}

const fn place(
    headers: &[ExtKind],
    mut offsets: [u8; ExtKind::COUNT],
    mut at: usize,
) -> ([u8; ExtKind::COUNT], usize) {
    let mut i = 0;
    while i < headers.len() {
        offsets[headers[i] as usize] = at as u8;
        at += len_of(headers[i]);
        i += 1;
    }
    (offsets, at)
}

const fn opcodes() -> [[[u8; Position::COUNT]; Operation::COUNT]; Service::COUNT] {
    let mut opcodes = [[[NO_OPCODE; Position::COUNT]; Operation::COUNT]; Service::COUNT];
    let mut byte = 0;
    while byte < 256 {
        if let Some(info) = &INFO_VALUES[byte] {
            opcodes[info.service.index()][info.operation as usize][info.position as usize] = byte as u8;
        }
        byte += 1;
    }
    borrow_beginnings(opcodes)
}

/// A message with immediate or invalidate begins like the plain one, where the service knows its end.
const fn borrow_beginnings(
    mut opcodes: [[[u8; Position::COUNT]; Operation::COUNT]; Service::COUNT],
) -> [[[u8; Position::COUNT]; Operation::COUNT]; Service::COUNT] {
    const VARIANTS: [Operation; 3] = [Operation::SendImm, Operation::SendInv, Operation::WriteImm];
    let mut s = 0;
    while s < Service::COUNT {
        let mut v = 0;
        while v < VARIANTS.len() {
            let (variant, base) = (VARIANTS[v] as usize, VARIANTS[v].base() as usize);
            if opcodes[s][variant][Position::Last as usize] != NO_OPCODE {
                opcodes[s][variant][Position::First as usize] = opcodes[s][base][Position::First as usize];
                opcodes[s][variant][Position::Middle as usize] = opcodes[s][base][Position::Middle as usize];
            }
            v += 1;
        }
        s += 1;
    }
    opcodes
}

/// [`INFOS`] as a value that other tables can be computed from.
const INFO_VALUES: [Option<OpcodeInfo>; 256] = infos();
