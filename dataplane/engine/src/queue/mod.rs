//! The queues between applications and the engine. Any thread may post or poll; a post is a push on a bounded ring.

mod completion;
mod level;
mod list;
mod receive;
mod recv_wqe;
mod send;
mod staged;
mod wqe;

pub use completion::{Arm, CompletionQueue, CqFull};
pub use list::{RecvList, SendList};
pub use receive::{RecvQueue, XrcdId};
pub use recv_wqe::RecvWqe;
pub use send::{PostError, QpShared, SendQueue};
pub(crate) use staged::Staged;
pub(crate) use wqe::Wqe;
