//! QP states and service types.

use crate::wr::SendOp;
use wire::Service;

/// The states of a QP. Values are those of verbs (`IBV_QPS_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QpState {
    /// Fresh, or reset.
    Reset = 0,
    /// Receives may be posted.
    Init = 1,
    /// Ready to receive: requests are executed and answered.
    Rtr = 2,
    /// Ready to send.
    Rts = 3,
    /// The send queue drains, then rests.
    Sqd = 4,
    /// A send failed (UC, UD); the receive side goes on.
    Sqe = 5,
    /// Everything is flushed.
    Err = 6,
}

impl QpState {
    /// Every state in order of its number.
    pub const ALL: [QpState; 7] =
        [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe, QpState::Err];

    pub(crate) fn from_u8(value: u8) -> QpState {
        Self::ALL.get(value as usize).copied().unwrap_or(QpState::Err)
    }

    /// Arriving requests are executed.
    pub fn takes_requests(self) -> bool {
        matches!(self, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe)
    }

    /// Arriving responses are looked at.
    pub fn takes_responses(self) -> bool {
        matches!(self, QpState::Rts | QpState::Sqd)
    }
}

/// The service type of a QP. Values are those of verbs (`IBV_QPT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QpType {
    /// Reliable connection.
    Rc = 2,
    /// Unreliable connection.
    Uc = 3,
    /// Unreliable datagram.
    Ud = 4,
    /// Extended reliable connection, the half that sends: it names an SRQ of the peer in each request.
    XrcIni = 9,
    /// Extended reliable connection, the half that receives: into the SRQs of its domain.
    XrcTgt = 10,
}

impl QpType {
    /// The service prefix of its opcodes.
    pub fn service(self) -> Service {
        match self {
            QpType::Rc => Service::Rc,
            QpType::Uc => Service::Uc,
            QpType::Ud => Service::Ud,
            QpType::XrcIni | QpType::XrcTgt => Service::Xrc,
        }
    }

    /// Requests are acknowledged, and repeated until they are.
    pub fn is_reliable(self) -> bool {
        matches!(self, QpType::Rc | QpType::XrcIni | QpType::XrcTgt)
    }

    /// It sends requests and hears their responses.
    pub fn has_requester(self) -> bool {
        self != QpType::XrcTgt
    }

    /// It hears requests.
    pub fn has_responder(self) -> bool {
        self != QpType::XrcIni
    }

    /// Whether the type has this operation (rocev2 facts, transport section 12).
    pub fn supports(self, op: &SendOp) -> bool {
        match op {
            SendOp::Send | SendOp::SendImm(_) | SendOp::Write(_) | SendOp::WriteImm(..) => {
                matches!(self, QpType::Rc | QpType::Uc | QpType::XrcIni)
            }
            SendOp::UdSend { .. } => self == QpType::Ud,
            SendOp::SendInv(_) | SendOp::Read(_) | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
                matches!(self, QpType::Rc | QpType::XrcIni)
            }
            // rocev2 facts, wire 7: XRC has no opcodes for them.
            SendOp::AtomicWrite(_) | SendOp::Flush { .. } => self == QpType::Rc,
            SendOp::LocalInv(_) | SendOp::RegMr(_) | SendOp::BindMw(_) => {
                matches!(self, QpType::Rc | QpType::Uc | QpType::XrcIni)
            }
        }
    }
}
