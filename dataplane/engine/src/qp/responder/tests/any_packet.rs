//! Any packet, in any state: no panic, no byte outside of what was granted, and no trace of a packet that was
//! not admitted.

use super::help::*;
use proptest::prelude::*;
use wire::{ExtHeaders, Frame, Icrc, MAX_HEADERS_LEN, Opcode};

/// What is in the extension headers, if the packet has them.
#[derive(Clone, Copy, Debug)]
struct Headers {
    va: u64,
    rkey: usize,
    len: u32,
}

fn headers() -> impl Strategy<Value = Headers> {
    let offset = prop_oneof![0u64..80, Just(1016), Just(1024), Just(u64::MAX), any::<u64>()];
    let len = prop_oneof![0u32..20, Just(256), Just(512), 0u32..1200, Just(1 << 31), any::<u32>()];
    (offset, 0..5usize, len).prop_map(|(va, rkey, len)| Headers { va, rkey, len })
}

#[derive(Clone, Debug)]
struct Any {
    opcode: u8,
    psn: u32,
    payload: usize,
    pad: u8,
    ack_req: bool,
    headers: Headers,
}

fn packets() -> impl Strategy<Value = Vec<Any>> {
    // Two in three opcodes are ones of the three services, or messages would never get anywhere.
    let opcode = prop_oneof![0u8..0x20, prop_oneof![0x20u8..0x2C, 0x64u8..0x66], any::<u8>()];
    let payload = prop_oneof![Just(0usize), Just(256), Just(8), 1usize..9, 0usize..4200];
    let psn = prop_oneof![4 => Just(None), 1 => (-6i32..6).prop_map(Some), 1 => any::<i32>().prop_map(Some)];
    let one = (
        opcode,
        psn,
        payload,
        prop_oneof![5 => Just(None), 1 => (0u8..4).prop_map(Some)],
        any::<bool>(),
        headers(),
    );
    let one = one.prop_map(|(opcode, psn, payload, pad, ack_req, headers)| {
        (psn, Any { opcode, psn: 0, payload, pad: pad.unwrap_or(Bth::pad_for(payload)), ack_req, headers })
    });
    proptest::collection::vec(one, 1..40).prop_map(|steps| {
        let mut next = FIRST;
        steps
            .into_iter()
            .map(|(shift, any)| {
                let psn = next.wrapping_add(shift.unwrap_or(0) as u32);
                next = next.wrapping_add(u32::from(shift.is_none()));
                Any { psn, ..any }
            })
            .collect()
    })
}

/// The regions of a rig: what the peer may use, what receives use, and what nobody has granted.
struct Regions {
    granted: Region,
    receive: Region,
    others: [Region; 3],
}

fn regions(rig: &mut Rig) -> Regions {
    let granted = rig.region(1024, ALL | Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT);
    let receive = rig.region(1024, Access::LOCAL_WRITE);
    let others = [
        rig.region(1024, Access::LOCAL_WRITE),
        rig.region_of(crate::PdId(7), 1024, ALL),
        rig.region(1024, Access::REMOTE_READ),
    ];
    for wr_id in 0..4 {
        rig.post_recv(wr_id, &[receive.sge(8, 100), receive.sge(200, 700)]);
    }
    Regions { granted, receive, others }
}

/// The frame's bytes. Headers that the opcode does not have are left out, the iCRC is right.
fn frame(rig: &Rig, regions: &Regions, any: &Any) -> Vec<u8> {
    let all =
        [&regions.granted, &regions.receive, &regions.others[0], &regions.others[1], &regions.others[2]];
    let region = all[any.headers.rkey];
    let va = region.addr.wrapping_add(any.headers.va);
    let reth = Reth { va, rkey: region.rkey(), dma_len: any.headers.len };
    let atomic = AtomicEth { va, rkey: region.rkey(), swap_or_add: 1, compare: 1 };
    let opcode = Opcode(any.opcode);
    let mut ext = ExtHeaders::EMPTY;
    if let Some(info) = opcode.info() {
        use wire::ExtKind as K;
        let has = |kind| info.has(kind);
        if has(K::Rdeth) {
            ext = ext.with(wire::Rdeth { ee_context: 0 })
        }
        if has(K::Deth) {
            ext = ext.with(Deth { qkey: QKey::new(0x1234), src_qpn: PEER_QPN })
        }
        if has(K::XrcEth) {
            ext = ext.with(wire::XrcEth { srqn: 0 })
        }
        if has(K::Feth) {
            let (plt, sel) = (any.headers.va as u8 & 3, any.headers.len as u8 & 1);
            ext = ext.with(wire::Feth { plt, sel })
        }
        if has(K::Reth) {
            ext = ext.with(reth)
        }
        if has(K::AtomicEth) {
            ext = ext.with(atomic)
        }
        if has(K::Aeth) {
            ext = ext.with(Aeth { syndrome: Syndrome::from_byte(any.headers.len as u8), msn: Msn::new(1) })
        }
        if has(K::AtomicAckEth) {
            ext = ext.with(wire::AtomicAckEth { original: 1 })
        }
        if has(K::ImmDt) {
            ext = ext.with(ImmDt([1; 4]))
        }
        if has(K::Ieth) {
            ext = ext.with(Ieth { rkey: region.rkey() })
        }
    }
    let bth = Bth { ack_req: any.ack_req, pad_count: any.pad, ..Bth::new(opcode, QPN, Psn::new(any.psn)) };
    let mut bytes = vec![0; MAX_HEADERS_LEN];
    let headers = wire::write_headers(&rig.from_peer, &bth.to_bytes(), &ext, 0, any.payload, &mut bytes);
    let mut icrc: Icrc = headers.icrc;
    bytes.truncate(headers.len);
    let body = vec![0xEE; any.payload + usize::from(any.pad)];
    icrc.update(&body);
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(&icrc.to_wire());
    bytes
}

