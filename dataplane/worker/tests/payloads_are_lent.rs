//! Long payloads leave without a copy: what arrives, what happens to memory that changes or goes meanwhile, and who copies after
//! all.

mod common;

use common::qp::{TestMr, TestQp, poll_all, sges};
use common::{Driven, Endpoint, Shape, drive, settle, sides};
use engine::{QpType, SendOp, WcStatus};
use wire::{FrameError, Mtu, Qpn, RKey};

const LEN: u32 = 40_000;

struct Pair {
    a: Driven,
    b: Driven,
    qp: TestQp,
    peer: TestQp,
    from: TestMr,
    to: TestMr,
}

fn pair(name: &str, shape: &Shape) -> Pair {
    pair_of(name, shape, QpType::Rc)
}

fn pair_of(name: &str, shape: &Shape, qp_type: QpType) -> Pair {
    let (a, b) = sides(name, shape);
    let (a, b) = (Endpoint::new(a, shape).driven(), Endpoint::new(b, shape).driven());
    let (here, there) = (Qpn::new(0x11), Qpn::new(0x2233));
    let (qp, peer) = (a.end.create_qp(0, here, qp_type), b.end.create_qp(0, there, qp_type));
    let (from, to) = (a.end.register(0x1001, 1 << 16), b.end.register(0x2002, 1 << 16));
    a.end.connect(&qp, there, Mtu::Mtu4096);
    b.end.connect(&peer, here, Mtu::Mtu4096);
    from.buffer.write(0, &pattern(0)).unwrap();
    Pair { a, b, qp, peer, from, to }
}

fn pattern(seed: u8) -> Vec<u8> {
    (0..LEN).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
}

fn lending() -> Shape {
    Shape { lending: 255, ..Shape::default() }
}

impl Pair {
    fn write(&self, wr_id: u64) {
        let data = sges(&[self.from.sge(0, LEN)]);
        self.a.end.post(&self.qp, wr_id, SendOp::Write(self.to.remote(3)), data);
    }

    /// Requests 1 to `last` complete well, in order.
    #[track_caller]
    fn completes(&self, last: u64) {
        let mut done = Vec::new();
        drive(&[&self.a, &self.b], || {
            done.extend(poll_all(&self.qp.sends).iter().map(|cqe| (cqe.wr_id, cqe.status)));
            done.len() as u64 >= last
        });
        let wanted: Vec<_> = (1..=last).map(|wr_id| (wr_id, WcStatus::Success)).collect();
        assert_eq!(done, wanted, "{}", self.b.end.account());
    }

    /// Sends four messages that stay in the ring.
    fn send_without_receiving(&self) {
        (1..=4).for_each(|wr_id| self.write(wr_id));
        settle(&[&self.a]);
        assert!(self.lent(), "{}", self.a.end.account());
    }

    /// More small buffers are out of their pool than a worker keeps ready.
    fn lent(&self) -> bool {
        self.a.end.lending.as_ref().is_some_and(|pool| pool.in_use() > 32)
    }
}

fn counter(end: &Endpoint, name: &str) -> u64 {
    end.counters(0).iter().find(|(have, _)| *have == name).map_or(0, |(_, value)| value)
}

#[test]
fn what_arrives_is_what_was_there() {
    let pair = pair("arrives", &lending());
    pair.write(1);
    pair.completes(1);
    assert_eq!(pair.to.bytes(3, LEN as usize), pattern(0));

    // READ: the responder lends. Its memory is `to`, ours is the target.
    let read = SendOp::Read(pair.to.remote(3));
    pair.from.buffer.write(0, &vec![0; LEN as usize]).unwrap();
    pair.a.end.post(&pair.qp, 1, read, sges(&[pair.from.sge(7, LEN)]));
    pair.completes(1);
    assert_eq!(pair.from.bytes(7, LEN as usize), pattern(0));

    // SEND into a receive.
    pair.peer.post_recv(9, pair.to.sge(0, LEN));
    pair.a.end.post(&pair.qp, 1, SendOp::Send, sges(&[pair.from.sge(7, LEN)]));
    pair.completes(1);
    assert_eq!(pair.to.bytes(0, LEN as usize), pattern(0));
    assert_eq!(poll_all(&pair.peer.receives).len(), 1);
    for end in [&pair.a.end, &pair.b.end] {
        let drops: Vec<_> =
            end.counters(0).iter().filter(|(name, value)| name.starts_with("drop_") && *value != 0).collect();
        assert!(drops.is_empty(), "{drops:?}");
    }
}

