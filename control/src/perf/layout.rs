//! Where messages lie in memory: one area for what an end sends or fetches, one for what its peer sends or
//! reads.
//!
//! Message `m` of a QP uses slot `m` modulo the number of slots in either area. Both ends compute the layout
//! from the same parameters, so only the target area's address and key travel.

use super::Transport;
use super::op::Verb;
use super::params::{ATOMIC_BYTES, CYCLE, Params};
use engine::limits::UD_GRH_BYTES;

/// Bytes per area that a checked run may use before it keeps fewer messages under way.
const CHECKED_BYTES: u64 = 64 << 20;
/// Bytes per area that a run without checks uses where nothing is said, however many QPs it has; but each has a slot.
const USUAL_BYTES: u64 = 1 << 20;
/// Slots begin on cache lines.
const LINE: u64 = 64;
/// Receives posted per QP, for each message under way: enough that a peer that keeps its window finds one while others are
/// being posted again.
const RECEIVES_PER_MESSAGE: u32 = 2;
/// And at least. A reliable service lets no more messages out than the window holds. Each receive more is memory that all of a QP's
/// messages take turns in.
const MIN_RECEIVES: u32 = 16;
const MIN_RECEIVES_UNRELIABLE: u32 = 64;

/// The slots of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    qps: u64,
    /// Messages under way per QP.
    pub window: u32,
    /// Slots per QP for what is sent or fetched.
    pub local_slots: u32,
    /// Slots per QP for what the peer sends or reads.
    pub target_slots: u32,
    /// Receives posted per QP; 0 when the run uses none.
    pub receives: u32,
    /// Bytes before a message in a target slot (the GRH area of UD).
    pub target_skip: u32,
    local_stride: u64,
    target_stride: u64,
}

impl Layout {
    /// The layout of a run.
    pub fn of(params: &Params) -> Layout {
        let qps = u64::from(params.qps);
        let target_skip = if params.transport == Transport::Ud { UD_GRH_BYTES } else { 0 };
        let local_stride = stride(params.size.into());
        let target_stride = stride(u64::from(params.size) + u64::from(target_skip));
        if params.op.verb == Verb::Atomic {
            // All QPs add to one counter, the first 8 bytes of the target area.
            let window = params.depth;
            return Layout {
                qps,
                window,
                local_slots: window,
                target_slots: 1,
                receives: 0,
                target_skip: 0,
                local_stride: ATOMIC_BYTES.into(),
                target_stride: LINE,
            };
        }
        let fit = |bytes: u64, stride: u64| (bytes / qps.max(1) / stride).clamp(1, u32::MAX.into()) as u32;
        // What is compared must not be overwritten before it is compared.
        let window =
            if params.verify { params.depth.min(fit(CHECKED_BYTES, local_stride)) } else { params.depth };
        // What is asked for is wanted whole, however few messages are under way.
        let spread = |under_way: u32, stride: u64| match params.area {
            Some(area) => fit(area, stride),
            None => under_way.min(fit((CYCLE * qps).min(USUAL_BYTES), stride)),
        };
        let local_slots = if params.verify { window } else { spread(window, local_stride) };
        let receives = match (params.uses_receives(), params.verify) {
            (false, _) => 0,
            (true, true) => window * RECEIVES_PER_MESSAGE,
            (true, false) if params.transport.is_reliable() => {
                (window * RECEIVES_PER_MESSAGE).max(MIN_RECEIVES)
            }
            (true, false) => (window * RECEIVES_PER_MESSAGE).max(MIN_RECEIVES_UNRELIABLE),
        };
        let target_slots = match (params.op.verb, params.verify) {
            (Verb::Send, true) => receives,
            // A WRITE lands before its receive is taken. Message m + window + receives is sent when m +
            // receives is complete, which takes the receive that is posted when m has been compared: so it
            // cannot overwrite m early.
            (Verb::Write, true) if params.imm => window + receives,
            (_, true) => window,
            (_, false) => spread(receives.max(window), target_stride),
        };
        Layout { qps, window, local_slots, target_slots, receives, target_skip, local_stride, target_stride }
    }

    /// Bytes of the local area.
    pub fn local_len(&self) -> u64 {
        self.qps * u64::from(self.local_slots) * self.local_stride
    }

    /// Bytes of the target area.
    pub fn target_len(&self) -> u64 {
        self.qps * u64::from(self.target_slots) * self.target_stride
    }

    /// Where message `number` of QP `qp` (its index in the run) begins in the local area.
    pub fn local_offset(&self, qp: usize, number: u64) -> u64 {
        offset(qp, number, self.local_slots, self.local_stride)
    }

    /// Where its slot begins in the target area; the message itself lies [`target_skip`](Self::target_skip)
    /// bytes behind.
    pub fn target_offset(&self, qp: usize, number: u64) -> u64 {
        offset(qp, number, self.target_slots, self.target_stride)
    }

    /// The local offsets of a QP's messages, one after the other.
    pub fn local_cursor(&self, qp: usize) -> Cursor {
        Cursor::new(self.local_offset(qp, 0), self.local_slots, self.local_stride)
    }

    /// The target offsets of a QP's messages, one after the other.
    pub fn target_cursor(&self, qp: usize) -> Cursor {
        Cursor::new(self.target_offset(qp, 0), self.target_slots, self.target_stride)
    }
}

