//! Which programs there are, and where they listen.

use super::{cmatose, perftest, rping, udaddy};
use crate::perf::DEFAULT_PORT;
use std::fmt;
use std::str::FromStr;
use wire::mad::PortSpace;

/// A program over rdma_cm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// rping: the server reads the client's memory and writes it back.
    Rping,
    /// udaddy: datagrams there and back.
    Udaddy,
    /// ucmatose: connections with a fixed number of messages each way.
    Ucmatose,
    /// cmtime: connections, and nothing over them.
    Cmtime,
    /// perftest's bandwidth tests with `-R`.
    Perftest,
    /// `rockhopper-perf --cm`.
    Perf,
    /// mckey: datagrams to a group, which have no server.
    Mckey,
}

impl Program {
    /// Those that there are servers for.
    pub const ALL: [Program; 6] = [
        Program::Rping,
        Program::Udaddy,
        Program::Ucmatose,
        Program::Cmtime,
        Program::Perftest,
        Program::Perf,
    ];

    /// Where a server listens unless told otherwise: the programs' own ports, but for cmtime, which has that of ucmatose.
    pub fn port(self) -> u16 {
        match self {
            Program::Rping => rping::PORT,
            Program::Udaddy | Program::Mckey => udaddy::PORT,
            Program::Ucmatose => cmatose::PORT,
            Program::Cmtime => cmatose::PORT + 1,
            Program::Perftest => perftest::PORT,
            Program::Perf => DEFAULT_PORT,
        }
    }

    /// Its port space.
    pub fn space(self) -> PortSpace {
        if matches!(self, Program::Udaddy | Program::Mckey) { PortSpace::Udp } else { PortSpace::Tcp }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Program::Rping => "rping",
            Program::Udaddy => "udaddy",
            Program::Ucmatose => "ucmatose",
            Program::Cmtime => "cmtime",
            Program::Perftest => "perftest",
            Program::Perf => "perf",
            Program::Mckey => "mckey",
        })
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        let names = || Program::ALL.map(|program| program.to_string()).join(", ");
        Program::ALL
            .into_iter()
            .find(|program| program.to_string() == text)
            .ok_or_else(|| format!("no program is called {text:?}; there are {}", names()))
    }
}
