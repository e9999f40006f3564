//! From request packets to the work requests that they came of.

use crate::capture::Seen;
use crate::flows::Flow;
use std::collections::BTreeMap;
use wire::{AtomicEth, Mtu, Operation, Psn, Reth};

/// One message of a flow.
pub struct Message<'a> {
    /// Its packets, each as it was first captured. READs and atomics have one.
    pub packets: Vec<&'a Seen>,
    /// The number in the capture at which the first of them was seen.
    pub seen_at: usize,
    /// PSNs that it takes.
    pub psns: u32,
}

impl Message<'_> {
    pub fn first(&self) -> &Seen {
        self.packets[0]
    }

    pub fn last(&self) -> &Seen {
        self.packets[self.packets.len() - 1]
    }

    pub fn operation(&self) -> Operation {
        self.last().frame.info.operation
    }

    pub fn psn(&self) -> Psn {
        self.first().psn()
    }

    /// The bytes that it carries.
    pub fn payload(&self) -> Vec<u8> {
        self.packets.iter().flat_map(|seen| seen.payload()).copied().collect()
    }

    pub fn reth(&self) -> Option<Reth> {
        self.first().ext()
    }

    pub fn atomic(&self) -> Option<AtomicEth> {
        self.first().ext()
    }

    /// A receive is taken for it.
    pub fn takes_receive(&self) -> bool {
        self.packets.iter().any(|seen| seen.frame.info.takes_receive_wqe())
    }
}

/// The messages of a flow, in order of their PSNs; packets that were sent again are left out.
pub fn messages<'a>(flow: &Flow<'a>, mtu: Mtu) -> Vec<Message<'a>> {
    let first_psn = flow.requests().next().expect("a flow has requests").psn();
    let mut by_psn: BTreeMap<u32, (usize, &'a Seen)> = BTreeMap::new();
    for &(number, seen) in flow.frames.iter().filter(|(_, seen)| flow.is_request(seen)) {
        by_psn.entry(offset(seen.psn(), first_psn)).or_insert((number, seen));
    }
    let (mut messages, mut next): (Vec<Message<'a>>, u32) = (Vec::new(), 0);
    for (&place, &(number, seen)) in &by_psn {
        if place < next {
            // A READ that was started again in its middle.
            continue;
        }
        assert_eq!(place, next, "a packet was never captured");
        if seen.frame.info.position.begins() {
            messages.push(Message { packets: vec![], seen_at: number, psns: 0 });
        }
        let message = messages.last_mut().expect("a flow begins with a beginning");
        let psns = match seen.ext::<Reth>() {
            Some(reth) if seen.frame.info.operation == Operation::ReadRequest => {
                wire::packets(reth.dma_len, mtu)
            }
            _ => 1,
        };
        message.packets.push(seen);
        message.seen_at = message.seen_at.min(number);
        message.psns += psns;
        next += psns;
    }
    messages
}

/// How far a PSN lies behind the first of a flow.
pub fn offset(psn: Psn, first: Psn) -> u32 {
    u32::try_from(psn.distance_from(first)).expect("the first captured request has the first PSN")
}
