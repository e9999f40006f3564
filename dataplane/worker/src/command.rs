//! What other threads ask of a worker.

use crate::address::AddressSet;
use crate::counters::LaneCounters;
use engine::engine::AddQpError;
use engine::qp::ModifyError;
use engine::{Counters, MemoryRegion, MemoryWindow, QpAttr, QpAttrMask, QpInit, QpState, RecvQueue};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::SyncSender;
use wire::{Gid, Mac, Mtu, Qpn, Srqn};

/// A request to a worker. `lane` counts the worker's lanes in the order it was given them.
#[derive(Debug)]
pub enum Command {
    /// Nothing, but answered between two bursts.
    Ping,
    /// Makes a region's key known. Reply: `Done`.
    AddMr {
        /// Which lane.
        lane: usize,
        /// The region.
        region: Arc<MemoryRegion>,
    },
    /// Forgets a region's key. After the reply no packet of this worker uses it. Reply: `Done`, known or not.
    RemoveMr {
        /// Which lane.
        lane: usize,
        /// Key >> 8.
        index: u32,
    },
    /// Makes a memory window's key known. Reply: `Done`.
    AddMw {
        /// Which lane.
        lane: usize,
        /// The window.
        window: Arc<MemoryWindow>,
    },
    /// Forgets a window's key and frees the window, for other workers, too. Reply: `Done`, known or not.
    RemoveMw {
        /// Which lane.
        lane: usize,
        /// Key >> 8.
        index: u32,
    },
    /// Makes an XRC SRQ known by its number. Reply: `Done`.
    AddSrq {
        /// Which lane.
        lane: usize,
        /// The SRQ.
        srq: Arc<RecvQueue>,
    },
    /// Forgets an XRC SRQ: requests that name it are refused from now on. Reply: `Done`, known or not.
    RemoveSrq {
        /// Which lane.
        lane: usize,
        /// Its number.
        srqn: Srqn,
    },
    /// Creates a QP, at home here. Reply: `Done`.
    CreateQp {
        /// Which lane.
        lane: usize,
        /// The QP.
        init: Box<QpInit>,
    },
    /// Changes a QP. Reply: `State`.
    ModifyQp {
        /// Which lane.
        lane: usize,
        /// Which QP.
        qpn: Qpn,
        /// New values.
        attr: Box<QpAttr>,
        /// Which of them count.
        mask: QpAttrMask,
    },
    /// Changes a QP several times in a row: one round trip for the way from RESET to RTS. The first change that is refused is
    /// the reply, and those before it stay. Reply: `State`, after the last.
    WalkQp {
        /// Which lane.
        lane: usize,
        /// Which QP.
        qpn: Qpn,
        /// New values, and which of them count.
        steps: Box<[(QpAttr, QpAttrMask)]>,
    },
    /// Looks at a QP. Reply: `Qp`.
    QueryQp {
        /// Which lane.
        lane: usize,
        /// Which QP.
        qpn: Qpn,
    },
    /// Destroys a QP. Reply: `Done`.
    DestroyQp {
        /// Which lane.
        lane: usize,
        /// Which QP.
        qpn: Qpn,
    },
    /// Sends a QP to another worker of the port. Reply: `Done` when it is on its way.
    MoveQp {
        /// Which lane.
        lane: usize,
        /// Which QP.
        qpn: Qpn,
        /// To which of the port's workers.
        to: usize,
    },
    /// Replaces the addresses that frames are accepted for, and that connected QPs may send from; a lane begins without any. QPs
    /// whose address is gone hear nothing more, and are ended by [`BreakStrays`](Self::BreakStrays). Reply: `Done`.
    SetAddresses {
        /// Which lane.
        lane: usize,
        /// The addresses.
        addresses: Box<AddressSet>,
    },
    /// Takes QPs to ERROR whose GID is not one of the lane's addresses, each with an event ([`engine::EventKind::QpFatal`]).
    /// Reply: `Count`, of how many; ask again while it is `most`.
    BreakStrays {
        /// Which lane.
        lane: usize,
        /// At most so many.
        most: usize,
    },
    /// Has connected QPs follow a next hop from one MAC to another. Reply: `Count`, of how many; ask again while it is `most`.
    Redirect {
        /// Which lane.
        lane: usize,
        /// Which QPs.
        whom: Box<Whom>,
        /// The MAC that they send to.
        from: Mac,
        /// The MAC to send to from now on.
        to: Mac,
        /// At most so many.
        most: usize,
    },
    /// Attaches a UD QP of the port, wherever it lives, to a multicast group; every worker of the port is told. Reply:
    /// `Done`, attached before or not.
    AttachMcast {
        /// Which lane.
        lane: usize,
        /// The VLAN of the link that the group is on; 0 for untagged.
        vid: u16,
        /// The group.
        group: Gid,
        /// The member.
        qpn: Qpn,
    },
    /// Detaches a QP from a group. Reply: `Done`, attached or not.
    DetachMcast {
        /// Which lane.
        lane: usize,
        /// The VLAN of the link that the group is on; 0 for untagged.
        vid: u16,
        /// The group.
        group: Gid,
        /// The member.
        qpn: Qpn,
    },
    /// Everything that a lane counts. Reply: `Counters`.
    Counters {
        /// Which lane.
        lane: usize,
    },
    /// Sends what is sealed, then ends the worker, with its QPs. Reply: `Done`; a moment later its queues are free and
    /// [`WorkerHandle::is_stopped`](crate::WorkerHandle::is_stopped) says so.
    Stop,
}

