//! What became of a rule.

/// How a rule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The device did what the facts ask for.
    Passed,
    /// It did something else.
    Failed,
    /// The facts leave it open; it did one of the things that are allowed.
    Open,
    /// The device cannot do what the rule needs.
    Skipped,
}

impl Verdict {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed => "failed",
            Verdict::Open => "open",
            Verdict::Skipped => "skipped",
        }
    }
}

/// Who sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The scripted peer.
    ToDevice,
    /// The device under test.
    FromDevice,
}

/// A packet that passed while a rule was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedPacket {
    /// Nanoseconds since the rule began.
    pub at_ns: u64,
    /// Who sent it.
    pub direction: Direction,
    /// The frame without FCS.
    pub frame: Vec<u8>,
    /// What it is, in words; PSNs also as the script counts them.
    pub words: String,
}

/// The account of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// The rule's name.
    pub id: String,
    /// What it asks for.
    pub title: String,
    /// The fact that it holds the device to.
    pub fact: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed or was skipped, or what the device chose; empty when it passed.
    pub why: String,
    /// It failed because something came too soon or too late, and for nothing else: on a busy machine that may be nobody's fault.
    pub by_time: bool,
    /// All packets, in order.
    pub packets: Vec<LoggedPacket>,
}
