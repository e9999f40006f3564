//! What the checker is told about a capture.

use wire::Mac;

/// Where the capture was taken: what may be missing in it, and in which order things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Vantage {
    /// Anywhere. Frames may be missing, doubled or out of order; only what no network can cause is judged.
    #[default]
    Anywhere,
    /// Every frame at the moment when its sender sends it, of all senders, before a network could do anything to it.
    Senders,
    /// At the port of the endpoint with this MAC: all that it sends, in its order, and all that reaches it, when it does.
    Endpoint(Mac),
}

impl Vantage {
    /// Frames of `smac` are seen as they were sent: none is missing, in their order.
    pub(crate) fn sees_sending(self, smac: Mac) -> bool {
        match self {
            Vantage::Anywhere => false,
            Vantage::Senders => true,
            Vantage::Endpoint(mac) => mac == smac,
        }
    }

    /// Frames to `dmac` are seen as they arrive: it knows of none that was not seen.
    pub(crate) fn sees_arriving(self, dmac: Mac) -> bool {
        self == Vantage::Endpoint(dmac)
    }
}

/// What to make of a frame whose iCRC, lengths or headers are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Damage {
    /// A broken rule.
    #[default]
    Breaks,
    /// The network did it, behind the sender: the frame is counted and taken as lost. Nor is held against a sender what the
    /// iCRC does not cover in frames that are not seen as they were sent.
    IsLoss,
}

/// What the checker is told, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// What to make of broken frames.
    pub damage: Damage,
    /// Longest time that a request which asks for an acknowledgement may go without one while its responder sends others,
    /// nanoseconds. The facts say: not beyond the peer's timeout, which a capture does not show.
    pub ack_limit_ns: u64,
    /// Directions (an address pair and a destination QP) that are followed; frames of further ones are judged one by one.
    pub max_directions: usize,
    /// Violations whose words are kept; further ones are counted.
    pub max_violations: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            vantage: Vantage::Anywhere,
            damage: Damage::Breaks,
            ack_limit_ns: 1_000_000_000,
            max_directions: 1 << 16,
            max_violations: 10_000,
        }
    }
}
