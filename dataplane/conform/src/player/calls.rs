//! The steps that ask the device agent for something.

use super::{Action, Player, Progress};
use crate::device::{CallError, Completion, DeviceCall, Piece, Reply, Side, Work, from_hex, to_hex};
use crate::packet::{QpContext, matcher};
use crate::script::{CompleteSpec, Data, Field, PieceSpec, QpSetup, Queue, SrqSetup, StepKind, WorkSpec};
use wire::{Mtu, Psn, Qpn, Service};

impl Player {
    /// Makes a step's call and judges the answer; asks again where waiting may help.
    pub(super) fn call(&mut self, now: u64, kind: &StepKind) -> Progress {
        match self.reply.take() {
            None if now < self.now.ask_ns => Progress::Act(Action::Wait(self.now.ask_ns)),
            None => match self.request(kind) {
                Ok(call) => Progress::Act(Action::Call(call)),
                Err(why) => Progress::Fail(why),
            },
            Some(Err(CallError::Unsupported(what))) => Progress::Skip(what),
            Some(Err(CallError::Refused(_))) if may_be_refused(kind) => Progress::Next,
            Some(Err(CallError::Refused(why))) => Progress::Fail(format!("the device refused: {why}")),
            Some(Ok(_)) if may_be_refused(kind) => {
                Progress::Fail("the device took it, which it should have refused".into())
            }
            Some(Ok(reply)) => self.judge(now, kind, reply),
        }
    }

    fn request(&mut self, kind: &StepKind) -> Result<DeviceCall, String> {
        Ok(match kind {
            StepKind::Region(region, _) if self.now.count == 0 => DeviceCall::Region(region.clone()),
            StepKind::Region(region, fill) => write(&region.name, 0, fill.as_ref().unwrap_or(&Data::EMPTY)),
            StepKind::Qp(setup) if self.now.count == 0 => DeviceCall::Qp {
                name: setup.name.clone(),
                service: service(setup.service, setup.initiator).into(),
                pd: setup.pd,
                srq: setup.srq.clone(),
                domain: setup.domain,
            },
            StepKind::Qp(setup) => self.modify(&setup.name, &setup.state)?,
            StepKind::Modify { qp, state } => self.modify(qp, state)?,
            StepKind::Srq(SrqSetup { name, depth, pd, domain }) => {
                DeviceCall::Srq { name: name.clone(), depth: *depth, pd: *pd, domain: *domain }
            }
            StepKind::Window { name, kind, pd } => {
                DeviceCall::Window { name: name.clone(), kind: *kind, pd: *pd }
            }
            StepKind::Arm { srq, limit } => DeviceCall::Arm { srq: srq.clone(), limit: *limit },
            StepKind::Limit { srq, .. } => DeviceCall::Limit { srq: srq.clone() },
            StepKind::Receive { queue: Queue::Qp(qp), id, pieces, .. } => {
                DeviceCall::Receive { qp: qp.clone(), id: *id, pieces: self::pieces(pieces) }
            }
            StepKind::Receive { queue: Queue::Srq(srq), id, pieces, .. } => {
                DeviceCall::ReceiveShared { srq: srq.clone(), id: *id, pieces: self::pieces(pieces) }
            }
            StepKind::Post { qp, work, .. } => {
                DeviceCall::Post { qp: qp.clone(), work: Box::new(self.work(qp, work)) }
            }
            StepKind::Complete(spec) => DeviceCall::Poll { qp: spec.qp.clone(), side: spec.side },
            StepKind::NoCompletion { qp } | StepKind::Drain { qp } => DeviceCall::Poll {
                qp: qp.clone(),
                side: [Side::Send, Side::Recv][self.now.count as usize % 2],
            },
            StepKind::Memory { region, offset, data } => {
                DeviceCall::Read { region: region.clone(), offset: *offset, len: data.len() }
            }
            StepKind::Fill { region, offset, data } => write(region, *offset, data),
            StepKind::Deregister { region, .. } => DeviceCall::Deregister { region: region.clone() },
            StepKind::State { qp, .. } => DeviceCall::State { qp: qp.clone() },
            StepKind::Send(_)
            | StepKind::Expect(_)
            | StepKind::Silence(_)
            | StepKind::Wait(_)
            | StepKind::Either(_) => return Err("this step makes no call".into()),
        })
    }

