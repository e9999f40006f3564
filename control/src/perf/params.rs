//! What a run is asked to do, and what is refused before anything is set up.
//!
//! Both ends check: the client so that the user learns of a mistake at once, the server because it trusts no
//! client.

use super::layout::Layout;
use super::op::{Op, Transport, Verb};
use engine::limits::{MAX_INLINE, MAX_QP_WR, MAX_RD_ATOMIC};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::Mtu;

/// Most QPs of one run.
pub const MAX_QPS: u32 = 16_384;
/// Longest message of a run, bytes.
pub const MAX_SIZE: u32 = 1 << 28;
/// Most memory that one side of one run registers per area, bytes.
pub const MAX_AREA: u64 = 1 << 30;
/// Bytes of each QP's own that its messages take turns in where nothing is said, unless one is longer. So it is in perftest:
/// a run measures the transport, not the memory behind the caches.
pub(super) const CYCLE: u64 = 4096;
/// The least area that can be asked for.
const MIN_AREA: u64 = CYCLE;
/// Longest run by time.
pub const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest message and most QPs of a run with a Linux program at the other end.
const MAX_PEER_SIZE: u64 = 1 << 23;
const MAX_PEER_QPS: u64 = 64;
/// The 8 bytes of an atomic.
pub const ATOMIC_BYTES: u32 = 8;

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After so many messages per QP.
    Iters(u64),
    /// After so many milliseconds.
    Millis(u64),
}

/// What one run does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The test.
    pub op: Op,
    /// Service type of the QPs.
    pub transport: Transport,
    /// Bytes of a message.
    pub size: u32,
    /// QPs between the two ends.
    pub qps: u32,
    /// Messages under way per QP, at most.
    pub depth: u32,
    /// Path MTU, bytes.
    pub mtu: u32,
    /// When to stop.
    pub until: Until,
    /// Both ends send at once.
    pub bidirectional: bool,
    /// Check every byte.
    pub verify: bool,
    /// Send and write with immediate data, so that the target counts every message.
    pub imm: bool,
    /// One message in so many gives a completion.
    pub cq_mod: u32,
    /// So many requests at least are posted together: the bandwidth tests post all that has room at once, in multiples of this.
    pub post_list: u32,
    /// Messages up to this length are carried in the request itself.
    pub inline: u32,
    /// READs and atomics under way per QP, at most.
    pub outs: u8,
    /// Type of service (DSCP and ECN) of the packets; the port's own where nothing is said.
    pub tos: Option<u8>,
    /// Bytes that a run without checks spreads its messages over at either end, however few messages are under way. Where
    /// nothing is said, a QP's messages take turns in 4 KiB, or in the room of one message that is longer.
    pub area: Option<u64>,
    /// What the bytes of messages are derived from.
    pub seed: u64,
}

/// Why a run cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// A number is outside of what is served.
    #[error("{name} is {got}; it has to be from {min} to {max}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// What was asked.
        got: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// Not a path MTU.
    #[error("{0} is no path MTU; there are 256, 512, 1024, 2048 and 4096")]
    Mtu(u32),
    /// The service has no such operation.
    #[error("{transport} has no {op}")]
    Service {
        /// The service.
        transport: Transport,
        /// The test.
        op: Op,
    },
    /// UD messages are one packet.
    #[error("a UD message is one packet: {size} bytes do not fit an MTU of {mtu}")]
    Datagram {
        /// Bytes asked.
        size: u32,
        /// The MTU.
        mtu: u32,
    },
    /// Atomics have 8 bytes.
    #[error("atomics work on 8 bytes, not {0}")]
    AtomicSize(u32),
    /// Latency is measured one message at a time.
    #[error("latency is measured with one message at a time: {0} makes no sense")]
    Latency(&'static str),
    /// The end of the message is what is waited for.
    #[error("write-lat waits for the last byte of a message, so it needs one: size 0 has none")]
    NoLastByte,
    /// Immediate data only exists on SEND and WRITE.
    #[error("{0} carries no immediate data")]
    Immediate(Op),
    /// Nobody would know how many arrived.
    #[error("{transport} loses messages silently: write-bw needs immediate data there, so that the target can count", transport = Transport::Uc)]
    Uncounted,
    /// Too much memory.
    #[error("{qps} QPs with messages of {size} bytes need more than {} MiB", MAX_AREA >> 20)]
    Memory {
        /// QPs.
        qps: u32,
        /// Bytes of a message.
        size: u32,
    },
}

