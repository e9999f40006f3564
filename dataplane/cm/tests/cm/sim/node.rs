//! A node: a `Cm`, its application, and what that may expect to be told.

use super::plan::{MRA_MAX_NS, THINK_NS, TIMING};
use crate::support::{MS, SERVICE, path};
use cm::*;
use std::collections::BTreeMap;
use wire::mad::{RejectReason, SidrStatus};
use wire::{Gid, Mtu, Psn, QKey, Qpn};

/// Where the application believes a connection to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has asked.
    Asking,
    /// It is asked.
    Asked,
    /// It has said yes.
    Replying,
    /// The other end has said yes.
    Replied,
    /// Connected.
    Up,
    /// It wants the end.
    Closing,
    /// It was told the end, or made it.
    Over,
}

/// What the application knows of a connection.
#[derive(Debug)]
pub struct Life {
    pub stage: Stage,
    pub qpn: Option<Qpn>,
    pub plan: Option<QpPlan>,
    /// It must have been told something by then.
    pub due: Option<u64>,
    pub destroyed: bool,
    /// It is the end that asked.
    pub active: bool,
    /// Address and QP of the end that asked.
    pub asker: (Gid, Qpn),
}

impl Life {
    fn new(stage: Stage, asker: (Gid, Qpn), due: u64) -> Life {
        let (qpn, plan, due) = (None, None, Some(due));
        Life { stage, qpn, plan, due, destroyed: false, active: stage == Stage::Asking, asker }
    }
}

pub struct Node {
    pub number: usize,
    pub cm: Cm,
    pub alive: bool,
    pub lives: BTreeMap<ConnId, Life>,
    /// Questions for datagram services that are not over, and when they have to be.
    pub questions: BTreeMap<SidrId, u64>,
    next_qpn: u32,
    next_psn: u32,
}

pub fn gid(number: usize) -> Gid {
    Gid::from_v4([192, 0, 2, number as u8 + 1])
}

impl Node {
    /// `life` tells one boot of a node from another.
    pub fn new(number: usize, life: u64, first_qpn: u32) -> Node {
        let mut seed = [number as u8; 32];
        seed[..8].copy_from_slice(&life.to_be_bytes());
        let mut config = Config::new(0x0200_00FF_FE00_0000 + number as u64, seed);
        config.timing = TIMING;
        config.think_ns = THINK_NS;
        config.mra_max_ns = MRA_MAX_NS;
        let mut cm = Cm::new(config);
        cm.listen(SERVICE, None, 3).unwrap();
        Node {
            number,
            cm,
            alive: true,
            lives: BTreeMap::new(),
            questions: BTreeMap::new(),
            next_qpn: first_qpn,
            next_psn: 77,
        }
    }

    fn fresh_qp(&mut self) -> (Qpn, Psn) {
        let used: Vec<Qpn> = self.lives.values().filter_map(|life| life.qpn).collect();
        self.next_psn += 1_000;
        loop {
            self.next_qpn += 1;
            let qpn = Qpn::new(self.next_qpn);
            if !used.contains(&qpn) {
                return (qpn, Psn::new(self.next_psn));
            }
        }
    }

    fn new_life(&mut self, conn: ConnId, life: Life) {
        assert!(self.lives.insert(conn, life).is_none(), "an ID was given twice");
    }

    pub fn connect(&mut self, now: u64, to: usize, depths: (u8, u8)) -> (ConnId, Qpn) {
        let (qpn, psn) = self.fresh_qp();
        let mut params = ReqParams::new(path(gid(self.number), gid(to)), SERVICE, qpn, psn, Mtu::Mtu1024);
        (params.responder_resources, params.initiator_depth) = depths;
        let conn = self.cm.send_req(now, &params).unwrap();
        let life = Life::new(Stage::Asking, (gid(self.number), qpn), now + TIMING.patience_ns());
        self.new_life(conn, Life { qpn: Some(qpn), ..life });
        (conn, qpn)
    }

