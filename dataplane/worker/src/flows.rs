//! The flows that frames come in: what is known of a frame because one like it was admitted before.
//!
//! Every frame of a flow has the same addresses and no tag, so what [`Lane::admit`](crate::lane::Lane) says of one it says of all,
//! until the lane's addresses change: then all are forgotten.

use wire::{Flow, Frame, Icrc};

/// Flows that are known at a time; a power of two. Peers whose addresses end alike take turns at a place.
const PLACES: usize = 16;

/// Where the last byte of an IPv4 source address lies in a frame without a tag.
const SOURCE_END: usize = 29;

/// Flows that were admitted, from the wire, to one GID.
#[derive(Debug, Default)]
pub(crate) struct Flows([Option<Flow>; PLACES]);

impl Flows {
    /// Parses a frame into `place` if it is of a known flow and nothing is odd about it; gives its iCRC before the network header.
    #[inline(always)]
    pub fn parse(&self, head: &[u8], frame_len: usize, place: &mut Option<Frame>) -> Option<Icrc> {
        self.0[number(head)].as_ref()?.parse(head, frame_len, place)
    }

    /// Knows the flow of a frame from now on, if it is of one. It was admitted, and the NIC took no tag off.
    pub fn note(&mut self, frame: &Frame, head: &[u8]) {
        if let Some(flow) = Flow::of(frame, head) {
            self.0[number(head)] = Some(flow);
        }
    }
}

/// The place of a frame's flow.
#[inline(always)]
fn number(head: &[u8]) -> usize {
    usize::from(head.get(SOURCE_END).copied().unwrap_or_default()) % PLACES
}
