//! Round trips to a peer, over a connection or by datagrams that connection management makes and finds.

use super::dial::Dial;
use super::rping;
use super::udaddy::{self, Target};
use super::{ProgramError, program::Program};
use crate::cm::{CmAddr, CmId, ConnParam};
use crate::endpoint::Endpoint;
use crate::perf::Shared;
use crate::verbs::{Ah, Cq, Pd, Qp, QpCaps, QpOptions};
use engine::QpType;
use hdrhistogram::Histogram;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Requests of each kind that a queue pair takes.
const DEPTH: u32 = 16;
/// Between two looks whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What to do.
#[derive(Clone, Debug)]
pub struct PingOptions {
    /// [`Program::Rping`] (RC) or [`Program::Udaddy`] (UD).
    pub program: Program,
    /// Where to.
    pub to: CmAddr,
    /// From which address; by default the one that the way begins at.
    pub from: Option<IpAddr>,
    /// Round trips; without end if `None`.
    pub count: Option<u64>,
    /// Bytes of data, each way.
    pub size: usize,
    /// From one round trip's begin to the next one's.
    pub interval: Duration,
    /// How long an answer may take.
    pub patience: Duration,
}

/// What was seen, as it is seen.
#[derive(Clone, Debug)]
pub enum Pinged {
    /// The connection is there.
    Connected {
        /// From the first message to the answer, resolving not included.
        time: Duration,
        /// The path MTU of a connection, bytes.
        path_mtu: Option<u32>,
    },
    /// An answer came.
    Answered {
        /// Which round trip, from 0.
        number: u64,
        /// How long it took.
        time: Duration,
        /// Bytes that were not those sent.
        wrong: u64,
    },
    /// A datagram, or its answer, was lost.
    Lost {
        /// Which round trip, from 0.
        number: u64,
    },
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct PingOutcome {
    /// Making the connection.
    pub connect: Duration,
    /// Round trips that were begun.
    pub sent: u64,
    /// Answers that came in time.
    pub answered: u64,
    /// Bytes of answers that were not those sent.
    pub wrong: u64,
    /// Nanoseconds of each round trip.
    pub times: Histogram<u64>,
    /// Why it ended before its time.
    pub broken: Option<String>,
}

impl PingOutcome {
    /// All that was asked was done and was right.
    pub fn is_good(&self) -> bool {
        self.broken.is_none() && self.sent > 0 && self.answered == self.sent && self.wrong == 0
    }
}

/// Makes the round trips; `told` hears of each. An error means that there was no connection; one that breaks later is told in the
/// outcome.
pub fn ping(
    endpoint: &Endpoint,
    options: &PingOptions,
    stop: &Shared,
    mut told: impl FnMut(&Pinged),
) -> Result<PingOutcome, ProgramError> {
    let dial = Dial::new(endpoint, stop)?;
    let id = dial.resolve(options.program.space(), options.from, &options.to)?;
    let begin = Instant::now();
    let mut trips = match options.program {
        Program::Udaddy => Trips::datagrams(&dial, &id, options)?,
        _ => Trips::connection(&dial, &id, options)?,
    };
    let connect = begin.elapsed();
    let path_mtu = trips.path_mtu();
    told(&Pinged::Connected { time: connect, path_mtu });
    let mut outcome = PingOutcome {
        connect,
        sent: 0,
        answered: 0,
        wrong: 0,
        times: crate::perf::histogram(),
        broken: None,
    };
    let mut due = Instant::now();
    while options.count.is_none_or(|count| outcome.sent < count) && wait_until(endpoint, due, stop) {
        due = (due + options.interval).max(Instant::now());
        let number = outcome.sent;
        outcome.sent += 1;
        match trips.one(number, options, stop) {
            Ok(Some(rping::Round { time, wrong })) => {
                outcome.answered += 1;
                outcome.wrong += wrong;
                outcome.times.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
                told(&Pinged::Answered { number, time, wrong });
            }
            Ok(None) => told(&Pinged::Lost { number }),
            Err(ProgramError::Stopped) => {
                outcome.sent -= 1;
                break;
            }
            Err(why) => {
                outcome.broken = Some(why.to_string());
                break;
            }
        }
    }
    // The peer is told now, not when the last handle goes.
    let _ = id.disconnect();
    Ok(outcome)
}

/// Waits for a moment; false when somebody wants to stop.
fn wait_until(endpoint: &Endpoint, due: Instant, stop: &Shared) -> bool {
    loop {
        if stop.is_stopped() {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        if endpoint.device(0).is_none_or(|device| !device.drive()) {
            std::thread::sleep(left.min(LOOK));
        }
    }
}

/// How round trips are made.
enum Trips {
    Connection(rping::Client, Qp),
    Datagrams(udaddy::Client),
}

/// The objects for a queue pair on the port that an identifier is bound to.
pub(super) fn objects(id: &CmId, qp_type: QpType, depth: u32) -> Result<(Pd, Cq, Qp), ProgramError> {
    let device = id.device().ok_or_else(|| ProgramError::Unexpected("it is bound to no port".into()))?;
    let (pd, cq) = (device.alloc_pd(), device.create_cq(2 * depth)?);
    let caps = QpCaps { max_send_wr: depth, max_recv_wr: depth, ..QpCaps::default() };
    let qp = id.create_qp(&pd, &QpOptions { caps, ..QpOptions::new(qp_type, &cq) })?;
    Ok((pd, cq, qp))
}

impl Trips {
    fn connection(dial: &Dial<'_>, id: &CmId, options: &PingOptions) -> Result<Trips, ProgramError> {
        let (pd, cq, qp) = objects(id, QpType::Rc, DEPTH)?;
        let client = rping::Client::new(&pd, &cq, &qp, options.size)?;
        // One READ at a time, as rping has it.
        dial.connect(id, &ConnParam { responder_resources: 1, initiator_depth: 1, ..ConnParam::default() })?;
        Ok(Trips::Connection(client, qp))
    }

    fn datagrams(dial: &Dial<'_>, id: &CmId, options: &PingOptions) -> Result<Trips, ProgramError> {
        let (pd, cq, qp) = objects(id, QpType::Ud, DEPTH)?;
        let (_, ud) = dial.connect(id, &ConnParam::default())?;
        let ud = ud.ok_or_else(|| ProgramError::Unexpected("it named no queue pair".into()))?;
        let target = Target { ah: Ah::new(&pd, ud.addressing)?, qpn: ud.qpn, qkey: ud.qkey };
        Ok(Trips::Datagrams(udaddy::Client::new(&pd, &cq, &qp, target, DEPTH, options.size)?))
    }

    fn path_mtu(&self) -> Option<u32> {
        match self {
            Trips::Connection(_, qp) => qp.query().ok().map(|query| query.attr.path_mtu.bytes()),
            Trips::Datagrams(_) => None,
        }
    }

    /// One round trip; `None` when something was lost.
    fn one(
        &mut self,
        number: u64,
        options: &PingOptions,
        stop: &Shared,
    ) -> Result<Option<rping::Round>, ProgramError> {
        match self {
            Trips::Connection(client, _) => client.round(options.patience, stop).map(Some),
            Trips::Datagrams(client) => one_datagram(client, number, options, stop),
        }
    }
}

/// Answers that come too late are the next ones' strays: they are let go by.
fn one_datagram(
    client: &mut udaddy::Client,
    number: u64,
    options: &PingOptions,
    stop: &Shared,
) -> Result<Option<rping::Round>, ProgramError> {
    let data = rping::content(number, options.size);
    let begin = Instant::now();
    client.send(&data, options.patience, stop)?;
    loop {
        let left = options.patience.saturating_sub(begin.elapsed());
        match client.answer(left, stop) {
            Ok(bytes) if bytes == data => {
                return Ok(Some(rping::Round { time: begin.elapsed(), wrong: 0 }));
            }
            Ok(_) => {}
            Err(ProgramError::Silent(_)) => return Ok(None),
            Err(why) => return Err(why),
        }
    }
}
