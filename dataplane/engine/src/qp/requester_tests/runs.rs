//! Runs: plain requests that are alike leave together. The packets, and all that follows, are those of requests that leave one by one.

use super::*;
use crate::counters::Counter;
use crate::limits::{QUANTUM_BYTES, WINDOW_START};
use crate::packet::{Followers, PacketSink, SinkError, TxPacket, TxRun};
use crate::testkit::{ListSink, Withdraws};
use proptest::prelude::*;
use wire::LKey;

/// A sink that wants no runs: every request leaves by itself.
pub(super) struct Single(pub ListSink);

impl PacketSink for Single {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.0.emit(packet)
    }

    fn emit_run(&mut self, _: &TxRun<'_>, _: &mut impl Followers) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A sink that notes how many came in runs.
struct Counted(ListSink, usize);

impl PacketSink for Counted {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.0.emit(packet)
    }

    fn emit_run(&mut self, run: &TxRun<'_>, followers: &mut impl Followers) -> Result<(), SinkError> {
        while let Some(follower) = followers.next() {
            self.1 += 1;
            self.0.emit(&run.packet(&follower))?;
        }
        Ok(())
    }
}

pub(super) fn post_all(rig: &mut Rig, requests: &[SendWr]) {
    let mut list = rig.shared.send_list().unwrap();
    requests.iter().for_each(|wr| list.push(wr.clone()).unwrap());
    if list.post() {
        rig.engine.on_doorbell(rig.now, QPN);
    }
}

/// All that is sent now, and how many of it in runs.
pub(super) fn sent_in_runs(rig: &mut Rig) -> (Vec<Packet>, usize) {
    let mut sink = Counted(ListSink::new(rig.memory.clone(), usize::MAX), 0);
    rig.engine.poll_transmit(rig.now, &mut sink);
    (sink.0.sent, sink.1)
}

pub(super) fn writes(region: &Region, count: u32, len: u32) -> Vec<SendWr> {
    let sge = |n: u32| region.sge(u64::from(n * len), len);
    (0..count).map(|n| with_flags(wr(n.into(), to(u64::from(n)), &[sge(n)]), SendFlags::empty())).collect()
}

/// A WRITE to the `n`-th 64 bytes.
fn to(n: u64) -> SendOp {
    SendOp::Write(Remote { addr: REMOTE.addr + 64 * n, ..REMOTE })
}

#[test]
fn requests_that_are_alike_leave_in_one_run() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &writes(&region, 5, 8));
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!(followed, 4);
    let expected = (0..5).map(|n| format!("{:x} WRITE Only 8 A @{:x}+8", 0x100 + n, 0x7F00_0000 + 64 * n));
    assert_eq!(show(&sent), expected.collect::<Vec<_>>());
    assert!(sent.iter().enumerate().all(|(n, packet)| packet.payload == pattern(8 * n, 8)));
    assert_eq!((rig.count(Counter::TxPackets), rig.count(Counter::TxPayloadBytes)), (5, 40));
    ack(&mut rig, 0x104);
    assert_eq!(rig.shared.sq().outstanding(), 0);
}

#[test]
fn sends_without_bytes_run_too_and_the_last_of_them_may_be_signaled() {
    let (mut rig, _) = rc();
    let flags = [SendFlags::empty(), SendFlags::SIGNALED, SendFlags::empty()];
    let sends: Vec<_> = flags.into_iter().map(|flags| with_flags(wr(7, SendOp::Send, &[]), flags)).collect();
    post_all(&mut rig, &sends);
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!(
        (show(&sent).join(", "), followed),
        ("100 SEND Only 0 A, 101 SEND Only 0 A, 102 SEND Only 0 A".into(), 2)
    );
    ack(&mut rig, 0x102);
    completes(&rig, &[(7, WcStatus::Success)]);
}

