//! Every operation as one packet, with the headers it takes and no others.

use super::*;
use crate::status::WcOpcode;
use crate::testkit::PEER_QPN;
use wire::PKey;

#[test]
fn each_operation_has_its_headers() {
    let (mut rig, region) = rc();
    let sge = [region.sge(8, 5)];
    let eight = [region.sge(0, 8)];
    let (compare, swap) = (0x11, 0x22);
    rig.post_send(wr(1, SendOp::Send, &sge));
    rig.post_send(wr(2, SendOp::SendImm([1, 2, 3, 4]), &sge));
    rig.post_send(wr(3, SendOp::SendInv(RKey::new(0x77)), &sge));
    rig.post_send(wr(4, SendOp::Write(REMOTE), &sge));
    rig.post_send(wr(5, SendOp::WriteImm(REMOTE, [5, 6, 7, 8]), &sge));
    rig.post_send(wr(6, SendOp::Read(REMOTE), &sge));
    rig.post_send(wr(7, SendOp::CompareSwap { remote: REMOTE, compare, swap }, &eight));
    rig.post_send(wr(8, SendOp::FetchAdd { remote: REMOTE, add: 0x33 }, &eight));
    sends(
        &mut rig,
        &[
            "100 SEND Only 5 A",
            "101 SEND Only w/ Imm 5 A imm([1, 2, 3, 4])",
            "102 SEND Only w/ Inv 5 A inv(77)",
            "103 WRITE Only 5 A @7f000000+5",
            "104 WRITE Only w/ Imm 5 A @7f000000+5 imm([5, 6, 7, 8])",
            "105 READ Request 0 A @7f000000+5",
            "106 CmpSwap 0 A atomic(22, 11)",
            "107 FetchAdd 0 A atomic(33, 0)",
        ],
    );
}

#[test]
fn the_bth_names_the_peer_and_the_default_partition() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 5)]));
    let sent = rig.sent();
    let Bth { dest_qpn, pkey, pad_count, tver, fecn, becn, resv6, resv7, .. } = sent[0].bth;
    assert_eq!((dest_qpn, pkey, pad_count, tver), (PEER_QPN, PKey(0xFFFF), 3, 0));
    assert_eq!((fecn, becn, resv6, resv7), (false, false, 0, 0));
    assert_eq!(sent[0].header::<Reth>().map(|reth| reth.rkey), Some(REMOTE.rkey));
}

#[test]
fn the_payload_is_gathered_from_all_sges() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(3, 4), region.sge(0, 0), region.sge(100, 2)]));
    assert_eq!(rig.sent()[0].payload, [pattern(3, 4), pattern(100, 2)].concat());
}

#[test]
fn inline_data_leaves_as_it_was_posted() {
    let (mut rig, _) = rc();
    rig.post_send(inline(1, SendOp::Write(REMOTE), b"here"));
    assert_eq!(rig.sent()[0].payload, b"here");
}

#[test]
fn a_message_without_bytes_is_one_packet_and_needs_no_key() {
    let (mut rig, region) = rc();
    let nowhere = Sge { lkey: wire::LKey::new(0xDEAD_BEEF), ..region.sge(0, 0) };
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, SendOp::WriteImm(REMOTE, [0; 4]), &[nowhere]));
    rig.post_send(wr(3, SendOp::Read(REMOTE), &[]));
    sends(
        &mut rig,
        &[
            "100 SEND Only 0 A",
            "101 WRITE Only w/ Imm 0 A @7f000000+0 imm([0, 0, 0, 0])",
            "102 READ Request 0 A @7f000000+0",
        ],
    );
    read_response(&mut rig, Position::Only, 0x102, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success), (3, WcStatus::Success)]);
}

#[test]
fn the_solicited_bit_is_for_what_completes_a_receive() {
    let (mut rig, region) = rc();
    let sge = [region.sge(0, 4)];
    for op in [SendOp::Send, SendOp::Write(REMOTE), SendOp::WriteImm(REMOTE, [9; 4]), SendOp::Read(REMOTE)] {
        rig.post_send(with_flags(wr(1, op, &sge), SendFlags::SOLICITED));
    }
    let solicited: Vec<bool> = rig.sent().iter().map(|packet| packet.bth.solicited).collect();
    assert_eq!(solicited, [true, false, true, false]);
}

#[test]
fn completions_name_the_operation() {
    let (mut rig, region) = rc();
    let eight = [region.sge(0, 8)];
    rig.post_send(wr(1, SendOp::SendInv(RKey::new(1)), &eight));
    rig.post_send(wr(2, SendOp::WriteImm(REMOTE, [0; 4]), &eight));
    rig.post_send(wr(3, SendOp::Read(REMOTE), &eight));
    rig.post_send(wr(4, SendOp::FetchAdd { remote: REMOTE, add: 1 }, &eight));
    rig.post_send(wr(5, SendOp::CompareSwap { remote: REMOTE, compare: 1, swap: 1 }, &eight));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x102, &[1; 8]);
    atomic_ack(&mut rig, 0x103, 1);
    atomic_ack(&mut rig, 0x104, 1);
    let told: Vec<(WcOpcode, u32)> = rig.send_cqes().iter().map(|cqe| (cqe.opcode, cqe.byte_len)).collect();
    let expected = [
        (WcOpcode::Send, 0),
        (WcOpcode::RdmaWrite, 0),
        (WcOpcode::RdmaRead, 8),
        (WcOpcode::FetchAdd, 8),
        (WcOpcode::CompSwap, 8),
    ];
    assert_eq!(told, expected);
}