impl Params {
    /// The usual values of a test, as perftest has them where it has them: 64 KiB messages for bandwidth and
    /// 2 bytes for latency (atomics 8), one RC QP, 128 messages under way, 5 s for bandwidth and 1000
    /// messages for latency.
    pub fn new(op: Op) -> Params {
        let size = match (op.verb, op.is_latency()) {
            (Verb::Atomic, _) => ATOMIC_BYTES,
            (_, true) => 2,
            (_, false) => 65536,
        };
        Params {
            op,
            transport: Transport::Rc,
            size,
            qps: 1,
            depth: if op.is_latency() { 1 } else { 128 },
            mtu: 4096,
            until: if op.is_latency() { Until::Iters(1000) } else { Until::Millis(5000) },
            bidirectional: false,
            verify: false,
            imm: false,
            cq_mod: 32,
            post_list: 1,
            inline: 0,
            outs: MAX_RD_ATOMIC,
            tos: None,
            area: None,
            seed: 0,
        }
    }

    /// Whether this run can be. The first thing wrong is told.
    pub fn check(&self) -> Result<(), ParamError> {
        let mtu = self.check_numbers()?;
        self.check_operation(mtu)?;
        let layout = Layout::of(self);
        if layout.local_len() > MAX_AREA || layout.target_len() > MAX_AREA {
            return Err(ParamError::Memory { qps: self.qps, size: self.size });
        }
        Ok(())
    }

    /// Whether this run can be where the other end is no Rockhopper: WRITEs are not counted, and a ping-pong may have several QPs.
    pub(super) fn check_for_peer(&self) -> Result<(), ParamError> {
        let mtu = self.check_numbers()?;
        self.check_service(mtu)?;
        within("size", self.size.into(), 1, MAX_PEER_SIZE)?;
        within("qps", self.qps.into(), 1, MAX_PEER_QPS)
    }

    fn check_numbers(&self) -> Result<Mtu, ParamError> {
        let (until, max_until) = match self.until {
            Until::Iters(iters) => (iters, 1 << 48),
            Until::Millis(millis) => (millis, MAX_DURATION.as_millis() as u64),
        };
        within("size", self.size.into(), 0, MAX_SIZE.into())?;
        within("qps", self.qps.into(), 1, MAX_QPS.into())?;
        within("depth", self.depth.into(), 1, (MAX_QP_WR / 4).into())?;
        within("cq-mod", self.cq_mod.into(), 1, MAX_QP_WR.into())?;
        within("post-list", self.post_list.into(), 1, self.depth.into())?;
        within("inline", self.inline.into(), 0, MAX_INLINE as u64)?;
        within("area", self.area.unwrap_or(MIN_AREA), MIN_AREA, MAX_AREA)?;
        within("outs", self.outs.into(), 1, MAX_RD_ATOMIC.into())?;
        within(
            if matches!(self.until, Until::Iters(_)) { "iters" } else { "duration" },
            until,
            1,
            max_until,
        )?;
        Mtu::from_bytes(self.mtu).ok_or(ParamError::Mtu(self.mtu))
    }

    /// Whether the service has the operation, and messages of this size.
    fn check_service(&self, mtu: Mtu) -> Result<(), ParamError> {
        let served = match self.transport {
            Transport::Rc => true,
            Transport::Uc => matches!(self.op.verb, Verb::Send | Verb::Write),
            Transport::Ud => self.op.verb == Verb::Send,
        };
        if !served {
            return Err(ParamError::Service { transport: self.transport, op: self.op });
        }
        if self.transport == Transport::Ud && self.size > mtu.bytes() {
            return Err(ParamError::Datagram { size: self.size, mtu: mtu.bytes() });
        }
        if self.op.verb == Verb::Atomic && self.size != ATOMIC_BYTES {
            return Err(ParamError::AtomicSize(self.size));
        }
        Ok(())
    }

