//! Packets that are executed as a run leave what they would have left one by one, whatever is odd about them.

use super::help::*;
use crate::{PdId, Sge};
use proptest::prelude::*;
use wire::{Frame, LKey};

/// What a dialogue has: three regions of 512 bytes (one of which the peer may not write) and one that can be invalidated.
struct Talk {
    rig: Rig,
    regions: [Region; 3],
    fast: Region,
    /// Delivers as runs.
    runs: bool,
    together: u32,
}

impl Talk {
    fn new(rig: Rig, runs: bool) -> Talk {
        let mut rig = rig;
        let regions = [ALL, ALL, Access::LOCAL_WRITE].map(|access| rig.region(512, access));
        let fast = rig.fast_region(256, ALL);
        Talk { rig, regions, fast, runs, together: 0 }
    }

    /// A burst, and its end.
    fn burst(&mut self, packets: &[Packet]) {
        if self.runs {
            self.together += self.rig.deliver_runs(packets);
        } else {
            packets.iter().for_each(|packet| self.rig.deliver_in_burst(packet));
        }
        self.rig.end_burst();
    }

    /// WRITEs of these bytes to successive places of the first region.
    fn writes(&self, from: u32, count: u32, payload: &[u8]) -> Vec<Packet> {
        let len = payload.len() as u32;
        let one = |n: u32| {
            let place = reth(&self.regions[0], u64::from(n * len) % 128, len);
            let bytes: Vec<_> = payload.iter().map(|byte| byte ^ n as u8).collect();
            self.rig.packet(Write, Only, from + n, &bytes).with(place)
        };
        (0..count).map(one).collect()
    }

    fn sends(&self, from: u32, count: u32, payload: &[u8]) -> Vec<Packet> {
        (0..count).map(|n| self.rig.packet(Send, Only, from + n, payload)).collect()
    }

    /// Receives of 32 bytes each.
    fn post(&mut self, count: u64) {
        (0..count).for_each(|n| self.rig.post_recv(n, &[self.regions[1].sge(n * 8 % 128, 32)]));
    }

    /// All that can be seen afterwards, the answers first.
    fn left(mut self) -> String {
        seen(&mut self.rig)
    }
}

fn either_way_on(name: &str, rig: impl Fn() -> Rig, talk: impl Fn(&mut Talk)) -> u32 {
    both_ways(name, |runs| {
        let mut one = Talk::new(rig(), runs);
        talk(&mut one);
        (one.together, one.left())
    })
}

fn either_way(name: &str, talk: impl Fn(&mut Talk)) -> u32 {
    either_way_on(name, || Rig::new(QpType::Rc), talk)
}

#[test]
fn writes_and_sends() {
    for ask in [None, Some(0), Some(3), Some(9)] {
        for len in [0, 1, 4, 13, 32] {
            let together = either_way(&format!("{len} bytes, {ask:?} asks"), |talk| {
                talk.post(12);
                let mut packets = talk.writes(FIRST, 10, &bytes(len));
                packets.extend(talk.sends(FIRST + 10, 10, &bytes(len)));
                packets.extend(talk.writes(FIRST + 20, 1, &bytes(len)));
                for packet in ask.into_iter().flat_map(|at| [at, at + 10]) {
                    packets[packet].bth.ack_req = true;
                }
                talk.burst(&packets);
                let acks = ask.map(|_| ack(FIRST + 20, 21));
                assert_eq!(acks_of(talk), Vec::from_iter(acks));
            });
            // WRITEs of no bytes have no key to check, and go another way.
            assert_eq!(together, if len == 0 { 9 } else { 18 });
        }
    }
}

fn acks_of(talk: &mut Talk) -> Vec<Ack> {
    acks(&talk.rig.sent())
}

#[test]
fn solicited_sends() {
    either_way("solicited", |talk| {
        talk.post(5);
        let packets: Vec<_> = talk.sends(FIRST, 5, &bytes(8)).into_iter().map(Packet::solicited).collect();
        talk.burst(&packets);
    });
}

#[test]
fn psns_that_wrap() {
    let attr = QpAttr { rq_psn: Psn::new(0xFF_FFFC), ..attributes() };
    let rig = || Rig::with(QpType::Rc, QpState::Rts, attr.clone());
    let together = either_way_on("wrap", rig, |talk| {
        let mut packets = talk.writes(0, 8, &bytes(8));
        for (n, packet) in packets.iter_mut().enumerate() {
            packet.bth.psn = Psn::new(0xFF_FFFC).add(n as u32);
        }
        talk.burst(&packets);
        assert_eq!(talk.rig.count(Counter::RxWriteRequests), 8);
    });
    assert_eq!(together, 7);
}

