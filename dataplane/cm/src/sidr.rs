//! Datagram services: who asks for a QP by SIDR_REQ, and who answers by SIDR_REP (rocev2 facts, CM 7, 10 and 11).

use crate::build::area;
use crate::receive::Taken;
use crate::slab::{Handle, Slab};
use crate::timers::Timed;
use crate::{Cm, CmError, DropReason, Event, Path, Timing};
use std::collections::{BTreeMap, VecDeque};
use wire::mad::{Area, CmMad, ServiceId, SidrRep, SidrReq, SidrStatus};
use wire::{Gid, QKey, Qpn};

/// How long an answer is kept for a question that comes again: longer than Linux waits before it asks again, 4.1 s.
const KEPT_NS: u64 = 5_000_000_000;

/// A question for a datagram service, ours or a peer's. IDs of questions that are over name nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SidrId(pub(crate) Handle);

/// A question for a datagram service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrReqParams {
    /// To whom.
    pub path: Path,
    /// For what.
    pub service_id: ServiceId,
    /// Up to 216 bytes; for rdma_cm, an addressing header and up to 180 bytes.
    pub private_data: Vec<u8>,
    /// How often it is sent; the configuration's when absent.
    pub timing: Option<Timing>,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRepParams {
    /// Success, or why not.
    pub status: SidrStatus,
    /// The service's QP.
    pub qpn: Qpn,
    /// The Q_Key to send to it with.
    pub qkey: QKey,
    /// Up to 72 bytes.
    pub info: Vec<u8>,
    /// Up to 136 bytes.
    pub private_data: Vec<u8>,
}

#[derive(Debug)]
enum Stage {
    /// We ask.
    Asking { again: Box<CmMad>, tries_left: u32, interval_ns: u64 },
    /// We are asked; the application has to answer.
    Asked { listener: crate::ListenerId, transaction_id: u64, service_id: ServiceId },
    /// Answered.
    Answered { again: Box<CmMad> },
}

#[derive(Debug)]
struct Question {
    path: Path,
    request_id: u32,
    stage: Stage,
    deadline: Option<u64>,
}

/// A question of a peer: its address and its number.
type Theirs = (Gid, u32, u32);

#[derive(Debug, Default)]
pub(crate) struct Questions {
    table: Slab<Question>,
    ours: BTreeMap<u32, Handle>,
    theirs: BTreeMap<Theirs, Handle>,
    /// Answered ones, oldest first. Those that are gone are taken out when they come to the front.
    answered: VecDeque<Handle>,
}

impl Questions {
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

fn theirs(path: &Path, request_id: u32) -> Theirs {
    (path.remote, path.scope, request_id)
}

impl Cm {
    /// Asks for the QP of a datagram service. One event follows: [`Event::SidrRepReceived`] or [`Event::SidrUnreachable`].
    pub fn send_sidr_req(&mut self, now: u64, params: &SidrReqParams) -> Result<SidrId, CmError> {
        let private_data = area(&params.private_data)?;
        let timing = params.timing.unwrap_or(self.config.timing);
        if !self.make_room_for_question() {
            return Err(CmError::Full);
        }
        let request_id = loop {
            let id = self.random.next_id();
            if !self.questions.ours.contains_key(&id) {
                break id;
            }
        };
        let req = SidrReq { request_id, pkey: self.config.pkey, service_id: params.service_id, private_data };
        let again = Box::new(CmMad::new(self.random.next(), req));
        self.transmit(params.path, &again);
        let (tries_left, interval_ns) = (timing.tries.saturating_sub(1), timing.interval_ns);
        let stage = Stage::Asking { again, tries_left, interval_ns };
        let handle = self.insert_question(params.path, request_id, stage, now.saturating_add(interval_ns));
        self.questions.ours.insert(request_id, handle);
        Ok(SidrId(handle))
    }

    pub(crate) fn on_sidr_req(&mut self, now: u64, path: &Path, tid: u64, req: SidrReq) -> Taken {
        let key = theirs(path, req.request_id);
        if let Some(known) =
            self.questions.theirs.get(&key).and_then(|&handle| self.questions.table.get(handle))
        {
            if let Stage::Answered { again } = &known.stage {
                let again = again.clone();
                self.transmit(*path, &again);
            }
            return Err(DropReason::Duplicate);
        }
        let Some(listener) = self.listeners.find(req.service_id, path) else {
            let status = SidrStatus::UNSUPPORTED;
            let nobody = SidrRepParams {
                status,
                qpn: Qpn::default(),
                qkey: QKey::default(),
                info: vec![],
                private_data: vec![],
            };
            if let Ok(rep) = sidr_rep(tid, req.request_id, req.service_id, &nobody) {
                self.transmit(*path, &rep);
            }
            return Ok(());
        };
        if !self.make_room_for_question() {
            return Err(DropReason::SidrFull);
        }
        if !self.listeners.ask(listener) {
            return Err(DropReason::Backlog);
        }
        let stage = Stage::Asked { listener, transaction_id: tid, service_id: req.service_id };
        let expires = now.saturating_add(self.config.think_ns);
        let handle = self.insert_question(*path, req.request_id, stage, expires);
        self.questions.theirs.insert(key, handle);
        self.report(Event::SidrReqReceived {
            sidr: SidrId(handle),
            listener,
            path: *path,
            req: Box::new(req),
        });
        Ok(())
    }

