//! Frames that arrive on another worker than their QP's, and QPs that move to where their frames arrive.
//!
//! A frame for another worker's QP goes there by a ring, in order. When frames for one connected QP keep coming here,
//! we ask its worker for it. The order of its frames survives the move:
//!
//! 1. We put the question into the ring behind the frames that we have sent, and hold what comes from now on.
//! 2. The other worker finds the question when it has executed those frames. It detaches the QP and sends it.
//! 3. We attach it and execute what we held.
//!
//! What an unconnected QP receives comes from many places to many workers, so it stays where it is.

use crate::command::CallError;
use crate::counters::Drop;
use crate::lane::Lane;
use crate::link::LinkConfig;
use crate::rx::parse_again;
use arrayvec::ArrayVec;
use dpdk::Mbuf;
use engine::Nanos;
use engine::qp::Qp;
use std::collections::VecDeque;
use wire::{Frame, Qpn, Service};

/// What one worker sends another, in order.
#[derive(Debug)]
pub(crate) enum Parcel {
    /// A frame, parsed and its iCRC right, for a QP that lived there.
    Frame(Mbuf),
    /// A frame to a group that has members there.
    Group(Mbuf),
    /// All frames for this QP before this one were sent: now send the QP here.
    Ask(Qpn),
}

/// The answer to [`Parcel::Ask`], or a QP sent by command.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The QP.
    Home(Box<Qp>),
    /// It is not here.
    Refused(Qpn),
}

/// QPs asked for at a time.
const AWAITED: usize = 16;
/// Frames held for them: what arrives in the microseconds of a move.
const HELD: usize = 1024;
/// A worker that does not answer for so long has ended.
const ANSWER_NS: Nanos = 50_000_000;
/// Flows whose runs are counted at a time; a power of two.
const RUNS: usize = 64;
/// Parcels per sender and poll.
const PER_POLL: usize = 64;

/// Frames in a row for one QP of another worker.
#[derive(Clone, Copy, Debug)]
struct Run {
    qpn: Qpn,
    frames: u32,
}

#[derive(Debug)]
struct Awaited {
    qpn: Qpn,
    until: Nanos,
}

/// QPs on their way here, and who may be next.
#[derive(Debug)]
pub(crate) struct Moves {
    after: u32,
    runs: [Run; RUNS],
    awaited: ArrayVec<Awaited, AWAITED>,
    held: VecDeque<(Qpn, Mbuf)>,
    /// Workers to wake when the burst is done.
    rouse: Box<[bool]>,
}

impl Moves {
    pub fn new(config: &LinkConfig) -> Moves {
        Moves {
            after: config.move_after.max(1),
            runs: [Run { qpn: Qpn::new(0), frames: 0 }; RUNS],
            awaited: ArrayVec::new(),
            held: VecDeque::with_capacity(if config.workers > 1 { HELD } else { 0 }),
            rouse: vec![false; config.workers].into(),
        }
    }

    /// When the first answer is overdue.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.awaited.iter().map(|awaited| awaited.until).min()
    }

    fn awaits(&self, qpn: Qpn) -> bool {
        self.awaited.iter().any(|awaited| awaited.qpn == qpn)
    }

    fn hold(&mut self, qpn: Qpn, mbuf: Mbuf) -> bool {
        let room = self.held.len() < HELD;
        if room {
            self.held.push_back((qpn, mbuf));
        }
        room
    }

    /// Counts a frame; true when the QP should move.
    fn count_run(&mut self, qpn: Qpn) -> bool {
        let run = &mut self.runs[qpn.value() as usize % RUNS];
        if run.qpn != qpn {
            *run = Run { qpn, frames: 0 };
        }
        run.frames += 1;
        let enough = run.frames >= self.after && !self.awaited.is_full();
        if enough {
            run.frames = 0;
        }
        enough
    }
}