    fn check_operation(&self, mtu: Mtu) -> Result<(), ParamError> {
        self.check_service(mtu)?;
        if self.imm && !matches!(self.op.verb, Verb::Send | Verb::Write) {
            return Err(ParamError::Immediate(self.op));
        }
        if !self.op.is_latency() {
            let counted = self.imm || self.op.verb != Verb::Write || self.transport.is_reliable();
            return if counted { Ok(()) } else { Err(ParamError::Uncounted) };
        }
        if self.op.verb == Verb::Write && self.size == 0 {
            return Err(ParamError::NoLastByte);
        }
        let nonsense = [
            (self.bidirectional, "--bidirectional"),
            (self.qps > 1, "more than one QP"),
            (self.depth > 1, "a depth above 1"),
            (self.imm, "--imm"),
        ];
        nonsense.iter().find(|(asked, _)| *asked).map_or(Ok(()), |(_, what)| Err(ParamError::Latency(what)))
    }

    /// Messages that each QP sends, when they are counted.
    pub fn iters(&self) -> Option<u64> {
        match self.until {
            Until::Iters(iters) => Some(iters),
            Until::Millis(_) => None,
        }
    }

    /// How long to send, when that is what ends the run.
    pub fn duration(&self) -> Option<Duration> {
        match self.until {
            Until::Iters(_) => None,
            Until::Millis(millis) => Some(Duration::from_millis(millis)),
        }
    }

    /// True when the target takes receives for the messages.
    pub fn uses_receives(&self) -> bool {
        self.op.verb == Verb::Send || self.imm
    }
}

fn within(name: &'static str, got: u64, min: u64, max: u64) -> Result<(), ParamError> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(ParamError::Range { name, got, min, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(op: &str) -> Params {
        Params::new(op.parse().unwrap())
    }

    fn refused(op: &str, change: impl FnOnce(&mut Params)) -> String {
        let mut params = params(op);
        change(&mut params);
        params.check().unwrap_err().to_string()
    }

    #[test]
    fn usual_values_are_served() {
        for op in Op::all() {
            assert_eq!(Params::new(op).check(), Ok(()), "{op}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        assert!(refused("write-bw", |p| p.qps = 0).contains("qps is 0"));
        assert!(refused("write-bw", |p| p.depth = 1 << 20).contains("depth"));
        assert!(refused("write-bw", |p| p.mtu = 1500).contains("1500 is no path MTU"));
        assert!(refused("write-bw", |p| p.until = Until::Millis(0)).contains("duration is 0"));
        assert!(refused("write-bw", |p| p.area = Some(1 << 31)).contains("area is 2147483648"));
        assert!(refused("write-bw", |p| p.area = Some(1)).contains("area is 1"));
        assert!(refused("write-bw", |p| p.post_list = 129).contains("post-list"));
        assert!(refused("write-bw", |p| p.inline = 4096).contains("inline"));
        assert!(refused("read-bw", |p| p.transport = Transport::Uc).contains("UC has no read-bw"));
        assert!(refused("write-bw", |p| p.transport = Transport::Ud).contains("UD has no write-bw"));
        assert!(refused("read-bw", |p| p.imm = true).contains("immediate"));
        assert!(refused("write-bw", |p| p.transport = Transport::Uc).contains("needs immediate data"));
        assert!(refused("atomic-bw", |p| p.size = 16).contains("8 bytes"));
        assert!(refused("write-lat", |p| p.size = 0).contains("last byte"));
        assert!(refused("send-lat", |p| p.bidirectional = true).contains("--bidirectional"));
        assert!(refused("send-lat", |p| p.qps = 2).contains("more than one QP"));
        let datagram = refused("send-bw", |p| {
            p.transport = Transport::Ud;
            p.size = 4097;
        });
        assert!(datagram.contains("4097 bytes do not fit"), "{datagram}");
        let memory = refused("write-bw", |p| {
            p.qps = 1024;
            p.size = 1 << 23;
        });
        assert!(memory.contains("need more than 1024 MiB"), "{memory}");
    }

    #[test]
    fn the_longest_message_of_one_qp_fits() {
        let mut params = params("write-bw");
        params.size = MAX_SIZE;
        params.verify = true;
        params.imm = true;
        assert_eq!(params.check(), Ok(()));
    }
}
