//! Why setting something up failed. Each text is a sentence that says what to do.

use dpdk::mempool::PoolError;
use dpdk::ring::RingError;
use dpdk::vdev::VdevError;
use dpdk::{EalError, PortError};
use memory::{BufferError, TableFull};
use std::net::IpAddr;
use worker::{CallError, SetupError, SpawnError};

/// Why an endpoint did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration contradicts itself or the machine.
    #[error("{problem}; {remedy}")]
    Config {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// DPDK or a device did not come up.
    #[error(transparent)]
    Eal(#[from] EalError),
    /// A device cannot be described to DPDK.
    #[error(transparent)]
    Vdev(#[from] VdevError),
    /// A pair of ring ports did not come up.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A port did not come up.
    #[error("{0}")]
    Port(PortError),
    /// No memory for packets.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The port's place in the network is not possible.
    #[error("port {port}: {why}")]
    Network {
        /// Our name for the port.
        port: String,
        /// What is wrong with it.
        why: crate::net::ConfigError,
    },
    /// A worker could not be made.
    #[error(transparent)]
    Worker(#[from] SetupError),
    /// A worker's thread did not start.
    #[error("{0}; name other cores in [workers]")]
    Spawn(SpawnError),
    /// A worker did not answer.
    #[error("a worker does not answer ({0}); the machine may be overloaded: give [workers] other cores")]
    Call(#[from] CallError),
    /// The system gives no thread or no socket.
    #[error("{what}: {why}; {remedy}")]
    System {
        /// What was asked for.
        what: String,
        /// The system's reason.
        why: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
}

impl From<PortError> for StartError {
    fn from(error: PortError) -> Self {
        StartError::Port(error)
    }
}

impl From<SpawnError> for StartError {
    fn from(error: SpawnError) -> Self {
        StartError::Spawn(error)
    }
}

/// Why an object was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// More than the device has; see [`Device::attributes`](crate::Device::attributes).
    #[error("{asked} {what} asked for; this device has {most}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How much was asked for.
        asked: u64,
        /// The most there is.
        most: u64,
    },
    /// The access rights contradict each other.
    #[error("remote write and atomic access need local write access too; add Access::LOCAL_WRITE")]
    Access,
    /// The memory cannot persist.
    #[error(
        "only memory over a file can be made persistent; use Pd::reg_file_mr or leave out Access::FLUSH_PERSISTENT"
    )]
    Persistence,
    /// Objects of two devices, or of two protection domains, do not go together.
    #[error("the {0} belongs to another device")]
    OtherDevice(&'static str),
    /// A target without a domain.
    #[error("an XRC target belongs to a domain: create it with Xrcd::create_target")]
    Target,
    /// A queue pair that cannot use the SRQ.
    #[error(
        "only targets take receives from an XRC SRQ, by the number in each request, and an XRC initiator takes none: leave srq out"
    )]
    XrcSrq,
    /// The limit of a shared receive queue is over its size.
    #[error(transparent)]
    Srq(#[from] SrqError),
    /// No memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Every place for a region is taken.
    #[error("{0}; deregister some regions first")]
    Regions(#[from] TableFull),
    /// The worker refused.
    #[error(transparent)]
    Worker(#[from] CallError),
    /// The system gives no file descriptor.
    #[error("no event fd ({0}); close some files or raise the limit (ulimit -n)")]
    EventFd(#[from] nix::errno::Errno),
    /// GIDs of two families.
    #[error("{0}")]
    Address(#[from] wire::MixedFamilies),
    /// A completion, or the 40 bytes before its datagram, tells no sender.
    #[error("no sender is told: give the completion of a UD receive and the first 40 bytes of its buffer")]
    NoGrh,
    /// The destination cannot be reached.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

/// Why a region was not deregistered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeregisterError {
    /// Memory windows are bound to it.
    #[error("{0} memory windows are bound to the region; unbind or invalidate them, or drop them, first")]
    Windows(u32),
}

/// Why a memory window of type 1 was not bound. Nothing was posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindMwError {
    /// The window is of type 2.
    #[error("a window of type 2 is bound by a send request; use SendWr::bind_mw")]
    Type,
    /// Window, region and queue pair are not of one protection domain.
    #[error("window, region and queue pair belong to different protection domains; allocate all from one")]
    Pd,
    /// A window of type 1 is never zero-based.
    #[error(
        "a window of type 1 cannot be zero-based; leave out Access::ZERO_BASED or use a window of type 2"
    )]
    ZeroBased,
    /// The queue pair did not take the request.
    #[error(transparent)]
    Post(#[from] engine::queue::PostError),
}

/// Why there is no way to an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No GID of ours leads there, or not the one asked for.
    #[error(transparent)]
    Gid(#[from] crate::net::WrongGid),
    /// The datagram was for an address that the port does not have (any more).
    #[error("{0} is no address of this port, so nothing is answered from it")]
    NotOurs(IpAddr),
    /// RoCE v1 stays on the link.
    #[error("{0} is beyond a gateway, where RoCE v1 does not go: choose a GID index of type v2")]
    NotRouted(IpAddr),
    /// Nobody answers.
    #[error("{0} does not answer; check that the peer is up and on this link (ping it), and the VLAN")]
    Unreachable(IpAddr),
    /// The address names another port than the one that was asked.
    #[error(
        "{scope} is no link of this port ({port}): name one of {links}, ask the device that is called so, or leave %{scope} out"
    )]
    Scope {
        /// The link named.
        scope: String,
        /// The port asked.
        port: String,
        /// What could be named.
        links: String,
    },
    /// Too many wait for neighbours.
    #[error("{0} paths are being looked for at this moment already; try again when some have been found")]
    Busy(usize),
}

/// Why an address was not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The port does not take it.
    #[error(transparent)]
    Refused(#[from] crate::net::AddressRefused),
    /// A worker was not told. The address is (or is no longer) the port's, but that worker's packets do not follow yet; try again.
    #[error("a worker does not answer ({0}); try again")]
    Worker(#[from] CallError),
}

/// Why a queue pair did not change.
#[derive(Debug, thiserror::Error)]
pub enum QpError {
    /// The worker, or the QP's state machine, refused.
    #[error(transparent)]
    Worker(#[from] CallError),
    /// The peer cannot be reached.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// What the peer says of itself is no address or number.
    #[error("the peer's {what} is not possible: {value}")]
    Peer {
        /// Which field.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// RoCE v1 at one end, v2 at the other.
    #[error("GID index {index} is of type RoCE {ours}, but the peer's is of type RoCE {theirs}: {remedy}")]
    GidType {
        /// Index of our GID.
        index: usize,
        /// Its type.
        ours: &'static str,
        /// The peer's.
        theirs: &'static str,
        /// What to do.
        remedy: String,
    },
    /// A path MTU that one of the ends does not take.
    #[error(
        "a path MTU of {asked} was asked for, but {whose} takes {most} at most: use {most} or less, or raise the MTU there"
    )]
    PathMtu {
        /// Asked for.
        asked: wire::Mtu,
        /// Who takes less.
        whose: &'static str,
        /// What that is.
        most: wire::Mtu,
    },
    /// No multicast address.
    #[error("{0} is no multicast address: attach to one of 224.0.0.0/4 or ff00::/8")]
    NoGroup(IpAddr),
    /// The port has no such VLAN.
    #[error(transparent)]
    NoLink(crate::net::AddressRefused),
    /// The QP's type receives no multicast.
    #[error("a {0:?} queue pair cannot be attached to a group: only UD receives multicast")]
    GroupType(engine::QpType),
    /// It is not attached.
    #[error("the queue pair is not attached to {0}")]
    NotAttached(IpAddr),
    /// More than there is room for.
    #[error("there are {most} {what} already; detach some first")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// The QP's type is not connected.
    #[error("a {0:?} queue pair is not connected; use Qp::activate")]
    Type(engine::QpType),
}

/// Why a shared receive queue did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SrqError {
    /// Another size.
    #[error(
        "a shared receive queue keeps its size of {has} receives ({asked} asked for): create another and let new queue pairs use that"
    )]
    Resize {
        /// Receives asked for.
        asked: u32,
        /// Receives that fit.
        has: u32,
    },
    /// A limit that is always undercut.
    #[error("a limit of {asked} is over the {most} receives that fit: use at most so many")]
    Limit {
        /// Asked for.
        asked: u32,
        /// The most.
        most: u32,
    },
}

/// Why an object that others use was not destroyed. It is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InUse {
    /// Queue pairs.
    #[error("{0} queue pairs use it: destroy them first")]
    QueuePairs(usize),
    /// Clones of the handle.
    #[error("{0} other handles of it exist: drop them first")]
    Handles(usize),
}

/// Why a wait for a link ended without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLink {
    /// It stayed down.
    #[error("the link of port {0} is down; check the cable, or that the program at its other end runs")]
    Down(String),
    /// Whoever waited did not want to wait any more.
    #[error("stopped")]
    Stopped,
}
