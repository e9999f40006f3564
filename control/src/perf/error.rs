//! Why a run did not come to its end.

use super::link::LinkError;
use super::op::Op;
use super::params::ParamError;
use super::protocol::{Message, VERSION};
use crate::error::{CreateError, QpError};
use crate::programs::ProgramError;
use engine::WcStatus;
use engine::queue::PostError;
use std::time::Duration;

/// Why a run did not come to its end. Each text is a sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run cannot be.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// The server will not.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// The peer gave up.
    #[error("the peer gave up: {0}")]
    Peer(String),
    /// The line to the peer failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The peer gave no sign of life.
    #[error("the peer gave no sign of life for {0:?}")]
    Silent(Duration),
    /// The peer speaks another version.
    #[error(
        "the peer speaks version {0} of the protocol, this is version {VERSION}: use the same release on both ends"
    )]
    Version(u32),
    /// The peer said something else than what its turn was.
    #[error("the peer does not follow the protocol: after {after} it said {said}")]
    Unexpected {
        /// What went before.
        after: &'static str,
        /// What it said.
        said: String,
    },
    /// Something could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A QP could not be connected.
    #[error(transparent)]
    Qp(#[from] QpError),
    /// A work request was refused.
    #[error("QP {qp} took no request: {why}")]
    Post {
        /// The QP's index in the run.
        qp: usize,
        /// Why.
        why: PostError,
    },
    /// A work request failed.
    #[error("QP {qp}: {what} ended with {status:?} (vendor error {vendor_err}){}", hint(*.status))]
    Completion {
        /// The QP's index in the run.
        qp: usize,
        /// Which request.
        what: String,
        /// How it ended.
        status: WcStatus,
        /// Our finer reason.
        vendor_err: u32,
    },
    /// The port has no GID that would do.
    #[error("this port has no {0} address: give it one, or choose another with --gid-index")]
    NoGid(&'static str),
    /// The GID index is not there.
    #[error("the port has no GID with index {0}")]
    GidIndex(usize),
    /// The peer's messages stopped coming.
    #[error("no answer from the peer for {0:?}: the packets of the test do not get through")]
    Stalled(Duration),
    /// The path MTU asked for does not fit.
    #[error(
        "a path MTU of {asked} was asked for, and a port on the way carries {most}: raise its MTU or ask for less"
    )]
    Mtu {
        /// What was asked for.
        asked: u32,
        /// What there is.
        most: u32,
    },
    /// The ends do not have as many QPs.
    #[error("this end has {ours} QPs for the run, the peer {theirs}")]
    Mismatch {
        /// Ours.
        ours: usize,
        /// The peer's.
        theirs: usize,
    },
    /// The server was started for another test.
    #[error("this server was started for {only}, not {asked}")]
    Only {
        /// What it was started for.
        only: Op,
        /// What was asked for.
        asked: Op,
    },
    /// A pingpong is one test.
    #[error("the pingpongs are no {0}: use send-lat with --peer pingpong")]
    PeerTest(Op),
    /// The peer has another path MTU.
    #[error(
        "the peer uses a path MTU of {theirs}, this end {ours}: give both the same with --mtu (-m at the peer)"
    )]
    PeerMtu {
        /// Ours.
        ours: u32,
        /// The peer's.
        theirs: u32,
    },
    /// Linux programs count messages.
    #[error("with --peer both ends count messages: say how many with --iters (-n at the peer)")]
    PeerDuration,
    /// What the peer's programs do differently.
    #[error("with --peer there is no --bidirectional and no --imm")]
    PeerFlag,
    /// What rdma_cm cannot do with a Linux program.
    #[error(
        "with --peer perftest --cm this end is the client, and the service RC: let `rockhopper serve` be the server"
    )]
    PeerCm,
    /// Connecting failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Stopped before there was anything to report.
    #[error("stopped")]
    Stopped,
}

impl RunError {
    /// True when nothing ran: what was asked, or what there is, does not do.
    pub fn is_setup(&self) -> bool {
        if let RunError::Program(why) = self {
            return why.is_setup();
        }
        !matches!(
            self,
            RunError::Peer(_)
                | RunError::Link(_)
                | RunError::Silent(_)
                | RunError::Post { .. }
                | RunError::Completion { .. }
                | RunError::Stalled(_)
        )
    }

    pub(super) fn unexpected(after: &'static str, message: &Message) -> RunError {
        let mut said = serde_json::to_string(message).unwrap_or_default();
        said.truncate(120);
        RunError::Unexpected { after, said }
    }
}

fn hint(status: WcStatus) -> &'static str {
    match status {
        WcStatus::RetryExcErr => {
            ": the peer does not acknowledge; is it still running, and does the MTU pass the link?"
        }
        WcStatus::RnrRetryExcErr => ": the peer posted no receive in time",
        _ => "",
    }
}
