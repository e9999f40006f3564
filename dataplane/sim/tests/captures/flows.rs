//! From a capture to its connections: Linux uses one UDP source port for each pair of QPs, the same both ways.

use crate::capture::{Capture, Seen};
use engine::QpType;
use std::collections::BTreeMap;
use wire::{Gid, Mac, Qpn, Service};

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub gid: Gid,
    pub mac: Mac,
    pub qpn: Qpn,
}

/// One direction of a connection: who asks and who answers, and the frames of both, in order.
pub struct Flow<'a> {
    pub qp_type: QpType,
    pub requester: End,
    pub responder: End,
    /// With their numbers in the capture.
    pub frames: Vec<(usize, &'a Seen)>,
}

impl<'a> Flow<'a> {
    /// A request of this direction.
    pub fn is_request(&self, seen: &Seen) -> bool {
        seen.frame.src == self.requester.gid && seen.frame.info.is_request()
    }

    /// An answer to one.
    pub fn is_response(&self, seen: &Seen) -> bool {
        seen.frame.src == self.responder.gid && seen.frame.info.is_response()
    }

    pub fn requests(&self) -> impl Iterator<Item = &'a Seen> {
        self.frames.iter().map(|&(_, seen)| seen).filter(|seen| self.is_request(seen))
    }

    pub fn responses(&self) -> impl Iterator<Item = &'a Seen> {
        self.frames.iter().map(|&(_, seen)| seen).filter(|seen| self.is_response(seen))
    }

    /// Frames of B on their way to A were lost before they could be captured; those of A were not.
    pub fn responses_are_complete(&self, capture: &Capture) -> bool {
        !capture.is_lossy() || self.responder.mac == MAC_OF_A
    }
}

const MAC_OF_A: Mac = Mac([2, 0, 0, 0, 0xA, 0]);

/// Every direction of every connection in which somebody asked.
pub fn connected(capture: &Capture) -> Vec<Flow<'_>> {
    let mut connections: BTreeMap<u16, Vec<(usize, &Seen)>> = BTreeMap::new();
    for (number, seen) in capture.frames.iter().enumerate() {
        if matches!(seen.frame.info.service, Service::Rc | Service::Uc) {
            connections.entry(seen.frame.udp_sport).or_default().push((number, seen));
        }
    }
    connections.into_values().flat_map(directions).collect()
}

fn directions(frames: Vec<(usize, &Seen)>) -> Vec<Flow<'_>> {
    let first = &frames[0].1.frame;
    let qp_type = if first.info.service == Service::Rc { QpType::Rc } else { QpType::Uc };
    let end = |gid, mac| {
        let qpn =
            frames.iter().find(|(_, seen)| seen.frame.dst == gid).map(|(_, seen)| seen.frame.bth().dest_qpn);
        // Nobody ever wrote to a UC sender, so its number is not known, and of no importance.
        End { gid, mac, qpn: qpn.unwrap_or(Qpn::new(0xABCDE)) }
    };
    let (one, other) = (end(first.src, first.smac), end(first.dst, first.dmac));
    [(one, other), (other, one)]
        .into_iter()
        .map(|(requester, responder)| Flow { qp_type, requester, responder, frames: frames.clone() })
        .filter(|flow| flow.requests().next().is_some())
        .collect()
}