#[test]
fn what_was_here_before_or_comes_too_early() {
    for shift in [-2i32, -1, 1, 2] {
        either_way(&format!("shifted by {shift}"), |talk| {
            talk.burst(&talk.writes(FIRST, 2, &bytes(8)));
            let from = (FIRST + 2).wrapping_add_signed(shift);
            let packets: Vec<_> = talk.writes(from, 6, &bytes(9)).into_iter().map(Packet::ack_req).collect();
            talk.burst(&packets);
            talk.burst(&talk.writes(FIRST + 2, 9, &bytes(9)));
        });
    }
}

/// One of the run is wrong: those before it are executed, and what is behind it has lost its sense.
#[test]
fn one_that_is_refused() {
    let odd: [fn(&mut Talk, &mut Packet); 6] = [
        |talk, packet| *packet = rewritten(talk, packet, |reth| reth.va = u64::MAX - 3),
        |talk, packet| *packet = rewritten(talk, packet, |reth| reth.va += 506),
        |talk, packet| *packet = rewritten(talk, packet, |reth| reth.dma_len += 1),
        |talk, packet| *packet = rewritten(talk, packet, |reth| reth.dma_len = 0),
        |talk, packet| *packet = rewritten(talk, packet, |reth| reth.rkey = RKey::new(0x77_7700)),
        |talk, packet| {
            let key = talk.regions[2].rkey();
            *packet = rewritten(talk, packet, |reth| reth.rkey = key);
        },
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        for at in [1, 2, 7] {
            let together = either_way(&format!("{number} at {at}"), |talk| {
                let mut packets = talk.writes(FIRST, 8, &bytes(8));
                odd(talk, &mut packets[at]);
                talk.burst(&packets);
                assert_eq!(talk.rig.count(Counter::RxWriteRequests), at as u64);
                let sent = acks_of(talk);
                assert!(
                    matches!(sent[..], [(psn, Syndrome::Nak(_), _)] if psn == FIRST + at as u32),
                    "{sent:?}"
                );
            });
            assert_eq!(together, at as u32 - 1);
        }
    }
}

fn rewritten(talk: &Talk, packet: &Packet, change: impl Fn(&mut Reth)) -> Packet {
    let mut reth = packet.header::<Reth>().unwrap();
    change(&mut reth);
    talk.rig.packet(Write, Only, packet.bth.psn.value(), &packet.payload).with(reth)
}

/// Keys that take turns, and one that was taken away by another core, or a region that is gone.
#[test]
fn each_write_is_asked_for_its_own_key() {
    let all: [fn(&mut Talk); 3] = [
        |_| {},
        |talk| talk.fast.mr.invalidate(PD, talk.fast.rkey()).unwrap(),
        |talk| talk.rig.memory.remove(talk.regions[1].id),
    ];
    for (number, before) in all.into_iter().enumerate() {
        let together = either_way(&format!("keys {number}"), |talk| {
            before(talk);
            let mut packets = talk.writes(FIRST, 9, &bytes(8));
            for (n, packet) in packets.iter_mut().enumerate() {
                let region = [&talk.regions[0], &talk.regions[0], &talk.fast, &talk.regions[1]][n % 4];
                let to = reth(region, n as u64, 8);
                *packet = rewritten(talk, packet, |reth| *reth = to);
            }
            talk.burst(&packets);
        });
        assert_eq!(together, [8, 1, 2][number]);
    }
}

/// The same index with another key byte is another key.
#[test]
fn the_byte_of_a_key_counts() {
    either_way("key byte", |talk| {
        let mut packets = talk.writes(FIRST, 4, &bytes(8));
        let other = RKey::new(talk.regions[0].rkey().value() ^ 1);
        packets[2] = rewritten(talk, &packets[2], |reth| reth.rkey = other);
        talk.burst(&packets);
        assert_eq!(talk.rig.count(Counter::RxWriteRequests), 2);
    });
}

#[test]
fn a_qp_that_takes_no_writes() {
    let attr = QpAttr { access: Access::LOCAL_WRITE, ..attributes() };
    either_way_on(
        "rights",
        || Rig::with(QpType::Rc, QpState::Rts, attr.clone()),
        |talk| {
            // Nobody asks the first, which is a duplicate.
            talk.burst(&talk.writes(FIRST - 1, 4, &bytes(8)));
            assert_eq!(acks_of(talk), [nak(NakCode::InvalidRequest, FIRST, 0)]);
        },
    );
}

