//! Commands, executed between two bursts.

use crate::command::{CallError, Command, Outcome, QpSnapshot, Reply};
use crate::lane::Lane;
use crate::worker::Worker;
use engine::{Nanos, QpAttr, QpAttrMask, QpInit};
use wire::{Addressing, Qpn};

impl Worker {
    pub(crate) fn execute(&mut self, command: Command) -> Outcome {
        let now = self.now();
        match command {
            Command::Ping => {}
            Command::AddMr { lane, region } => self.lane(lane)?.engine.add_mr(region),
            Command::RemoveMr { lane, index } => drop(self.lane(lane)?.engine.remove_mr(index)),
            Command::AddMw { lane, window } => self.lane(lane)?.engine.add_mw(window),
            Command::RemoveMw { lane, index } => drop(self.lane(lane)?.engine.remove_mw(index)),
            Command::AddSrq { lane, srq } => self.lane(lane)?.engine.add_srq(srq),
            Command::RemoveSrq { lane, srqn } => drop(self.lane(lane)?.engine.remove_srq(srqn)),
            Command::CreateQp { lane, init } => self.lane(lane)?.create_qp(*init)?,
            Command::ModifyQp { lane, qpn, attr, mask } => {
                return self.lane(lane)?.modify_qp(now, qpn, &attr, mask);
            }
            Command::WalkQp { lane, qpn, steps } => return self.lane(lane)?.walk_qp(now, qpn, &steps),
            Command::QueryQp { lane, qpn } => return self.lane(lane)?.query_qp(now, qpn),
            Command::DestroyQp { lane, qpn } => self.lane(lane)?.destroy_qp(now, qpn)?,
            Command::MoveQp { lane, qpn, to } => self.lane(lane)?.move_qp(qpn, to)?,
            Command::SetAddresses { lane, addresses } => self.lane(lane)?.set_addresses(*addresses),
            Command::AttachMcast { lane, vid, group, qpn } => self.lane(lane)?.groups.attach(vid, group, qpn),
            Command::DetachMcast { lane, vid, group, qpn } => self.lane(lane)?.groups.detach(vid, group, qpn),
            Command::BreakStrays { lane, most } => {
                return Ok(Reply::Count(self.lane(lane)?.break_strays(now, most)));
            }
            Command::Redirect { lane, whom, from, to, most } => {
                let leads = |vid, peer| whom.leads_to(vid, peer);
                return Ok(Reply::Count(self.lane(lane)?.engine.redirect(from, to, most, leads)));
            }
            Command::Counters { lane } => return Ok(Reply::Counters(Box::new(self.lane(lane)?.snapshot()))),
            Command::Stop => self.flush(),
        }
        Ok(Reply::Done)
    }

    fn lane(&mut self, lane: usize) -> Result<&mut Lane, CallError> {
        self.lanes.get_mut(lane).ok_or(CallError::NoLane(lane))
    }
}

impl Lane {
    fn create_qp(&mut self, init: QpInit) -> Result<(), CallError> {
        // No path of the QP will have a larger one: what it sends fits into a buffer.
        if init.port_mtu > self.max_mtu {
            return Err(CallError::Mtu { asked: init.port_mtu, max: self.max_mtu });
        }
        let qpn = init.shared.qpn();
        self.engine.create_qp(init)?;
        self.link.directory.set(qpn, self.index);
        Ok(())
    }

    fn modify_qp(&mut self, now: Nanos, qpn: Qpn, attr: &QpAttr, mask: QpAttrMask) -> Outcome {
        self.at_home(now, qpn)?;
        if let Some(path) = attr.path.filter(|_| mask.contains(QpAttrMask::AV)) {
            self.check_source(&path)?;
        }
        Ok(Reply::State(self.engine.modify_qp(now, qpn, attr, mask)?))
    }

    fn walk_qp(&mut self, now: Nanos, qpn: Qpn, steps: &[(QpAttr, QpAttrMask)]) -> Outcome {
        let mut reply = Reply::Done;
        for (attr, mask) in steps {
            reply = self.modify_qp(now, qpn, attr, *mask)?;
        }
        Ok(reply)
    }

    /// rocev2 facts, wire 13: a source GID is one of the table. Families that do not go together are the engine's to refuse.
    fn check_source(&self, path: &Addressing) -> Result<(), CallError> {
        let vid = path.vlan.map_or(0, |tag| tag.vid);
        match path.network() {
            Ok(network) if !self.addresses.has(vid, path.src, network) => {
                Err(CallError::NotOurGid { gid: path.src.ip(), vid })
            }
            _ => Ok(()),
        }
    }

    /// Takes QPs to ERROR whose GID is not ours any more; how many.
    fn break_strays(&mut self, now: Nanos, most: usize) -> usize {
        let Lane { engine, addresses, .. } = self;
        engine.break_qps(now, most, |vid, gid, network| !addresses.has(vid, gid, network))
    }

    fn query_qp(&mut self, now: Nanos, qpn: Qpn) -> Outcome {
        self.at_home(now, qpn)?;
        let qp = self.engine.qp(qpn).ok_or(CallError::NotHome(qpn))?;
        Ok(Reply::Qp(Box::new(QpSnapshot { attr: qp.attr(), counters: qp.counters().clone() })))
    }

    fn destroy_qp(&mut self, now: Nanos, qpn: Qpn) -> Result<(), CallError> {
        self.at_home(now, qpn)?;
        self.engine.destroy_qp(qpn);
        self.link.directory.clear(qpn);
        Ok(())
    }
}
