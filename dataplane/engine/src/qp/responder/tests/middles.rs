//! Middles of a message that are executed together leave what they would have left one by one, whatever is odd about them.

use super::help::*;
use proptest::prelude::*;
use wire::Frame;

/// What a dialogue has: a region of 8 KiB, one that can be invalidated, and two packets' worth of receives.
struct Talk {
    rig: Rig,
    region: Region,
    fast: Region,
    /// Delivers middles together.
    runs: bool,
    together: u32,
}

impl Talk {
    fn new(mut rig: Rig, runs: bool) -> Talk {
        let region = rig.region(8192, ALL);
        let fast = rig.fast_region(8192, ALL);
        Talk { rig, region, fast, runs, together: 0 }
    }

    /// A burst, and its end. Those for which `spoilt` says so are not what their sender summed.
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

    /// A WRITE of so many packets, the last of 10 bytes, to the beginning of a region.
    fn write(&self, from: u32, count: u32, region: &Region) -> Vec<Packet> {
        let mut packets = self.message(Write, from, count);
        packets[0] = packets[0].clone().with(reth(region, 3, (count - 1) * MTU as u32 + 10));
        packets
    }

    fn message(&self, operation: Operation, from: u32, count: u32) -> Vec<Packet> {
        let one = |n: u32| {
            let at = Position::of(n == 0, n + 1 == count);
            let len = if at.ends() { 10 } else { MTU };
            let payload: Vec<_> = bytes(len).iter().map(|byte| byte ^ n as u8).collect();
            self.rig.packet(operation, at, from + n, &payload)
        };
        (0..count).map(one).collect()
    }

    /// A receive of pieces of these lengths.
    fn post(&mut self, lengths: &[u32]) {
        let mut offset = 0;
        let sges = lengths.iter().map(|&len| {
            offset += u64::from(len) + 8;
            self.region.sge(offset - u64::from(len), len)
        });
        let sges = sges.collect::<Vec<_>>();
        self.rig.post_recv(7, &sges);
    }

    /// All that can be seen, the answers first.
    fn seen(&mut self) -> String {
        seen(&mut self.rig)
    }
}

fn either_way_on(name: &str, rig: impl Fn() -> Rig, talk: impl Fn(&mut Talk)) -> u32 {
    both_ways(name, |runs| {
        let mut one = Talk::new(rig(), runs);
        talk(&mut one);
        (one.together, one.seen())
    })
}

fn either_way(name: &str, talk: impl Fn(&mut Talk)) -> u32 {
    either_way_on(name, || Rig::new(QpType::Rc), talk)
}

fn good(_: usize) -> bool {
    false
}

#[test]
fn messages_that_arrive() {
    for ask in [None, Some(0), Some(1), Some(5), Some(10), Some(11)] {
        for operation in [Write, Send] {
            let together = either_way(&format!("{operation:?}, {ask:?} asks"), |talk| {
                talk.post(&[100, 700, 3000]);
                let mut packets = match operation {
                    Write => talk.write(FIRST, 12, &talk.region),
                    _ => talk.message(Send, FIRST, 12),
                };
                if let Some(ask) = ask {
                    packets[ask].bth.ack_req = true;
                }
                talk.burst(&packets, good);
                let expected = Vec::from_iter(ask.map(|_| ack(FIRST + 11, 1)));
                assert_eq!(acks(&talk.rig.sent()), expected);
                assert_eq!(talk.rig.count(Counter::RxPackets), 12);
                assert_eq!(talk.rig.count(Counter::RxPayloadBytes), 11 * MTU as u64 + 10);
                let data: Vec<_> = packets.iter().flat_map(|packet| packet.payload.clone()).collect();
                if operation == Write {
                    assert_eq!(talk.rig.memory.content(talk.region.id)[3..3 + data.len()], data);
                }
            });
            assert_eq!(together, 9, "all middles but the first");
        }
    }
}

#[test]
fn memory_is_told_what_follows_a_middle() {
    let together = either_way("all but the end", |talk| {
        let packets = talk.write(FIRST, 12, &talk.region);
        talk.burst(&packets[..11], good);
        assert_eq!(talk.rig.memory.follows(), [10]);
    });
    assert_eq!(together, 9);
}

