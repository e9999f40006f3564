//! Middles of a READ's responses that are taken together leave what they would have left one by one.

use super::*;
use crate::counters::{Counter, DropReason};
use proptest::prelude::*;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

const MTU: usize = 256;

/// Responses from this PSN on to a READ of so many packets, the last of 10 bytes.
fn responses(rig: &Rig, from: u32, count: u32) -> Vec<Packet> {
    let one = |n: u32| {
        let at = Position::of(n == 0, n + 1 == count);
        let payload = vec![n as u8 ^ 0x5A; if at.ends() { 10 } else { MTU }];
        response(rig, Operation::ReadResponse, at, from + n, &payload)
    };
    (0..count).map(one).collect()
}

fn len_of(count: u32) -> u32 {
    (count - 1) * MTU as u32 + 10
}

/// All that can be seen, what is sent first.
fn seen(rig: &mut Rig) -> String {
    let (sent, cqes, events, state) = (rig.sent(), rig.send_cqes(), rig.raised(), rig.state());
    let published = rig.memory.published();
    let req = &rig.engine.qp(QPN).unwrap().req;
    let position = (req.una, req.cursor, req.sent_end, req.window, req.rd_atomic, req.since_ack_req);
    let losses = (req.retries, req.rnr_retries, req.recovering, req.deadline, req.rnr, req.recover_end);
    // As a number: there is much of it.
    let memory = BuildHasherDefault::<DefaultHasher>::default().hash_one(rig.memory.snapshot());
    let counters = rig.engine.counters();
    format!(
        "{sent:?} {cqes:?} {events:?} {state:?} {published} {position:?} {losses:?} {counters:?} {memory}"
    )
}

struct Talk {
    rig: Rig,
    region: Region,
    runs: bool,
    together: u32,
}

impl Talk {
    fn new(runs: bool) -> Talk {
        let (rig, region) = rc();
        Talk { rig, region, runs, together: 0 }
    }

    /// Posts a READ into pieces of these lengths.
    fn read(&mut self, lengths: &[u32]) {
        let mut offset = 0;
        let sges = lengths.iter().map(|&len| {
            offset += u64::from(len) + 8;
            self.region.sge(offset - u64::from(len), len)
        });
        let sges = sges.collect::<Vec<_>>();
        self.rig.post_send(wr(1, SendOp::Read(REMOTE), &sges));
        self.rig.sent();
    }

    fn burst(&mut self, packets: &[Packet], spoilt: impl Fn(usize) -> bool) {
        if self.runs {
            self.together += self.rig.deliver_middles(packets, spoilt);
        } else {
            for (index, packet) in packets.iter().enumerate() {
                self.rig.deliver_held_in_burst(packet, spoilt(index));
            }
        }
        self.rig.end_burst();
    }
}

/// A dialogue leaves the same together and one by one; how many packets were taken together.
fn either_way(name: &str, talk: impl Fn(&mut Talk)) -> u32 {
    let [runs, one_by_one] = [true, false].map(|runs| {
        let mut both = Talk::new(runs);
        talk(&mut both);
        (both.together, seen(&mut both.rig))
    });
    assert_eq!(runs.1, one_by_one.1, "{name}");
    runs.0
}

fn good(_: usize) -> bool {
    false
}

#[test]
fn a_read_that_is_answered() {
    for pieces in [&[len_of(8)][..], &[100, 1000, len_of(8) - 1100]] {
        let together = either_way("whole", |talk| {
            talk.read(pieces);
            let packets = responses(&talk.rig, 0x100, 8);
            talk.burst(&packets, good);
            completes(&talk.rig, &[(1, WcStatus::Success)]);
            assert_eq!(talk.rig.count(Counter::RxPackets), 8);
            let memory = talk.rig.memory.content(talk.region.id);
            let data: Vec<_> = packets.iter().flat_map(|packet| packet.payload.clone()).collect();
            let (mut offset, mut at) = (0, 0);
            for &len in pieces {
                offset += 8;
                assert_eq!(memory[offset..offset + len as usize], data[at..at + len as usize]);
                offset += len as usize;
                at += len as usize;
            }
        });
        assert_eq!(together, 5, "all middles but the first");
    }
}

#[test]
fn one_that_is_spoilt_or_missing() {
    for at in 0..8 {
        either_way(&format!("spoilt {at}"), |talk| {
            talk.read(&[len_of(8)]);
            let packets = responses(&talk.rig, 0x100, 8);
            talk.burst(&packets, |index| index == at);
            assert_eq!(talk.rig.dropped(DropReason::Spoilt), 1);
        });
        either_way(&format!("missing {at}"), |talk| {
            talk.read(&[len_of(8)]);
            let mut packets = responses(&talk.rig, 0x100, 8);
            packets.remove(at);
            talk.burst(&packets, good);
        });
        either_way(&format!("again from {at}"), |talk| {
            talk.read(&[len_of(8)]);
            let packets = responses(&talk.rig, 0x100, 8);
            talk.burst(&packets[..5], good);
            talk.burst(&packets[at..], good);
        });
    }
}

