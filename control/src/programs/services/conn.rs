//! A connection of a client.

use super::super::program::Program;
use super::super::{cmatose, line::Line, rping};
use super::perftest_session::{Data, Words};
use super::{ProgramError, Served, Services};
use crate::cm::CmId;
use crate::verbs::{Device, QpCaps, QpOptions};
use cmatose::Next;
use engine::{Cqe, QpType};
use std::net::SocketAddr;
use std::time::Instant;

/// Requests of each kind that a connection's queue pair takes.
pub const REQUESTS: u32 = 128;

/// A connection of a client.
pub struct Conn {
    pub id: CmId,
    pub program: Program,
    pub talk: Talk,
    pub place: usize,
    pub peer: SocketAddr,
    /// When it last did something.
    pub last: Instant,
    /// It was disconnected here.
    pub is_closing: bool,
}

/// What is said over it.
pub enum Talk {
    Rping(rping::Server),
    Cmatose(cmatose::Talk),
    /// Nothing: the client disconnects.
    Nothing,
    /// The line, until its session begins.
    Perf(Option<Line>),
    /// perftest's first connection.
    PerftestWords(Words),
    /// A queue pair of its test.
    PerftestData(Data),
}

impl Talk {
    /// The connection is there. True when all is done.
    pub fn on_established(&mut self) -> Result<bool, ProgramError> {
        match self {
            Talk::Cmatose(talk) => Ok(talk.on_established()? == Next::Done),
            _ => Ok(false),
        }
    }

    /// A request has ended. True when all is done.
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<bool, ProgramError> {
        match self {
            Talk::Rping(server) => server.on_completion(cqe).map(|()| false),
            Talk::Cmatose(talk) => Ok(talk.on_completion(cqe)? == Next::Done),
            Talk::PerftestData(data) => data.on_completion(cqe).map(|()| false),
            Talk::Nothing | Talk::Perf(_) | Talk::PerftestWords(_) => Ok(false),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Talk::Rping(server) => server.rounds,
            Talk::Cmatose(talk) => talk.received().into(),
            Talk::PerftestData(data) => data.received,
            Talk::PerftestWords(words) => words.answered,
            Talk::Nothing | Talk::Perf(_) => 0,
        }
    }
}

impl Conn {
    /// What to tell of it at its end.
    pub fn served(&self, device: &Device, broken: Option<String>) -> Served {
        let (program, port) = (self.program, device.name().to_owned());
        Served { program, port, peer: self.peer, count: self.talk.count(), broken }
    }
}

impl Services {
    /// A queue pair for a client of a program, and what is said over it.
    pub(super) fn talk(
        &mut self,
        program: Program,
        id: &CmId,
        place: usize,
        peer: SocketAddr,
        tag: u64,
    ) -> Result<Talk, ProgramError> {
        let (pd, cq) = (self.places[place].pd.clone(), self.places[place].cq.clone());
        if program == Program::Perf {
            return Ok(Talk::Perf(Some(Line::new(id)?)));
        }
        let caps = QpCaps { max_send_wr: REQUESTS, max_recv_wr: REQUESTS, ..QpCaps::default() };
        let qp = id.create_qp(&pd, &QpOptions { caps, ..QpOptions::new(QpType::Rc, &cq) })?;
        Ok(match program {
            Program::Rping => Talk::Rping(rping::Server::new(&pd, &qp, tag)?),
            Program::Ucmatose => {
                Talk::Cmatose(cmatose::Talk::new(&pd, &qp, self.options.messages, true, tag)?)
            }
            Program::Perftest => self.perftest(&pd, &qp, peer, tag)?,
            Program::Cmtime | Program::Udaddy | Program::Perf | Program::Mckey => Talk::Nothing,
        })
    }
}
