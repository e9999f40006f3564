//! Every datagram that came for queue pair 1, or was sent from it, ends in one of these counters.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// One counter per outcome.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Counter {
            $($(#[$doc])* $variant,)*
        }

        const NAMES: &[&str] = &[$($name),*];
    };
}

counters! {
    /// Taken from the worker's ring, or looped back.
    Received = "mad_received",
    /// Sent.
    Sent = "mad_sent",
    /// Sent to an address of this port: no wire saw it.
    Looped = "mad_looped",
    /// Messages of connection management taken in.
    Cm = "mad_cm",
    /// Questions for performance counters, answered.
    Performance = "mad_performance",
    /// The Q_Key is not that of queue pair 1.
    QKey = "drop_mad_qkey",
    /// Another partition.
    PKey = "drop_mad_pkey",
    /// Not from a queue pair 1, where answers go.
    SourceQp = "drop_mad_source_qp",
    /// Another version of the format, or of the class.
    Version = "drop_mad_version",
    /// A management class that is not served here.
    Class = "drop_mad_class",
    /// A method that the class does not have, or an answer to something that was never asked.
    Method = "drop_mad_method",
    /// No message of connection management has this number.
    Attribute = "drop_mad_attribute",
    /// No buffer, or no room in the ring of frames to send.
    NotSent = "drop_mad_not_sent",
    /// To this port itself, and too many wait.
    LoopFull = "drop_mad_loop_full",
}

/// The counters of one port's queue pair 1.
#[derive(Debug)]
pub(crate) struct Counters([AtomicU64; NAMES.len()]);

impl Default for Counters {
    fn default() -> Self {
        Counters(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counters {
    pub fn count(&self, counter: Counter) {
        self.0[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().zip(&self.0).map(|(&name, value)| (name, value.load(Ordering::Relaxed)))
    }
}