/// What may be odd about a second request; it is right all the same, or fails as it should.
#[test]
fn what_differs_does_not_follow() {
    type Change = fn(&Region, &mut SendWr);
    let odd: [(&str, Change, &str); 7] = [
        (
            "another key of the peer",
            |_, wr| wr.op = SendOp::Write(Remote { rkey: RKey::new(1), ..REMOTE }),
            "101 WRITE Only 8 A @7f000000+8",
        ),
        ("another operation", |_, wr| wr.op = SendOp::Send, "101 SEND Only 8 A"),
        (
            "another length",
            |region, wr| wr.data = WrData::Sges([region.sge(0, 9)].into_iter().collect()),
            "101 WRITE Only 9 A @7f000000+9",
        ),
        (
            "two pieces",
            |region, wr| wr.data = WrData::Sges([region.sge(0, 4), region.sge(4, 4)].into_iter().collect()),
            "101 WRITE Only 8 A @7f000000+8",
        ),
        ("a fence", |_, wr| wr.flags |= SendFlags::FENCE, "101 WRITE Only 8 A @7f000000+8"),
        (
            "memory of nobody",
            |region, wr| {
                wr.data =
                    WrData::Sges([Sge { lkey: LKey::new(0xBAD0), ..region.sge(0, 8) }].into_iter().collect())
            },
            "",
        ),
        (
            "memory beyond the region",
            |region, wr| wr.data = WrData::Sges([region.sge(0x8_0000 - 7, 8)].into_iter().collect()),
            "",
        ),
    ];
    for (what, change, second) in odd {
        let (mut rig, region) = rc();
        let first = with_flags(wr(1, SendOp::Write(REMOTE), &[region.sge(0, 8)]), SendFlags::empty());
        let mut other = first.clone();
        change(&region, &mut other);
        post_all(&mut rig, &[first, other]);
        let (sent, followed) = sent_in_runs(&mut rig);
        let seconds: Vec<String> = show(&sent).into_iter().skip(1).collect();
        assert_eq!((followed, seconds.join("")), (0, second.into()), "{what}");
        if second.is_empty() {
            ack(&mut rig, 0x100);
            completes(&rig, &[(1, WcStatus::LocProtErr)]);
        }
    }
}

/// rocev2 facts, wire 5: the bit is the message's own.
#[test]
fn a_solicited_send_is_not_in_a_run_of_others() {
    let (mut rig, _) = rc();
    let flags = [SendFlags::empty(), SendFlags::SOLICITED, SendFlags::SOLICITED, SendFlags::empty()];
    let sends: Vec<_> = flags.into_iter().map(|flags| with_flags(wr(7, SendOp::Send, &[]), flags)).collect();
    post_all(&mut rig, &sends);
    let (sent, followed) = sent_in_runs(&mut rig);
    let solicited: Vec<bool> = sent.iter().map(|packet| packet.bth.solicited).collect();
    assert_eq!((solicited, followed), (vec![false, true, true, false], 1));
}

#[test]
fn a_run_ends_where_the_window_does() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &writes(&region, 200, 8));
    assert_eq!(sent_in_runs(&mut rig).0.len() as u32, WINDOW_START);
    assert_eq!(rig.shared.sq().waiting() as u32, 200 - WINDOW_START);
    ack(&mut rig, 0x100);
    // One place is free, and the window is one larger.
    assert_eq!(sent_in_runs(&mut rig).0.len(), 2);
}

/// Of two QPs each has its turn, as long as if its packets left one by one.
#[test]
fn a_run_ends_with_the_turn() {
    const LEN: u32 = 256;
    let (mut rig, region) = rc();
    let shared = neighbour(&mut rig, 128);
    let qpn = shared.qpn();
    let requests = writes(&region, 100, LEN);
    post_all(&mut rig, &requests);
    let mut list = shared.send_list().unwrap();
    requests.into_iter().for_each(|wr| list.push(wr).unwrap());
    assert!(list.post());
    rig.engine.on_doorbell(rig.now, qpn);
    let (sent, _) = sent_in_runs(&mut rig);
    let theirs: Vec<bool> = sent.iter().map(|packet| packet.bth.dest_qpn == qpn).collect();
    // A packet that begins within the turn is part of it.
    let turn = QUANTUM_BYTES.div_ceil(LEN + 64) as usize;
    let turns = theirs.chunk_by(|one, other| one == other).map(<[bool]>::len);
    assert_eq!(turns.collect::<Vec<_>>(), [turn, turn, 100 - turn, 100 - turn]);
}