impl Lane {
    /// A frame for a QP that was not here when its burst was parsed.
    pub(crate) fn send_away(&mut self, now: Nanos, mbuf: Mbuf, frame: &Frame) {
        let qpn = frame.bth().dest_qpn;
        if self.moves.awaits(qpn) {
            self.take_answers(now);
            // Held frames come first: if the QP has just come, they are executed.
            if self.moves.awaits(qpn) {
                if !self.moves.hold(qpn, mbuf) {
                    self.counters.count_drop(Drop::MoveFull);
                }
                return;
            }
        }
        if self.at_home(now, qpn).is_ok() {
            return self.execute(now, &mbuf, frame);
        }
        match self.link.home(qpn).filter(|&home| home != self.index) {
            Some(home) => self.hand_over(now, mbuf, frame, home),
            None => self.execute(now, &mbuf, frame), // To be counted: the QP is gone.
        }
    }

    fn hand_over(&mut self, now: Nanos, mbuf: Mbuf, frame: &Frame, home: usize) {
        let qpn = frame.bth().dest_qpn;
        let ring = self.link.parcels(self.index, home);
        if ring.push(Parcel::Frame(mbuf)).is_err() {
            return self.counters.count_drop(Drop::HandoffFull);
        }
        self.counters.traffic.handed_over += 1;
        self.moves.rouse[home] = true;
        let connected = matches!(frame.info.service, Service::Rc | Service::Uc | Service::Xrc);
        // Two QPs of the port that are connected to each other would change places for ever.
        let connected = connected && frame.smac != frame.dmac;
        let room = self.engine.qp_count() + self.moves.awaited.len() < self.config.max_qps;
        if connected && room && self.moves.count_run(qpn) && ring.push(Parcel::Ask(qpn)).is_ok() {
            self.moves.awaited.push(Awaited { qpn, until: now + ANSWER_NS });
        }
    }

    /// What other workers have sent: QPs first, then frames. True when there was something.
    pub(crate) fn take_handed_over(&mut self, now: Nanos) -> bool {
        if self.link.config().workers == 1 {
            return false;
        }
        let mut busy = self.take_answers(now);
        for from in 0..self.link.config().workers {
            for _ in 0..PER_POLL {
                let ring = self.link.parcels(from, self.index);
                if ring.is_empty() {
                    break;
                }
                let Some(parcel) = ring.pop() else { break };
                busy = true;
                match parcel {
                    Parcel::Frame(mbuf) => self.execute_handed(now, mbuf),
                    Parcel::Group(mbuf) => {
                        // It was parsed before, with success.
                        if let Ok(frame) = parse_again(&mbuf) {
                            self.deliver_handed_group(now, &mbuf, &frame);
                        }
                    }
                    Parcel::Ask(qpn) => self.answer(qpn, from),
                }
            }
        }
        self.engine.end_burst(now);
        self.give_up_overdue(now);
        for home in 0..self.moves.rouse.len() {
            if std::mem::take(&mut self.moves.rouse[home]) {
                self.link.wake(home);
            }
        }
        busy
    }

    /// A frame that another worker took from its queue, or that was held.
    fn execute_handed(&mut self, now: Nanos, mbuf: Mbuf) {
        // It was parsed before, with success.
        let Ok(frame) = parse_again(&mbuf) else { return };
        if self.engine.has_qp(frame.bth().dest_qpn) {
            self.execute(now, &mbuf, &frame);
        } else {
            self.send_away(now, mbuf, &frame);
        }
    }

    /// Wakes a worker when the burst is done.
    pub(crate) fn rouse(&mut self, worker: usize) {
        self.moves.rouse[worker] = true;
    }

    /// Somebody wants one of our QPs.
    fn answer(&mut self, qpn: Qpn, to: usize) {
        if self.send_qp(qpn, to).is_err() {
            let _ = self.link.answers(self.index, to).push(Answer::Refused(qpn));
            self.moves.rouse[to] = true;
        }
    }