/// All of a QP but its counters.
fn image(rig: &Rig) -> String {
    let qp = rig.engine.qp(QPN).unwrap();
    format!("{:?} {:?} {:?} {:?}", qp.state, qp.resp, qp.req, qp.shared.rq())
}

fn drops(rig: &Rig) -> [u64; 6] {
    use DropReason::*;
    [WrongService, WrongState, WrongAddress, PKey, QKey, Cnp].map(|reason| rig.dropped(reason))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_packet_reaches_beyond_its_rights(
        packets in packets(),
        qp_type in prop_oneof![3 => Just(QpType::Rc), 1 => Just(QpType::Uc), 1 => Just(QpType::Ud)],
        state in prop_oneof![8 => Just(QpState::Rts), 1 => Just(QpState::Rtr), 1 => Just(QpState::Init),
            1 => Just(QpState::Sqd), 1 => Just(QpState::Err), 1 => Just(QpState::Reset)],
        room in 0usize..6,
    ) {
        let mut rig = Rig::with(qp_type, state, attributes());
        let regions = if state == QpState::Reset { None } else { Some(regions(&mut rig)) };
        let Some(regions) = regions else { return Ok(()) };
        let before = rig.memory.snapshot();
        for any in &packets {
            let bytes = frame(&rig, &regions, any);
            if Frame::parse(&bytes, bytes.len()).is_err() {
                continue;
            }
            let (image_before, drops_before, memory_before) = (image(&rig), drops(&rig), rig.memory.snapshot());
            rig.deliver_frame(&bytes);
            if drops(&rig) != drops_before {
                prop_assert_eq!(image(&rig), image_before);
                prop_assert_eq!(rig.memory.snapshot(), memory_before);
            }
            for packet in rig.sent_into(room) {
                prop_assert_eq!(qp_type, QpType::Rc, "unreliable services do not answer: {:?}", packet);
            }
        }
        let after = rig.memory.snapshot();
        for region in &regions.others {
            let slot = region.id.slot as usize;
            prop_assert_eq!(&after[slot], &before[slot]);
        }
        // A receive's region is written inside of its SGEs only.
        let slot = regions.receive.id.slot as usize;
        let (after, before) = (after[slot].as_ref().unwrap(), before[slot].as_ref().unwrap());
        for gap in [0..8, 108..200, 900..1024] {
            prop_assert_eq!(&after[gap.clone()], &before[gap]);
        }
    }
}

/// Each opcode of 256, each in a QP of its own, with lengths around what matters.
#[test]
fn all_opcodes_and_lengths_in_all_states() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for state in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Err] {
            let mut rig = Rig::with(qp_type, state, attributes());
            let all = regions(&mut rig);
            for opcode in 0..=255 {
                for payload in [0, 1, 8, 255, 256, 257, 4096] {
                    let headers = Headers { va: 0, rkey: 0, len: payload as u32 };
                    let pad = Bth::pad_for(payload);
                    let any = Any { opcode, psn: FIRST, payload, pad, ack_req: true, headers };
                    let bytes = frame(&rig, &all, &any);
                    if Frame::parse(&bytes, bytes.len()).is_err() {
                        continue;
                    }
                    let (before, drops_before) = (image(&rig), drops(&rig));
                    rig.deliver_frame(&bytes);
                    if drops(&rig) != drops_before {
                        assert_eq!(image(&rig), before, "{opcode:#x} {payload}");
                        continue;
                    }
                    let sent = rig.sent();
                    assert!(sent.len() <= 16);
                    // A fresh one: each packet meets the same QP.
                    rig = Rig::with(qp_type, state, attributes());
                    regions(&mut rig);
                }
            }
        }
    }
}