/// UC: nothing is acknowledged, though it may be asked for, and one that is spoilt ends its message.
#[test]
fn messages_without_acknowledgements() {
    for operation in [Write, Send] {
        let talk = |spoilt: usize| {
            let name = format!("{operation:?}, {spoilt} is spoilt");
            let rig = || Rig::new(QpType::Uc);
            either_way_on(&name, rig, |talk| {
                talk.post(&[100, 700, 3000]);
                let mut packets = match operation {
                    Write => talk.write(FIRST, 12, &talk.region),
                    _ => talk.message(Send, FIRST, 12),
                };
                packets.iter_mut().for_each(|packet| packet.bth.ack_req = true);
                talk.burst(&packets, |index| index == spoilt);
                assert!(talk.rig.sent().is_empty());
                let received = usize::from(operation == Send && spoilt >= packets.len());
                assert_eq!(talk.rig.recv_cqes().len(), received);
                assert_eq!(talk.rig.count(Counter::RxPackets), 12);
            })
        };
        assert_eq!(talk(99), 9, "all middles but the first");
        assert_eq!(talk(6), 4, "those before it but the first");
    }
}

/// Behind it nothing is executed, until it comes again.
#[test]
fn one_that_is_spoilt() {
    for operation in [Write, Send] {
        for at in 0..8 {
            let together = either_way(&format!("{operation:?}, {at}"), |talk| {
                talk.post(&[300, 5000]);
                let packets = match operation {
                    Write => talk.write(FIRST, 8, &talk.region),
                    _ => talk.message(Send, FIRST, 8),
                };
                talk.burst(&packets, |index| index == at);
                let spoilt = (talk.rig.count(Counter::BadIcrc), talk.rig.dropped(DropReason::Spoilt));
                assert_eq!(spoilt, (1, 1));
                talk.seen();
                talk.burst(&packets[at..], good);
                talk.rig.deliver(&packets[7].clone().ack_req());
                assert_eq!(acks(&talk.rig.sent()), [ack(FIRST + 7, 1)]);
            });
            assert!(together >= 3, "{together}");
        }
    }
}

#[test]
fn a_key_that_is_taken_away_meanwhile() {
    for at in 1..8 {
        either_way(&format!("{at}"), |talk| {
            let packets = talk.write(FIRST, 9, &talk.fast);
            let (mr, key) = (talk.fast.mr.clone(), talk.fast.rkey());
            talk.burst(&packets, |index| {
                if index == at {
                    // It may be gone already: what is held in vain is held again.
                    let _ = mr.invalidate(PD, key);
                }
                false
            });
            assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::RemoteAccess, FIRST + at as u32, 0)]);
        });
    }
}

#[test]
fn memory_that_goes_meanwhile() {
    for at in 1..8 {
        either_way(&format!("{at}"), |talk| {
            let packets = talk.write(FIRST, 9, &talk.region);
            let (memory, id) = (talk.rig.memory.clone(), talk.region.id);
            talk.burst(&packets, |index| {
                if index == at {
                    memory.remove(id);
                }
                false
            });
            assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::RemoteAccess, FIRST + at as u32, 0)]);
        });
    }
}

/// More or fewer packets come than the RETH says.
#[test]
fn a_write_of_another_length() {
    for len in [600, 1024, 1025, 1280, 1281, 1500, 1546, 1547, 3000] {
        either_way(&format!("{len} bytes"), |talk| {
            let mut packets = talk.write(FIRST, 7, &talk.region);
            let first = talk.rig.packet(Write, First, FIRST, &packets[0].payload);
            packets[0] = first.with(reth(&talk.region, 0, len));
            talk.burst(&packets, good);
            assert_eq!(acks(&talk.rig.sent()).len(), usize::from(len != 1546));
        });
    }
}

#[test]
fn a_receive_that_is_too_short() {
    for len in [300, 512, 768, 1023, 1024, 1025, 1545, 1546] {
        either_way(&format!("{len} bytes"), |talk| {
            talk.post(&[len]);
            let packets = talk.message(Send, FIRST, 7);
            talk.burst(&packets, good);
            assert_eq!(acks(&talk.rig.sent()).len(), usize::from(len < 1546));
        });
    }
}