#[test]
fn receives_that_are_few_or_odd() {
    let odd: [fn(&mut Talk, u64); 6] = [
        |_, _| {},
        |talk, id| talk.rig.post_recv(id, &[talk.regions[1].sge(0, 7)]),
        |talk, id| talk.rig.post_recv(id, &[talk.regions[1].sge(0, 4), talk.regions[1].sge(8, 4)]),
        |talk, id| talk.rig.post_recv(id, &[Sge { addr: 0, len: 64, lkey: LKey::new(0x77_7700) }]),
        |talk, id| {
            let foreign = talk.rig.region_of(PdId(9), 64, ALL);
            talk.rig.post_recv(id, &[foreign.sge(0, 64)]);
        },
        |talk, id| talk.rig.post_recv(id, &[]),
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        for before in [1, 2, 5] {
            let together = either_way(&format!("receive {number} behind {before}"), |talk| {
                talk.post(before);
                odd(talk, 100);
                talk.post(1);
                let packets: Vec<_> =
                    talk.sends(FIRST, 8, &bytes(8)).into_iter().map(Packet::ack_req).collect();
                talk.burst(&packets);
            });
            assert!(together >= before as u32 - 1, "{together}");
        }
    }
}

/// After an RNR NAK the same packets come again, with receives now.
#[test]
fn sends_that_found_no_receive_come_again() {
    either_way("again", |talk| {
        talk.post(3);
        let packets = talk.sends(FIRST, 6, &bytes(8));
        talk.burst(&packets);
        assert_eq!(acks_of(talk).len(), 1);
        talk.post(6);
        talk.burst(&packets[3..]);
        talk.burst(&talk.sends(FIRST + 6, 3, &bytes(8)));
    });
}

/// A receive that was taken for a packet which was spoilt waits for the packet that comes in its stead.
#[test]
fn a_receive_that_waits_for_its_message_comes_first() {
    either_way("spoilt", |talk| {
        talk.post(6);
        let packets = talk.sends(FIRST, 4, &bytes(8));
        talk.rig.deliver(&packets[0]);
        talk.rig.deliver_held(&packets[1], true);
        talk.burst(&packets);
    });
}

#[test]
fn completions_without_room() {
    for cqes in [1, 2, 5, 40] {
        let rig = || Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 64, cqes);
        either_way_on(&format!("{cqes}"), rig, |talk| {
            talk.post(60);
            let packets = talk.sends(FIRST, 50, &bytes(8)).into_iter().map(Packet::ack_req);
            talk.burst(&packets.collect::<Vec<_>>());
        });
    }
}

/// The first of a run is a duplicate, and those behind it are expected: nothing was asked of it that they are asked.
#[test]
fn a_run_that_begins_with_a_duplicate() {
    let together = either_way("executed", |talk| {
        talk.burst(&talk.writes(FIRST, 2, &bytes(8)));
        talk.burst(&talk.writes(FIRST + 1, 4, &bytes(8)));
        assert_eq!(talk.rig.count(Counter::RxWriteRequests), 5);
    });
    assert_eq!(together, 1 + 3);
    either_way("without a receive, and again", |talk| {
        talk.post(3);
        let packets = talk.sends(FIRST, 6, &bytes(8));
        talk.burst(&packets);
        assert_eq!(acks_of(talk).len(), 1);
        talk.post(6);
        talk.burst(&packets[2..]);
    });
    either_way("behind a refusal", |talk| {
        let mut packets = talk.writes(FIRST, 3, &bytes(8));
        packets[2] = rewritten(talk, &packets[2], |reth| reth.rkey = RKey::new(0x77_7700));
        talk.burst(&packets);
        talk.burst(&talk.writes(FIRST + 1, 4, &bytes(8)));
        assert_eq!(talk.rig.count(Counter::RxWriteRequests), 2);
    });
    either_way("without bytes and key", |talk| {
        let mut packets = talk.writes(FIRST - 1, 4, &[]);
        for packet in &mut packets {
            *packet = rewritten(talk, packet, |reth| reth.rkey = RKey::new(0x77_7700));
        }
        talk.burst(&packets);
        assert_eq!(talk.rig.count(Counter::RxWriteRequests), 3);
    });
}

/// Inside of a message nothing else may come.
#[test]
fn a_run_inside_of_a_message() {
    either_way("inside", |talk| {
        let first = talk.rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&talk.regions[0], 0, 300));
        talk.burst(&[first]);
        talk.burst(&talk.writes(FIRST, 4, &bytes(8)));
        assert_eq!(acks_of(talk), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    });
}

/// Where a QP was, another one may live by now.
#[test]
fn a_run_for_another_qp_than_the_one_at_its_place() {
    let mut talk = Talk::new(Rig::new(QpType::Rc), true);
    let mut packets = talk.writes(FIRST - 1, 4, &bytes(8));
    packets.iter_mut().for_each(|packet| packet.bth.dest_qpn = Qpn::new(0x99));
    let frames: Vec<_> = packets.iter().map(|packet| packet.frame(&talk.rig.from_peer)).collect();
    let first = Frame::parse(&frames[0], frames[0].len()).unwrap();
    let rig = &mut talk.rig;
    let place = rig.engine.place_of(QPN, first.info).unwrap();
    assert_eq!(rig.engine.deliver_followers(rig.now, place, &first, &frames[1..], Vec::as_slice), 0);
    assert_eq!((rig.count(Counter::RxPackets), rig.dropped(DropReason::UnknownQp)), (0, 3));
}

