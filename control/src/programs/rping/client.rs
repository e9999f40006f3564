//! The client: offers data and compares what comes back.

use super::super::wait::completion;
use super::{Advert, MESSAGE, ProgramError, content};
use crate::perf::Shared;
use crate::verbs::{Cq, Mr, Pd, Qp, RecvWr, SendWr};
use engine::{Access, Cqe, WcOpcode};
use std::time::{Duration, Instant};

/// Receives that are posted.
const RECEIVES: usize = 2;

/// The client's end of a queue pair that is, or will be, connected to an rping server.
pub struct Client {
    qp: Qp,
    cq: Cq,
    source: Mr,
    sink: Mr,
    inbox: Mr,
    size: usize,
    rounds: u64,
}

/// What came of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// From the first SEND to the last.
    pub time: Duration,
    /// Bytes that came back as others than they were.
    pub wrong: u64,
}

impl Client {
    /// Over a queue pair of `pd` in INIT or later, which completes to `cq` and to which nothing is posted. `size`: bytes of the data.
    pub fn new(pd: &Pd, cq: &Cq, qp: &Qp, size: usize) -> Result<Client, ProgramError> {
        let source = pd.reg_mr(size.max(1), Access::LOCAL_WRITE | Access::REMOTE_READ)?;
        let sink = pd.reg_mr(size.max(1), Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let inbox = pd.reg_mr(RECEIVES * MESSAGE, Access::LOCAL_WRITE)?;
        let client = Client { qp: qp.clone(), cq: cq.clone(), source, sink, inbox, size, rounds: 0 };
        (0..RECEIVES as u64).try_for_each(|slot| client.post_recv(slot))?;
        Ok(client)
    }

    fn post_recv(&self, slot: u64) -> Result<(), ProgramError> {
        let at = slot as usize * MESSAGE;
        Ok(self.qp.post_recv(RecvWr::new(slot).sge(self.inbox.sge(at..at + MESSAGE)))?)
    }

    /// One round. A server that says nothing for `patience` has failed.
    pub fn round(&mut self, patience: Duration, stop: &Shared) -> Result<Round, ProgramError> {
        let data = content(self.rounds, self.size);
        self.rounds += 1;
        self.source.write(0, &data)?;
        self.sink.write(0, &vec![0xFF; self.size])?;
        let begin = Instant::now();
        for memory in [&self.source, &self.sink] {
            self.offer(memory)?;
            self.answer(patience, stop)?;
        }
        let time = begin.elapsed();
        let mut back = vec![0; self.size];
        self.sink.read(0, &mut back)?;
        let wrong = back.iter().zip(&data).filter(|(back, sent)| back != sent).count() as u64;
        Ok(Round { time, wrong })
    }

    fn offer(&self, memory: &Mr) -> Result<(), ProgramError> {
        let advert = Advert { addr: memory.addr(), rkey: memory.rkey().value(), len: self.size as u32 };
        Ok(self.qp.post_send(SendWr::send(0).inline(&advert.emit()))?)
    }

    /// Waits for the server's word; completions of our own SENDs go by.
    fn answer(&self, patience: Duration, stop: &Shared) -> Result<(), ProgramError> {
        loop {
            let cqe = completion(&self.cq, patience, stop)?;
            let is_receive = cqe.opcode == WcOpcode::Recv;
            check(&cqe, if is_receive { "a receive" } else { "a SEND" })?;
            if is_receive {
                return self.post_recv(cqe.wr_id);
            }
        }
    }
}

fn check(cqe: &Cqe, what: &'static str) -> Result<(), ProgramError> {
    if cqe.is_success() { Ok(()) } else { Err(ProgramError::Completion { what, status: cqe.status }) }
}
