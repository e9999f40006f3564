//! Packets from choices: right headers for any opcode, with a right iCRC.

use crate::bytes::Bytes;
use crate::setup::Setup;
use engine::testkit::{PEER_QPN, QPN, SRQN};
use wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtHeaders, ExtKind, Feth, Icrc, Ieth, ImmDt, MAX_HEADERS_LEN,
    Msn, Opcode, OpcodeInfo, PKey, Psn, QKey, Rdeth, Reth, Syndrome, XrcEth,
};

/// A frame with this opcode and PSN to the rig's QP; all else is chosen.
pub fn frame(setup: &Setup, opcode: Opcode, psn: Psn, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let ext = opcode.info().map_or(ExtHeaders::EMPTY, |info| headers(info, setup, bytes));
    let len = match bytes.byte() {
        byte @ 0..128 => usize::from(byte % 16),
        128..200 => 256,
        byte => usize::from(byte) * 21,
    };
    let flags = bytes.byte();
    let odd = flags & 0xF0 == 0xF0;
    let bth = Bth {
        ack_req: flags & 1 != 0,
        solicited: flags & 2 != 0,
        pad_count: if odd { flags & 3 } else { Bth::pad_for(len) },
        pkey: if flags & 0xF8 == 0xE8 { PKey(bytes.byte().into()) } else { PKey::DEFAULT },
        ..Bth::new(opcode, QPN, psn)
    };
    let mut frame = vec![0; MAX_HEADERS_LEN];
    let written = wire::write_headers(&setup.rig.from_peer, &bth.to_bytes(), &ext, 0, len, &mut frame);
    let mut icrc: Icrc = written.icrc;
    frame.truncate(written.len);
    let body = vec![bytes.byte(); len + usize::from(bth.pad_count)];
    icrc.update(&body);
    frame.extend_from_slice(&body);
    frame.extend_from_slice(&icrc.to_wire());
    frame
}

fn headers(info: &OpcodeInfo, setup: &Setup, bytes: &mut Bytes<'_>) -> ExtHeaders {
    let (addr, rkey) = setup.target(bytes.byte());
    let offset = match bytes.byte() {
        byte @ 0..200 => u64::from(byte) * 8,
        byte @ 200..240 => 1024 - u64::from(byte - 200),
        _ => u64::from(bytes.word()) << 32,
    };
    let dma_len = match bytes.byte() {
        byte @ 0..128 => u32::from(byte % 16),
        128..200 => 256,
        byte @ 200..250 => u32::from(byte - 199) * 256,
        _ => bytes.word(),
    };
    let va = addr.wrapping_add(offset);
    let srqn = if bytes.byte() < 250 { SRQN.value() } else { bytes.word() };
    let syndrome = Syndrome::from_byte(bytes.byte());
    let mut ext = ExtHeaders::EMPTY;
    let mut add = |kind, with: &dyn Fn(ExtHeaders) -> ExtHeaders| {
        if info.has(kind) {
            ext = with(ext);
        }
    };
    add(ExtKind::Rdeth, &|ext| ext.with(Rdeth { ee_context: 0 }));
    add(ExtKind::Deth, &|ext| ext.with(Deth { qkey: QKey::new(0x1234), src_qpn: PEER_QPN }));
    add(ExtKind::XrcEth, &|ext| ext.with(XrcEth { srqn }));
    add(ExtKind::Feth, &|ext| ext.with(Feth { plt: dma_len as u8 & 3, sel: offset as u8 & 1 }));
    add(ExtKind::Reth, &|ext| ext.with(Reth { va, rkey, dma_len }));
    let atomic = AtomicEth { va, rkey, swap_or_add: 1, compare: 1 };
    add(ExtKind::AtomicEth, &|ext| ext.with(atomic));
    add(ExtKind::Aeth, &|ext| ext.with(Aeth { syndrome, msn: Msn::new(dma_len) }));
    add(ExtKind::AtomicAckEth, &|ext| ext.with(AtomicAckEth { original: 1 }));
    add(ExtKind::ImmDt, &|ext| ext.with(ImmDt([1; 4])));
    add(ExtKind::Ieth, &|ext| ext.with(Ieth { rkey }));
    ext
}
