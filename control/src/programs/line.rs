//! A connection as a line of bytes: every write is a SEND, every message that comes is read on from where the last read ended.
//!
//! So it carries what else goes over TCP: the words of `rockhopper-perf`'s two ends, and those of perftest with `-R`, whose messages
//! it keeps whole.

use super::ProgramError;
use crate::cm::CmId;
use crate::verbs::{Cq, Mr, Pd, Qp, QpCaps, QpOptions, RecvWr, SendWr};
use engine::{Access, Cqe, QpType, WcOpcode};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Longest message, and so the most of one write.
const MESSAGE: usize = 4096;
/// Messages that may wait to be read, and that may be under way.
const SLOTS: u64 = 16;
/// Marks the number of a receive.
const RECEIVE: u64 = 1 << 32;

/// A line over a connection. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Line {
    id: CmId,
    qp: Qp,
    cq: Cq,
    inbox: Mr,
    outbox: Mr,
    /// Slots of the outbox that nothing is sent from.
    free: Vec<u64>,
    /// Messages that came: slot, and the bytes of it that were not read.
    arrived: VecDeque<(u64, std::ops::Range<usize>)>,
    is_broken: bool,
}

impl Line {
    /// Over an identifier that is bound to a port and has no queue pair: it gets one. To be connected, or accepted.
    pub fn new(id: &CmId) -> Result<Line, ProgramError> {
        let device = id.device().ok_or_else(|| ProgramError::Unexpected("it is bound to no port".into()))?;
        let (pd, cq): (Pd, Cq) = (device.alloc_pd(), device.create_cq(2 * SLOTS as u32)?);
        let caps = QpCaps { max_send_wr: SLOTS as u32, max_recv_wr: SLOTS as u32, ..QpCaps::default() };
        let qp = id.create_qp(&pd, &QpOptions { caps, ..QpOptions::new(QpType::Rc, &cq) })?;
        let [inbox, outbox] = [(); 2].map(|()| pd.reg_mr(SLOTS as usize * MESSAGE, Access::LOCAL_WRITE));
        let line = Line {
            id: id.clone(),
            qp,
            cq,
            inbox: inbox?,
            outbox: outbox?,
            free: (0..SLOTS).collect(),
            arrived: VecDeque::with_capacity(SLOTS as usize),
            is_broken: false,
        };
        (0..SLOTS).try_for_each(|slot| line.post_recv(slot))?;
        Ok(line)
    }

    fn post_recv(&self, slot: u64) -> Result<(), ProgramError> {
        let at = slot as usize * MESSAGE;
        Ok(self.qp.post_recv(RecvWr::new(RECEIVE | slot).sge(self.inbox.sge(at..at + MESSAGE)))?)
    }

    fn take(&mut self, cqe: &Cqe) {
        let slot = cqe.wr_id & (RECEIVE - 1);
        if !cqe.is_success() {
            self.is_broken = true;
        } else if cqe.opcode == WcOpcode::Recv {
            self.arrived.push_back((slot, 0..cqe.byte_len as usize));
        } else {
            self.free.push(slot);
        }
    }

    fn look(&mut self) {
        while let Some(cqe) = self.cq.poll_one() {
            self.take(&cqe);
        }
    }

    /// Reads what has come, without waiting. 0: the connection is closed.
    pub fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.look();
        while let Some((slot, range)) = self.arrived.pop_front() {
            let len = range.len().min(to.len());
            self.inbox
                .read(slot as usize * MESSAGE + range.start, &mut to[..len])
                .map_err(io::Error::other)?;
            if len < range.len() {
                self.arrived.push_front((slot, range.start + len..range.end));
            } else {
                // Refused only where the connection is broken, which the next look tells.
                self.is_broken |= self.post_recv(slot).is_err();
            }
            // A message without bytes is none.
            if len > 0 {
                return Ok(len);
            }
        }
        if self.is_broken { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Sends as much as one message takes, without waiting.
    pub fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.look();
        if self.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let Some(slot) = self.free.pop() else { return Err(io::ErrorKind::WouldBlock.into()) };
        let (at, len) = (slot as usize * MESSAGE, from.len().min(MESSAGE));
        self.outbox.write(at, &from[..len]).map_err(io::Error::other)?;
        let wr = SendWr::send(slot).sge(self.outbox.sge(at..at + len));
        self.qp.post_send(wr).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(len)
    }

    /// Sleeps until something has come or gone, or for so long.
    pub fn wait(&mut self, at_most: Duration) {
        if self.arrived.is_empty()
            && !self.is_broken
            && let Some(cqe) = self.cq.wait(at_most)
        {
            self.take(&cqe);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // Who is disconnected already has nothing to say.
        let _ = self.id.disconnect();
    }
}