    pub fn question(&mut self, now: u64, to: usize) -> SidrId {
        let path = path(gid(self.number), gid(to));
        let params = SidrReqParams { path, service_id: SERVICE, private_data: vec![], timing: None };
        let sidr = self.cm.send_sidr_req(now, &params).unwrap();
        assert!(self.questions.insert(sidr, now + TIMING.patience_ns()).is_none());
        sidr
    }

    pub fn reply(&mut self, now: u64, sidr: SidrId, yes: bool) {
        let status = if yes { SidrStatus::SUCCESS } else { SidrStatus::REJECTED };
        let (qpn, qkey) = (Qpn::new(self.number as u32), QKey::default());
        let params = SidrRepParams { status, qpn, qkey, info: vec![], private_data: vec![] };
        let open = self.questions.remove(&sidr).is_some();
        assert_eq!(self.cm.send_sidr_rep(now, sidr, &params).is_ok(), open);
    }

    pub fn give_up_question(&mut self, now: u64, sidr: SidrId) {
        self.cm.destroy_sidr(now, sidr);
        self.questions.remove(&sidr);
    }

    /// True when the application is asked.
    pub fn on_question_event(&mut self, now: u64, event: &Event) -> bool {
        let sidr = event.sidr().expect("a question");
        if let Event::SidrReqReceived { .. } = event {
            assert!(self.questions.insert(sidr, now + THINK_NS).is_none(), "an ID was given twice");
            return true;
        }
        assert!(self.questions.remove(&sidr).is_some(), "{event:?} of a question that is over");
        if let Event::SidrRepReceived { path, rep, .. } = event {
            let qpn = Qpn::new(u32::from(path.remote.octets()[15]) - 1);
            assert!(rep.status != SidrStatus::SUCCESS || rep.qpn == qpn, "the answer of another node");
        }
        false
    }

    /// Says yes: to a request or to a reply.
    pub fn accept(&mut self, now: u64, conn: ConnId, depths: (u8, u8)) {
        match self.lives.get(&conn).map(|life| life.stage) {
            Some(Stage::Asked) => {
                let (qpn, psn) = self.fresh_qp();
                let mut params = RepParams::new(qpn, psn);
                (params.responder_resources, params.initiator_depth) = depths;
                let plan = self.cm.plan_accept(conn, &params).unwrap();
                self.cm.send_rep(now, conn, &params).unwrap();
                let life = self.lives.get_mut(&conn).unwrap();
                (life.stage, life.qpn, life.plan) = (Stage::Replying, Some(qpn), Some(plan));
                life.due = Some(now + TIMING.patience_ns());
            }
            Some(Stage::Replied) => {
                let plan = self.cm.plan(conn).unwrap();
                self.cm.send_rtu(now, conn, b"").unwrap();
                let life = self.lives.get_mut(&conn).unwrap();
                (life.stage, life.plan, life.due) = (Stage::Up, Some(plan), None);
            }
            _ => {}
        }
    }

    pub fn ask_for_time(&mut self, now: u64, conn: ConnId) {
        let Some(life) = self.lives.get_mut(&conn) else { return };
        if matches!(life.stage, Stage::Asked | Stage::Replied) {
            self.cm.send_mra(now, conn, 2 * THINK_NS).unwrap();
            life.due = life.due.map(|due| due.max(now + 2 * THINK_NS));
        }
    }

    pub fn reject(&mut self, now: u64, conn: ConnId) {
        let Some(life) = self.lives.get_mut(&conn) else { return };
        if matches!(life.stage, Stage::Asked | Stage::Replied) {
            self.cm.send_rej(now, conn, RejectReason::CONSUMER_DEFINED, b"", b"no").unwrap();
            (life.stage, life.due) = (Stage::Over, None);
        }
    }

    pub fn disconnect(&mut self, now: u64, conn: ConnId) {
        let Some(life) = self.lives.get_mut(&conn) else { return };
        if matches!(life.stage, Stage::Up | Stage::Replying) {
            self.cm.send_dreq(now, conn, b"").unwrap();
            (life.stage, life.due) = (Stage::Closing, Some(now + TIMING.patience_ns()));
        }
    }

