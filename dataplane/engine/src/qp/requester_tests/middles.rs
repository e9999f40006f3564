//! Middle packets of long messages leave in runs. The packets, and all that follows, are those that leave one by one.

use super::runs::{Single, play, post_all, rc_of, rig_of, round, sent_in_runs};
use super::*;
use crate::counters::Counter;
use crate::limits::{ACK_REQ_EVERY, QUANTUM_BYTES, WINDOW_START};
use crate::testkit::{ListSink, SRQN, Withdraws};
use proptest::prelude::*;
use wire::LKey;

/// Bytes of a packet.
const FULL: u32 = 256;

#[test]
fn all_but_the_first_and_last_leave_in_one_run() {
    for op in [SendOp::Write(REMOTE), SendOp::WriteImm(REMOTE, [1; 4]), SendOp::Send, SendOp::SendImm([1; 4])]
    {
        let (mut rig, region) = rc();
        let name = if matches!(op, SendOp::Send | SendOp::SendImm(_)) { "SEND" } else { "WRITE" };
        post_all(&mut rig, &[wr(1, op, &[region.sge(100, 5 * FULL + 7)])]);
        let (sent, followed) = sent_in_runs(&mut rig);
        let middles: Vec<_> = (1..5).map(|n| format!("{:x} {name} Middle 256", 0x100 + n)).collect();
        assert_eq!((show(&sent[1..5]), followed, sent.len()), (middles, 4, 6));
        let bytes: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
        assert_eq!(bytes, pattern(100, 5 * FULL as usize + 7));
        assert_eq!((rig.count(Counter::TxPackets), rig.count(Counter::TxPayloadBytes)), (6, 5 * 256 + 7));
        ack(&mut rig, 0x105);
        completes(&rig, &[(1, WcStatus::Success)]);
    }
}

#[test]
fn a_message_of_two_packets_has_no_middle() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(1, SendOp::Send, &[region.sge(0, 2 * FULL)])]);
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!((show(&sent).join(", "), followed), ("100 SEND First 256, 101 SEND Last 256 A".into(), 0));
}

#[test]
fn pieces_and_xrc_leave_one_by_one() {
    let pieces = |region: &Region| vec![region.sge(0, 3 * FULL), region.sge(4 * FULL as u64, FULL)];
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(1, SendOp::Send, &pieces(&region))]);
    let (sent, followed) = sent_in_runs(&mut rig);
    let bytes: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!((bytes, followed), ([pattern(0, 768), pattern(1024, 256)].concat(), 0));
    let write = |region: &Region| wr(1, SendOp::Write(REMOTE), &[region.sge(0, 4 * FULL)]);
    let mut xrc = Rig::xrc_initiator(attributes());
    let region = xrc.region(0x1000, Access::LOCAL_WRITE);
    xrc.post_send_xrc(write(&region), SRQN);
    let (sent, followed) = sent_in_runs(&mut xrc);
    assert_eq!((sent.len(), followed), (4, 0));
}

/// Without window, timer and acknowledgements.
#[test]
fn those_of_uc_leave_in_runs_and_ask_for_nothing() {
    let mut rig = Rig::new(QpType::Uc);
    let region = rig.region(0x2_0000, Access::LOCAL_WRITE);
    rig.post_send(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 300 * FULL)]));
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!((sent.len(), followed), (300, 298));
    assert!(sent.iter().all(|packet| !packet.bth.ack_req));
    assert_eq!((rig.engine.next_timeout(), rig.count(Counter::TxPackets)), (None, 300));
    completes(&rig, &[(1, WcStatus::Success)]);
}

/// rocev2 facts: what is sent again is marked so, and copied by who lends what is not.
#[test]
fn what_was_sent_before_is_sent_again_one_by_one_and_the_rest_in_a_run() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(1, SendOp::Send, &[region.sge(0, 8 * FULL)])]);
    assert_eq!(rig.sent_into(4).len(), 4);
    nak(&mut rig, 0x101, NakCode::PsnSequence);
    let (sent, followed) = sent_in_runs(&mut rig);
    let again: Vec<bool> = sent.iter().map(|packet| packet.again).collect();
    assert_eq!((again, followed), ([[true; 3].as_slice(), &[false; 4]].concat(), 3));
    assert_eq!(rig.count(Counter::Retransmitted), 3);
}

#[test]
fn a_run_ends_where_the_window_does_and_its_last_packet_asks() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(1, SendOp::Send, &[region.sge(0, 300 * FULL)])]);
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!((sent.len() as u32, followed as u32), (WINDOW_START, WINDOW_START - 1));
    let asking: Vec<u32> = sent
        .iter()
        .filter(|packet| packet.bth.ack_req)
        .map(|packet| packet.bth.psn.value() - 0x100)
        .collect();
    assert_eq!(asking, (1..=4).map(|n| n * ACK_REQ_EVERY - 1).collect::<Vec<_>>());
    ack(&mut rig, 0x100);
    // One packet is there, and the window is one larger: its last packet asks, though few have left since.
    let (sent, _) = sent_in_runs(&mut rig);
    assert_eq!(show(&sent), ["180 SEND Middle 256", "181 SEND Middle 256 A"]);
}