    /// Sends one of our QPs to another worker.
    pub(crate) fn move_qp(&mut self, qpn: Qpn, to: usize) -> Result<(), CallError> {
        if to >= self.link.config().workers {
            return Err(CallError::NoPlace(to));
        }
        if to == self.index {
            return self.engine.qp(qpn).map(|_| ()).ok_or(CallError::NotHome(qpn));
        }
        self.send_qp(qpn, to)
    }

    fn send_qp(&mut self, qpn: Qpn, to: usize) -> Result<(), CallError> {
        let ring = self.link.answers(self.index, to);
        // We are the only one to push here: room that is there stays. One place is for refusals.
        if ring.len() + AWAITED >= ring.capacity() {
            return Err(CallError::NoPlace(to));
        }
        let Some(qp) = self.engine.detach_qp(qpn) else { return Err(CallError::NotHome(qpn)) };
        self.dispatch(qp, to);
        Ok(())
    }

    /// The QP is in the ring before the directory says so: whoever is told that it is there finds it there.
    fn dispatch(&mut self, qp: Box<Qp>, to: usize) {
        let qpn = qp.qpn();
        if self.link.answers(self.index, to).push(Answer::Home(qp)).is_ok() {
            self.link.directory.moved(qpn, self.index, to);
            self.moves.rouse[to] = true;
        } else {
            // Only a QP that nobody had room for comes here: it ends.
            self.link.directory.clear(qpn);
        }
    }

    /// QPs that arrive, and refusals. True when there were any.
    fn take_answers(&mut self, now: Nanos) -> bool {
        let mut busy = false;
        for from in 0..self.link.config().workers {
            while let Some(answer) = self.next_answer(from) {
                busy = true;
                match answer {
                    Answer::Home(qp) => self.move_in(now, qp, from),
                    Answer::Refused(qpn) => self.release_held(now, qpn),
                }
            }
        }
        busy
    }

    fn next_answer(&self, from: usize) -> Option<Answer> {
        let ring = self.link.answers(from, self.index);
        if ring.is_empty() { None } else { ring.pop() }
    }

    fn move_in(&mut self, now: Nanos, qp: Box<Qp>, from: usize) {
        let qpn = qp.qpn();
        // In this order no doorbell is missed. Who posts raises the flag that `attach_qp` lowers, then asks the directory:
        // who did so before us is seen by its look at what was posted, who does so later rings here.
        self.link.directory.set(qpn, self.index);
        match self.engine.attach_qp(now, qp) {
            Ok(()) => {
                self.counters.traffic.moved_in += 1;
                // Its GID may have gone while it was on its way, where nobody looked for it.
                let Lane { engine, addresses, .. } = self;
                engine.break_qp(now, qpn, |vid, gid, network| !addresses.has(vid, gid, network));
            }
            // No room here: back to where there was some a moment ago.
            Err((qp, _)) => self.dispatch(qp, from),
        }
        self.release_held(now, qpn);
    }

    /// Executes what was held for a QP, or sends it on.
    fn release_held(&mut self, now: Nanos, qpn: Qpn) {
        self.moves.awaited.retain(|awaited| awaited.qpn != qpn);
        for _ in 0..self.moves.held.len() {
            let Some((owner, mbuf)) = self.moves.held.pop_front() else { break };
            if owner == qpn {
                self.execute_handed(now, mbuf);
            } else {
                self.moves.held.push_back((owner, mbuf));
            }
        }
        self.engine.end_burst(now);
    }

    fn give_up_overdue(&mut self, now: Nanos) {
        while let Some(awaited) = self.moves.awaited.iter().find(|awaited| awaited.until <= now) {
            let qpn = awaited.qpn;
            self.release_held(now, qpn);
        }
    }

    /// The QP is here, if need be by taking what is on its way.
    pub(crate) fn at_home(&mut self, now: Nanos, qpn: Qpn) -> Result<(), CallError> {
        if !self.engine.has_qp(qpn) && self.link.home(qpn) == Some(self.index) {
            self.take_answers(now);
        }
        if self.engine.has_qp(qpn) { Ok(()) } else { Err(CallError::NotHome(qpn)) }
    }
}