    pub fn destroy(&mut self, now: u64, conn: ConnId) {
        self.cm.destroy(now, conn);
        if let Some(life) = self.lives.get_mut(&conn) {
            (life.stage, life.due, life.destroyed) = (Stage::Over, None, true);
        }
    }

    /// A packet for a QP of this node. `true` when the QP takes it.
    pub fn on_data(&mut self, now: u64, to: Qpn, from: Qpn) -> bool {
        let taking = self.lives.iter().find(|(_, life)| {
            life.qpn == Some(to)
                && life.plan.is_some_and(|plan| plan.dest_qpn == from)
                && matches!(life.stage, Stage::Up | Stage::Replying)
        });
        let Some((&conn, _)) = taking else { return false };
        // It may have been told more than it has looked at.
        self.cm.establish(now, conn).is_ok()
    }

    /// Takes what the application is told. What it has to answer is given back.
    pub fn on_event(&mut self, now: u64, event: &Event) -> Option<ConnId> {
        if let Event::ReqReceived { conn, req, path, .. } = event {
            assert_eq!((req.primary.local_gid, path.local), (path.remote, gid(self.number)));
            self.new_life(*conn, Life::new(Stage::Asked, (path.remote, req.local_qpn), now + THINK_NS));
            return Some(*conn);
        }
        let conn = event.conn().expect("no datagram services here");
        let life = self.lives.get_mut(&conn).unwrap_or_else(|| panic!("{event:?} of an ID that is gone"));
        let stage = life.stage;
        let may = |stages: &[Stage]| {
            assert!(stages.contains(&stage) && !life.destroyed, "{event:?} when {stage:?}")
        };
        let ends = match event {
            Event::ReqReceived { .. } => unreachable!("handled above"),
            Event::RepReceived { .. } => {
                may(&[Stage::Asking]);
                (life.stage, life.due) = (Stage::Replied, Some(now + THINK_NS));
                return Some(conn);
            }
            Event::MraReceived { wait_ns, .. } => {
                may(&[Stage::Asking, Stage::Replying]);
                assert!(*wait_ns <= MRA_MAX_NS);
                life.due = Some(now + wait_ns + TIMING.patience_ns());
                false
            }
            Event::Established { .. } => {
                may(&[Stage::Replying]);
                (life.stage, life.due) = (Stage::Up, None);
                false
            }
            Event::Rejected { .. } => {
                may(&[Stage::Asking, Stage::Asked, Stage::Replying, Stage::Replied]);
                true
            }
            Event::Unreachable { .. } => {
                may(&[Stage::Asking, Stage::Replying]);
                true
            }
            Event::Expired { .. } => {
                may(&[Stage::Asked, Stage::Replied]);
                true
            }
            Event::Disconnected { .. } => {
                may(&[Stage::Asked, Stage::Replying, Stage::Replied, Stage::Up, Stage::Closing]);
                true
            }
            Event::TimewaitExit { qpn, .. } => {
                assert_eq!(stage, Stage::Over, "{event:?} before the end was told");
                assert_eq!(*qpn, life.qpn);
                self.lives.remove(&conn);
                return None;
            }
            other => panic!("{other:?}"),
        };
        if ends {
            (life.stage, life.due) = (Stage::Over, None);
        }
        None
    }

    /// Nobody waits longer than was agreed.
    pub fn check_due(&self, now: u64) {
        for (sidr, &due) in &self.questions {
            assert!(now <= due, "node {}: {sidr:?} heard nothing until {} ms", self.number, now / MS);
        }
        for (conn, life) in &self.lives {
            assert!(
                life.due.is_none_or(|due| now <= due),
                "node {}: {conn:?} heard nothing until {} ms: {life:?}",
                self.number,
                now / MS
            );
        }
    }
}
