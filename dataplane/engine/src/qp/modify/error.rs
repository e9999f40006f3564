//! What can be wrong with a modify, and what to do about it.

use crate::qp::{QpAttrMask, QpState, QpType};
use wire::{Gid, MixedFamilies, Mtu, Qpn};

/// Why a modify was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModifyError {
    /// There is no such QP.
    #[error("there is no QP {0}: it was destroyed, or lives on another device")]
    UnknownQp(Qpn),
    /// The state machine has no such move.
    #[error("a {qp_type:?} QP cannot go from {from:?} to {to:?}: the way up is Reset, Init, Rtr, Rts")]
    Transition {
        /// The QP's type.
        qp_type: QpType,
        /// Present state.
        from: QpState,
        /// State asked for.
        to: QpState,
    },
    /// The caller named a present state that no program may assume.
    #[error("{0:?} cannot be given as the current state: give Rtr, Rts, Sqd or Sqe, or leave it out")]
    CurStateNotAllowed(QpState),
    /// The QP is in another state than the caller named.
    #[error("the QP is in {actual:?}, not in {given:?}: query it and modify from there")]
    CurState {
        /// What the caller believes.
        given: QpState,
        /// What is.
        actual: QpState,
    },
    /// Attributes that the move requires were not given.
    #[error("the move from {from:?} to {to:?} also needs {missing}: set them and their mask bits")]
    Missing {
        /// Present state.
        from: QpState,
        /// State asked for.
        to: QpState,
        /// What to add.
        missing: QpAttrMask,
    },
    /// Attributes that the move does not take, unknown bits among them.
    #[error("the move from {from:?} to {to:?} does not take {extra}: clear these mask bits")]
    Forbidden {
        /// Present state.
        from: QpState,
        /// State asked for.
        to: QpState,
        /// What to leave out.
        extra: QpAttrMask,
    },
    /// Paths do not migrate on RoCE.
    #[error("RoCE has no alternate paths: clear ALT_PATH")]
    AltPath,
    /// A P_Key index other than 0.
    #[error("P_Key index {0} does not exist: RoCE has the default partition only, use 0")]
    PKeyIndex(u16),
    /// A port other than 1.
    #[error("port {0} does not exist: a device has one port, use 1")]
    Port(u8),
    /// A path MTU above the port's.
    #[error("path MTU {given} is more than the port carries: use {port} or less, or raise the port's MTU")]
    PathMtu {
        /// Asked for.
        given: Mtu,
        /// What the port carries.
        port: Mtu,
    },
    /// A number beyond its range.
    #[error("{attribute} {given} is out of range: use 0 to {max}")]
    OutOfRange {
        /// Which.
        attribute: QpAttrMask,
        /// Asked for.
        given: u8,
        /// The largest value.
        max: u8,
    },
    /// No connected QP has this number.
    #[error("{0} is no QP to connect to: use the number that the peer's QP has")]
    DestQpn(Qpn),
    /// `AV` was set without a path.
    #[error("the address vector is empty: set the path")]
    NoPath,
    /// A path from or to nobody or a group.
    #[error("{} is no address of one end: a connection needs a unicast GID on both sides", .0.ip())]
    PathGid(Gid),
    /// The path's GIDs are of two families.
    #[error("{0}: choose the source GID of the peer's kind")]
    PathFamilies(MixedFamilies),
    /// The send queue still drains.
    #[error("the send queue has not drained: wait for the SQ_DRAINED event, then try again")]
    Draining,
}