#[test]
fn the_packets_are_really_lent() {
    let pair = pair("really", &lending());
    pair.send_without_receiving();
    let own = pair.a.end.pool.in_use();
    pair.completes(4);
    assert!(!pair.lent(), "every small buffer came home");
    assert!(own <= 64, "the frames took none of the large buffers, {own} are out");
}

/// The sum is of what was there when the packet was made: the peer sees that it is not what arrived. The repetition is a copy.
#[test]
fn memory_that_changes_under_way_spoils_the_packet_and_the_repetition_arrives() {
    let pair = pair("changes", &lending());
    pair.send_without_receiving();
    pair.from.buffer.write(5000, &[0xEE; 100]).unwrap();
    settle(&[&pair.b]);
    settle(&[&pair.a]);
    assert!(!pair.lent(), "what was refused was sent again, as copies");
    pair.completes(4);
    let mut expected = pattern(0);
    expected[5000..5100].fill(0xEE);
    assert_eq!(pair.to.bytes(3, LEN as usize), expected);
    assert_eq!(
        counter(&pair.b.end, "drop_spoilt_payload"),
        1,
        "the first; those behind it are ahead of their turn"
    );
}

/// The last bytes of a payload that is spoilt are not written: a program that polls them sees nothing of it.
#[test]
fn the_end_of_a_spoilt_payload_stays_as_it_was() {
    let pair = pair("end", &lending());
    let data = sges(&[pair.from.sge(0, 4096)]);
    pair.a.end.post(&pair.qp, 1, SendOp::Write(pair.to.remote(8)), data);
    settle(&[&pair.a]);
    pair.from.buffer.write(100, &[0xEE]).unwrap();
    pair.to.buffer.write(8, &[0x11; 4096]).unwrap();
    pair.b.poll();
    assert_eq!(counter(&pair.b.end, "drop_spoilt_payload"), 1);
    assert_eq!(pair.to.bytes(8 + 4096 - 8, 8), [0x11; 8]);
    pair.completes(1);
    assert_eq!(pair.to.bytes(8, 4096), pair.from.bytes(0, 4096));
}

/// A SEND or WRITE of UC is complete when its packets have come back, and the program may use its memory for the next.
#[test]
fn memory_of_an_unreliable_request_is_free_once_that_is_complete() {
    let pair = pair_of("unreliable", &lending(), QpType::Uc);
    let data = || sges(&[pair.from.sge(0, LEN)]);
    for round in 0..200u8 {
        pair.from.buffer.write(0, &pattern(round)).unwrap();
        let write = round.is_multiple_of(2);
        if write {
            pair.write(1);
        } else {
            pair.peer.post_recv(9, pair.to.sge(3, LEN));
            pair.a.end.post(&pair.qp, 1, SendOp::Send, data());
        }
        settle(&[&pair.a]);
        assert!(poll_all(&pair.qp.sends).is_empty(), "its packets are in the ring");
        pair.completes(1);
        pair.from.buffer.write(0, &vec![0xEE; LEN as usize]).unwrap();
        settle(&[&pair.b]);
        assert_eq!(pair.to.bytes(3, LEN as usize), pattern(round), "{}", pair.b.end.account());
        assert_eq!(poll_all(&pair.peer.receives).len(), usize::from(!write));
    }
    assert!(pair.a.end.lending.as_ref().is_some_and(|pool| pool.in_use() <= 32), "all came home");
    assert!(pair.a.end.pool.in_use() <= 64, "no more than a worker keeps ready");
}

/// As many as the queue takes are under way at a time, from places of their own that change as soon as they are complete.
#[test]
fn many_unreliable_requests_are_under_way_at_a_time() {
    const MANY: u64 = 2000;
    let pair = pair_of("unreliable-many", &lending(), QpType::Uc);
    let (mut posted, mut done) = (0, 0);
    let len = |number: u64| if number.is_multiple_of(3) { 100 } else { 8000 };
    let content = |number: u64| vec![number as u8; len(number) as usize];
    let place = |number: u64| (number % 8) as usize * 8000;
    drive(&[&pair.a, &pair.b], || {
        while posted < MANY && posted < done + 8 {
            pair.from.buffer.write(place(posted), &content(posted)).unwrap();
            let data = sges(&[pair.from.sge(place(posted), len(posted))]);
            pair.a.end.post(&pair.qp, posted, SendOp::Write(pair.to.remote(place(posted))), data);
            posted += 1;
        }
        // The peer has not looked yet.
        pair.a.poll();
        for cqe in poll_all(&pair.qp.sends) {
            assert_eq!((cqe.wr_id, cqe.status), (done, WcStatus::Success));
            pair.from.buffer.write(place(done), &[0xEE; 8000]).unwrap();
            done += 1;
        }
        done == MANY
    });
    settle(&[&pair.b]);
    assert_eq!(counter(&pair.b.end, "drop_spoilt_payload"), 0);
    assert_eq!(counter(&pair.b.end, "out_of_sequence"), 0);
    for number in MANY - 8..MANY {
        let there = pair.to.bytes(place(number), len(number) as usize);
        assert_eq!(there, content(number), "{number}");
    }
}

