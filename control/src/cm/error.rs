//! Why a call on an identifier was refused. Nothing was changed.

use super::id::State;
use crate::error::{QpError, ResolveError};
use std::net::SocketAddr;
use wire::mad::SidrStatus;

/// Why a peer is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    /// No answer to any try.
    #[error("the peer does not answer: check that it is up, and that UDP port 4791 reaches it")]
    Timeout,
    /// This application took too long to accept or reject; the peer was told so.
    #[error("the connect request was not answered in time: accept or reject it sooner")]
    Expired,
    /// It answers, but does not have the datagram service.
    #[error("the peer does not serve this: {0}")]
    Sidr(SidrStatus),
}

/// Why a call was refused, or connecting failed on this side.
#[derive(Debug, thiserror::Error)]
pub enum CmError {
    /// The identifier is not where this call belongs.
    #[error("{call} is for an identifier that is {wanted}, but this one is {is}")]
    State {
        /// The call.
        call: &'static str,
        /// When it may be made.
        wanted: &'static str,
        /// Where the identifier is.
        is: State,
    },
    /// More private data than the message holds.
    #[error("{given} bytes of private data are too many: this message carries {most}")]
    PrivateData {
        /// Given.
        given: usize,
        /// Fit.
        most: usize,
    },
    /// A number out of range.
    #[error("{what} of {given} is too large: use {most} at most")]
    OutOfRange {
        /// Which.
        what: &'static str,
        /// Given.
        given: u64,
        /// The largest.
        most: u64,
    },
    /// Another identifier has it.
    #[error("{0} is in use by another identifier: choose another port, or 0 for a free one")]
    AddrInUse(SocketAddr),
    /// No port has this address.
    #[error("{0} is no address of this endpoint: bind to one that it has, or to the unspecified address")]
    NoSuchAddress(std::net::IpAddr),
    /// Every port number is taken.
    #[error("no port is free: let go of identifiers that are not needed")]
    NoPort,
    /// No way to the peer.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The identifier has no queue pair, and none was named.
    #[error("no queue pair: create or attach one, or name it in the parameters")]
    NoQp,
    /// It has one already.
    #[error("the identifier has a queue pair already: destroy it first")]
    HasQp,
    /// The queue pair is on another port than the identifier.
    #[error("the queue pair belongs to another port than the identifier: make it on the identifier's device")]
    OtherDevice,
    /// A service that this port space does not carry.
    #[error("a {qp_type:?} queue pair does not go with this port space: {remedy}")]
    QpType {
        /// The queue pair's.
        qp_type: engine::QpType,
        /// What to do.
        remedy: &'static str,
    },
    /// The queue pair did not change.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// It was not made.
    #[error(transparent)]
    Create(#[from] crate::error::CreateError),
    /// What the call is about is gone.
    #[error("the connection is gone: its peer closed it, or it took too long")]
    Gone,
    /// More connections than there is room for.
    #[error("there are too many connections: destroy identifiers that are not needed")]
    TooMany,
    /// The channel of the identifier is gone.
    #[error("the identifier's event channel was dropped: migrate it to another")]
    NoChannel,
    /// No group.
    #[error("{0} is no multicast address: join one of 224.0.0.0/4 or ff00::/8")]
    NoGroup(std::net::IpAddr),
    /// Nothing of what was awaited came in time.
    #[error("nothing happened in time")]
    Timeout,
    /// A blocking call ended otherwise than hoped for.
    #[error("{0}")]
    Ended(String),
}

impl From<::cm::CmError> for CmError {
    fn from(error: ::cm::CmError) -> Self {
        match error {
            ::cm::CmError::Full => CmError::TooMany,
            ::cm::CmError::TooLong(most) => CmError::PrivateData { given: most + 1, most },
            // The states of both machines move together, so this one has moved on without the application.
            _ => CmError::Gone,
        }
    }
}
