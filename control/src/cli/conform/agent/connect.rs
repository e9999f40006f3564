//! Queue pairs on their way through the states.

use super::names::{access, state_of};
use super::{Agent, refused};
use conform::{CallError, QpAttributes, Reply};
use rockhopper::{Addressing, Mtu, Psn, QKey, Qp, QpAttr, QpAttrMask as Mask, QpState, QpType, Qpn};
use std::net::IpAddr;

impl Agent {
    pub(super) fn path(&mut self, peer: IpAddr) -> Result<Addressing, CallError> {
        if let Some(path) = self.paths.get(&peer) {
            return Ok(*path);
        }
        // The engine chooses the source port of a connection.
        let path = Addressing { udp_sport: 0, ..self.device.resolve(peer, None).map_err(refused)? };
        self.paths.insert(peer, path);
        Ok(path)
    }

    pub(super) fn modify(
        &mut self,
        name: &str,
        state: &str,
        attributes: &QpAttributes,
    ) -> Result<Reply, CallError> {
        let target = state_of(state)?;
        let up = [QpState::Init, QpState::Rtr, QpState::Rts];
        let path = self.path(attributes.peer_ip)?;
        let qp = self.pair(name)?.qp.clone();
        match up.iter().position(|&step| step == target) {
            Some(last) if qp.state() == QpState::Reset => {
                for &step in &up[..=last] {
                    self.step(&qp, step, attributes, path)?;
                }
            }
            _ => {
                let attr = QpAttr { state: target, ..QpAttr::default() };
                qp.modify(&attr, Mask::STATE).map_err(refused)?;
            }
        }
        Ok(Reply::Done)
    }

    fn step(&self, qp: &Qp, to: QpState, wish: &QpAttributes, path: Addressing) -> Result<(), CallError> {
        let mtu = Mtu::from_bytes(wish.mtu).ok_or_else(|| refused("no path MTU"))?;
        let attr = QpAttr {
            state: to,
            access: access(&wish.access)?,
            qkey: QKey::new(wish.qkey),
            path: Some(path),
            path_mtu: mtu,
            dest_qpn: Qpn::new(wish.peer_qpn),
            rq_psn: Psn::new(wish.peer_psn),
            sq_psn: Psn::new(wish.device_psn),
            max_rd_atomic: wish.reads,
            max_dest_rd_atomic: wish.slots,
            min_rnr_timer: wish.rnr_timer,
            timeout: wish.timeout,
            retry_cnt: wish.retry,
            rnr_retry: wish.rnr_retry,
            ..QpAttr::default()
        };
        let kind = qp.qp_type();
        let mask = match (to, kind) {
            (QpState::Init, QpType::Ud) => Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY,
            (QpState::Init, _) => Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS,
            (QpState::Rtr, QpType::Ud) => Mask::empty(),
            (QpState::Rtr, QpType::Rc | QpType::XrcTgt) => {
                Mask::AV
                    | Mask::PATH_MTU
                    | Mask::DEST_QPN
                    | Mask::RQ_PSN
                    | Mask::MAX_DEST_RD_ATOMIC
                    | Mask::MIN_RNR_TIMER
            }
            (QpState::Rtr, _) => Mask::AV | Mask::PATH_MTU | Mask::DEST_QPN | Mask::RQ_PSN,
            (_, QpType::XrcTgt) => Mask::SQ_PSN | Mask::TIMEOUT,
            (_, QpType::Rc | QpType::XrcIni) => {
                Mask::SQ_PSN | Mask::TIMEOUT | Mask::RETRY_CNT | Mask::RNR_RETRY | Mask::MAX_RD_ATOMIC
            }
            (..) => Mask::SQ_PSN,
        };
        qp.modify(&attr, mask | Mask::STATE).map_err(refused)?;
        Ok(())
    }
}
