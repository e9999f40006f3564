//! What is no fault, packet by packet, with the twin that is one: rules that depend on what was missing, and for whom.

use crate::edit::*;
use crate::support::Seen;
use check::{Checker, Damage, End, Note, Options, Rule, Vantage};
use wire::{Frame, Mac, Mtu, Psn};

const REQUESTER: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0B, 0]));
const RESPONDER: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0A, 0]));

/// PSN of the first request, MSN 0.
const FIRST: u32 = 0x100;
const ACKED: u8 = 0x1F;
const SEQUENCE: u8 = 0x60;
const INVALID: u8 = 0x61;
const ACCESS: u8 = 0x62;
/// Code 14: 1.28 ms.
const NOT_READY: u8 = 0x2E;

/// Frames of a connection whose requests are all one way, a frame every microsecond.
struct Dialogue {
    checker: Checker,
    frames: [Seen; 2],
    now: u64,
}

impl Dialogue {
    fn at(vantage: Vantage) -> Dialogue {
        Dialogue::with(Options { vantage, ..Options::default() })
    }

    fn with(options: Options) -> Dialogue {
        let capture = crate::support::capture("rc-read-1-v4");
        let frames = [READ, READ_ONLY].map(|opcode| capture[last(&capture, opcode)].clone());
        let [request, answer] =
            [0, 1].map(|at| Frame::parse(&frames[at].bytes, frames[at].bytes.len()).unwrap());
        let mut checker = Checker::new(options);
        let one = End { gid: request.src, qpn: answer.bth().dest_qpn, psn: Psn::new(FIRST) };
        let other = End { gid: request.dst, qpn: request.bth().dest_qpn, psn: Psn::new(0) };
        checker.connect(one, other, Some(Mtu::Mtu1024));
        Dialogue { checker, frames, now: 0 }
    }

    fn pass(&mut self, of: usize, change: impl FnOnce(&mut Vec<u8>)) -> &mut Dialogue {
        let mut frame = self.frames[of].clone();
        edit(&mut frame, change);
        self.now += 1_000;
        self.checker.on_frame(self.now, &frame.bytes);
        self
    }

    /// A SEND of nothing, so many behind the first.
    fn send(&mut self, ahead: u32) -> &mut Dialogue {
        self.pass(0, |b| {
            b[BTH] = 0x04;
            set_body(b, &[]);
            set_psn(b, FIRST + ahead);
        })
    }

    /// A READ with one response.
    fn read(&mut self, ahead: u32) -> &mut Dialogue {
        self.pass(0, |b| set_psn(b, FIRST + ahead))
    }

    /// A READ with three responses.
    fn long_read(&mut self, ahead: u32) -> &mut Dialogue {
        self.pass(0, |b| {
            b[EXT + 12..EXT + 16].copy_from_slice(&3072u32.to_be_bytes());
            set_psn(b, FIRST + ahead);
        })
    }

    /// One of the responses to a long READ.
    fn long_response(&mut self, opcode: u8, ahead: u32, msn: u8) -> &mut Dialogue {
        self.pass(1, |b| {
            b[BTH] = opcode;
            b[BTH + 1] &= !0x30;
            let aeth = [ACKED, 0, 0, msn];
            let head = if opcode == READ_MIDDLE { &[][..] } else { &aeth };
            set_body(b, &[head, &[0; 1024]].concat());
            set_psn(b, FIRST + ahead);
        })
    }

    fn read_response(&mut self, ahead: u32, msn: u8) -> &mut Dialogue {
        self.pass(1, |b| {
            set_psn(b, FIRST + ahead);
            b[EXT..EXT + 4].copy_from_slice(&[ACKED, 0, 0, msn]);
        })
    }

    fn answer(&mut self, ahead: u32, syndrome: u8, msn: u8) -> &mut Dialogue {
        self.pass(1, |b| {
            b[BTH] = ACK;
            b[BTH + 1] &= !0x30;
            set_body(b, &[syndrome, 0, 0, msn]);
            set_psn(b, FIRST + ahead);
        })
    }

    fn wait(&mut self, us: u64) -> &mut Dialogue {
        self.now += us * 1_000;
        self
    }

    /// SENDs of nothing, one for each of these.
    fn sends(&mut self, ahead: impl IntoIterator<Item = u32>) -> &mut Dialogue {
        ahead.into_iter().for_each(|ahead| {
            self.send(ahead);
        });
        self
    }

