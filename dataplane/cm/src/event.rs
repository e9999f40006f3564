//! What the application should know.

use crate::{ConnId, ListenerId, Path, SidrId};
use wire::Qpn;
use wire::mad::{Answered, Area, Rej, Rep, Req, SidrRep, SidrReq};

/// Something happened to a connection, a listener, or a question for a datagram service.
///
/// A connection's last event is always [`Event::TimewaitExit`]. A destroyed connection has no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Passive: somebody asks. Answer with `send_rep`, `send_rej` or `destroy`.
    ReqReceived {
        /// The new connection.
        conn: ConnId,
        /// Who listened.
        listener: ListenerId,
        /// Between whom.
        path: Path,
        /// The request: its private data begins with an addressing header when rdma_cm asks.
        req: Box<Req>,
    },
    /// The application did not answer a request or a reply in time: it was rejected.
    Expired {
        /// Which connection.
        conn: ConnId,
    },
    /// Active: the peer accepts. Move the QP by [`Cm::plan`](crate::Cm::plan) and answer with `send_rtu`, or with `send_rej`.
    RepReceived {
        /// Which connection.
        conn: ConnId,
        /// The reply.
        rep: Box<Rep>,
    },
    /// The peer needs time to answer.
    MraReceived {
        /// Which connection.
        conn: ConnId,
        /// What it will answer.
        message: Answered,
        /// How long we shall wait from now on, in nanoseconds.
        wait_ns: u64,
    },
    /// Passive: the peer is ready. On the active side, `send_rtu` establishes.
    Established {
        /// Which connection.
        conn: ConnId,
        /// The RTU's; absent when data came before the RTU.
        private_data: Option<Area<224>>,
    },
    /// The peer says no, or gave up, before the connection was established.
    Rejected {
        /// Which connection.
        conn: ConnId,
        /// Reason, additional information and private data.
        rej: Box<Rej>,
    },
    /// We gave up before the connection was established: the peer is silent.
    Unreachable {
        /// Which connection.
        conn: ConnId,
        /// What was not answered: our REQ, or our REP.
        message: Answered,
    },
    /// The connection is over. The QP goes to ERROR.
    Disconnected {
        /// Which connection.
        conn: ConnId,
        /// By whom.
        cause: DisconnectCause,
    },
    /// Nothing is left of the connection: its QPN may be used again.
    TimewaitExit {
        /// Which connection it was.
        conn: ConnId,
        /// Our QP; absent when the application never named one.
        qpn: Option<Qpn>,
    },
    /// Somebody asks for the QP of a datagram service. Answer with `send_sidr_rep` or `destroy_sidr`.
    SidrReqReceived {
        /// The question.
        sidr: SidrId,
        /// Who listened.
        listener: ListenerId,
        /// Between whom.
        path: Path,
        /// The request: its private data begins with an addressing header when rdma_cm asks.
        req: Box<SidrReq>,
    },
    /// The application did not answer a question in time: it was rejected, and is over.
    SidrExpired {
        /// Which question.
        sidr: SidrId,
    },
    /// Our question was answered, and is over.
    SidrRepReceived {
        /// Which question.
        sidr: SidrId,
        /// Between whom.
        path: Path,
        /// The answer: success only if its status says so.
        rep: Box<SidrRep>,
    },
    /// Our question was not answered, and is over.
    SidrUnreachable {
        /// Which question.
        sidr: SidrId,
    },
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisconnectCause {
    /// The peer sent a DREQ.
    Peer(Box<Area<220>>),
    /// The peer rejected an established connection.
    Rejected(Box<Rej>),
    /// We sent a DREQ, and it was answered.
    Answered(Box<Area<224>>),
    /// We sent a DREQ, and it was not answered.
    Unanswered,
    /// The peer asks anew with the same QP: it has forgotten this connection.
    Stale,
}

impl Event {
    /// The connection that it is about.
    pub fn conn(&self) -> Option<ConnId> {
        match *self {
            Event::ReqReceived { conn, .. }
            | Event::Expired { conn }
            | Event::RepReceived { conn, .. }
            | Event::MraReceived { conn, .. }
            | Event::Established { conn, .. }
            | Event::Rejected { conn, .. }
            | Event::Unreachable { conn, .. }
            | Event::Disconnected { conn, .. }
            | Event::TimewaitExit { conn, .. } => Some(conn),
            Event::SidrReqReceived { .. }
            | Event::SidrExpired { .. }
            | Event::SidrRepReceived { .. }
            | Event::SidrUnreachable { .. } => None,
        }
    }

    /// The question for a datagram service that it is about.
    pub fn sidr(&self) -> Option<SidrId> {
        match *self {
            Event::SidrReqReceived { sidr, .. }
            | Event::SidrExpired { sidr }
            | Event::SidrRepReceived { sidr, .. }
            | Event::SidrUnreachable { sidr } => Some(sidr),
            _ => None,
        }
    }
}