/// Walks over the slots of a QP without dividing.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    first: u64,
    at: u64,
    end: u64,
    stride: u64,
}

impl Cursor {
    fn new(first: u64, slots: u32, stride: u64) -> Cursor {
        Cursor { first, at: first, end: first + u64::from(slots) * stride, stride }
    }

    /// This message's offset; then it is the next one's turn.
    #[inline]
    pub fn step(&mut self) -> u64 {
        let at = self.at;
        self.at += self.stride;
        if self.at == self.end {
            self.at = self.first;
        }
        at
    }

    /// Takes the last step back.
    #[inline]
    pub fn back(&mut self) {
        let at = if self.at == self.first { self.end } else { self.at };
        self.at = at - self.stride;
    }
}

fn stride(len: u64) -> u64 {
    len.max(1).next_multiple_of(LINE)
}

fn offset(qp: usize, number: u64, slots: u32, stride: u64) -> u64 {
    (qp as u64 * u64::from(slots) + number % u64::from(slots)) * stride
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Op;

    fn params(op: &str, change: impl FnOnce(&mut Params)) -> Params {
        let mut params = Params::new(op.parse::<Op>().unwrap());
        change(&mut params);
        params
    }

    #[test]
    fn a_checked_run_gives_each_message_under_way_its_own_slot() {
        let layout = Layout::of(&params("write-bw", |p| {
            p.verify = true;
            p.qps = 3;
        }));
        assert_eq!((layout.window, layout.local_slots, layout.target_slots), (128, 128, 128));
        let mut offsets: Vec<u64> = (0..3)
            .flat_map(|qp| (0..128).map(move |number| layout.target_offset(qp, 1000 + number)))
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        assert_eq!(offsets.len(), 3 * 128);
        assert!(offsets.iter().all(|offset| offset + 65536 <= layout.target_len()));
    }

    #[test]
    fn cursors_walk_the_offsets() {
        let layout = Layout::of(&params("write-bw", |p| p.qps = 2));
        let (mut local, mut target) = (layout.local_cursor(1), layout.target_cursor(1));
        for number in 0..3 * u64::from(layout.window) {
            local.step();
            local.back();
            assert_eq!(local.step(), layout.local_offset(1, number));
            assert_eq!(target.step(), layout.target_offset(1, number));
        }
    }

    #[test]
    fn long_messages_share_a_bounded_area() {
        let long = |verify| {
            Layout::of(&params("write-bw", |p| {
                p.size = 8 << 20;
                p.verify = verify;
            }))
        };
        assert_eq!((long(true).window, long(true).local_slots), (8, 8));
        assert_eq!((long(false).window, long(false).local_slots), (128, 1));
    }

    /// As in perftest: a page, or one message.
    #[test]
    fn messages_of_a_queue_pair_take_turns_in_little_memory() {
        for (size, slots) in [(64, 64), (1000, 4), (4096, 1), (4097, 1), (65536, 1)] {
            for op in ["write-bw", "send-bw", "read-bw"] {
                let layout = Layout::of(&params(op, |p| p.size = size));
                assert_eq!((layout.local_slots, layout.target_slots), (slots, slots), "{op} {size}");
            }
        }
        let many = Layout::of(&params("write-bw", |p| {
            p.size = 64;
            p.qps = 1024;
        }));
        assert_eq!((many.local_slots, many.local_len()), (16, 1 << 20));
    }

    #[test]
    fn an_area_that_is_asked_for_is_used_whole() {
        for op in ["write-bw", "send-bw", "read-bw"] {
            let layout = Layout::of(&params(op, |p| {
                p.area = Some(256 << 20);
                p.qps = 2;
            }));
            assert_eq!((layout.local_len(), layout.target_len()), (256 << 20, 256 << 20), "{op}");
            assert_eq!(layout.window, 128, "{op}");
            let mut cursor = layout.target_cursor(1);
            let mut offsets: Vec<u64> = (0..u64::from(layout.target_slots)).map(|_| cursor.step()).collect();
            offsets.dedup();
            assert_eq!(offsets.len(), 2048, "{op}");
        }
    }

    #[test]
    fn few_messages_under_way_take_few_receives_where_none_is_lost() {
        let receives = |transport| {
            let layout = Layout::of(&params("send-bw", |p| {
                p.transport = transport;
                p.depth = 4;
            }));
            layout.receives
        };
        assert_eq!((receives(Transport::Rc), receives(Transport::Uc)), (16, 64));
    }

    #[test]
    fn a_checked_write_with_immediate_outlives_what_is_under_way() {
        let layout = Layout::of(&params("write-bw", |p| {
            p.verify = true;
            p.imm = true;
        }));
        assert_eq!((layout.receives, layout.target_slots), (256, 384));
    }

    #[test]
    fn datagrams_leave_room_for_the_grh() {
        let layout = Layout::of(&params("send-bw", |p| {
            p.transport = Transport::Ud;
            p.size = 1024;
        }));
        assert_eq!(layout.target_skip, 40);
        assert_eq!(layout.target_offset(0, 1) - layout.target_offset(0, 0), 1088);
        assert_eq!(layout.receives, 256);
    }
}
