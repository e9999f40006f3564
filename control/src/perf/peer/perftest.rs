//! The exchange of perftest's `ib_{send,write,read,atomic}_{bw,lat}`, version 6.06 (Debian's perftest 4.5).
//!
//! Every step but the last is a swap: the client speaks, the server answers with the like.
//!
//! | step | bytes |
//! | --- | --- |
//! | version | 16: text, then zeros |
//! | bytes that small messages go round in | 4, network order |
//! | bytes of a cache line | 4, network order |
//! | path MTU | 2: a digit, 1 for 256 to 5 for 4096, and a NUL |
//! | a record for each QP, of which each end learns | 108 each |
//! | the first record, in all but the bandwidth tests of WRITE, READ and atomics | 108 |
//! | the records again: the QPs are connected | 108 each |
//! | the first record: receives are posted, messages may flow | 108 |
//! | **the messages** | |
//! | the first record: all is sent; not in the latency test of WRITE, which just ends | 108 |
//! | bandwidth of WRITE, READ and atomics: size, messages, peak, average, rate | 5 times 8 |
//! | and there again the first record | 108 |
//! | `done` and a NUL, from both, in any order | 5 |
//!
//! With rdma_cm the records are binary, the client connects the QPs between two empty ones behind the path MTU, and there is no last
//! word: the client disconnects the QPs.

use super::super::error::RunError;
use super::super::link::LinkError;
use super::super::op::Verb;
use super::content::{Piece, crc32, repeats_after, room, step};
use super::record::{PERFTEST_CM_BYTES, Record};
use super::{CmWay, Did, Hold, Run};
use std::time::Duration;

/// The version whose exchange this is.
pub(crate) const VERSION: &str = "6.06";
/// Bytes of the version.
const VERSION_BYTES: usize = 16;
/// Small messages go round in so many bytes, in steps of so many.
const CYCLE_BYTES: u32 = 4096;
const CACHE_LINE: u32 = 64;
/// The last word.
const DONE: &[u8] = b"done\0";
/// How long to wait for the peer's, which matters to nobody any more.
const GOODBYE: Duration = Duration::from_secs(2);

