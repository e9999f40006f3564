//! What a call can answer but success.

use crate::State;

/// Why a call did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CmError {
    /// No connection, listener or datagram request has this ID any more.
    #[error("there is no such communication ID")]
    UnknownId,
    /// The call does not fit the state.
    #[error("this cannot be done in state {0:?}")]
    WrongState(State),
    /// There are as many of these as the limits allow.
    #[error("the table is full")]
    Full,
    /// Somebody listens for this service already.
    #[error("this service ID is in use")]
    InUse,
    /// More private data, or additional information, than the message has room for; how much that is, in bytes.
    #[error("more than the {0} bytes that fit")]
    TooLong(usize),
    /// Only RC and UC can be connected.
    #[error("only RC and UC can be connected")]
    UnsupportedTransport,
}
