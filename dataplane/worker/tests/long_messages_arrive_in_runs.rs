//! Packets of long messages whose payloads are lent, and that come in one burst, leave what they leave when each comes by itself;
//! also with something odd about them.

mod common;

use common::qp::{TestMr, TestQp, poll_all, sges};
use common::{Driven, Endpoint, Shape, Side, drive, sides};
use dpdk::{Mbuf, MbufBurst};
use engine::{Cqe, QpState, QpType, SendOp};
use std::sync::atomic::{AtomicU32, Ordering};
use wire::{Mtu, Qpn};

/// A message of 15 packets.
const LEN: u32 = 60_000;
const PACKETS: usize = 15;
/// Where each QP's bytes are.
const PLACES: [usize; 2] = [3, 1 << 17];
const QPNS: [Qpn; 2] = [Qpn::new(0x77), Qpn::new(0x78)];

/// Two endpoints, and what is between them: their packets go on when a test says so.
struct Rig {
    a: Driven,
    b: Driven,
    near: Side,
    far: Side,
    senders: [TestQp; 2],
    receivers: [TestQp; 2],
    from: TestMr,
    to: TestMr,
}

/// What the message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Send,
    Read,
}

const KINDS: [Kind; 3] = [Kind::Write, Kind::Send, Kind::Read];

impl Rig {
    /// The QPs of the second live on the worker `home`.
    fn new(queues: u16, home: usize) -> Rig {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("long{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let shape = Shape { lending: 255, queues, ..Shape::default() };
        let (a, near) = sides(&format!("{name}-a"), &shape);
        let (far, b) = sides(&format!("{name}-b"), &shape);
        let (a, b) = (Endpoint::new(a, &shape).driven(), Endpoint::new(b, &shape).driven());
        let senders = QPNS.map(|qpn| a.end.create_qp(0, qpn, QpType::Rc));
        let receivers = QPNS.map(|qpn| b.end.create_qp(home, qpn, QpType::Rc));
        for ((sender, receiver), qpn) in senders.iter().zip(&receivers).zip(QPNS) {
            a.end.connect(sender, qpn, Mtu::Mtu4096);
            b.end.connect(receiver, qpn, Mtu::Mtu4096);
        }
        let (from, to) = (a.end.register(0x1001, 1 << 16), b.end.register(0x2002, 1 << 18));
        let rig = Rig { a, b, near, far, senders, receivers, from, to };
        rig.from.buffer.write(0, &rig.pattern(0)).unwrap();
        rig
    }

    fn pattern(&self, seed: u8) -> Vec<u8> {
        (0..LEN).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed).collect()
    }

    /// Posts a message of a QP, from `from` to `to`.
    fn post(&self, kind: Kind, number: usize) {
        let (from, to) = (sges(&[self.from.sge(0, LEN)]), self.to.sge(PLACES[number], LEN));
        let (sender, receiver) = (&self.senders[number], &self.receivers[number]);
        match kind {
            Kind::Write => self.a.end.post(sender, 1, SendOp::Write(self.to.remote(PLACES[number])), from),
            Kind::Send => {
                receiver.post_recv(9, to);
                self.a.end.post(sender, 1, SendOp::Send, from);
            }
            Kind::Read => self.b.end.post(receiver, 1, SendOp::Read(self.from.remote(0)), sges(&[to])),
        }
    }

    /// What the first endpoint has sent by now.
    fn sent(&mut self) -> Vec<Mbuf> {
        let mut sent = Vec::new();
        for _ in 0..8 {
            self.b.poll();
            pass_on(&mut self.far, &mut self.near);
            self.a.poll();
            let mut burst = MbufBurst::<32>::new();
            self.near.queues[0].0.burst_as_sent(&mut burst);
            sent.extend(burst.drain());
        }
        sent
    }

    /// All that can be seen at the second but answers.
    fn left(&mut self) -> String {
        let end = &self.b.end;
        let named = |(name, value): (&'static str, u64)| {
            // In a burst one answers what several do one by one.
            let answers = name.starts_with("tx_")
                || matches!(name, "acks_sent" | "seq_nak_sent" | "retransmitted_packets");
            (value != 0 && !answers).then(|| format!("{name}={value}"))
        };
        let counted =
            (0..end.handles.len()).flat_map(|worker| end.counters(worker).iter().collect::<Vec<_>>());
        let counted: Vec<_> = counted.filter_map(named).collect();
        let cqes = self.receivers.each_ref().map(|qp| (poll_all(&qp.receives), poll_all(&qp.sends)));
        format!("{counted:?} {cqes:?} {:?}", crc_of(&self.to.bytes(0, 1 << 18)))
    }

    /// Whatever is missing comes again, and arrives.
    fn finish(&mut self, numbers: &[usize]) {
        let data = self.from.bytes(0, LEN as usize);
        let Rig { a, b, near, far, to, senders, receivers, .. } = self;
        drive(&[a, b], || {
            pass_on(near, far);
            pass_on(far, near);
            numbers.iter().all(|&number| to.bytes(PLACES[number], LEN as usize) == data)
        });
        for qp in senders.iter().chain(receivers.iter()) {
            assert!(poll_all(&qp.sends).iter().all(Cqe::is_success));
        }
    }
}

