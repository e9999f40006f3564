//! What is measured, in which unit, and which way is better.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    Higher,
    /// Less is.
    Lower,
}

/// A figure that a measurement gives.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in JSON.
    pub id: &'static str,
    /// For people.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

const fn metric(id: &'static str, label: &'static str, unit: &'static str, better: Better) -> Metric {
    Metric { id, label, unit, better }
}

use Better::{Higher, Lower};

/// Every figure that there is.
pub static METRICS: &[Metric] = &[
    metric("gbps", "payload", "Gb/s", Higher),
    metric("peak_gbps", "best stretch of 10 ms", "Gb/s", Higher),
    metric("mmps", "messages", "M/s", Higher),
    metric("mpps", "frames", "M/s", Higher),
    metric("ns", "time of one", "ns", Lower),
    metric("min_us", "minimum", "µs", Lower),
    metric("p50_us", "p50", "µs", Lower),
    metric("p90_us", "p90", "µs", Lower),
    metric("p99_us", "p99", "µs", Lower),
    metric("p999_us", "p99.9", "µs", Lower),
    metric("max_us", "maximum", "µs", Lower),
    metric("mean_us", "mean", "µs", Lower),
    metric("per_second", "rate", "1/s", Higher),
    metric("register_us", "allocate and register", "µs", Lower),
    metric("deregister_us", "give back", "µs", Lower),
    metric("bytes_per_qp", "memory of a QP", "B", Lower),
    metric("ring_bytes", "its rings", "B", Lower),
    metric("besides_rings_bytes", "memory besides its rings", "B", Lower),
    metric("handed_over_percent", "handed to another worker", "%", Lower),
    metric("moved", "QPs that moved", "QPs", Lower),
    metric("taken_percent", "taken by the system", "%", Lower),
    metric("lost_percent", "lost", "%", Lower),
    metric("retransmitted", "packets sent again", "packets", Lower),
    metric("sender_kernel_percent", "sender's core: kernel", "%", Lower),
    metric("sender_driver_percent", "sender's core: driver", "%", Lower),
    metric("sender_payload_percent", "sender's core: payload", "%", Higher),
    metric("sender_transport_percent", "sender's core: transport", "%", Higher),
    metric("sender_idle_percent", "sender's core: idle", "%", Higher),
    metric("sender_other_percent", "sender's core: others", "%", Lower),
    metric("receiver_kernel_percent", "receiver's core: kernel", "%", Lower),
    metric("receiver_driver_percent", "receiver's core: driver", "%", Lower),
    metric("receiver_payload_percent", "receiver's core: payload", "%", Higher),
    metric("receiver_transport_percent", "receiver's core: transport", "%", Higher),
    metric("receiver_idle_percent", "receiver's core: idle", "%", Higher),
    metric("receiver_other_percent", "receiver's core: others", "%", Lower),
    metric("cycles_per_packet", "cycles a packet", "cycles", Lower),
    metric("instructions_per_packet", "instructions a packet", "instructions", Lower),
    metric("cache_misses_per_packet", "cache misses a packet", "misses", Lower),
];

/// The metric of a name.
pub fn find(id: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.id == id)
}
