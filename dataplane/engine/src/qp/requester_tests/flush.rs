//! FLUSH and ATOMIC WRITE as they are sent, and what completes them.

use super::*;
use crate::counters::Counter;
use crate::placement::{FlushLevel, Placement};
use crate::queue::PostError;
use crate::status::WcOpcode;
use wire::Feth;

fn flush(placement: Placement, level: FlushLevel, len: u32) -> SendOp {
    SendOp::Flush { remote: REMOTE, len, placement, level }
}

fn global() -> SendOp {
    flush(Placement::GLOBAL, FlushLevel::Range, 100)
}

#[test]
fn each_has_its_headers() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, flush(Placement::GLOBAL, FlushLevel::Range, 700), &[]));
    rig.post_send(wr(2, flush(Placement::all(), FlushLevel::Region, 0), &[]));
    rig.post_send(wr(3, SendOp::AtomicWrite(REMOTE), &[region.sge(8, 3), region.sge(100, 5)]));
    rig.post_send(inline(4, SendOp::AtomicWrite(REMOTE), b"together"));
    let sent = rig.sent();
    assert_eq!(
        show(&sent),
        [
            "100 FLUSH 0 A @7f000000+700",
            "101 FLUSH 0 A @7f000000+0",
            "102 ATOMIC WRITE 8 A @7f000000+8",
            "103 ATOMIC WRITE 8 A @7f000000+8",
        ]
    );
    let feths: Vec<_> = sent[..2].iter().map(Packet::header::<Feth>).collect();
    assert_eq!(feths, [Some(Feth { plt: 1, sel: 0 }), Some(Feth { plt: 3, sel: 1 })]);
    assert_eq!(sent[2].payload, [pattern(8, 3), pattern(100, 5)].concat());
    assert_eq!(sent[3].payload, b"together");
    assert_eq!(sent[0].header::<Reth>().map(|reth| reth.rkey), Some(REMOTE.rkey));
}

#[test]
fn the_solicited_bit_is_not_for_them() {
    let (mut rig, _) = rc();
    rig.post_send(with_flags(wr(1, global(), &[]), SendFlags::SOLICITED));
    rig.post_send(with_flags(inline(2, SendOp::AtomicWrite(REMOTE), &[0; 8]), SendFlags::SOLICITED));
    assert!(rig.sent().iter().all(|packet| !packet.bth.solicited));
}

/// rocev2 facts, wire 7 [1: rxe].
#[test]
fn an_empty_read_response_completes_them() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(wr(2, global(), &[]));
    rig.post_send(inline(3, SendOp::AtomicWrite(REMOTE), &[7; 8]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x101, &[]);
    read_response(&mut rig, Position::Only, 0x102, &[]);
    let told: Vec<_> = rig.send_cqes().iter().map(|cqe| (cqe.wr_id, cqe.opcode, cqe.byte_len)).collect();
    assert_eq!(told, [(1, WcOpcode::Send, 0), (2, WcOpcode::Flush, 0), (3, WcOpcode::AtomicWrite, 0)]);
    assert_eq!((WcOpcode::Flush as u8, WcOpcode::AtomicWrite as u8), (8, 9));
}

/// An ACK does not tell that it was done: the response was lost, and is asked for again.
#[test]
fn a_plain_ack_completes_neither() {
    for op in [global(), SendOp::AtomicWrite(REMOTE)] {
        let (mut rig, _) = rc();
        let data: &[u8] = if matches!(op, SendOp::AtomicWrite(_)) { &[1; 8] } else { &[] };
        rig.post_send(inline(1, op, data));
        rig.post_send(wr(2, SendOp::Send, &[]));
        let first = show(&rig.sent());
        ack(&mut rig, 0x101);
        completes(&rig, &[]);
        assert_eq!(show(&rig.sent()), first);
        assert_eq!(rig.count(Counter::ImpliedNakSeqErr), 1);
        read_response(&mut rig, Position::Only, 0x100, &[]);
        ack(&mut rig, 0x101);
        completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
    }
}

#[test]
fn after_a_timeout_both_go_out_again_as_they_were() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, global(), &[]));
    rig.post_send(inline(2, SendOp::AtomicWrite(REMOTE), &[5; 8]));
    let first = rig.sent();
    rig.advance(100_000_000);
    let again = rig.sent();
    assert_eq!(show(&again), show(&first));
    assert_eq!((again[1].payload.as_slice(), again[0].header::<Feth>()), (&[5; 8][..], first[0].header()));
    assert_eq!(rig.count(Counter::Retransmitted), 2);
}