/// A worker's answer.
#[derive(Debug)]
pub enum Reply {
    /// Done.
    Done,
    /// The state of the QP after a modify.
    State(QpState),
    /// A QP as it is.
    Qp(Box<QpSnapshot>),
    /// So many.
    Count(usize),
    /// A lane's counters.
    Counters(Box<LaneCounters>),
}

/// What a query tells of a QP.
#[derive(Clone, Debug)]
pub struct QpSnapshot {
    /// Attributes, with the present state.
    pub attr: QpAttr,
    /// What it counted.
    pub counters: Counters,
}

/// Why a command was not executed. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The worker did not take the command in time.
    #[error("the worker did not take the command in time")]
    Timeout,
    /// Too many commands wait.
    #[error("the worker's command ring is full")]
    Full,
    /// The worker has ended, or ended before it was done.
    #[error("the worker has stopped")]
    Stopped,
    /// The worker has no such lane.
    #[error("the worker has no lane {0}")]
    NoLane(usize),
    /// The QP is not here: ask the worker that [`PortLink::home`](crate::PortLink::home) names, if any.
    #[error("QP {0} is not at home on this worker")]
    NotHome(Qpn),
    /// The port has no such worker, or too many QPs are on their way to it.
    #[error("worker {0} cannot take the QP")]
    NoPlace(usize),
    /// No QP sends from a GID that the port does not have.
    #[error("{gid} is not an address of this port{}; add it first, or use another GID", in_vlan(*.vid))]
    NotOurGid {
        /// The GID.
        gid: IpAddr,
        /// The VLAN; 0 for none.
        vid: u16,
    },
    /// The path MTU is more than the lane's buffers hold.
    #[error("a path MTU of {asked} is over the port's {max}")]
    Mtu {
        /// MTU asked for.
        asked: Mtu,
        /// Largest possible.
        max: Mtu,
    },
    /// The QP was not added.
    #[error(transparent)]
    AddQp(#[from] AddQpError),
    /// The QP was not modified.
    #[error(transparent)]
    Modify(#[from] ModifyError),
}

fn in_vlan(vid: u16) -> String {
    if vid == 0 { String::new() } else { format!(" in VLAN {vid}") }
}

/// QPs by whom their packets go to first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whom {
    /// The VLAN; 0 for untagged.
    pub vid: u16,
    /// The next hop.
    pub hop: Hop,
}

/// A next hop, by the peers that it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The peer itself.
    Host(Gid),
    /// A gateway: all peers of a family that are in none of the link's own networks.
    Gateway {
        /// IPv4, or IPv6.
        v4: bool,
        /// The link's networks: addresses and the bits of theirs that count.
        except: Vec<(Gid, u8)>,
    },
}

impl Whom {
    /// Whether packets to `peer` in this VLAN go by the hop.
    pub fn leads_to(&self, vid: u16, peer: Gid) -> bool {
        let inside = |(net, bits): &(Gid, u8)| {
            let different = u128::from_be_bytes(net.0) ^ u128::from_be_bytes(peer.0);
            different.leading_zeros() >= u32::from(*bits)
        };
        self.vid == vid
            && match &self.hop {
                Hop::Host(host) => *host == peer,
                Hop::Gateway { v4, except } => peer.is_v4() == *v4 && !except.iter().any(inside),
            }
    }
}

/// Result of a command.
pub(crate) type Outcome = Result<Reply, CallError>;

/// A command under way.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub command: Command,
    pub reply: SyncSender<Outcome>,
    pub claim: Arc<Claim>,
}

/// Who may still decide about a command: so that one which timed out is never executed later.
#[derive(Debug, Default)]
pub(crate) struct Claim(AtomicU8);

impl Claim {
    const WAITS: u8 = 0;
    const TAKEN: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// The worker begins; false when the caller has given up.
    pub fn take(&self) -> bool {
        self.decide(Self::TAKEN)
    }

    /// The caller gives up; false when the worker has begun.
    pub fn withdraw(&self) -> bool {
        self.decide(Self::WITHDRAWN)
    }

    fn decide(&self, what: u8) -> bool {
        self.0.compare_exchange(Self::WAITS, what, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