/// The first of a run was executed before, or comes too early: nothing was asked of it that the others are asked.
#[test]
fn what_was_here_before_or_comes_too_early() {
    for begin in 1..6 {
        for end in 2..7 {
            either_way(&format!("{begin} behind {end}"), |talk| {
                let packets = talk.write(FIRST, 9, &talk.region);
                talk.burst(&packets[..end], good);
                talk.burst(&packets[begin..], good);
                talk.burst(&packets, good);
            });
        }
    }
    either_way("inside of nothing", |talk| {
        let packets = talk.write(FIRST - 2, 9, &talk.region);
        talk.burst(&packets[1..], good);
        assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::InvalidRequest, FIRST, 0)]);
    });
    either_way("inside of another", |talk| {
        talk.post(&[5000]);
        let packets = talk.write(FIRST, 9, &talk.region);
        talk.burst(&packets[..3], good);
        talk.burst(&talk.message(Send, FIRST, 9)[2..], good);
        assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 3, 0)]);
    });
    either_way("behind a refusal", |talk| {
        let mut packets = talk.write(FIRST, 9, &talk.region);
        let first = talk.rig.packet(Write, First, FIRST, &packets[0].payload);
        packets[0] = first.with(Reth { rkey: RKey::new(0x77_7700), ..reth(&talk.region, 0, 3000) });
        talk.burst(&packets, good);
        talk.burst(&talk.write(FIRST - 1, 9, &talk.region)[1..], good);
    });
}

#[test]
fn a_qp_that_takes_no_writes() {
    let attr = QpAttr { access: Access::LOCAL_WRITE, ..attributes() };
    either_way_on(
        "rights",
        || Rig::with(QpType::Rc, QpState::Rts, attr.clone()),
        |talk| {
            talk.burst(&talk.write(FIRST - 2, 6, &talk.region)[1..], good);
            assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::InvalidRequest, FIRST, 0)]);
        },
    );
}

/// A right that is taken away in the middle of a message.
#[test]
fn a_qp_that_takes_no_writes_any_more() {
    either_way("rights", |talk| {
        let packets = talk.write(FIRST, 9, &talk.region);
        talk.burst(&packets[..3], good);
        let attr = QpAttr { access: Access::LOCAL_WRITE, ..attributes() };
        talk.rig.engine.modify_qp(talk.rig.now, QPN, &attr, crate::QpAttrMask::ACCESS).unwrap();
        // The first of these was executed before.
        talk.burst(&packets[2..], good);
        assert_eq!(acks(&talk.rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 3, 0)]);
    });
}

/// Changes a packet.
type Bend = fn(&mut Packet);

#[test]
fn bent_headers_that_all_have() {
    let all: [(&str, Bend); 5] = [
        ("P_Key", |packet| packet.bth.pkey = PKey(0x1234)),
        ("pad", |packet| packet.bth.pad_count = 3),
        ("length", |packet| packet.payload.truncate(128)),
        ("unknown QP", |packet| packet.bth.dest_qpn = Qpn::new(0x99)),
        ("reserved bits", |packet| packet.bth.resv7 = 0x55),
    ];
    for (name, bend) in all {
        either_way(name, |talk| {
            let mut packets = talk.write(FIRST, 9, &talk.region);
            talk.burst(&packets[..3], good);
            // The first of them is a duplicate.
            packets.iter_mut().for_each(bend);
            talk.burst(&packets[2..8], good);
        });
    }
}

#[test]
fn states_and_types_that_hear_nothing_or_do_otherwise() {
    for (qp_type, state) in [
        (QpType::Rc, QpState::Init),
        (QpType::Rc, QpState::Rtr),
        (QpType::Rc, QpState::Sqd),
        (QpType::Rc, QpState::Err),
        (QpType::Uc, QpState::Rts),
    ] {
        either_way_on(
            &format!("{qp_type:?} in {state:?}"),
            || Rig::with(qp_type, state, attributes()),
            |talk| {
                talk.burst(&talk.write(FIRST, 8, &talk.region), good);
            },
        );
    }
    let attr = QpAttr { path: Some(addressing(LOCAL, LOCAL)), ..attributes() };
    either_way_on(
        "another address",
        || Rig::with(QpType::Rc, QpState::Rts, attr.clone()),
        |talk| talk.burst(&talk.write(FIRST, 8, &talk.region), good),
    );
}