/// QPs of a port with several workers move, and nobody would tell them what has come back.
#[test]
fn unreliable_requests_of_several_workers_are_copied() {
    let pair = pair_of("unreliable-two", &Shape { queues: 2, ..lending() }, QpType::Uc);
    pair.write(1);
    settle(&[&pair.a]);
    assert_eq!(poll_all(&pair.qp.sends).len(), 1, "complete");
    pair.from.buffer.write(0, &vec![0xEE; LEN as usize]).unwrap();
    settle(&[&pair.b]);
    assert_eq!(pair.to.bytes(3, LEN as usize), pattern(0));
}

/// A key that a SEND takes away is taken once, although its last packet comes twice.
#[test]
fn a_send_that_takes_a_key_away_is_checked_before() {
    let pair = pair("invalidates", &lending());
    pair.peer.post_recv(9, pair.to.sge(0, LEN));
    let data = sges(&[pair.from.sge(0, 4096)]);
    pair.a.end.post(&pair.qp, 1, SendOp::SendInv(RKey::new(pair.to.region.key())), data);
    settle(&[&pair.a]);
    pair.from.buffer.write(5, &[0xEE; 10]).unwrap();
    pair.b.poll();
    assert_eq!(pair.b.end.counters(0).frame_errors(FrameError::BadIcrc), 1, "in a copy of the packet");
}

#[test]
fn memory_that_was_withdrawn_stays_until_the_last_packet_with_it_is_gone() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        let pair = pair_of(&format!("withdrawn{qp_type:?}"), &lending(), qp_type);
        pair.send_without_receiving();
        let region = pair.from.region.region();
        assert!(pair.a.end.regions.invalidate(region));
        settle(&[&pair.a]);
        assert!(!pair.a.end.regions.is_released(region), "the ring holds packets with it");
        settle(&[&pair.b, &pair.a]);
        assert!(pair.a.end.regions.is_released(region));
        assert_eq!(pair.to.bytes(3, LEN as usize), pattern(0), "and they arrived whole");
    }
}

/// Something is lent whenever the worker looks, and yet withdrawn memory goes.
#[test]
fn memory_goes_under_load() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        memory_goes_under_load_of(qp_type);
    }
}

fn memory_goes_under_load_of(qp_type: QpType) {
    let pair = pair_of(&format!("load{qp_type:?}"), &lending(), qp_type);
    let other = pair.a.end.register(0x1003, 4096);
    let region = other.region.region();
    (1..=8).for_each(|wr_id| pair.write(wr_id));
    let (mut posted, mut withdrawn) = (8, false);
    drive(&[&pair.a, &pair.b], || {
        for _ in poll_all(&pair.qp.sends) {
            posted += 1;
            pair.write(posted);
        }
        if posted > 100 && !withdrawn {
            withdrawn = pair.a.end.regions.invalidate(region);
        }
        // The peer has emptied the ring: what is lent now is what was sent since.
        pair.a.poll();
        withdrawn && pair.a.end.regions.is_released(region)
    });
    assert!(posted < 10_000, "it went while so many messages were sent: {posted}");
}

#[test]
fn a_worker_without_small_buffers_copies() {
    let pair = pair("few", &Shape { lending: 2, ..Shape::default() });
    pair.write(1);
    pair.completes(1);
    assert_eq!(pair.to.bytes(3, LEN as usize), pattern(0));
}

/// An impairment plan changes bytes of frames, which would be those of the program.
#[test]
fn a_bad_link_lends_nothing() {
    let pair = pair("bad", &Shape { impair: Some("corrupt 30% tx"), ..lending() });
    pair.write(1);
    pair.completes(1);
    assert_eq!(pair.to.bytes(3, LEN as usize), pattern(0));
    assert_eq!(pair.from.bytes(0, LEN as usize), pattern(0), "memory is as it was");
    let pool = pair.a.end.lending.as_ref().expect("the shape lends");
    assert_eq!(pool.in_use(), 0);
}