    /// Answers a question. Its ID names nothing afterwards; a question that comes again gets the same answer.
    pub fn send_sidr_rep(&mut self, now: u64, sidr: SidrId, params: &SidrRepParams) -> Result<(), CmError> {
        let handle = sidr.0;
        let question = self.questions.table.get_mut(handle).ok_or(CmError::UnknownId)?;
        let Stage::Asked { listener, transaction_id, service_id } = question.stage else {
            return Err(CmError::UnknownId);
        };
        let rep = sidr_rep(transaction_id, question.request_id, service_id, params)?;
        question.stage = Stage::Answered { again: Box::new(rep.clone()) };
        let path = question.path;
        self.listeners.answered(listener);
        self.questions.answered.push_back(handle);
        self.arm_question(handle, Some(now.saturating_add(KEPT_NS)));
        self.transmit(path, &rep);
        Ok(())
    }

    pub(crate) fn on_sidr_rep(&mut self, path: &Path, rep: SidrRep) -> Taken {
        let &handle = self.questions.ours.get(&rep.request_id).ok_or(DropReason::UnknownId)?;
        let question = self.questions.table.get(handle).ok_or(DropReason::UnknownId)?;
        if !question.path.same_ends(path) {
            return Err(DropReason::WrongPeer);
        }
        self.report(Event::SidrRepReceived { sidr: SidrId(handle), path: *path, rep: Box::new(rep) });
        self.forget_question(handle);
        Ok(())
    }

    /// Gives a question up: one of ours is forgotten, one of a peer is rejected. Nothing is reported of it any more. Does
    /// nothing to a question that is over already.
    pub fn destroy_sidr(&mut self, now: u64, sidr: SidrId) {
        self.forget_sidr_events(sidr);
        match self.questions.table.get(sidr.0).map(|question| &question.stage) {
            Some(Stage::Asking { .. }) => self.forget_question(sidr.0),
            Some(Stage::Asked { .. }) => self.refuse_question(now, sidr),
            Some(Stage::Answered { .. }) | None => {}
        }
    }

    fn refuse_question(&mut self, now: u64, sidr: SidrId) {
        let (qpn, qkey) = (Qpn::default(), QKey::default());
        let no =
            SidrRepParams { status: SidrStatus::REJECTED, qpn, qkey, info: vec![], private_data: vec![] };
        // It was asked, and nothing is too long: this cannot fail.
        let _ = self.send_sidr_rep(now, sidr, &no);
    }

    pub(crate) fn on_question_timeout(&mut self, now: u64, handle: Handle) {
        let Some(question) = self.questions.table.get_mut(handle) else { return };
        question.deadline = None;
        let path = question.path;
        match &mut question.stage {
            Stage::Asking { again, tries_left, interval_ns } if *tries_left > 0 => {
                *tries_left -= 1;
                let (again, deadline) = (again.clone(), now.saturating_add(*interval_ns));
                self.counters.retries += 1;
                self.transmit(path, &again);
                self.arm_question(handle, Some(deadline));
            }
            Stage::Asking { .. } => {
                self.report(Event::SidrUnreachable { sidr: SidrId(handle) });
                self.forget_question(handle);
            }
            Stage::Asked { .. } => {
                self.report(Event::SidrExpired { sidr: SidrId(handle) });
                self.refuse_question(now, SidrId(handle));
            }
            Stage::Answered { .. } => self.forget_question(handle),
        }
    }

    /// There is room for one more, or there is room after the oldest answer is forgotten.
    fn make_room_for_question(&mut self) -> bool {
        while self.questions.len() >= self.config.limits.sidr {
            let Some(oldest) = self.questions.answered.pop_front() else { return false };
            self.forget_question(oldest);
        }
        true
    }

    fn insert_question(&mut self, path: Path, request_id: u32, stage: Stage, deadline: u64) -> Handle {
        let question = Question { path, request_id, stage, deadline: None };
        let handle = self.questions.table.insert_with(|_| question);
        self.arm_question(handle, Some(deadline));
        handle
    }

    fn arm_question(&mut self, handle: Handle, deadline: Option<u64>) {
        if let Some(question) = self.questions.table.get_mut(handle) {
            self.timers.change(Timed::Sidr(handle), question.deadline, deadline);
            question.deadline = deadline;
        }
    }

    fn forget_question(&mut self, handle: Handle) {
        self.arm_question(handle, None);
        let Some(question) = self.questions.table.remove(handle) else { return };
        match question.stage {
            Stage::Asking { .. } => drop(self.questions.ours.remove(&question.request_id)),
            _ => drop(self.questions.theirs.remove(&theirs(&question.path, question.request_id))),
        }
        let questions = &mut self.questions;
        while questions.answered.front().is_some_and(|&oldest| questions.table.get(oldest).is_none()) {
            questions.answered.pop_front();
        }
    }
}

fn sidr_rep(
    transaction_id: u64,
    request_id: u32,
    service_id: ServiceId,
    params: &SidrRepParams,
) -> Result<CmMad, CmError> {
    let info_area: Area<72> = area(&params.info)?;
    let rep = SidrRep {
        request_id,
        status: params.status,
        info_len: params.info.len() as u8,
        vendor_id: 0,
        qpn: params.qpn,
        service_id,
        qkey: params.qkey,
        info_area,
        private_data: area(&params.private_data)?,
    };
    Ok(CmMad::new(transaction_id, rep))
}
