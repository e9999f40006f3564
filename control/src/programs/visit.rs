//! Clients of the programs that measure nothing but whether it works: ucmatose, udaddy, cmtime, mckey.

use super::cmatose::{Next, Talk};
use super::dial::Dial;
use super::ping::objects;
use super::program::Program;
use super::udaddy::{Client, Target};
use super::{Messages, ProgramError};
use crate::cm::{CmAddr, CmEventKind, CmId, ConnParam};
use crate::endpoint::Endpoint;
use crate::perf::{Shared, histogram};
use crate::verbs::{Ah, Cq};
use engine::QpType;
use hdrhistogram::Histogram;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Requests of each kind that a queue pair takes.
const DEPTH: u32 = 128;
/// Groups are heard of by switches some time after they were joined: how long the sender waits.
const SETTLE: Duration = Duration::from_millis(500);

/// What to do.
#[derive(Clone, Debug)]
pub struct VisitOptions {
    /// Whose client to be.
    pub program: Program,
    /// Where to; for mckey the group.
    pub to: CmAddr,
    /// From which address; by default the one that the way begins at.
    pub from: Option<IpAddr>,
    /// Connections at a time.
    pub connections: u32,
    /// What the server expects of each connection.
    pub messages: Messages,
    /// mckey: wait for what others send to the group, instead of sending.
    pub receives: bool,
    /// How long an answer may take.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct VisitOutcome {
    /// Nanoseconds that each connection took to make, from the first message to the answer.
    pub connects: Histogram<u64>,
    /// Messages that came.
    pub received: u64,
    /// All of it.
    pub time: Duration,
}

/// Does what a client of the program does, to its end.
pub fn visit(
    endpoint: &Endpoint,
    options: &VisitOptions,
    stop: &Shared,
) -> Result<VisitOutcome, ProgramError> {
    let visit = Visit { dial: Dial::new(endpoint, stop)?, options, stop };
    let begin = Instant::now();
    let mut connects = histogram();
    let received = match options.program {
        Program::Cmtime => visit.come_and_go(&mut connects)?,
        Program::Udaddy => visit.datagrams(&mut connects)?,
        Program::Mckey => visit.group()?,
        _ => visit.messages(&mut connects)?,
    };
    Ok(VisitOutcome { connects, received, time: begin.elapsed() })
}

struct Visit<'a> {
    dial: Dial<'a>,
    options: &'a VisitOptions,
    stop: &'a Shared,
}

impl Visit<'_> {
    fn resolve(&self) -> Result<CmId, ProgramError> {
        self.dial.resolve(self.options.program.space(), self.options.from, &self.options.to)
    }

    fn connect(
        &self,
        id: &CmId,
        connects: &mut Histogram<u64>,
    ) -> Result<Option<crate::cm::UdParam>, ProgramError> {
        let begin = Instant::now();
        // As these programs have it.
        let param = ConnParam { responder_resources: 1, initiator_depth: 1, ..ConnParam::default() };
        let (_, ud) = self.dial.connect(id, &param)?;
        connects.saturating_record(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Ok(ud)
    }

    /// cmtime: connections without a message. None ends before all are there: Linux' server cannot make another queue pair once the last
    /// connection that it had is gone.
    fn come_and_go(&self, connects: &mut Histogram<u64>) -> Result<u64, ProgramError> {
        let mut connections = Vec::new();
        for _ in 0..self.options.connections {
            let id = self.resolve()?;
            let objects = objects(&id, QpType::Rc, 1)?;
            self.connect(&id, connects)?;
            connections.push((id, objects));
        }
        for (id, _) in &connections {
            id.disconnect()?;
            self.dial.wait(id, |kind| matches!(kind, CmEventKind::Disconnected))?;
        }
        Ok(0)
    }

    /// ucmatose: the server sends, we answer, the server disconnects.
    fn messages(&self, connects: &mut Histogram<u64>) -> Result<u64, ProgramError> {
        let mut talks: Vec<(CmId, Cq, Talk)> = Vec::new();
        for tag in 0..self.options.connections {
            let id = self.resolve()?;
            let (pd, cq, qp) = objects(&id, QpType::Rc, DEPTH)?;
            let talk = Talk::new(&pd, &qp, self.options.messages, false, tag.into())?;
            self.connect(&id, connects)?;
            talks.push((id, cq, talk));
        }
        for (_, cq, talk) in &mut talks {
            let mut next = talk.on_established()?;
            while next == Next::GoOn {
                next = talk.on_completion(&super::wait::completion(cq, self.options.patience, self.stop)?)?;
            }
        }
        for (id, ..) in &talks {
            self.dial.wait(id, |kind| matches!(kind, CmEventKind::Disconnected))?;
        }
        Ok(talks.iter().map(|(.., talk)| u64::from(talk.received())).sum())
    }

    /// udaddy: all messages, then as many answers.
    fn datagrams(&self, connects: &mut Histogram<u64>) -> Result<u64, ProgramError> {
        let Messages { count, size } = self.options.messages;
        let mut clients = Vec::new();
        for _ in 0..self.options.connections {
            let id = self.resolve()?;
            let (pd, cq, qp) = objects(&id, QpType::Ud, DEPTH)?;
            let ud = self.connect(&id, connects)?;
            let ud = ud.ok_or_else(|| ProgramError::Unexpected("it named no queue pair".into()))?;
            let target = Target { ah: Ah::new(&pd, ud.addressing)?, qpn: ud.qpn, qkey: ud.qkey };
            clients.push((id, Client::new(&pd, &cq, &qp, target, DEPTH, size)?));
        }
        for (_, client) in &mut clients {
            (0..count).try_for_each(|_| client.send(&vec![0; size], self.options.patience, self.stop))?;
        }
        for (_, client) in &mut clients {
            (0..count).try_for_each(|_| client.answer(self.options.patience, self.stop).map(drop))?;
        }
        Ok(u64::from(count) * u64::from(self.options.connections))
    }

    /// mckey: joins the group, and sends to it, or waits for what others send.
    fn group(&self) -> Result<u64, ProgramError> {
        let Messages { count, size } = self.options.messages;
        let (group, id) = (self.options.to.destination.address, self.resolve()?);
        let (pd, cq, qp) = objects(&id, QpType::Ud, DEPTH)?;
        id.join_multicast(group)?;
        let joined = self.dial.wait(&id, |kind| matches!(kind, CmEventKind::MulticastJoin { .. }))?;
        let CmEventKind::MulticastJoin { ud, .. } = joined.kind else {
            return Err(ProgramError::Unexpected(joined.kind.to_string()));
        };
        let target = Target { ah: Ah::new(&pd, ud.addressing)?, qpn: ud.qpn, qkey: ud.qkey };
        let mut client = Client::new(&pd, &cq, &qp, target, DEPTH, size)?;
        let received = if self.options.receives {
            (0..count).try_for_each(|_| client.answer(self.options.patience, self.stop).map(drop))?;
            count.into()
        } else {
            std::thread::sleep(SETTLE);
            // The member's own copies of them are not looked at.
            (0..count).try_for_each(|_| client.send(&vec![0; size], self.options.patience, self.stop))?;
            0
        };
        id.leave_multicast(group)?;
        Ok(received)
    }
}