#[test]
fn data_or_an_atomic_answer_is_a_bad_response() {
    let (mut rig, _) = rc();
    rig.post_send(wr(1, global(), &[]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    completes(&rig, &[(1, WcStatus::LocLenErr)]);

    let (mut rig, _) = rc();
    rig.post_send(inline(1, SendOp::AtomicWrite(REMOTE), &[1; 8]));
    rig.sent();
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    completes(&rig, &[(1, WcStatus::LocLenErr)]);

    let (mut rig, _) = rc();
    rig.post_send(wr(1, global(), &[]));
    rig.sent();
    atomic_ack(&mut rig, 0x100, 1);
    completes(&rig, &[(1, WcStatus::BadRespErr)]);

    let (mut rig, _) = rc();
    rig.post_send(wr(1, global(), &[]));
    rig.sent();
    read_response(&mut rig, Position::Last, 0x100, &[]);
    completes(&rig, &[(1, WcStatus::BadRespErr)]);
}

#[test]
fn refusals_have_their_status() {
    for (code, status) in [
        (NakCode::InvalidRequest, WcStatus::RemInvReqErr),
        (NakCode::RemoteAccess, WcStatus::RemAccessErr),
        (NakCode::RemoteOperational, WcStatus::RemOpErr),
    ] {
        let (mut rig, _) = rc();
        rig.post_send(wr(1, global(), &[]));
        rig.post_send(wr(2, SendOp::Send, &[]));
        rig.sent();
        nak(&mut rig, 0x100, code);
        completes(&rig, &[(1, status), (2, WcStatus::WrFlushErr)]);
    }
}

#[test]
fn they_count_as_reads_do_and_a_fence_waits_for_them() {
    let (mut rig, _) = rc_with(QpAttr { max_rd_atomic: 2, ..attributes() });
    rig.post_send(wr(1, global(), &[]));
    rig.post_send(inline(2, SendOp::AtomicWrite(REMOTE), &[1; 8]));
    rig.post_send(wr(3, global(), &[]));
    sends(&mut rig, &["100 FLUSH 0 A @7f000000+100", "101 ATOMIC WRITE 8 A @7f000000+8"]);
    read_response(&mut rig, Position::Only, 0x100, &[]);
    sends(&mut rig, &["102 FLUSH 0 A @7f000000+100"]);
    // The answer to one behind it tells that its own was lost.
    read_response(&mut rig, Position::Only, 0x102, &[]);
    sends(&mut rig, &["101 ATOMIC WRITE 8 A @7f000000+8", "102 FLUSH 0 A @7f000000+100"]);

    let (mut rig, _) = rc();
    rig.post_send(wr(1, global(), &[]));
    rig.post_send(with_flags(wr(2, SendOp::Send, &[]), SendFlags::FENCE));
    sends(&mut rig, &["100 FLUSH 0 A @7f000000+100"]);
    read_response(&mut rig, Position::Only, 0x100, &[]);
    sends(&mut rig, &["101 SEND Only 0 A"]);

    for op in [global(), SendOp::AtomicWrite(REMOTE)] {
        let (mut rig, _) = rc_with(QpAttr { max_rd_atomic: 0, ..attributes() });
        let data: &[u8] = if matches!(op, SendOp::AtomicWrite(_)) { &[1; 8] } else { &[] };
        rig.post_send(inline(1, op, data));
        sends(&mut rig, &[]);
        completes(&rig, &[(1, WcStatus::LocQpOpErr)]);
    }
}

#[test]
fn lengths_that_are_wrong_end_the_request() {
    for len in [0, 7, 9] {
        let (mut rig, region) = rc();
        rig.post_send(wr(1, SendOp::AtomicWrite(REMOTE), &[region.sge(0, len)]));
        sends(&mut rig, &[]);
        completes(&rig, &[(1, WcStatus::LocLenErr)]);
    }
    let (mut rig, region) = rc();
    rig.post_send(wr(1, global(), &[region.sge(0, 1)]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocLenErr)]);
}

#[test]
fn the_data_of_an_atomic_write_needs_no_right_to_write() {
    let (mut rig, _) = rc();
    let constant = rig.region(64, Access::empty());
    rig.post_send(wr(1, SendOp::AtomicWrite(REMOTE), &[constant.sge(0, 8)]));
    sends(&mut rig, &["100 ATOMIC WRITE 8 A @7f000000+8"]);
}

#[test]
fn unreliable_services_have_neither() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let rig = Rig::new(qp_type);
        for op in [global(), SendOp::AtomicWrite(REMOTE)] {
            assert_eq!(rig.shared.post_send(wr(1, op, &[])), Err(PostError::Operation(qp_type)));
        }
    }
}