/// More Middles than the READ has, or none where one is due.
#[test]
fn a_read_of_another_length() {
    for count in 2..10 {
        either_way(&format!("{count} packets"), |talk| {
            talk.read(&[len_of(count)]);
            let packets = responses(&talk.rig, 0x100, 8);
            talk.burst(&packets, good);
        });
    }
    for len in [255, 252] {
        either_way(&format!("packets of {len} bytes"), |talk| {
            talk.read(&[len_of(8)]);
            let mut packets = responses(&talk.rig, 0x100, 8);
            talk.burst(&packets[..3], good);
            packets.iter_mut().for_each(|packet| packet.payload.truncate(len));
            // The first of them was here before.
            talk.burst(&packets[2..], good);
        });
    }
}

#[test]
fn middles_where_none_are_due() {
    either_way("for a SEND", |talk| {
        talk.read(&[len_of(2)]);
        (0..6).for_each(|id| talk.rig.post_send(wr(id, SendOp::Send, &[])));
        talk.rig.sent();
        let packets = responses(&talk.rig, 0x100, 2);
        talk.burst(&packets, good);
        // The first is the last of the READ, that was here before.
        talk.burst(&responses(&talk.rig, 0x100, 8)[1..7], good);
    });
    either_way("for the READ behind", |talk| {
        talk.read(&[len_of(2)]);
        talk.read(&[len_of(4)]);
        let packets = responses(&talk.rig, 0x100, 2);
        talk.burst(&packets, good);
        talk.burst(&responses(&talk.rig, 0x100, 8)[1..7], good);
    });
    either_way("for nothing", |talk| {
        talk.burst(&responses(&talk.rig, 0xF0, 8), good);
        talk.read(&[len_of(2)]);
        talk.burst(&responses(&talk.rig, 0x100, 2), good);
        talk.burst(&responses(&talk.rig, 0x100, 8)[1..7], good);
    });
}

/// The PSN after the first of them is the one that is due, but for a WRITE that is acknowledged up to there.
#[test]
fn middles_inside_of_a_write() {
    either_way("inside of a WRITE", |talk| {
        talk.rig.post_send(wr(1, SendOp::Write(REMOTE), &[talk.region.sge(0, len_of(8))]));
        talk.rig.sent();
        acknowledge(&mut talk.rig, 0x102, Syndrome::ACK);
        talk.burst(&responses(&talk.rig, 0x100, 8)[2..7], good);
        completes(&talk.rig, &[(1, WcStatus::BadRespErr)]);
    });
}

#[test]
fn middles_of_another_partition() {
    either_way("P_Key", |talk| {
        talk.read(&[len_of(8)]);
        let mut packets = responses(&talk.rig, 0x100, 8);
        talk.burst(&packets[..3], good);
        packets.iter_mut().for_each(|packet| packet.bth.pkey = wire::PKey(0x1234));
        talk.burst(&packets[2..7], good);
        assert_eq!(talk.rig.dropped(DropReason::PKey), 5);
    });
}

#[test]
fn memory_that_goes_meanwhile() {
    for at in 1..7 {
        either_way(&format!("{at}"), |talk| {
            talk.read(&[len_of(8)]);
            let packets = responses(&talk.rig, 0x100, 8);
            let (memory, id) = (talk.rig.memory.clone(), talk.region.id);
            talk.burst(&packets, |index| {
                if index == at {
                    memory.remove(id);
                }
                false
            });
            completes(&talk.rig, &[(1, WcStatus::LocProtErr)]);
        });
    }
}

/// The window grows as if they had come one by one, also where it begins to be careful.
#[test]
fn the_window_grows_the_same() {
    either_way("window", |talk| {
        for round in 0..12 {
            let from = talk.rig.engine.qp(QPN).unwrap().req.sent_end.value();
            talk.read(&[len_of(20)]);
            let packets = responses(&talk.rig, from, 20);
            if round == 3 {
                talk.rig.advance(1 << 40);
                talk.rig.sent();
            }
            talk.burst(&packets, good);
        }
    });
}

proptest! {
    #[test]
    fn any_dialogue(
        steps in proptest::collection::vec((1u32..12, 1u32..12, 0u32..14, 1u32..14, any::<[u64; 3]>(), any::<bool>()), 1..8),
    ) {
        let [runs, one_by_one] = [true, false].map(|runs| {
            let mut talk = Talk::new(runs);
            let mut all = String::new();
            for &(reads, answers, begin, end, [a, b, c], looks) in &steps {
                let from = talk.rig.engine.qp(QPN).unwrap().req.una.value();
                if talk.rig.state() == QpState::Rts {
                    talk.read(&[len_of(reads + 1) / 2, len_of(reads + 1).div_ceil(2)]);
                }
                // Mostly what was asked for.
                let count = if a & 3 == 0 { answers + 1 } else { reads + 1 };
                let packets = responses(&talk.rig, from, count);
                let begin = if b & 3 == 0 { begin.min(count - 1) } else { 0 } as usize;
                let end = if c & 3 == 0 { end.min(count) as usize } else { packets.len() }.max(begin);
                talk.burst(&packets[begin..end], |index| a & b & c & a >> 9 >> index & 1 != 0);
                if looks {
                    all += &seen(&mut talk.rig);
                }
            }
            all + &seen(&mut talk.rig)
        });
        prop_assert_eq!(runs, one_by_one);
    }
}
