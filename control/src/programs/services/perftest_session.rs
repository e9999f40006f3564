//! A client of perftest: its first connection, and those of its test's queue pairs.

use super::super::perftest::{MAX_WORD, answer};
use super::conn::{REQUESTS, Talk};
use super::{ProgramError, Services};
use crate::perf::Record;
use crate::verbs::{Mr, Pd, Qp, RecvWr, SendWr};
use engine::{Access, Cqe, WcOpcode};
use std::net::SocketAddr;

/// Memory of a client's test, which its queue pairs share: perftest's longest message and some.
const REGION: usize = (8 << 20) + (64 << 10);
/// Clients at a time, each with such memory. More are rejected.
const MAX_CLIENTS: usize = 16;
/// Receives for words.
const RECEIVES: usize = 8;

/// The first connection.
pub struct Words {
    qp: Qp,
    inbox: Mr,
    region: Mr,
    tag: u64,
    /// The client is about to connect queue pairs: it has said the first empty record and not the second.
    takes_queue_pairs: bool,
    /// Words that were answered.
    pub answered: u64,
}

/// A queue pair of the test. It receives whatever comes, all to one place.
pub struct Data {
    qp: Qp,
    region: Mr,
    /// The tag of its first connection.
    words: u64,
    tag: u64,
    /// Messages that came.
    pub received: u64,
}

impl Words {
    fn new(pd: &Pd, qp: &Qp, tag: u64) -> Result<Words, ProgramError> {
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let region = pd.reg_mr(REGION, Access::LOCAL_WRITE | remote)?;
        let inbox = pd.reg_mr(RECEIVES * MAX_WORD, Access::LOCAL_WRITE)?;
        let words =
            Words { qp: qp.clone(), inbox, region, tag: tag << 8, takes_queue_pairs: false, answered: 0 };
        (0..RECEIVES as u64).try_for_each(|slot| words.post_recv(slot))?;
        Ok(words)
    }

    fn post_recv(&self, slot: u64) -> Result<(), ProgramError> {
        let at = slot as usize * MAX_WORD;
        Ok(self.qp.post_recv(RecvWr::new(self.tag | slot).sge(self.inbox.sge(at..at + MAX_WORD)))?)
    }

    /// The word that came.
    fn word(&self, cqe: &Cqe) -> Result<Vec<u8>, ProgramError> {
        let slot = cqe.wr_id & 0xFF;
        let mut word = vec![0; (cqe.byte_len as usize).min(MAX_WORD)];
        self.inbox.read(slot as usize * MAX_WORD, &mut word)?;
        self.post_recv(slot)?;
        Ok(word)
    }

    fn say(&mut self, word: &[u8]) -> Result<(), ProgramError> {
        self.answered += 1;
        if word.len() == crate::perf::PERFTEST_CM_BYTES && word.iter().all(|&byte| byte == 0) {
            self.takes_queue_pairs = !self.takes_queue_pairs;
        }
        Ok(self.qp.post_send(SendWr::send(self.tag | 0xFF).inline(word))?)
    }
}

impl Data {
    fn new(words: &Words, qp: &Qp, tag: u64) -> Result<Data, ProgramError> {
        let (qp, region) = (qp.clone(), words.region.clone());
        let data = Data { qp, region, words: words.tag >> 8, tag: tag << 8, received: 0 };
        (0..REQUESTS).try_for_each(|_| data.post_recv())?;
        Ok(data)
    }

    fn post_recv(&self) -> Result<(), ProgramError> {
        Ok(self.qp.post_recv(RecvWr::new(self.tag).sge(self.region.sge(0..REGION)))?)
    }

    /// A receive has ended.
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<(), ProgramError> {
        if !cqe.is_success() {
            return Err(ProgramError::Completion { what: "a receive", status: cqe.status });
        }
        self.received += 1;
        self.post_recv()
    }
}

impl Services {
    /// A connection of a client: another queue pair of the test of the same machine, where one is awaited, or the first connection of
    /// a new one.
    pub(super) fn perftest(
        &mut self,
        pd: &Pd,
        qp: &Qp,
        peer: SocketAddr,
        tag: u64,
    ) -> Result<Talk, ProgramError> {
        let awaits = self.conns.values().find_map(|conn| match &conn.talk {
            Talk::PerftestWords(words) if words.takes_queue_pairs && conn.peer.ip() == peer.ip() => {
                Some(words)
            }
            _ => None,
        });
        let clients =
            || self.conns.values().filter(|conn| matches!(conn.talk, Talk::PerftestWords(_))).count();
        match awaits {
            Some(words) => Ok(Talk::PerftestData(Data::new(words, qp, tag)?)),
            None if clients() >= MAX_CLIENTS => {
                Err(ProgramError::Garbled(format!("there are {MAX_CLIENTS} clients of perftest already")))
            }
            None => Ok(Talk::PerftestWords(Words::new(pd, qp, tag)?)),
        }
    }

    /// A request of a first connection has ended.
    pub(super) fn on_word(&mut self, tag: u64, cqe: &Cqe) -> Result<bool, ProgramError> {
        let is_word = cqe.opcode == WcOpcode::Recv;
        if !cqe.is_success() {
            let what = if is_word { "a receive" } else { "a SEND" };
            return Err(ProgramError::Completion { what, status: cqe.status });
        }
        let Some(Talk::PerftestWords(words)) = self.conns.get(&tag).map(|conn| &conn.talk) else {
            return Ok(false);
        };
        if !is_word {
            return Ok(false);
        }
        let word = words.word(cqe)?;
        let said = answer(&word, |qpn| self.record(tag, qpn))?;
        if let Some(Talk::PerftestWords(words)) = self.conns.get_mut(&tag).map(|conn| &mut conn.talk) {
            words.say(&said)?;
        }
        Ok(false)
    }

    /// What to tell of the queue pair that is connected to this one of the client.
    fn record(&self, words: u64, qpn: u32) -> Option<Record> {
        self.conns.values().find_map(|conn| {
            let Talk::PerftestData(data) = &conn.talk else { return None };
            if data.words != words {
                return None;
            }
            let attr = data.qp.query().ok()?.attr;
            (attr.dest_qpn.value() == qpn).then(|| Record {
                reads: attr.max_dest_rd_atomic.max(1),
                qpn: data.qp.qpn().value(),
                psn: attr.sq_psn.value(),
                rkey: data.region.rkey().value(),
                addr: data.region.addr(),
                gid: conn.id.local_addr().map_or(Record::EMPTY.gid, |own| own.ip()),
            })
        })
    }
}