/// Requests behind one that the peer was not ready for wait, though the queue has more of them.
#[test]
fn nobody_follows_while_the_peer_is_not_ready() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &writes(&region, 2, 8));
    sent_in_runs(&mut rig);
    rnr_nak(&mut rig, 0x101, 12);
    post_all(&mut rig, &writes(&region, 3, 8));
    assert!(sent_in_runs(&mut rig).0.is_empty());
    rig.advance(1_000_000);
    let psns: Vec<u32> = rig.sent().iter().map(|packet| packet.bth.psn.value()).collect();
    assert_eq!(psns, [0x101, 0x102, 0x103, 0x104]);
}

/// A region that goes away while a run is under way ends the request whose bytes are wanted, and no other.
#[test]
fn memory_that_goes_ends_the_request_that_needs_it() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &writes(&region, 4, 8));
    let list = ListSink::new(rig.memory.clone(), 9);
    let mut sink = Withdraws { list, after: 2, region: region.id };
    rig.engine.poll_transmit(rig.now, &mut sink);
    assert_eq!(sink.list.sent.len(), 2);
    assert_eq!(rig.count(Counter::TxPackets), 2);
    ack(&mut rig, 0x101);
    let flushed = WcStatus::WrFlushErr;
    completes(&rig, &[(2, WcStatus::LocProtErr), (3, flushed)]);
}

/// An RC QP in RTS with a queue for so many requests, and a region.
pub(super) fn rc_of(depth: u32) -> (Rig, Region) {
    rig_of(QpType::Rc, depth)
}

pub(super) fn rig_of(qp_type: QpType, depth: u32) -> (Rig, Region) {
    let mut rig = Rig::with_capacities(qp_type, QpState::Rts, attributes(), depth, 1024);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    (rig, region)
}

/// What a place held before tells nothing of a request whose pieces, or bytes, are elsewhere.
#[test]
fn a_request_of_two_pieces_in_a_place_that_had_one_does_not_follow() {
    let (mut rig, region) = rc_of(2);
    post_all(&mut rig, &writes(&region, 2, 8));
    assert_eq!(sent_in_runs(&mut rig).1, 1);
    ack(&mut rig, 0x101);
    let pieces = [region.sge(100, 4), region.sge(200, 4)];
    post_all(&mut rig, &[wr(1, to(0), &[region.sge(0, 8)]), wr(2, to(1), &pieces)]);
    let (sent, followed) = sent_in_runs(&mut rig);
    assert_eq!((followed, sent.len()), (0, 2));
    assert_eq!(sent[1].payload, [pattern(100, 4), pattern(200, 4)].concat());
}

/// rocev2 facts: in SQD started messages finish, no other begins.
#[test]
fn a_follower_that_found_the_sink_full_has_not_begun() {
    let (mut rig, region) = rc();
    post_all(&mut rig, &writes(&region, 3, 8));
    assert_eq!(rig.sent_into(2).len(), 2);
    rig.modify(QpState::Sqd);
    sends(&mut rig, &[]);
    ack(&mut rig, 0x101);
    rig.modify(QpState::Rts);
    sends(&mut rig, &["102 WRITE Only 8 A @7f000080+8"]);
}

/// Requests to choose from: mostly alike, some not, few of them wrong.
fn request(region: Region) -> impl Strategy<Value = SendWr> {
    let op = prop_oneof![
        8 => Just(0), 4 => Just(1), 1 => Just(2), 1 => Just(3), 1 => Just(4)
    ];
    let len = prop_oneof![8 => Just(8u32), 2 => Just(64u32), 1 => 0..300u32];
    let flags = prop_oneof![
        8 => Just(SendFlags::empty()), 2 => Just(SendFlags::SIGNALED),
        1 => Just(SendFlags::SOLICITED), 1 => Just(SendFlags::FENCE)
    ];
    let at = prop_oneof![40 => 0..0x7_0000u64, 1 => Just(0x8_0000 - 4)];
    (op, len, flags, at, 0..u64::from(u32::MAX)).prop_map(move |(op, len, flags, at, wr_id)| {
        let sge = region.sge(at, len);
        let op = match op {
            0 => to(at),
            1 => SendOp::Send,
            2 => SendOp::Write(Remote { rkey: RKey::new(7), ..REMOTE }),
            3 => SendOp::WriteImm(REMOTE, [1, 2, 3, 4]),
            _ => return inline(wr_id, SendOp::Send, b"12345678"),
        };
        with_flags(wr(wr_id, op, &[sge]), flags)
    })
}

