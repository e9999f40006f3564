//! Why a conversation with a program did not come to its end.

use crate::error::{CreateError, QpError};
use engine::WcStatus;
use engine::queue::PostError;
use memory::OutOfRange;
use std::time::Duration;

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
    /// Somebody wants it to end.
    #[error("stopped")]
    Stopped,
}