    /// No rule is broken, and so many frames were sent again, and doubled by the network.
    #[track_caller]
    fn repeats(&mut self, again: u64, doubled: u64) {
        self.breaks(&[]);
        let report = self.checker.report();
        assert_eq!((report.notes(Note::Retransmission), report.notes(Note::Duplicate)), (again, doubled));
    }

    #[track_caller]
    fn breaks(&mut self, expected: &[Rule]) {
        let broken: Vec<_> = self.checker.take_violations().iter().map(|broken| broken.rule).collect();
        assert_eq!(broken, expected);
    }
}

#[test]
fn a_nak_may_ask_for_what_came_ahead_of_its_turn_and_was_dropped() {
    for vantage in [Vantage::Anywhere, Vantage::Senders] {
        // The first is lost behind the capture; what is behind it comes again in part before the NAK leaves.
        let mut dialogue = Dialogue::at(vantage);
        dialogue.send(0).send(1).send(2).send(0).send(1).answer(2, SEQUENCE, 2).send(2).answer(2, ACKED, 3);
        dialogue.breaks(&[]);
        // Nothing before it was open when it was sent.
        Dialogue::at(vantage)
            .send(0)
            .answer(0, ACKED, 1)
            .send(1)
            .answer(1, SEQUENCE, 1)
            .breaks(&[Rule::SequenceNak]);
    }
    let at_responder = || Dialogue::at(RESPONDER);
    at_responder().send(1).send(2).send(0).send(1).answer(2, SEQUENCE, 2).breaks(&[]);
    // It came in its turn, or is not the next.
    at_responder().send(0).send(1).send(2).answer(2, SEQUENCE, 2).breaks(&[Rule::SequenceNak]);
    at_responder().send(2).send(3).send(0).answer(2, SEQUENCE, 2).breaks(&[Rule::AckGap, Rule::SequenceNak]);
}

#[test]
fn a_refused_request_and_what_came_behind_it_come_again() {
    let mut dialogue = Dialogue::at(RESPONDER);
    dialogue.send(0).send(1).answer(0, NOT_READY, 0).send(0).send(2).answer(1, SEQUENCE, 1);
    dialogue.breaks(&[]);
}

#[test]
fn an_ack_beyond_an_unanswered_read_settles_nothing_behind_it() {
    let at_requester = || Dialogue::at(REQUESTER);
    at_requester().read(0).send(1).answer(1, ACKED, 2).read(0).send(1).breaks(&[]);
    at_requester().send(0).send(1).answer(1, ACKED, 2).send(0).breaks(&[Rule::PsnOrder]);
    at_requester().read(0).read_response(0, 1).read(0).breaks(&[Rule::PsnOrder]);
    // One response of three: the rest is wanted, all of them: nothing is.
    let mut long = at_requester();
    long.long_read(0).long_response(READ_FIRST, 0, 1).long_read(0).breaks(&[]);
    long.long_response(READ_FIRST, 0, 1).long_response(READ_MIDDLE, 1, 1).long_response(READ_LAST, 2, 1);
    long.long_read(0).breaks(&[Rule::PsnOrder]);
    // Once the response has come, the ACK counts.
    at_requester().read(0).send(1).read_response(0, 2).answer(1, ACKED, 2).send(1).breaks(&[Rule::PsnOrder]);
}

#[test]
fn answers_of_a_read_go_on_behind_those_of_an_earlier_one_that_was_asked_for_again() {
    let twice = || {
        let mut dialogue = Dialogue::at(RESPONDER);
        dialogue.read(0).read_response(0, 1).long_read(1);
        dialogue
            .long_response(READ_FIRST, 1, 2)
            .long_response(READ_MIDDLE, 2, 2)
            .long_response(READ_LAST, 3, 2);
        dialogue.long_read(1).long_response(READ_FIRST, 1, 2);
        dialogue
    };
    twice().read(0).read_response(0, 2).long_response(READ_MIDDLE, 2, 2).breaks(&[]);
    // It goes on where it stopped.
    twice().read(0).read_response(0, 2).long_response(READ_LAST, 3, 2).breaks(&[Rule::ResponseOrder]);
    // Answers of a later one do not come between.
    let mut crossed = Dialogue::at(RESPONDER);
    crossed.long_read(0).read(3).long_response(READ_FIRST, 0, 1).read_response(3, 2);
    crossed.long_response(READ_MIDDLE, 1, 2).breaks(&[Rule::ResponseOrder, Rule::ResponseOrder]);
}

