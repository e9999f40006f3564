//! Middle responses of a READ leave in runs. The packets, and all that follows, are those that leave one by one.

use super::help::*;
use crate::packet::{Followers, PacketSink, SinkError, TxPacket, TxRun};
use proptest::prelude::*;

/// A sink that notes how many came in runs, or wants none.
struct Counted {
    list: ListSink,
    followed: usize,
    in_runs: bool,
}

impl PacketSink for Counted {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        self.list.emit(packet)
    }

    fn emit_run(&mut self, run: &TxRun<'_>, followers: &mut impl Followers) -> Result<(), SinkError> {
        while self.in_runs
            && let Some(follower) = followers.next()
        {
            run.emit_one(&follower, &mut self.list)?;
            self.followed += 1;
        }
        Ok(())
    }
}

fn sent(rig: &mut Rig, room: usize, in_runs: bool) -> (Vec<Packet>, usize) {
    let mut sink = Counted { list: ListSink::new(rig.memory.clone(), room), followed: 0, in_runs };
    rig.engine.poll_transmit(rig.now, &mut sink);
    (sink.list.sent, sink.followed)
}

fn read(rig: &Rig, psn: u32, reth: Reth) -> Packet {
    rig.packet(ReadRequest, Only, psn, &[]).with(reth)
}

#[test]
fn all_but_the_first_and_last_leave_in_one_run() {
    for qp_type in [QpType::Rc, QpType::XrcTgt] {
        let is_xrc = qp_type == QpType::XrcTgt;
        let mut rig = if is_xrc { Rig::xrc_target(attributes()).0 } else { Rig::new(qp_type) };
        let source = rig.region(0x1000, ALL);
        let mut request = rig.packet(ReadRequest, Only, FIRST, &[]);
        if is_xrc {
            request = request.with(wire::XrcEth { srqn: SRQN.value() });
        }
        rig.deliver(&request.with(reth(&source, 9, 6 * 256 + 1)));
        let (sent, followed) = sent(&mut rig, 99, true);
        let at: Vec<_> = sent.iter().map(|packet| packet.kind().1).collect();
        assert_eq!(
            (at, followed),
            (vec![First, Middle, Middle, Middle, Middle, Middle, Last], 5),
            "{qp_type:?}"
        );
        let bytes: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
        assert_eq!(bytes, rig.memory.content(source.id)[9..][..6 * 256 + 1]);
        let psns = sent.iter().map(|packet| packet.bth.psn.value() - FIRST);
        assert!(psns.eq(0..7) && sent.iter().all(|packet| !packet.bth.ack_req));
        assert_eq!((rig.count(Counter::TxPackets), rig.count(Counter::TxPayloadBytes)), (7, 6 * 256 + 1));
    }
}

/// What is sent again is marked so, and copied by who lends what is not.
#[test]
fn a_duplicate_is_answered_one_by_one() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(0x1000, ALL);
    for again in [false, true] {
        rig.deliver(&read(&rig, FIRST, reth(&source, 0, 1024)));
        let (sent, followed) = sent(&mut rig, 99, true);
        assert_eq!((sent.len(), followed), (4, if again { 0 } else { 2 }));
        assert!(sent.iter().all(|packet| packet.again == again));
    }
}

/// A NAK is where the response would have been that found no memory, though some of its run have left.
#[test]
fn memory_that_goes_in_a_run_is_told_at_its_place() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(0x1000, ALL);
    rig.deliver(&read(&rig, FIRST, reth(&source, 0, 8 * 256)));
    let list = ListSink::new(rig.memory.clone(), 99);
    let mut sink = Withdraws { list, after: 3, region: source.id };
    rig.engine.poll_transmit(rig.now, &mut sink);
    assert_eq!(acks(&sink.list.sent[3..]), [nak(NakCode::RemoteAccess, FIRST + 3, 1)]);
    assert_failed(&mut rig);
}

/// What a peer asks for between two looks at what is sent: READs by length, a duplicate from some packet of the last one on, and
/// whether the key is taken away then.
#[derive(Clone, Debug)]
struct Round {
    lens: Vec<u32>,
    again: Option<u32>,
    room: usize,
    key_goes: bool,
}

fn round() -> impl Strategy<Value = Round> {
    let len = prop_oneof![3 => 0..6000u32, 1 => Just(1024u32), 1 => 10_000..40_000u32];
    let lens = proptest::collection::vec(len, 0..3);
    let again = prop_oneof![3 => Just(None), 1 => (0..30u32).prop_map(Some)];
    let room = prop_oneof![2 => Just(usize::MAX), 3 => 0..12usize];
    let key_goes = prop_oneof![12 => Just(false), 1 => Just(true)];
    (lens, again, room, key_goes).prop_map(|(lens, again, room, key_goes)| Round {
        lens,
        again,
        room,
        key_goes,
    })
}

type Seen = (Vec<(Bth, wire::ExtHeaders, Vec<u8>, bool)>, Vec<u64>, QpState, bool);

fn play(rounds: &[Round], in_runs: bool) -> Vec<Seen> {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.fast_region(0x1_0000, ALL);
    let (mut psn, mut last) = (FIRST, None);
    let mut seen = Vec::new();
    for Round { lens, again, room, key_goes } in rounds {
        for &len in lens {
            rig.deliver(&read(&rig, psn, reth(&source, u64::from(len), len)));
            last = Some((psn, len));
            psn += wire::packets(len, wire::Mtu::Mtu256);
        }
        if let (Some(skip), Some((first, len))) = (again, last)
            && skip * 256 < len
        {
            let rest = reth(&source, u64::from(len + skip * 256), len - skip * 256);
            rig.deliver(&read(&rig, first + skip, rest));
        }
        if *key_goes {
            let _ = source.mr.invalidate(PD, source.rkey());
        }
        let (sent, _) = sent(&mut rig, *room, in_runs);
        let sent = sent.into_iter().map(|it| (it.bth, it.ext, it.payload, it.again)).collect();
        let counters = Counter::ALL.iter().map(|&counter| rig.count(counter)).collect();
        seen.push((sent, counters, rig.state(), rig.engine.is_idle()));
    }
    seen
}

proptest! {
    #[test]
    fn runs_of_responses_do_what_single_packets_do(rounds in proptest::collection::vec(round(), 1..12)) {
        for (expected, got) in play(&rounds, false).iter().zip(&play(&rounds, true)) {
            prop_assert_eq!(expected, got);
        }
    }
}
