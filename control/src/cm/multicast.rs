//! Multicast groups of an identifier (rocev2 facts, wire 12): its queue pair is attached, the port joins the group by IGMP or MLD
//! with its first member, and the identifier is told where to send.
//!
//! A group is one of a link (rocev2 facts, wire 13: a VLAN belongs to the source GID): that of the address that the identifier is
//! bound to, for groups of the other family too.

use super::error::CmError;
use super::event::CmEventKind;
use super::id::{CmId, Inner, Place};
use super::params::UdParam;
use crate::endpoint::{Destination, PathRequest, PortCore};
use crate::error::QpError;
use std::net::IpAddr;
use std::sync::Arc;
use wire::Qpn;

impl CmId {
    /// Joins a group with the identifier's datagram queue pair, after `rdma_join_multicast`: it receives what others and this port
    /// itself send there. [`MulticastJoin`](CmEventKind::MulticastJoin) says how to send; [`MulticastError`](CmEventKind::MulticastError)
    /// why it was not joined. The identifier has to be bound to an address, or have resolved one: the group's will do. The group is
    /// joined on the link of that address, which may be that of a VLAN.
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
        let (qp, joined) = {
            let mut place = self.inner.lock();
            let joined = place.groups.iter().position(|known| known.group == group);
            let joined = joined.ok_or(CmError::Qp(QpError::NotAttached(group)))?;
            (place.qp.clone(), place.groups.remove(joined))
        };
        // One that lost its queue pair lost the groups with it.
        qp.map_or(Ok(()), |qp| Ok(qp.detach_mcast_on(joined.vlan, group)?))
    }
}

/// A group that was joined, and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub vlan: Option<u16>,
    pub group: IpAddr,
}

impl Inner {
    fn join(&self, group: IpAddr) -> Result<UdParam, CmError> {
        let (port, qp, qkey, request) = {
            let place = self.lock();
            let port = Arc::clone(self.port(&place)?);
            let request = from_its_link(&place, &port, group);
            (port, place.qp.clone().ok_or(CmError::NoQp)?, place.options.qkey, request)
        };
        // Nobody has to be asked for the MAC of a group.
        let path = port.try_resolve(&request).transpose()?.ok_or(CmError::Timeout)?;
        let joined = Joined { vlan: path.addressing.link_vlan(), group };
        qp.attach_mcast_on(joined.vlan, group)?;
        let mut place = self.lock();
        if !place.groups.contains(&joined) {
            place.groups.push(joined);
        }
        Ok(UdParam { qpn: Qpn::MULTICAST, qkey, addressing: path.addressing })
    }
}

/// The way to a group on the link of the identifier's address: that of its path, or the one where the address is. One bound to all
/// addresses takes what the group's route names.
fn from_its_link(place: &Place, port: &PortCore, group: IpAddr) -> PathRequest {
    let own = place.local.map(|at| at.ip()).filter(|own| !own.is_unspecified());
    let stack = port.network.lock();
    let entry = own.and_then(|own| stack.gids().get(stack.gids().index_of_address(own)?));
    let link = match &place.path {
        Some(path) => Some(path.addressing.link_vlan()),
        None => entry.map(|entry| entry.vlan),
    };
    let Some(vlan) = link else { return PathRequest::to(group) };
    let own = own.filter(|own| own.is_ipv4() == group.is_ipv4());
    let sgid_index = own.and_then(|own| stack.gids().index_of_link(own.into(), vlan));
    let scope = Some(port.link_name(&stack, vlan));
    PathRequest { sgid_index, ..PathRequest::to(Destination { address: group, scope }) }
}