impl Run<'_> {
    /// A run with perftest.
    pub(super) fn perftest(
        &mut self,
        cm: Option<&CmWay<'_>>,
        hold: Option<Hold<'_>>,
    ) -> Result<Did, RunError> {
        self.agree()?;
        if let Some(cm) = cm {
            self.swap(&[0; PERFTEST_CM_BYTES])?;
            self.ends.dial(cm, &self.params)?;
            self.swap(&[0; PERFTEST_CM_BYTES])?;
        }
        for index in 0..self.ends.qps.len() {
            let theirs = self.swap_record(index)?;
            self.ends.connect(&theirs)?;
        }
        if !self.is_one_sided() {
            self.swap_record(0)?;
        }
        for index in 0..self.ends.qps.len() {
            self.swap_record(index)?;
        }
        self.swap_record(0)?;
        let did = self.messages()?;
        if self.ends_at_once() {
            return Ok(did);
        }
        self.part(did, hold)
    }

    fn agree(&mut self) -> Result<(), RunError> {
        let mut version = VERSION.as_bytes().to_vec();
        version.resize(VERSION_BYTES, 0);
        let theirs = self.swap(&version)?;
        let theirs = String::from_utf8_lossy(&theirs).trim_end_matches('\0').to_owned();
        if theirs != VERSION {
            return Err(garbled(format!("it is version {theirs:?} of perftest, and known is {VERSION}")));
        }
        for (what, ours) in [("cycle", CYCLE_BYTES), ("cache line", CACHE_LINE)] {
            let theirs = self.swap(&ours.to_be_bytes())?;
            if theirs != ours.to_be_bytes() {
                return Err(garbled(format!("its {what} has {theirs:?} bytes, and known is {ours}")));
            }
        }
        // 256 is 1, and every next one twice as much.
        let digit = |mtu: u32| b'0' + (mtu.trailing_zeros() - 7) as u8;
        let ours = [digit(self.params.mtu), 0];
        let theirs = self.swap(&ours)?;
        if theirs != ours {
            let theirs = theirs.first().map_or(0, |digit| 128_u32 << (digit.wrapping_sub(b'0') & 7));
            return Err(RunError::PeerMtu { ours: self.params.mtu, theirs });
        }
        Ok(())
    }

    /// The tests in which only the client's program sees what happens, and tells the server at the end.
    fn is_one_sided(&self) -> bool {
        !self.params.op.is_latency() && self.params.op.verb != Verb::Send
    }

    fn ends_at_once(&self) -> bool {
        self.params.op.is_latency() && self.params.op.verb == Verb::Write
    }

    fn messages(&mut self) -> Result<Did, RunError> {
        let waits = self.is_server && !self.params.op.is_ping_pong();
        match self.params.op.verb {
            Verb::Send if waits => self.count(),
            _ if waits => Ok(Did::default()),
            _ if self.params.op.is_latency() => self.latency(),
            _ => self.stream(),
        }
    }

    /// All is sent. Whoever wants to look into the peer's memory does it now; then both end.
    fn part(&mut self, mut did: Did, hold: Option<Hold<'_>>) -> Result<Did, RunError> {
        let ours = self.record(0);
        if self.is_server {
            self.hear(ours.len())?;
        }
        self.look_back(&mut did);
        if let Some(hold) = hold {
            hold(&self.pieces(&did));
        }
        self.link.send_bytes(&ours)?;
        if !self.is_server {
            self.hear(ours.len())?;
        }
        if self.is_one_sided() {
            let seconds = did.sent.nanos.max(1) as f64 / 1e9;
            let messages: u64 = did.sent.messages.iter().sum();
            let rate = messages as f64 / seconds;
            let mib = rate * f64::from(self.params.size) / f64::from(1 << 20);
            let size = u64::from(self.params.size).to_be_bytes();
            let figures = [mib, mib, rate / 1e6].map(f64::to_be_bytes);
            for figure in [size, messages.to_be_bytes()].iter().chain(&figures) {
                self.swap(figure)?;
            }
            self.swap_record(0)?;
        }
        if self.ends.is_cm() {
            self.ends.hang_up();
            return Ok(did);
        }
        self.link.send_bytes(DONE)?;
        // It may have gone already.
        let _ = self.link.recv_bytes(DONE.len(), GOODBYE, &mut self.drive);
        Ok(did)
    }

    /// What the peer has done to our memory.
    fn look_back(&self, did: &mut Did) {
        if self.is_server && self.params.op.verb == Verb::Atomic {
            let (added, expected) = (self.added(), self.iters() * self.ends.qps.len() as u64);
            if added != expected {
                did.received.faults.add(|| format!("{added} was added to the words here, not {expected}"));
            }
            did.received.compared += self.ends.qps.len() as u64;
        }
    }

    /// What the peer's memory has to hold: for each QP where its messages are, and what ours say. It tells where others reach its
    /// memory; what it sends, or fetches to, lies before that.
    fn pieces(&self, did: &Did) -> Vec<Piece> {
        let (ends, size) = (&self.ends, self.params.size);
        let own_area = room(size) * ends.qps.len() as u64;
        let last = self.iters() - 1;
        let piece = |(qp, lane): (usize, &super::ends::Lane)| {
            let reached = lane.remote.addr;
            let own = reached.wrapping_sub(own_area);
            let ours = |offset| crc32(&ends.local, offset, size);
            let here = |offset| crc32(&ends.target, offset, size);
            let (addr, crc32) = match (self.params.op.verb, self.is_server) {
                // Ours, in the receive that the last one took, or where it was written to.
                (Verb::Send, false) => {
                    (reached + self.slack(qp) + self.place(last), ours(ends.local_offset(qp, last)))
                }
                (Verb::Write | Verb::Read, false) => (reached, ours(ends.local_offset(qp, last))),
                // What the fetched value became.
                (Verb::Atomic, false) => {
                    let offset = ends.local_offset(qp, last) as usize;
                    let sum = ends.local.buffer().load_u64(offset).unwrap_or_default().wrapping_add(1);
                    (reached, crc32fast::hash(&sum.to_ne_bytes()))
                }
                (Verb::Send, true) => (own, *did.first.get(qp)?),
                (Verb::Write | Verb::Read, true) => (own, here(ends.target_offset(qp, 0))),
                // The peer keeps the originals; the sum here was looked at.
                (Verb::Atomic, true) => return None,
            };
            Some(Piece { addr, len: size, crc32 })
        };
        ends.lanes.iter().enumerate().filter_map(piece).collect()
    }

    /// Receives begin on cache lines, all those before this QP's as well, although the address that is told does not say so.
    fn slack(&self, qp: usize) -> u64 {
        let room = room(self.params.size);
        (self.ends.qps.len() + qp) as u64 * (room.next_multiple_of(CACHE_LINE.into()) - room)
    }

    /// Where the peer has message `number` in a QP's part of its memory: in bandwidth tests small ones go round.
    fn place(&self, number: u64) -> u64 {
        let size = self.params.size;
        let at = if self.params.op.is_latency() {
            0
        } else {
            number % repeats_after(size) * u64::from(step(size))
        };
        // The header that a datagram's receive begins with ends on a cache line.
        at + u64::from(self.ends.skip().next_multiple_of(CACHE_LINE))
    }

    /// Our record of a QP, in the form that goes with the line.
    fn record(&self, index: usize) -> Vec<u8> {
        let record = self.ends.record(index);
        if self.ends.is_cm() { record.to_perftest_cm().to_vec() } else { record.to_perftest() }
    }

    fn swap_record(&mut self, index: usize) -> Result<Record, RunError> {
        let theirs = self.swap(&self.record(index))?;
        let read = if self.ends.is_cm() { Record::of_perftest_cm } else { Record::of_perftest };
        Ok(read(&theirs)?)
    }

    /// One says something, the other says the like: the client first.
    fn swap(&mut self, ours: &[u8]) -> Result<Vec<u8>, RunError> {
        if self.is_server {
            let theirs = self.hear(ours.len())?;
            self.link.send_bytes(ours)?;
            Ok(theirs)
        } else {
            self.link.send_bytes(ours)?;
            self.hear(ours.len())
        }
    }
}

fn garbled(what: String) -> RunError {
    LinkError::Garbled(what).into()
}
