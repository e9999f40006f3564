//! What a lane counts beside its engine.

use engine::Counters;
use wire::FrameError;

/// Why a worker discards a frame that the parser took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Drop {
    /// RoCE for an address that is not ours.
    NotOurAddress,
    /// From the wire, but with one of our own addresses as its source: forged, or a group's packet that came back.
    OwnSource,
    /// RoCE of another VLAN than the port's, tagged where no tag belongs, or without one where one does.
    OtherVlan,
    /// For a group that no QP here is attached to.
    GroupNotAttached,
    /// For a group, but not for the QP number that stands for groups.
    GroupQpn,
    /// For a group's members on another worker, for whom no buffer could be had.
    GroupNoBuffer,
    /// More segments than one packet may come in.
    TooManySegments,
    /// For the control thread, whose ring is full.
    SlowPathFull,
    /// For queue pair 1, but not as long as a management datagram.
    MadLength,
    /// For queue pair 1, and more from one source than it may send.
    MadRate,
    /// For queue pair 1, and too many wait for the control thread.
    MadRingFull,
    /// For another worker, whose ring is full.
    HandoffFull,
    /// For a QP on its way here, and too many wait for it.
    MoveFull,
}

impl Drop {
    /// Every reason, in the order of their numbers.
    pub const ALL: &'static [Drop] = &[
        Drop::NotOurAddress,
        Drop::OwnSource,
        Drop::OtherVlan,
        Drop::GroupNotAttached,
        Drop::GroupQpn,
        Drop::GroupNoBuffer,
        Drop::TooManySegments,
        Drop::SlowPathFull,
        Drop::MadLength,
        Drop::MadRate,
        Drop::MadRingFull,
        Drop::HandoffFull,
        Drop::MoveFull,
    ];

    /// The name to count it by.
    pub fn name(self) -> &'static str {
        match self {
            Drop::NotOurAddress => "drop_not_our_address",
            Drop::OwnSource => "drop_own_source",
            Drop::OtherVlan => "drop_other_vlan",
            Drop::GroupNotAttached => "drop_group_not_attached",
            Drop::GroupQpn => "drop_group_qpn",
            Drop::GroupNoBuffer => "drop_group_no_buffer",
            Drop::TooManySegments => "drop_too_many_segments",
            Drop::SlowPathFull => "drop_slow_path_full",
            Drop::MadLength => "drop_mad_length",
            Drop::MadRate => "drop_mad_rate",
            Drop::MadRingFull => "drop_mad_ring_full",
            Drop::HandoffFull => "drop_handoff_full",
            Drop::MoveFull => "drop_move_full",
        }
    }
}

/// What passed, and what held it up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames received, behind an impairment stage if there is one.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames given to the port.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets to ourselves, which no port saw.
    pub looped: u64,
    /// Frames given to the control thread.
    pub slow: u64,
    /// Management datagrams given to the control thread.
    pub mads: u64,
    /// Frames given to another worker.
    pub handed_over: u64,
    /// QPs that moved here.
    pub moved_in: u64,
    /// Bursts of which the transmit ring did not take all; the rest waited.
    pub tx_full: u64,
    /// Times that the pool had no buffer to send with.
    pub no_buffer: u64,
}

impl Traffic {
    fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("rx_frames", self.rx_frames),
            ("rx_bytes", self.rx_bytes),
            ("tx_frames", self.tx_frames),
            ("tx_bytes", self.tx_bytes),
            ("looped_frames", self.looped),
            ("slow_path_frames", self.slow),
            ("mads", self.mads),
            ("handed_over_frames", self.handed_over),
            ("moved_in_qps", self.moved_in),
            ("tx_ring_full", self.tx_full),
            ("no_buffer", self.no_buffer),
        ]
    }
}

/// Everything that one lane counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Frames and bytes.
    pub traffic: Traffic,
    /// What the transport counts.
    pub engine: Counters,
    /// What an impairment plan has done to frames.
    pub impair: impair::Counters,
    frames: [u64; FrameError::ALL.len()],
    drops: [u64; Drop::ALL.len()],
}

impl LaneCounters {
    /// Frames that the parser refused for a reason.
    pub fn frame_errors(&self, reason: FrameError) -> u64 {
        self.frames[reason as usize]
    }

    /// Frames that the worker discarded for a reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }

    /// Every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let frames = FrameError::ALL.iter().map(|&reason| (reason.name(), self.frame_errors(reason)));
        let drops = Drop::ALL.iter().map(|&reason| (reason.name(), self.dropped(reason)));
        let traffic = self.traffic.named().into_iter();
        traffic.chain(frames).chain(drops).chain(self.impair.iter()).chain(self.engine.iter())
    }

    pub(crate) fn count_frame_error(&mut self, reason: FrameError) {
        self.frames[reason as usize] += 1;
    }

    pub(crate) fn count_drop(&mut self, reason: Drop) {
        self.drops[reason as usize] += 1;
    }
}