#[test]
fn states_and_types_that_hear_nothing_or_do_otherwise() {
    for state in [QpState::Init, QpState::Rtr, QpState::Sqd, QpState::Err] {
        either_way_on(
            &format!("{state:?}"),
            || Rig::with(QpType::Rc, state, attributes()),
            |talk| {
                talk.burst(&talk.writes(FIRST - 1, 4, &bytes(8)));
            },
        );
    }
    for (other, attr) in
        [("address", QpAttr { path: Some(addressing(LOCAL, LOCAL)), ..attributes() }), ("none", attributes())]
    {
        either_way_on(
            other,
            || Rig::with(QpType::Rc, QpState::Rts, attr.clone()),
            |talk| {
                talk.burst(&talk.writes(FIRST - 1, 4, &bytes(8)));
                talk.burst(&talk.writes(FIRST + 2, 4, &bytes(MTU + 4)));
            },
        );
    }
    either_way_on(
        "UC",
        || Rig::new(QpType::Uc),
        |talk| {
            talk.burst(&talk.writes(FIRST - 1, 4, &bytes(8)));
        },
    );
}

/// Changes a packet.
type Bend = fn(&mut Packet);

#[test]
fn bent_headers_that_all_of_a_run_have() {
    let all: [(&str, Bend); 4] = [
        ("P_Key", |packet| packet.bth.pkey = PKey(0x1234)),
        ("pad", |packet| packet.bth.pad_count = 3),
        ("unknown QP", |packet| packet.bth.dest_qpn = Qpn::new(0x99)),
        ("reserved bits", |packet| packet.bth.resv7 = 0x55),
    ];
    for (name, bend) in all {
        either_way(name, |talk| {
            let mut packets = talk.writes(FIRST - 1, 4, &bytes(8));
            packets.iter_mut().for_each(bend);
            talk.burst(&packets);
        });
    }
}

/// A step of a dialogue: packets in a row of one kind, from a PSN near the expected one.
#[derive(Clone, Debug)]
struct Step {
    send: bool,
    shift: i32,
    count: u32,
    len: usize,
    odd: Option<(usize, u64)>,
    ask: u64,
    post: u64,
    transmits: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let odd = prop_oneof![4 => Just(None), 1 => (0usize..12, prop_oneof![Just(200u64), Just(5), 490u64..520]).prop_map(Some)];
    let shift = prop_oneof![6 => Just(0i32), 1 => -6i32..6];
    let one = (any::<bool>(), shift, 1u32..12, 0usize..40, odd, any::<u64>(), 0u64..12, any::<bool>());
    let one = one.prop_map(|(send, shift, count, len, odd, ask, post, transmits)| Step {
        send,
        shift,
        count,
        len,
        odd,
        ask: ask & ask >> 3,
        post,
        transmits,
    });
    proptest::collection::vec(one, 1..8)
}

fn play(talk: &mut Talk, steps: &[Step]) -> String {
    let mut seen = String::new();
    for step in steps {
        talk.post(step.post.min(60 - talk.rig.shared.rq().len() as u64));
        let expected = talk.rig.engine.qp(QPN).unwrap().resp.expected.value();
        let from = expected.wrapping_add_signed(step.shift);
        let payload = bytes(step.len);
        let mut packets = if step.send {
            talk.sends(from, step.count, &payload)
        } else {
            talk.writes(from, step.count, &payload)
        };
        if let (Some((at, offset)), false) = (step.odd, step.send)
            && let Some(packet) = packets.get_mut(at)
        {
            *packet = rewritten(talk, packet, |reth| reth.va += offset);
        }
        packets.iter_mut().enumerate().for_each(|(n, packet)| packet.bth.ack_req = step.ask >> n & 1 != 0);
        talk.burst(&packets);
        if step.transmits {
            seen += &format!("{:?}", talk.rig.sent());
        }
    }
    seen
}

proptest! {
    #[test]
    fn any_dialogue(steps in steps(), cqes in prop_oneof![4 => Just(256usize), 1 => 1usize..20]) {
        let [runs, one_by_one] = [true, false].map(|runs| {
            let mut talk = Talk::new(Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 64, cqes), runs);
            let seen = play(&mut talk, &steps);
            seen + &talk.left()
        });
        prop_assert_eq!(runs, one_by_one);
    }
}