    fn judge(&mut self, now: u64, kind: &StepKind, reply: Reply) -> Progress {
        match (kind, reply) {
            (StepKind::Region(region, fill), Reply::Region { addr, rkey }) => {
                self.context.keep_region(&region.name, addr, rkey);
                self.now.count = 1;
                if fill.is_some() { Progress::Again } else { Progress::Next }
            }
            (StepKind::Qp(setup), Reply::Qp { qpn }) => self.made(setup, qpn),
            (StepKind::Srq(setup), Reply::Srq { srqn }) => {
                self.context.srqs.insert(setup.name.clone(), srqn);
                Progress::Next
            }
            (StepKind::Window { name, .. }, Reply::Window { addr, rkey }) => {
                self.context.keep_window(name, addr, rkey);
                Progress::Next
            }
            (StepKind::Post { work, .. }, Reply::Window { addr, rkey }) => {
                if let Some(name) = &work.window {
                    self.context.keep_window(name, addr, rkey);
                }
                Progress::Next
            }
            (StepKind::Post { work, .. }, Reply::Region { addr, rkey }) => {
                if let Some(name) = &work.region {
                    self.context.keep_region(name, addr, rkey);
                }
                Progress::Next
            }
            (StepKind::Limit { limit, .. }, Reply::Limit(found)) if *limit == found => Progress::Next,
            (StepKind::Limit { srq, limit }, Reply::Limit(found)) => {
                self.again(now, None, format!("the limit of {srq} is {found}, not {limit}"))
            }
            (StepKind::Complete(spec), Reply::Completions(new)) => {
                self.keep(&spec.qp, spec.side, new);
                self.complete(now, spec)
            }
            (StepKind::NoCompletion { qp } | StepKind::Drain { qp }, Reply::Completions(new)) => {
                let side = [Side::Send, Side::Recv][self.now.count as usize % 2];
                let first = new.first().cloned();
                self.keep(qp, side, new);
                match (first, kind) {
                    (Some(first), StepKind::NoCompletion { .. }) => {
                        Progress::Fail(format!("no completion was expected, but {} came", told(&first)))
                    }
                    (Some(_), _) => Progress::Again,
                    (None, _) if self.now.count == 0 => {
                        self.now.count = 1;
                        Progress::Again
                    }
                    (None, _) => Progress::Next,
                }
            }
            (StepKind::Memory { region, offset, data }, Reply::Bytes(bytes)) => {
                let found = from_hex(&bytes).unwrap_or_default();
                match matcher::difference(&data.bytes(), &found) {
                    None => Progress::Next,
                    Some(what) => self.again(now, None, format!("{region}+{offset} {what}")),
                }
            }
            (StepKind::State { states, .. }, Reply::State(state)) => {
                if states.contains(&state) {
                    return Progress::Next;
                }
                self.again(now, None, format!("the state is {state}, not {}", states.join(" or ")))
            }
            (_, Reply::Done) => Progress::Next,
            (_, reply) => Progress::Fail(format!("the device agent answered something else: {reply:?}")),
        }
    }

    /// Asks again later, as long as there is time.
    fn again(&mut self, now: u64, within_ns: Option<u64>, what: String) -> Progress {
        if now >= self.deadline(within_ns) {
            return Progress::Fail(what);
        }
        self.now.ask_ns = now + self.settings.ask_ns;
        Progress::Again
    }

    fn made(&mut self, setup: &QpSetup, qpn: u32) -> Progress {
        let number = self.peer.first_qpn.value() + self.context.qps.len() as u32;
        let family = if setup.v6 { self.peer.v6 } else { self.peer.v4 };
        let Some((peer_gid, device_gid)) = family.or(if setup.v6 { None } else { self.peer.v6 }) else {
            return Progress::Skip("the device has no such address".into());
        };
        let mut attributes = setup.attributes.clone();
        attributes.peer_ip = peer_gid.ip();
        attributes.peer_qpn = number;
        let qp = QpContext {
            service: setup.service,
            device_qpn: Qpn::new(qpn),
            peer_qpn: Qpn::new(number),
            peer_psn: Psn::new(attributes.peer_psn),
            device_psn: Psn::new(attributes.device_psn),
            mtu: Mtu::from_bytes(attributes.mtu).unwrap_or(Mtu::Mtu1024),
            qkey: attributes.qkey,
            device_gid,
            peer_gid,
            msn: 0,
            first_msn: self.peer.first_msn,
            newest: None,
        };
        self.context.qps.insert(setup.name.clone(), qp);
        self.attributes.insert(setup.name.clone(), attributes);
        self.now.count = 1;
        if setup.state == "reset" { Progress::Next } else { Progress::Again }
    }