/// What happens between two looks at what is sent: requests come, room is so large, an answer comes.
#[derive(Clone, Debug)]
pub(super) struct Round {
    requests: Vec<SendWr>,
    room: usize,
    acked: u32,
    refused: Option<bool>,
}

pub(super) fn round(request: impl Strategy<Value = SendWr>) -> impl Strategy<Value = Round> {
    let requests = proptest::collection::vec(request, 0..20);
    let room = prop_oneof![Just(usize::MAX), 0..12usize];
    let refused = prop_oneof![6 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (requests, room, 0..12u32, refused).prop_map(|(requests, room, acked, refused)| Round {
        requests,
        room,
        acked,
        refused,
    })
}

/// All that can be seen of a QP.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    sent: Vec<(Bth, wire::ExtHeaders, Vec<u8>, bool)>,
    counters: Vec<u64>,
    cqes: Vec<(u64, WcStatus)>,
    deadline: Option<crate::Nanos>,
    outstanding: u32,
    waiting: usize,
    state: QpState,
    idle: bool,
}

pub(super) fn play(rig: &mut Rig, rounds: &[Round], in_runs: bool) -> Vec<Seen> {
    let mut acked = 0x100u32;
    let mut next = 0x100u32;
    let mut seen = Vec::new();
    for Round { requests, room, acked: more, refused } in rounds {
        for wr in requests {
            if rig.shared.post_send(wr.clone()) == Ok(true) {
                rig.engine.on_doorbell(rig.now, QPN);
            }
        }
        let mut sink = Single(ListSink::new(rig.memory.clone(), *room));
        if in_runs {
            rig.engine.poll_transmit(rig.now, &mut sink.0);
        } else {
            rig.engine.poll_transmit(rig.now, &mut sink);
        }
        next = next.max(sink.0.sent.iter().map(|packet| packet.bth.psn.value() + 1).max().unwrap_or(0));
        let sent = sink.0.sent.into_iter().map(|it| (it.bth, it.ext, it.payload, it.again)).collect();
        let covered = (acked + more).min(next);
        if covered > acked && rig.shared.qp_type().is_reliable() {
            match refused {
                None => ack(rig, covered - 1),
                Some(true) => nak(rig, covered - 1, NakCode::PsnSequence),
                Some(false) => rnr_nak(rig, covered - 1, 1),
            }
            acked = if refused.is_none() { covered } else { covered - 1 };
        }
        rig.advance(if *more == 0 { 100_000_000 } else { 20_000 });
        seen.push(Seen {
            sent,
            counters: Counter::ALL.iter().map(|&counter| rig.count(counter)).collect(),
            cqes: rig.send_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status)).collect(),
            deadline: rig.engine.next_timeout(),
            outstanding: rig.shared.sq().outstanding(),
            waiting: rig.shared.sq().waiting(),
            state: rig.state(),
            idle: rig.engine.is_idle(),
        });
    }
    seen
}

proptest! {
    #[test]
    fn runs_do_what_single_requests_do(rounds in proptest::collection::vec(round(request(rc().1)), 1..12)) {
        // Places of the queue are soon used again.
        let [(mut single, _), (mut runs, _)] = [rc_of(16), rc_of(16)];
        let (expected, got) = (play(&mut single, &rounds, false), play(&mut runs, &rounds, true));
        for (expected, got) in expected.iter().zip(&got) {
            prop_assert_eq!(expected, got);
        }
    }
}