#[test]
fn a_refusal_beyond_an_unanswered_read_does_not_end_the_connection_yet() {
    let at_requester = || Dialogue::at(REQUESTER);
    at_requester().read(0).read(1).answer(1, ACCESS, 1).read(0).read(1).breaks(&[]);
    at_requester()
        .read(0)
        .read_response(0, 1)
        .read(1)
        .answer(1, ACCESS, 1)
        .read(1)
        .breaks(&[Rule::AfterFatalNak]);
}

#[test]
fn a_plea_for_the_request_that_was_refused_may_have_been_overtaken() {
    let refused = |vantage| {
        let mut dialogue = Dialogue::at(vantage);
        dialogue.send(0).send(1).send(0).answer(0, INVALID, 0);
        dialogue
    };
    for plea in [SEQUENCE, NOT_READY] {
        refused(REQUESTER).answer(0, plea, 0).breaks(&[]);
        refused(RESPONDER).answer(0, plea, 0).breaks(&[Rule::AfterFatalNak]);
    }
    refused(REQUESTER).answer(1, SEQUENCE, 1).breaks(&[Rule::AfterFatalNak]);
}

#[test]
fn a_read_that_fails_when_its_data_is_to_leave_may_have_been_counted() {
    for msn in [1, 2] {
        Dialogue::at(RESPONDER).send(0).read(1).answer(1, ACCESS, msn).breaks(&[]);
    }
    Dialogue::at(RESPONDER).send(0).read(1).answer(1, ACCESS, 3).breaks(&[Rule::Msn]);
    // A SEND is never counted before it is done.
    Dialogue::at(RESPONDER).send(0).send(1).answer(1, 0x63, 2).breaks(&[Rule::Msn]);
}

#[test]
fn the_wait_begins_with_the_first_nak_that_tells_to() {
    let at_requester = || Dialogue::at(REQUESTER);
    at_requester()
        .send(0)
        .answer(0, NOT_READY, 0)
        .wait(1_000)
        .answer(0, NOT_READY, 0)
        .wait(300)
        .send(0)
        .breaks(&[]);
    at_requester().send(0).answer(0, NOT_READY, 0).wait(1_000).send(0).breaks(&[Rule::RnrDelay]);
    // Behind an unanswered READ, too.
    at_requester().read(0).send(1).answer(1, NOT_READY, 1).read(0).send(1).breaks(&[Rule::RnrDelay]);
}

#[test]
fn what_comes_again_was_sent_again_when_something_asked_for_it() {
    let at_responder = || Dialogue::at(RESPONDER);
    // A network holds no copy back for so long.
    at_responder().send(0).wait(999).send(0).repeats(1, 0);
    at_responder().send(0).wait(998).send(0).repeats(0, 1);
    // The peer waits for the RNR timer, however long that is.
    at_responder().send(0).answer(0, NOT_READY, 0).wait(1_280).send(0).repeats(1, 0);
    at_responder().send(0).answer(0, NOT_READY, 0).wait(1_270).send(0).repeats(0, 1);
    // 2 is lost and asked for: it and what is behind it comes, of which some may be lost again; what is before it does not.
    let asked = |then: &[u32], again, doubled| {
        let mut dialogue = at_responder();
        dialogue.sends(0..2).sends(3..31).answer(2, SEQUENCE, 2);
        dialogue.sends(then.iter().copied()).repeats(again, doubled);
    };
    asked(&[2, 3, 4], 2, 0);
    asked(&[17], 1, 0);
    asked(&[18], 0, 1);
    asked(&[1], 0, 1);
    // One that was sent again brings those behind it; a new one ends it.
    asked(&[17, 30], 2, 0);
    asked(&[17, 16], 1, 1);
    asked(&[31, 17], 0, 1);
}

#[test]
fn what_the_icrc_leaves_out_is_held_against_a_sender_only_as_it_was_sent() {
    let reserved = |vantage, damage| {
        let mut dialogue = Dialogue::with(Options { vantage, damage, ..Options::default() });
        dialogue.pass(0, |b| {
            set_psn(b, FIRST);
            b[BTH + 4] = 0x20;
        });
        dialogue
    };
    reserved(RESPONDER, Damage::IsLoss).breaks(&[]);
    reserved(REQUESTER, Damage::IsLoss).breaks(&[Rule::Reserved]);
    reserved(RESPONDER, Damage::Breaks).breaks(&[Rule::Reserved]);
}
