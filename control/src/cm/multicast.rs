//! Multicast groups of an identifier (rocev2 facts, wire 12): its queue pair is attached, the port joins the group by IGMP or MLD
//! with its first member, and the identifier is told where to send.

use super::error::CmError;
use super::event::CmEventKind;
use super::id::{CmId, Inner};
use super::params::UdParam;
use crate::endpoint::PathRequest;
use crate::error::QpError;
use std::net::IpAddr;
use std::sync::Arc;
use wire::Qpn;

impl CmId {
    /// Joins a group with the identifier's datagram queue pair, after `rdma_join_multicast`: it receives what others and this port
    /// itself send there. [`MulticastJoin`](CmEventKind::MulticastJoin) says how to send; [`MulticastError`](CmEventKind::MulticastError)
    /// why it was not joined. The identifier has to be bound to an address, or have resolved one: the group's will do.
    pub fn join_multicast(&self, group: IpAddr) -> Result<(), CmError> {
        let group = group.to_canonical();
        if !group.is_multicast() {
            return Err(CmError::NoGroup(group));
        }
        let kind = match self.inner.join(group) {
            Ok(ud) => CmEventKind::MulticastJoin { group, ud },
            // What the caller can mend is said to the caller.
            Err(error @ (CmError::NoQp | CmError::State { .. })) => return Err(error),
            Err(error) => CmEventKind::MulticastError { group, error: Arc::new(error) },
        };
        self.inner.report(kind);
        Ok(())
    }

    /// Leaves a group, after `rdma_leave_multicast`. One that was not joined is an error.
    pub fn leave_multicast(&self, group: IpAddr) -> Result<(), CmError> {
        let group = group.to_canonical();
        let qp = {
            let mut place = self.inner.lock();
            let joined = place.groups.iter().position(|known| *known == group);
            let joined = joined.ok_or(CmError::Qp(QpError::NotAttached(group)))?;
            place.groups.remove(joined);
            place.qp.clone()
        };
        // One that lost its queue pair lost the groups with it.
        qp.map_or(Ok(()), |qp| Ok(qp.detach_mcast(group, 0)?))
    }
}

impl Inner {
    fn join(&self, group: IpAddr) -> Result<UdParam, CmError> {
        let (port, qp, qkey, gid_index) = {
            let place = self.lock();
            let port = Arc::clone(self.port(&place)?);
            let own = place.local.map(|at| at.ip()).filter(|own| own.is_ipv4() == group.is_ipv4());
            let gid_index = own.and_then(|own| port.network.lock().gids().index_of(own.into()));
            (port, place.qp.clone().ok_or(CmError::NoQp)?, place.options.qkey, gid_index)
        };
        let request = PathRequest { sgid_index: gid_index, ..PathRequest::to(group) };
        // Nobody has to be asked for the MAC of a group.
        let path = port.try_resolve(&request).transpose()?.ok_or(CmError::Timeout)?;
        qp.attach_mcast(group, 0)?;
        let mut place = self.lock();
        if !place.groups.contains(&group) {
            place.groups.push(group);
        }
        Ok(UdParam { qpn: Qpn::MULTICAST, qkey, addressing: path.addressing })
    }
}
