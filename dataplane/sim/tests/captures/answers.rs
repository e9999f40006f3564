//! Answers, compared.

use crate::capture::Seen;
use std::fmt;
use wire::{Aeth, AtomicAckEth, Opcode, Psn, Qpn};

/// What one response says. Left out is what is free: lengths of nothing, IP identification, the M bit.
#[derive(Clone, PartialEq)]
pub struct Answer {
    pub opcode: Opcode,
    pub dest: Qpn,
    pub psn: Psn,
    pub aeth: Option<Aeth>,
    pub original: Option<u64>,
    pub payload: Vec<u8>,
}

impl From<&Seen> for Answer {
    fn from(seen: &Seen) -> Self {
        Answer {
            opcode: seen.frame.bth().opcode,
            dest: seen.frame.bth().dest_qpn,
            psn: seen.psn(),
            aeth: seen.ext(),
            original: seen.ext::<AtomicAckEth>().map(|header| header.original),
            payload: seen.payload().to_vec(),
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?} {:?} +{}", self.opcode, self.psn, self.aeth, self.original, self.payload.len())
    }
}

/// Whether `part` lies in `whole`, in order.
pub fn is_within<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|wanted| rest.any(|candidate| candidate == wanted))
}
