//! What a run came to: both ends' accounts, and what follows from them.

use super::layout::Layout;
use super::params::Params;
use super::protocol::{Received, Sent};
use crate::stats::Named;
use hdrhistogram::Histogram;

/// One end's account of a run.
#[derive(Clone, Debug, Default)]
pub struct EndReport {
    /// What it sent.
    pub sent: Sent,
    /// What it received.
    pub received: Received,
    /// What its QPs counted, by mlx5's names, zeros left out.
    pub counters: Named,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run, with the path MTU that both ports carry.
    pub params: Params,
    /// Messages that were under way per QP at most: less than the depth asked for when a checked run would
    /// otherwise need too much memory.
    pub window: u32,
    /// The client's account.
    pub client: EndReport,
    /// The server's account.
    pub server: EndReport,
    /// Nanoseconds: half round trips of SEND and WRITE, round trips of READ and atomics.
    pub latency: Option<Histogram<u64>>,
    /// The run was stopped before its time.
    pub interrupted: bool,
}

impl Outcome {
    /// Bytes that messages were spread over, at the end that had more of them.
    pub fn area_bytes(&self) -> u64 {
        let layout = Layout::of(&self.params);
        layout.local_len().max(layout.target_len())
    }

    fn ends(&self) -> [&EndReport; 2] {
        [&self.client, &self.server]
    }

    /// The ends that were to send: the client, and the server in a bidirectional run.
    fn senders(&self) -> impl Iterator<Item = &Sent> {
        self.ends().into_iter().map(|end| &end.sent).take(if self.params.bidirectional { 2 } else { 1 })
    }

    /// Messages sent and complete, in both directions of a bidirectional run. In a ping-pong the client's
    /// only.
    pub fn messages(&self) -> u64 {
        self.senders().map(Sent::total).sum()
    }

    /// Messages that never arrived, as far as their receiver counts.
    pub fn lost(&self) -> u64 {
        let counted = |sent: &Sent, received: &Received| {
            let received = received.messages.as_ref()?;
            Some(sent.total().saturating_sub(received.iter().sum()))
        };
        let there = counted(&self.client.sent, &self.server.received).unwrap_or(0);
        let back = counted(&self.server.sent, &self.client.received).unwrap_or(0);
        there + back
    }

    /// From the first post to the last completion, seconds; of the slower end in a bidirectional run.
    pub fn seconds(&self) -> f64 {
        self.senders().map(|sent| sent.nanos).max().unwrap_or(0) as f64 / 1e9
    }

    /// Messages a second, both directions added up.
    pub fn message_rate(&self) -> f64 {
        self.senders().map(|sent| sent.total() as f64 * 1e9 / sent.nanos.max(1) as f64).sum()
    }

    /// Payload, gigabits (10^9) a second, both directions added up.
    pub fn bandwidth_gbps(&self) -> f64 {
        self.message_rate() * f64::from(self.params.size) * 8.0 / 1e9
    }

    /// The best payload rate over a stretch of at least 10 ms, gigabits a second, both directions added up.
    pub fn peak_gbps(&self) -> f64 {
        self.senders().map(|sent| sent.peak_bytes_per_second).sum::<f64>() * 8.0 / 1e9
    }

    /// Messages or slots compared.
    pub fn compared(&self) -> u64 {
        let received: u64 = self.ends().iter().map(|end| end.received.compared).sum();
        let fetched = match self.params.op.verb {
            super::Verb::Read | super::Verb::Atomic if self.params.verify => self.messages(),
            _ => 0,
        };
        received + fetched
    }

    /// Checks that failed.
    pub fn faults(&self) -> u64 {
        self.ends().iter().map(|end| end.sent.faults.count + end.received.faults.count).sum()
    }

    /// The first failed check in words.
    pub fn first_fault(&self) -> Option<&str> {
        let faults = self.ends().into_iter().flat_map(|end| [&end.received.faults, &end.sent.faults]);
        faults.filter_map(|faults| faults.first.as_deref()).next()
    }

    /// Every byte was compared, and was right.
    pub fn is_verified(&self) -> bool {
        self.params.verify && self.faults() == 0
    }

    /// All that was asked was done: to the end, nothing wrong.
    pub fn is_good(&self) -> bool {
        self.faults() == 0 && !self.interrupted
    }

    /// A counter of both ends together.
    pub fn counter(&self, name: &str) -> u64 {
        self.ends().iter().filter_map(|end| end.counters.get(name)).sum()
    }

    /// Packets discarded at both ends together.
    pub fn drops(&self) -> u64 {
        let all = self.ends().into_iter().flat_map(|end| &end.counters);
        all.filter(|(name, _)| name.starts_with("drop_")).map(|(_, value)| value).sum()
    }
}