/// Where a QP was, another one may live by now.
#[test]
fn middles_for_another_qp_than_the_one_at_its_place() {
    let mut talk = Talk::new(Rig::new(QpType::Rc), true);
    let packets = talk.write(FIRST, 6, &talk.region);
    talk.burst(&packets[..2], good);
    let mut other = packets[1].clone();
    other.bth.dest_qpn = Qpn::new(0x99);
    let bytes = other.frame(&talk.rig.from_peer);
    let first = Frame::parse(&bytes, bytes.len()).unwrap();
    let place = talk.rig.engine.place_of(QPN, first.info).unwrap();
    let hold = |memory: &HeapMemory| {
        memory.hold(&packets[2].payload, false);
        Some([0; 4])
    };
    assert_eq!(talk.rig.engine.deliver_middles(talk.rig.now, place, &first, hold), 0);
    assert_eq!(talk.rig.count(Counter::RxPackets), 2);
}

/// A step of a dialogue: packets of a message from somewhere near the expected one.
#[derive(Clone, Debug)]
struct Step {
    send: bool,
    /// Which of the message are sent.
    begin: usize,
    end: usize,
    shift: i32,
    len: u32,
    spoilt: u64,
    ask: u64,
    post: Option<u32>,
    seen: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let shift = prop_oneof![8 => Just(0i32), 1 => -6i32..6];
    let len = prop_oneof![4 => Just(9 * MTU as u32 + 10), 1 => 1u32..4000];
    let post = prop_oneof![1 => Just(None), 3 => Just(Some(4000)), 1 => (1u32..4000).prop_map(Some)];
    let begin = prop_oneof![3 => Just(0usize), 1 => 0usize..9];
    let end = prop_oneof![3 => Just(10usize), 1 => 1usize..10];
    let bits = (any::<u64>(), any::<u64>(), any::<u64>());
    let one = (any::<bool>(), begin, end, shift, len, bits, post, any::<bool>());
    let one = one.prop_map(|(send, begin, end, shift, len, (a, b, c), post, seen)| Step {
        send,
        begin,
        end: end.max(begin + 1),
        shift,
        len,
        spoilt: a & b & c & a >> 7,
        ask: b & c >> 9,
        post,
        seen,
    });
    proptest::collection::vec(one, 1..8)
}

fn play(talk: &mut Talk, steps: &[Step]) -> String {
    let (mut seen, mut message) = (String::new(), FIRST);
    for step in steps {
        if let Some(len) = step.post.filter(|_| talk.rig.shared.rq().len() < 16) {
            talk.post(&[len / 2, len - len / 2]);
        }
        let expected = talk.rig.engine.qp(QPN).unwrap().resp.expected.value();
        if step.begin == 0 {
            message = expected.wrapping_add_signed(step.shift);
        }
        let mut packets = talk.message(if step.send { Send } else { Write }, message, 10);
        if !step.send {
            packets[0] = packets[0].clone().with(reth(&talk.region, 0, step.len));
        }
        for (n, packet) in packets.iter_mut().enumerate() {
            packet.bth.ack_req = step.ask >> n & 1 != 0;
        }
        talk.burst(&packets[step.begin..step.end], |index| step.spoilt >> index & 1 != 0);
        if step.seen {
            seen += &talk.seen();
        }
    }
    seen
}

proptest! {
    #[test]
    fn any_dialogue(steps in steps()) {
        for qp_type in [QpType::Rc, QpType::Uc] {
            let [runs, one_by_one] = [true, false].map(|runs| {
                let mut talk = Talk::new(Rig::new(qp_type), runs);
                let seen = play(&mut talk, &steps);
                seen + &talk.seen()
            });
            prop_assert_eq!(runs, one_by_one);
        }
    }
}
