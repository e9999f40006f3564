//! What the two ends say to each other: one JSON object a line.
//!
//! ```text
//! client                                server
//!   hello          ───────────────────►
//!                  ◄───────────────────   hello
//!   run            ───────────────────►                 once per run; the server may refuse it
//!                  ◄───────────────────   offer         its QPs and memory
//!   connect        ───────────────────►                 the client's QPs and memory
//!                  ◄───────────────────   ready         its QPs are connected, and it keeps receives posted
//!   go             ───────────────────►                 so does the client: messages flow
//!   alive          ◄──────────────────►   alive         now and then while they do
//!   done           ───────────────────►                 what was sent
//!                  ◄───────────────────   result        what it sent, what arrived, whether it was right
//!   bye            ───────────────────►                 after the last run
//! ```
//!
//! Either end may say `abort` instead, with the reason.

use super::params::Params;
use crate::verbs::{QpInfo, RemoteMemory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Version of the protocol; both ends must have the same.
pub const VERSION: u32 = 2;
/// Longest line, bytes: the QPs of the largest run with room to spare.
pub const MAX_LINE: usize = 4 << 20;
/// TCP port where a server listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 18591;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub enum Message {
    /// Who speaks.
    Hello {
        /// Version of the protocol.
        version: u32,
        /// Name and version of the program.
        program: String,
    },
    /// The client wants this run.
    Run {
        /// What to do.
        params: Params,
        /// The client's address: the server uses one of the same family.
        gid: IpAddr,
    },
    /// The server cannot or will not.
    Refuse {
        /// Why, for people.
        reason: String,
    },
    /// The server's end of the run.
    Offer {
        /// Path MTU of the run: what was asked, or less if the server's port carries less.
        mtu: u32,
        /// Its QPs and memory.
        end: End,
    },
    /// The client's end of the run.
    Connect {
        /// Its QPs and memory.
        end: End,
    },
    /// The server's QPs are connected, and it is at work.
    Ready,
    /// So is the client: messages may flow.
    Go,
    /// The sender is at work.
    Alive,
    /// The client has sent and completed all.
    Done(Sent),
    /// The server has too, and has compared.
    Result {
        /// What the server sent (nothing, unless the run is bidirectional).
        sent: Sent,
        /// What it received.
        received: Received,
        /// What its QPs counted, by mlx5's names.
        counters: BTreeMap<String, u64>,
    },
    /// No more runs.
    Bye,
    /// The run cannot go on.
    Abort {
        /// Why, for people.
        reason: String,
    },
}

/// One end's QPs and target area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// A QP each.
    pub qps: Vec<QpInfo>,
    /// Where the peer writes, reads or adds.
    pub target: RemoteMemory,
}

/// What one end sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// Messages per QP.
    pub messages: Vec<u64>,
    /// From the first post to the last completion.
    pub nanos: u64,
    /// The best bandwidth over a short stretch, payload bytes a second.
    pub peak_bytes_per_second: f64,
    /// Messages that got no answer (latency tests of unreliable services).
    pub unanswered: u64,
    /// Fetched or read data that was wrong: how often, and the first case in words.
    pub faults: Faults,
}

/// What one end received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// Messages per QP, where the receiver sees them (it does not see RC's WRITEs, READs and atomics).
    pub messages: Option<Vec<u64>>,
    /// What was wrong with them.
    pub faults: Faults,
    /// Messages or slots that were compared, every byte.
    pub compared: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// How many.
    pub count: u64,
    /// The first, for people.
    pub first: Option<String>,
}

impl Faults {
    /// Counts a fault; the first one is kept in words.
    pub fn add(&mut self, what: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = Some(what());
        }
        self.count += 1;
    }

    /// Counts the fault of a check that failed.
    pub fn expect<E: std::fmt::Display>(&mut self, qp: usize, check: Result<(), E>) {
        if let Err(why) = check {
            self.add(|| format!("QP {qp}, {why}"));
        }
    }

    /// True when everything was right.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl Sent {
    /// Messages of all QPs.
    pub fn total(&self) -> u64 {
        self.messages.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Op;

    /// An end with the longest numbers there are.
    fn end(qps: usize) -> End {
        let gid = "fe80:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
        let qp = QpInfo {
            qpn: 0xFFFFFF,
            psn: 0xFFFFFF,
            gid,
            gid_type: None,
            mtu: 4096,
            max_rd_atomic: 128,
            qkey: u32::MAX,
        };
        End { qps: vec![qp; qps], target: RemoteMemory { addr: u64::MAX, len: u64::MAX, rkey: u32::MAX } }
    }

    fn lines() -> Vec<Message> {
        let end = end(2);
        vec![
            Message::Hello { version: VERSION, program: "rockhopper-perf 0.1.0".into() },
            Message::Run {
                params: Params::new("write-bw".parse::<Op>().unwrap()),
                gid: "192.0.2.1".parse().unwrap(),
            },
            Message::Refuse { reason: "no".into() },
            Message::Offer { mtu: 1024, end: end.clone() },
            Message::Connect { end },
            Message::Ready,
            Message::Go,
            Message::Alive,
            Message::Done(Sent { messages: vec![1, 2], nanos: 3, ..Sent::default() }),
            Message::Result {
                sent: Sent::default(),
                received: Received::default(),
                counters: BTreeMap::new(),
            },
            Message::Bye,
            Message::Abort { reason: "stopped".into() },
        ]
    }

    #[test]
    fn every_message_reads_back() {
        for message in lines() {
            let line = serde_json::to_string(&message).unwrap();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), message, "{line}");
        }
    }

    #[test]
    fn unknown_words_are_refused() {
        assert!(serde_json::from_str::<Message>(r#"{"say":"refuse","reason":"no","colour":"red"}"#).is_err());
        assert!(serde_json::from_str::<Message>(r#"{"say":"sing"}"#).is_err());
        assert!(
            serde_json::from_str::<Message>(r#"{"say":"run","params":{"op":"fly-bw"},"gid":"::1"}"#).is_err()
        );
    }

    #[test]
    fn the_largest_run_fits_a_line() {
        let end = end(crate::perf::params::MAX_QPS as usize);
        assert!(serde_json::to_string(&Message::Offer { mtu: 4096, end }).unwrap().len() < MAX_LINE);
    }

    #[test]
    fn only_the_first_fault_is_kept_in_words() {
        let mut faults = Faults::default();
        faults.expect(0, Ok::<(), String>(()));
        assert!(faults.is_empty());
        faults.expect(1, Err("wrong"));
        faults.expect(2, Err("wronger"));
        assert_eq!((faults.count, faults.first.as_deref()), (2, Some("QP 1, wrong")));
    }
}
