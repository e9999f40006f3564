//! Why a conversation with a program did not come to its end.

use crate::cm::{CmError, Unreachable};
use crate::error::{CreateError, QpError, ResolveError};
use engine::WcStatus;
use engine::queue::PostError;
use memory::OutOfRange;
use std::sync::Arc;
use std::time::Duration;
use wire::mad::RejectReason;

/// Why a conversation with a program did not come to its end. Each text is a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Something could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A queue pair could not be moved.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// A work request was refused.
    #[error("a request was not taken: {0}")]
    Post(#[from] PostError),
    /// A piece of our own memory is not there.
    #[error(transparent)]
    Memory(#[from] OutOfRange),
    /// A work request failed.
    #[error("{what} ended with {status:?}")]
    Completion {
        /// Which request.
        what: &'static str,
        /// How it ended.
        status: WcStatus,
    },
    /// The peer stopped answering.
    #[error("no answer for {0:?}")]
    Silent(Duration),
    /// The peer said what is not its turn, or what nobody can do.
    #[error("the peer does not speak this program's language: {0}")]
    Garbled(String),
    /// A call of connection management was refused.
    #[error(transparent)]
    Cm(#[from] CmError),
    /// There is no way to the peer.
    #[error(transparent)]
    Resolve(ResolveError),
    /// The peer does not answer, or does not have the service.
    #[error(transparent)]
    Unreachable(Unreachable),
    /// The peer, or its program, refuses.
    #[error("the peer refuses: {0}{hint}", hint = hint(*.0))]
    Rejected(RejectReason),
    /// Connecting failed on this side.
    #[error("the connection could not be made: {0}")]
    Connect(Arc<CmError>),
    /// Connection management reported something else than what was due.
    #[error("the connection is gone: {0}")]
    Unexpected(String),
    /// Somebody wants it to end.
    #[error("stopped")]
    Stopped,
}

impl ProgramError {
    /// True when nothing was done: what was asked, or what there is, does not do.
    pub fn is_setup(&self) -> bool {
        matches!(self, ProgramError::Create(_) | ProgramError::Cm(_))
    }
}

fn hint(reason: RejectReason) -> &'static str {
    if reason == RejectReason::INVALID_SERVICE_ID {
        "; start the program there, or name its port with --port"
    } else {
        ""
    }
}