/// The timer runs from the first packet on; one that was not taken starts none.
#[test]
fn a_run_starts_the_timer_when_something_left() {
    let attr = QpAttr { timeout: 14, ..attributes() };
    let (mut rig, region) = rc_with(attr);
    post_all(&mut rig, &[wr(1, SendOp::Send, &[region.sge(0, 8 * FULL)])]);
    assert_eq!(rig.sent_into(2).len(), 2);
    // All that left is acknowledged, and nothing is waited for.
    ack(&mut rig, 0x101);
    assert_eq!(rig.sent_into(0).len(), 0);
    assert_eq!(rig.engine.qp(QPN).unwrap().deadline(), None);
    assert_eq!(rig.sent_into(3).len(), 3);
    assert_eq!(rig.engine.qp(QPN).unwrap().deadline(), Some(rig.now + (4096 << 14)));
}

/// Of two QPs each has its turn, as long as if its packets left one by one.
#[test]
fn a_run_ends_with_the_turn() {
    let (mut rig, region) = rc();
    let shared = neighbour(&mut rig, 8);
    let qpn = shared.qpn();
    let request = wr(1, SendOp::Write(REMOTE), &[region.sge(0, 100 * FULL)]);
    post_all(&mut rig, std::slice::from_ref(&request));
    shared.post_send(request).unwrap();
    rig.engine.on_doorbell(rig.now, qpn);
    let (sent, followed) = sent_in_runs(&mut rig);
    let theirs: Vec<bool> = sent.iter().map(|packet| packet.bth.dest_qpn == qpn).collect();
    let turn = QUANTUM_BYTES.div_ceil(FULL + 64) as usize;
    let turns = theirs.chunk_by(|one, other| one == other).map(<[bool]>::len);
    assert_eq!(turns.collect::<Vec<_>>(), [turn, turn, 100 - turn, 100 - turn]);
    assert_eq!(followed, 2 * 98);
}

/// A region that goes away while a run is under way ends the request when its bytes are wanted; what left, left.
#[test]
fn memory_that_goes_ends_the_message() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(7, SendOp::Send, &[region.sge(0, 8 * FULL)])]);
    let list = ListSink::new(rig.memory.clone(), 99);
    let mut sink = Withdraws { list, after: 3, region: region.id };
    rig.engine.poll_transmit(rig.now, &mut sink);
    assert_eq!((sink.list.sent.len(), rig.count(Counter::TxPackets)), (3, 3));
    completes(&rig, &[(7, WcStatus::LocProtErr)]);
}

#[test]
fn a_sink_that_wants_no_run_gets_the_packets_one_by_one() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &[wr(1, SendOp::Write(REMOTE), &[region.sge(0, 3 * FULL)])]);
    let mut sink = Single(ListSink::new(rig.memory.clone(), 9));
    rig.engine.poll_transmit(rig.now, &mut sink);
    let lines = ["100 WRITE First 256 @7f000000+768", "101 WRITE Middle 256", "102 WRITE Last 256 A"];
    assert_eq!(show(&sink.0.sent), lines);
}

/// Requests to choose from: mostly long ones, few of them wrong.
fn request(region: Region) -> impl Strategy<Value = SendWr> {
    let op = prop_oneof![6 => Just(0), 3 => Just(1), 1 => Just(2), 1 => Just(3), 1 => Just(4), 1 => Just(5)];
    let len = prop_oneof![6 => 0..12_000u32, 1 => 0..300u32, 1 => Just(4 * FULL), 1 => 20_000..60_000u32];
    let flags = prop_oneof![
        8 => Just(SendFlags::empty()), 4 => Just(SendFlags::SIGNALED),
        1 => Just(SendFlags::SOLICITED), 1 => Just(SendFlags::FENCE)
    ];
    (op, len, flags, 0..0x7_0000u64, 0..40u8, 0..u64::from(u32::MAX)).prop_map(
        move |(op, len, flags, at, odd, wr_id)| {
            let whole = region.sge(at, len);
            let sges = match odd {
                0 => vec![Sge { lkey: LKey::new(0xBAD0), ..whole }],
                1..4 if len > 1 => {
                    vec![region.sge(at, len / 2), region.sge(at + u64::from(len / 2), len - len / 2)]
                }
                4 => vec![region.sge(at, 0), whole],
                _ => vec![whole],
            };
            let op = match op {
                0 => SendOp::Write(REMOTE),
                1 => SendOp::Send,
                2 => SendOp::WriteImm(REMOTE, [1, 2, 3, 4]),
                3 => SendOp::SendImm([1, 2, 3, 4]),
                4 => SendOp::SendInv(RKey::new(7)),
                _ => SendOp::Read(REMOTE),
            };
            with_flags(wr(wr_id, op, &sges), flags)
        },
    )
}

proptest! {
    #[test]
    fn runs_of_middles_do_what_single_packets_do(
        rounds in proptest::collection::vec(round(request(rc().1)), 1..12)
    ) {
        for make in [|| rc_of(16), || rig_of(QpType::Uc, 16)] {
            let [(mut single, _), (mut runs, _)] = [make(), make()];
            let (expected, got) = (play(&mut single, &rounds, false), play(&mut runs, &rounds, true));
            for (expected, got) in expected.iter().zip(&got) {
                prop_assert_eq!(expected, got);
            }
        }
    }
}