/// What has come to one side leaves at the other.
fn pass_on(from: &mut Side, to: &mut Side) {
    for (rx, _) in &mut from.queues {
        let mut burst = MbufBurst::<32>::new();
        rx.burst_as_sent(&mut burst);
        burst.drain().for_each(|mbuf| to.send_mbuf(0, mbuf));
    }
}

fn crc_of(bytes: &[u8]) -> u32 {
    let mut icrc = wire::Icrc::after(0);
    icrc.update(bytes);
    icrc.value()
}

/// Messages of these QPs, changed by `odd` on their way: they leave the same in a burst and one by one, and arrive in the end.
#[track_caller]
fn either_way(
    name: &str,
    (queues, home): (u16, usize),
    numbers: &[usize],
    odd: impl Fn(&Rig, &mut Vec<Mbuf>),
) {
    for kind in KINDS {
        let left = [false, true].map(|one_by_one| {
            let name = format!("{name}-{kind:?}-{one_by_one}");
            let mut rig = Rig::new(queues, home);
            numbers.iter().for_each(|&number| rig.post(kind, number));
            let mut packets = rig.sent();
            assert_eq!(packets.len(), numbers.len() * PACKETS, "{name}");
            assert!(packets.iter().filter(|mbuf| mbuf.is_lent()).count() >= numbers.len() * (PACKETS - 1));
            odd(&rig, &mut packets);
            for packet in packets {
                rig.far.send_mbuf(0, packet);
                if one_by_one {
                    rig.b.poll();
                }
            }
            (0..8).for_each(|_| rig.b.poll());
            let left = rig.left();
            let state =
                QPNS.map(|qpn| rig.b.end.link.home(qpn).map(|at| rig.b.end.query(at, qpn).attr.state));
            assert_eq!(state, [Some(QpState::Rts); 2], "{name}");
            rig.finish(numbers);
            left
        });
        assert_eq!(left[0], left[1], "{name}, {kind:?}");
    }
}

#[test]
fn messages_by_themselves() {
    either_way("alone", (1, 0), &[0], |_, _| {});
    either_way("two", (1, 0), &[0, 1], |_, _| {});
}

#[test]
fn one_that_is_missing_or_out_of_its_place() {
    for at in [0, 1, 2, 7, 13, 14] {
        either_way(&format!("lost{at}"), (1, 0), &[0], |_, packets| drop(packets.remove(at)));
    }
    either_way("swap", (1, 0), &[0], |_, packets| packets.swap(5, 6));
    either_way("late", (1, 0), &[0], |_, packets| {
        let late = packets.remove(4);
        packets.insert(9, late);
    });
}

/// Its sum is of what was there before.
#[test]
fn one_that_is_spoilt() {
    for at in [0, 1, 2, 7, 13] {
        either_way(&format!("bad{at}"), (1, 0), &[0], |rig, _| {
            rig.from.buffer.write(at * 4096 + 100, &[0xEE; 9]).unwrap();
        });
    }
}

/// Packets of two QPs in turns, a few at a time.
#[test]
fn messages_of_two_qps_at_a_time() {
    for few in [1, 2, 5] {
        either_way(&format!("turns{few}"), (1, 0), &[0, 1], |_, packets| {
            let mut halves = [packets.split_off(PACKETS), std::mem::take(packets)];
            while halves.iter().any(|half| !half.is_empty()) {
                for half in &mut halves {
                    packets.extend(half.drain(..few.min(half.len())));
                }
            }
        });
    }
}

/// The frames come to a worker where their QP does not live: each is put together, and goes on.
#[test]
fn messages_for_a_qp_of_another_worker() {
    for kind in KINDS {
        let mut rig = Rig::new(2, 1);
        rig.post(kind, 0);
        let packets = rig.sent();
        assert_eq!(packets.len(), PACKETS);
        packets.into_iter().for_each(|packet| rig.far.send_mbuf(0, packet));
        (0..8).for_each(|_| rig.b.poll());
        let counters = rig.b.end.counters(0);
        let handed = counters.iter().find(|(name, _)| *name == "handed_over_frames").map(|(_, value)| value);
        assert_eq!(handed, Some(PACKETS as u64), "{}", rig.b.end.account());
        rig.finish(&[0]);
    }
}

/// Where the QP was that the first of them is for, there is none any more.
#[test]
fn messages_for_no_qp() {
    let mut rig = Rig::new(1, 0);
    rig.post(Kind::Write, 0);
    let packets = rig.sent();
    common::done(rig.b.end.handles[0].call(worker::Command::DestroyQp { lane: 0, qpn: QPNS[0] }));
    packets.into_iter().for_each(|packet| rig.far.send_mbuf(0, packet));
    (0..8).for_each(|_| rig.b.poll());
    let counters = rig.b.end.counters(0);
    let dropped = counters.iter().find(|(name, _)| *name == "drop_unknown_qp").map(|(_, value)| value);
    assert_eq!(dropped, Some(PACKETS as u64), "{}", rig.b.end.account());
}
