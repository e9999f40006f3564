//! The server: reads what the client offers and writes it back, moved by the completions of its queue pair.

use super::{Advert, MAX_SIZE, MESSAGE, ProgramError};
use crate::verbs::{Mr, Pd, Qp, RecvWr, SendWr};
use engine::wr::Remote;
use engine::{Access, Cqe};
use wire::RKey;

/// What the queue pair is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client's next word offers data.
    Offered,
    /// The READ is under way.
    Reading,
    /// The client's next word says where the data shall go.
    Told,
    /// The WRITE is under way.
    Writing,
}

/// The server's end of a queue pair that is, or will be, connected to an rping client.
pub struct Server {
    qp: Qp,
    pd: Pd,
    inbox: Mr,
    /// As long as the longest data so far.
    data: Option<Mr>,
    len: usize,
    state: State,
    /// Tells this connection's requests from others of the queue that they complete to.
    tag: u64,
    /// Rounds that were gone through.
    pub rounds: u64,
}

/// The kinds of requests, in the low bits of their numbers.
const KIND_BITS: u32 = 8;
const RECEIVE: u64 = 0;
const READ: u64 = 1;
const WRITE: u64 = 2;
const WORD: u64 = 3;
/// Receives that are posted.
const RECEIVES: usize = 2;

impl Server {
    /// Over a queue pair of `pd` in INIT or later, to which nothing is posted. Requests are numbered `tag << 8` and on.
    pub fn new(pd: &Pd, qp: &Qp, tag: u64) -> Result<Server, ProgramError> {
        let inbox = pd.reg_mr(RECEIVES * MESSAGE, Access::LOCAL_WRITE)?;
        let (qp, pd) = (qp.clone(), pd.clone());
        let server = Server {
            qp,
            pd,
            inbox,
            data: None,
            len: 0,
            state: State::Offered,
            tag: tag << KIND_BITS,
            rounds: 0,
        };
        (0..RECEIVES as u64).try_for_each(|slot| server.post_recv(slot))?;
        Ok(server)
    }

    fn post_recv(&self, slot: u64) -> Result<(), ProgramError> {
        let at = slot as usize * MESSAGE;
        let wr = RecvWr::new(self.tag | RECEIVE | slot << 4).sge(self.inbox.sge(at..at + MESSAGE));
        Ok(self.qp.post_recv(wr)?)
    }

    /// A request of ours has ended.
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<(), ProgramError> {
        let (kind, slot) = (cqe.wr_id & 0xF, cqe.wr_id >> 4 & 0xF);
        let what = match kind {
            RECEIVE => "a receive",
            READ => "the READ",
            WRITE => "the WRITE",
            _ => "a SEND",
        };
        if !cqe.is_success() {
            return Err(ProgramError::Completion { what, status: cqe.status });
        }
        match (kind, self.state) {
            (RECEIVE, _) => self.on_word(slot, cqe.byte_len),
            (READ, State::Reading) => self.say(State::Told),
            (WRITE, State::Writing) => {
                self.rounds += 1;
                self.say(State::Offered)
            }
            _ => Ok(()),
        }
    }

    fn on_word(&mut self, slot: u64, len: u32) -> Result<(), ProgramError> {
        let mut word = [0; MESSAGE];
        self.inbox.read(slot as usize * MESSAGE, &mut word)?;
        self.post_recv(slot)?;
        if len as usize != MESSAGE {
            return Err(ProgramError::Garbled(format!("a message of {len} bytes; rping's have {MESSAGE}")));
        }
        let advert = Advert::parse(&word);
        if advert.len > MAX_SIZE {
            let why = format!("it offers {} bytes, and {MAX_SIZE} are taken: use less with -S", advert.len);
            return Err(ProgramError::Garbled(why));
        }
        let remote = Remote { addr: advert.addr, rkey: RKey::new(advert.rkey) };
        let len = advert.len as usize;
        match self.state {
            State::Offered => {
                let data = self.room(len)?;
                self.qp.post_send(SendWr::read(self.tag | READ, remote).sge(data.sge(0..len)))?;
                (self.len, self.state) = (len, State::Reading);
                Ok(())
            }
            State::Told if len == self.len => {
                let data = self.room(len)?;
                self.qp.post_send(SendWr::write(self.tag | WRITE, remote).sge(data.sge(0..len)))?;
                self.state = State::Writing;
                Ok(())
            }
            State::Told => {
                let why = format!("it offered {} bytes and has room for {len}", self.len);
                Err(ProgramError::Garbled(why))
            }
            State::Reading | State::Writing => {
                Err(ProgramError::Garbled("it spoke when it had to wait".into()))
            }
        }
    }

    /// Memory for so much data.
    fn room(&mut self, len: usize) -> Result<Mr, ProgramError> {
        match &self.data {
            Some(data) if data.len() >= len => Ok(data.clone()),
            _ => {
                let data = self.pd.reg_mr(len.max(1), Access::LOCAL_WRITE)?;
                self.data = Some(data.clone());
                Ok(data)
            }
        }
    }

    /// The client's turn.
    fn say(&mut self, state: State) -> Result<(), ProgramError> {
        self.state = state;
        Ok(self.qp.post_send(SendWr::send(self.tag | WORD).inline(&[0; MESSAGE]))?)
    }
}
