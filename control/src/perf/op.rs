//! The names of what can be measured: `write-bw`, `send-lat` and so on, and the transports.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The operation under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// SEND to a posted receive.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// Fetch and add of 8 bytes.
    Atomic,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Many messages under way at once: bandwidth and message rate.
    Bandwidth,
    /// One message at a time: latency.
    Latency,
}

/// A test: an operation and what is measured of it. As text `write-bw`, `read-lat` …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Op {
    /// The operation.
    pub verb: Verb,
    /// The measurement.
    pub measure: Measure,
}

/// No test has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no test is called {0:?}; there are {{send,write,read,atomic}}-{{bw,lat}}")]
pub struct UnknownOp(pub String);

impl Op {
    /// Every test.
    pub fn all() -> impl Iterator<Item = Op> {
        [Measure::Bandwidth, Measure::Latency].into_iter().flat_map(|measure| {
            [Verb::Send, Verb::Write, Verb::Read, Verb::Atomic]
                .into_iter()
                .map(move |verb| Op { verb, measure })
        })
    }

    /// True for the `-lat` tests.
    pub fn is_latency(self) -> bool {
        self.measure == Measure::Latency
    }

    /// True where each end answers the other's message with its own, so that half a round trip is reported.
    /// READ and atomics are round trips by themselves.
    pub fn is_ping_pong(self) -> bool {
        self.is_latency() && matches!(self.verb, Verb::Send | Verb::Write)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Send => "send",
            Verb::Write => "write",
            Verb::Read => "read",
            Verb::Atomic => "atomic",
        };
        let measure = match self.measure {
            Measure::Bandwidth => "bw",
            Measure::Latency => "lat",
        };
        write!(f, "{verb}-{measure}")
    }
}

impl FromStr for Op {
    type Err = UnknownOp;

    fn from_str(text: &str) -> Result<Op, UnknownOp> {
        Op::all().find(|op| op.to_string() == text).ok_or_else(|| UnknownOp(text.into()))
    }
}

impl TryFrom<String> for Op {
    type Error = UnknownOp;

    fn try_from(text: String) -> Result<Op, UnknownOp> {
        text.parse()
    }
}

impl From<Op> for String {
    fn from(op: Op) -> String {
        op.to_string()
    }
}

/// The service type of the QPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Transport {
    /// Reliable connection.
    #[serde(rename = "RC")]
    Rc,
    /// Unreliable connection.
    #[serde(rename = "UC")]
    Uc,
    /// Unreliable datagram.
    #[serde(rename = "UD")]
    Ud,
}

impl Transport {
    /// Whether every message arrives or the QP says so.
    pub fn is_reliable(self) -> bool {
        self == Transport::Rc
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Rc => "RC",
            Transport::Uc => "UC",
            Transport::Ud => "UD",
        })
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Transport, String> {
        [Transport::Rc, Transport::Uc, Transport::Ud]
            .into_iter()
            .find(|transport| transport.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("no transport is called {text:?}; there are RC, UC and UD"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let names: Vec<String> = Op::all().map(|op| op.to_string()).collect();
        assert_eq!(names.len(), 8);
        assert!(names.contains(&"write-bw".into()) && names.contains(&"atomic-lat".into()));
        for op in Op::all() {
            assert_eq!(op.to_string().parse(), Ok(op));
        }
        assert!("write_bw".parse::<Op>().is_err());
        assert_eq!("rc".parse(), Ok(Transport::Rc));
        assert!("XRC".parse::<Transport>().is_err());
    }

    #[test]
    fn only_sends_and_writes_are_answered_in_kind() {
        let ping_pong: Vec<String> =
            Op::all().filter(|op| op.is_ping_pong()).map(|op| op.to_string()).collect();
        assert_eq!(ping_pong, ["send-lat", "write-lat"]);
    }
}