    fn modify(&self, qp: &str, state: &str) -> Result<DeviceCall, String> {
        let attributes =
            self.attributes.get(qp).ok_or_else(|| format!("the queue pair {qp} was not made"))?;
        Ok(DeviceCall::Modify {
            qp: qp.to_owned(),
            state: state.to_owned(),
            attributes: Box::new(attributes.clone()),
        })
    }

    fn work(&self, qp: &str, spec: &WorkSpec) -> Work {
        let qp = self.context.qps.get(qp);
        Work {
            op: spec.op.clone(),
            id: spec.id,
            pieces: pieces(&spec.pieces),
            at: self.context.plain(Field::Va, spec.at.as_ref()),
            key: self.context.plain(Field::RKey, spec.key.as_ref()) as u32,
            len: spec.len,
            plt: spec.plt,
            sel: spec.sel,
            srqn: spec.srqn,
            imm: spec.imm,
            swap: spec.swap,
            compare: spec.compare,
            region: spec.region.clone(),
            window: spec.window.clone(),
            access: spec.access.clone(),
            fence: spec.fence,
            solicited: spec.solicited,
            unsignaled: spec.unsignaled,
            remote_qpn: qp.map_or(0, |qp| qp.peer_qpn.value()),
            qkey: spec.qkey,
            remote_ip: qp.map(|qp| qp.peer_gid.ip()),
        }
    }

    fn keep(&mut self, qp: &str, side: Side, new: Vec<Completion>) {
        self.completions.entry((qp.to_owned(), side)).or_default().extend(new);
    }

    /// Judges the oldest completion, if one is there.
    fn complete(&mut self, now: u64, spec: &CompleteSpec) -> Progress {
        let queue = self.completions.entry((spec.qp.clone(), spec.side)).or_default();
        let Some(found) = queue.pop_front() else {
            let what = format!("the completion {} {} did not come", spec.id, spec.statuses.join("|"));
            return self.again(now, spec.within_ns, what);
        };
        let success = found.status == "success";
        let invalidated =
            spec.invalidated.as_ref().map(|key| self.context.plain(Field::Inv, Some(key)) as u32);
        let fits = found.id == spec.id
            && spec.statuses.contains(&found.status)
            && (!success || spec.len.is_none_or(|len| len == u64::from(found.len)))
            && (!success || spec.imm.is_none_or(|imm| found.imm == Some(imm)))
            && (!success || invalidated.is_none_or(|key| found.invalidated == Some(key)));
        if fits {
            return Progress::Next;
        }
        let statuses = spec.statuses.join(" or ");
        Progress::Fail(format!(
            "completion {} with {statuses}{} was expected, but {} came",
            spec.id,
            wishes(spec),
            told(&found)
        ))
    }
}

fn wishes(spec: &CompleteSpec) -> String {
    let len = spec.len.map(|len| format!(", {len} bytes")).unwrap_or_default();
    let imm = spec.imm.map(|imm| format!(", immediate {imm:#x}")).unwrap_or_default();
    let key = if spec.invalidated.is_some() { ", a key invalidated" } else { "" };
    format!("{len}{imm}{key}")
}

fn told(completion: &Completion) -> String {
    let Completion { id, status, len, imm, invalidated, .. } = completion;
    let imm = imm.map(|imm| format!(", immediate {imm:#x}")).unwrap_or_default();
    let key = invalidated.map(|key| format!(", key {key:#x} invalidated")).unwrap_or_default();
    format!("completion {id} with {status}, {len} bytes{imm}{key}")
}

fn may_be_refused(kind: &StepKind) -> bool {
    matches!(
        kind,
        StepKind::Receive { refused: true, .. }
            | StepKind::Post { refused: true, .. }
            | StepKind::Deregister { refused: true, .. }
    )
}

fn pieces(specs: &[PieceSpec]) -> Vec<Piece> {
    let piece = |spec: &PieceSpec| Piece { region: spec.region.clone(), offset: spec.offset, len: spec.len };
    specs.iter().map(piece).collect()
}

fn write(region: &str, offset: u64, data: &Data) -> DeviceCall {
    DeviceCall::Write { region: region.to_owned(), offset, bytes: to_hex(&data.bytes()) }
}

fn service(service: Service, initiator: bool) -> &'static str {
    match service {
        Service::Xrc if initiator => "xrc_initiator",
        Service::Uc => "uc",
        Service::Ud => "ud",
        Service::Xrc => "xrc",
        _ => "rc",
    }
}
