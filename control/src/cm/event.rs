//! What identifiers report, after `rdma_cm_event`.

use super::error::{CmError, Unreachable};
use super::id::{CmId, Inner};
use super::params::{ConnParam, UdParam};
use crate::error::ResolveError;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use wire::mad::RejectReason;

/// An event of an identifier.
#[derive(Clone, Debug)]
pub struct CmEvent {
    /// Whose it is. A [`ConnectRequest`](CmEventKind::ConnectRequest) brings a new identifier: to drop it is to reject.
    pub id: CmId,
    /// The listener that a connect request is for.
    pub listen_id: Option<CmId>,
    /// What happened.
    pub kind: CmEventKind,
}

/// What happened to an identifier. Private data is told at its full length, with the zeros behind it: how long it was is not
/// on the wire (rocev2 facts, CM 2).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CmEventKind {
    /// The destination's address is known, and the identifier bound to a port.
    AddrResolved,
    /// It is not.
    AddrError(ResolveError),
    /// The way there is known: [`CmId::connect`] may follow.
    RouteResolved,
    /// It is not (any more).
    RouteError(ResolveError),
    /// A peer wants to connect, or asks for a datagram service: [`CmId::accept`] or [`CmId::reject`] the new identifier.
    ConnectRequest {
        /// What the peer asks for, as this side would say it: depths are crossed over already.
        param: ConnParam,
    },
    /// The peer has accepted, and the identifier has no queue pair to make ready: do that, then [`CmId::establish`].
    ConnectResponse {
        /// What the peer answers, as this side would say it.
        param: ConnParam,
    },
    /// Connecting failed on this side.
    ConnectError(Arc<CmError>),
    /// The peer does not answer, or does not have the datagram service.
    Unreachable(Unreachable),
    /// The peer, or its application, refuses.
    Rejected {
        /// Why. [`RejectReason::CONSUMER_DEFINED`] is the application's.
        reason: RejectReason,
        /// The application's, 148 bytes.
        private_data: Vec<u8>,
    },
    /// Connected. For datagrams: the peer's queue pair is known.
    Established {
        /// Active side: what the peer answered with.
        param: ConnParam,
        /// Datagrams: where to send.
        ud: Option<UdParam>,
    },
    /// The connection is closed, by either side; its queue pair is in error.
    Disconnected,
    /// The port is gone.
    DeviceRemoval,
    /// The identifier's queue pair has joined a group: where to send.
    MulticastJoin {
        /// The group.
        group: IpAddr,
        /// Headers and Q_Key of what is sent there.
        ud: UdParam,
    },
    /// It has not.
    MulticastError {
        /// The group.
        group: IpAddr,
        /// Why not.
        error: Arc<CmError>,
    },
    /// The identifier's own address was taken from the port.
    AddrChange,
    /// What may still be under way of a connection that was closed is gone: its queue pair number may be used again.
    TimewaitExit,
}

/// The names of rdma_cm.
impl std::fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CmEventKind::AddrResolved => "address resolved",
            CmEventKind::AddrError(_) => "address error",
            CmEventKind::RouteResolved => "route resolved",
            CmEventKind::RouteError(_) => "route error",
            CmEventKind::ConnectRequest { .. } => "connect request",
            CmEventKind::ConnectResponse { .. } => "connect response",
            CmEventKind::ConnectError(_) => "connect error",
            CmEventKind::Unreachable(_) => "unreachable",
            CmEventKind::Rejected { .. } => "rejected",
            CmEventKind::Established { .. } => "established",
            CmEventKind::Disconnected => "disconnected",
            CmEventKind::DeviceRemoval => "device removal",
            CmEventKind::MulticastJoin { .. } => "multicast join",
            CmEventKind::MulticastError { .. } => "multicast error",
            CmEventKind::AddrChange => "address change",
            CmEventKind::TimewaitExit => "timewait exit",
        })
    }
}

/// An event that waits. It keeps no identifier alive but one that nobody has seen yet.
pub(super) struct Queued {
    id: Whose,
    listen_id: Option<Weak<Inner>>,
    kind: CmEventKind,
}

enum Whose {
    Known(Weak<Inner>),
    New(CmId),
}

impl Queued {
    pub fn of(id: &Arc<Inner>, kind: CmEventKind) -> Queued {
        Queued { id: Whose::Known(Arc::downgrade(id)), listen_id: None, kind }
    }

    /// A connect request: the new identifier, and its listener.
    pub fn request(id: CmId, listener: &Arc<Inner>, kind: CmEventKind) -> Queued {
        Queued { id: Whose::New(id), listen_id: Some(Arc::downgrade(listener)), kind }
    }

    /// Whether it goes where this identifier goes: its own, and requests for it.
    pub fn is_of(&self, id: &CmId) -> bool {
        let same = |weak: &Weak<Inner>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(&id.inner));
        match &self.id {
            Whose::Known(weak) => same(weak),
            Whose::New(new) => {
                Arc::ptr_eq(&new.inner, &id.inner) || self.listen_id.as_ref().is_some_and(same)
            }
        }
    }

    /// Whether it is the connect request that brings this identifier.
    pub fn brings(&self, id: &CmId) -> bool {
        matches!(&self.id, Whose::New(new) if new == id)
    }

    /// Whether it is a connect request for this listener.
    pub fn is_request_for(&self, listener: &CmId) -> bool {
        let of = |weak: &Weak<Inner>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(&listener.inner));
        self.listen_id.as_ref().is_some_and(of)
    }

    /// The event, unless its identifier is gone, or its listener: a request that nobody can accept is rejected by dropping it.
    pub fn into_event(self) -> Option<CmEvent> {
        let listen_id = match self.listen_id {
            None => None,
            Some(weak) => Some(CmId { inner: weak.upgrade()? }),
        };
        let id = match self.id {
            Whose::New(id) => id,
            Whose::Known(weak) => CmId { inner: weak.upgrade()? },
        };
        Some(CmEvent { id, listen_id, kind: self.kind })
    }
}
