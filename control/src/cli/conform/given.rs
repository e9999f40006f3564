//! Queue pairs of the device by flags, without an agent: somebody else has set them up and connected them to us.
//!
//! Each rule leaves its queue pair somewhere else in its sequence, or in ERROR. Between two rules a WRITE without bytes asks where it
//! is; one that does not answer any more is spent, and the next one that was given takes its place.

use super::link;
use super::loopback::Loopback;
use super::report;
use super::run::{FIRST_QPN, REST, Runner, Target};
use crate::cli::ConformArgs;
use crate::cli::failure::Failure;
use crate::cli::stop;
use conform::{
    CallError, DeviceCall, Direction, GivenMemory, GivenQp, GivenRule, LoggedPacket, Reply, Rule, RuleReport,
    Verdict,
};
use rockhopper::{Config, RawPort};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use wire::{Aeth, Frame, Msn, NakCode, Position, Psn, Qpn, Syndrome};

/// Which queue pairs of the device are connected to us, and what is known of them.
#[derive(clap::Args)]
pub struct GivenArgs {
    /// Without an agent: a queue pair of the device, in RTR or RTS and connected to us. More than one may be named: a rule that ends
    /// in ERROR uses one up.
    #[arg(long, value_name = "QPN", value_delimiter = ',', value_parser = number, conflicts_with = "agent")]
    pub qp: Vec<u32>,
    /// The PSN that it expects next; one for each queue pair, or one for all.
    #[arg(long, value_name = "PSN", value_delimiter = ',', value_parser = number, requires = "qp")]
    psn: Vec<u32>,
    /// Our queue pair number that it was connected to; one for each queue pair, or one for all.
    #[arg(long, value_name = "QPN", value_delimiter = ',', value_parser = number, requires = "qp", default_values_t = [FIRST_QPN])]
    peer_qp: Vec<u32>,
    /// Its path MTU.
    #[arg(long, value_name = "BYTES", requires = "qp", default_value_t = 1024)]
    mtu: u32,
    /// Its RNR timer code (min_rnr_timer).
    #[arg(long, value_name = "CODE", requires = "qp")]
    rnr_timer: Option<u8>,
    /// READs and atomics that it serves at a time (max_dest_rd_atomic).
    #[arg(long, value_name = "COUNT", requires = "qp")]
    slots: Option<u8>,
    /// Address of memory that we may write, read, and use for atomics.
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires_all = ["rkey", "len"])]
    va: Option<u64>,
    /// The key of that memory.
    #[arg(long, value_name = "KEY", value_parser = number, requires = "va")]
    rkey: Option<u32>,
    /// The length of that memory.
    #[arg(long, value_name = "BYTES", requires = "va")]
    len: Option<u64>,
}

/// A number as programs print it: decimal, or hexadecimal behind 0x.
fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write it like 17 or 0x11".into())
}

fn number(text: &str) -> Result<u32, String> {
    u32::try_from(address(text)?).map_err(|_| "it does not fit 32 bits".into())
}

impl GivenArgs {
    /// The queue pairs in their order.
    fn queue_pairs(&self, v6: bool) -> Result<VecDeque<GivenQp>, Failure> {
        if wire::Mtu::from_bytes(self.mtu).is_none() {
            return Err(Failure::setup(format!("--mtu {}: give 256, 512, 1024, 2048 or 4096", self.mtu)));
        }
        let memory = match (self.va, self.rkey, self.len) {
            (Some(addr), Some(rkey), Some(len)) => Some(GivenMemory { addr, rkey, len }),
            _ => None,
        };
        let one = |values: &[u32], index: usize, name: &str| match values {
            [value] => Ok(*value),
            values => values.get(index).copied().ok_or_else(|| {
                Failure::setup(format!("give --{name} once, or once for each of the {} --qp", self.qp.len()))
            }),
        };
        let qp = |(index, &qpn): (usize, &u32)| {
            if qpn >> 24 != 0 || one(&self.peer_qp, index, "peer-qp")? >> 24 != 0 {
                return Err(Failure::setup("a queue pair number has 24 bits: give one below 0x1000000"));
            }
            Ok(GivenQp {
                qpn: Qpn::new(qpn),
                peer_qpn: Qpn::new(one(&self.peer_qp, index, "peer-qp")?),
                psn: one(&self.psn, index, "psn")? & 0xFF_FFFF,
                msn: 0,
                mtu: self.mtu,
                v6,
                rnr_timer: self.rnr_timer,
                slots: self.slots,
                memory,
            })
        };
        self.qp.iter().enumerate().map(qp).collect()
    }
}

/// The device, of which nothing is known but a queue pair.
struct Given {
    qp: GivenQp,
    offers: Vec<String>,
    /// An endpoint of ours, when that is the device: it is driven from here.
    wire: Option<Loopback>,
}

impl Target for Given {
    fn call(&mut self, call: &DeviceCall, _: &mut dyn FnMut()) -> Result<Reply, CallError> {
        match call {
            DeviceCall::Reset | DeviceCall::Modify { .. } => Ok(Reply::Done),
            DeviceCall::Qp { .. } => Ok(Reply::Qp { qpn: self.qp.qpn.value() }),
            DeviceCall::Poll { .. } => Ok(Reply::Completions(Vec::new())),
            DeviceCall::Region(_) => {
                let memory = self.qp.memory.ok_or_else(|| CallError::Unsupported("memory".into()))?;
                Ok(Reply::Region { addr: memory.addr, rkey: memory.rkey })
            }
            other => Err(CallError::Unsupported(format!("{other:?}"))),
        }
    }

    fn drive(&mut self) -> bool {
        self.wire.as_mut().is_some_and(Loopback::drive)
    }

    fn rest(&mut self, most: Duration) {
        match &mut self.wire {
            Some(wire) => wire.rest(most),
            None => std::thread::sleep(REST.min(most)),
        }
    }

    fn offers(&self) -> &[String] {
        &self.offers
    }
}

/// Asks a queue pair where it is by a WRITE: without bytes, which checks no key (transport 7 and 18), or with the zeros that rules take
/// memory to begin with.
fn probe(qp: &GivenQp) -> Result<Rule, Failure> {
    let (region, write) = match qp.memory {
        None => (String::new(), String::new()),
        Some(memory) => {
            let len = memory.len.min(qp.mtu.into());
            (format!("region A {len}\n"), format!("va=A rkey=A payload=zero[{len}]"))
        }
    };
    let text = format!(
        "rule probe\ntitle The queue pair answers\nfact transport 18\nqp rc\n{region}wait 1ms\n\
         send write_only +0 ackreq {write}\nexpect any within=500ms\nwait 1ms\n"
    );
    Ok(conform::parse("probe", &text).map_err(Failure::setup)?.remove(0))
}

/// Probes of one queue pair: the first may only tell which PSN is due.
const PROBES: usize = 4;

/// Plays the rules that can be played on the queue pairs that were given.
pub fn run(
    args: &ConformArgs,
    json: bool,
    rules: &[Rule],
    target: IpAddr,
    config: &Config,
) -> Result<(), Failure> {
    let mut waiting = args.given.queue_pairs(target.is_ipv6())?;
    let Some(qp) = waiting.pop_front() else { return Err(Failure::setup("give a queue pair by --qp")) };
    let mut port = RawPort::open(config)?;
    let place = link::place(&mut port, target, &[])?;
    let mut device = Given { qp, offers: Vec::new(), wire: None };
    let settings = super::settings(args);
    let mut runner = Runner { port: &mut port, target: &mut device, place, settings, held_up_ns: 0 };
    let stop = stop::on_signal()?;
    let reports = play(&mut runner, rules, waiting, &mut |report| {
        if stop.is_stopped() {
            return Err(Failure::Interrupted);
        }
        super::tell(args, json, report)
    })?;
    super::finish(json, &format!("queue pairs by flags at {target}"), &reports)
}

/// Plays rules on the runner's queue pair and then on those that wait; each report is told as it is made.
fn play(
    runner: &mut Runner<'_, Given>,
    rules: &[Rule],
    mut waiting: VecDeque<GivenQp>,
    tell: &mut dyn FnMut(&RuleReport) -> Result<(), Failure>,
) -> Result<Vec<RuleReport>, Failure> {
    let probe = probe(&runner.target.qp)?;
    let mut reports = Vec::new();
    let mut works = begin(runner, &probe)?;
    for rule in in_order(rules, &runner.target.qp) {
        if let (false, Some(next)) = (works, waiting.pop_front()) {
            runner.target.qp = next;
            works = begin(runner, &probe)?;
        }
        let report = match rule.on(&runner.target.qp) {
            Err(why) => report::empty(rule, Verdict::Skipped, format!("without an agent: it {why}")),
            Ok(_) if !works => report::empty(rule, Verdict::Skipped, SPENT.into()),
            Ok(given) => {
                let (peer, msn) = (runner.target.qp.peer_qpn, runner.target.qp.msn);
                let report = runner.play_as(&given.rule, peer, msn);
                let answers = find(runner, &probe);
                works = answers && !is_inside_a_message(&report);
                judged(report, &given, answers)
            }
        };
        tell(&report)?;
        reports.push(report);
    }
    Ok(reports)
}

const SPENT: &str =
    "the queue pairs that were given are spent: a rule that ends in ERROR uses one up; give more by --qp";

/// Those that end in ERROR come last: each uses up a queue pair.
fn in_order<'a>(rules: &'a [Rule], qp: &GivenQp) -> Vec<&'a Rule> {
    let ends = |rule: &&Rule| rule.on(qp).is_ok_and(|given| given.works_on == Some(false));
    let (last, first): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(ends);
    [first, last].concat()
}

/// What a rule comes to when also seen from what the queue pair does afterwards.
fn judged(report: RuleReport, given: &GivenRule, answers: bool) -> RuleReport {
    let failed = |why: &str| RuleReport { verdict: Verdict::Failed, why: why.into(), ..report.clone() };
    match (report.verdict, given.works_on) {
        (Verdict::Passed | Verdict::Open, Some(true)) if !answers => {
            failed("the queue pair was to work on, and does not answer any more")
        }
        (Verdict::Passed | Verdict::Open, Some(false)) if answers => {
            failed("the queue pair was to be in ERROR, and still answers")
        }
        (Verdict::Passed, _) if given.unseen => RuleReport {
            why: "as far as packets show: whether memory is untouched was not looked at".into(),
            ..report
        },
        _ => report,
    }
}

/// Finds a queue pair that was given and not used before.
fn begin(runner: &mut Runner<'_, Given>, probe: &Rule) -> Result<bool, Failure> {
    if find(runner, probe) {
        return Ok(true);
    }
    Err(Failure::setup(format!(
        "queue pair {:#x} does not answer a WRITE: check --qp, --psn and --peer-qp (and --va, --rkey and --len), and that it is connected to us and allows remote writes",
        runner.target.qp.qpn.value()
    )))
}

/// Finds out where the queue pair is: the PSN that it expects and the messages it has counted. False when it does not answer.
fn find(runner: &mut Runner<'_, Given>, probe: &Rule) -> bool {
    // Whether the device has told which PSN is due: before, an ACK may be that of a duplicate.
    let mut told = false;
    for _ in 0..PROBES {
        let asked = Psn::new(runner.target.qp.psn);
        let Ok(probe) = probe.on(&runner.target.qp) else { return false };
        let report = runner.play_as(&probe.rule, runner.target.qp.peer_qpn, 0);
        let answers = report.packets.iter().filter(|packet| packet.direction == Direction::FromDevice);
        let Some((psn, aeth)) = answers.filter_map(aeth).next_back() else { return false };
        runner.target.qp.msn = Msn::value(aeth.msn);
        runner.target.qp.psn = match aeth.syndrome {
            Syndrome::Ack { .. } => psn.add(1).value(),
            Syndrome::Nak(NakCode::PsnSequence) => psn.value(),
            _ => return false,
        };
        // Acknowledged as it was asked: it was new, and a gap or a NAK before it is done with.
        if told && psn == asked && matches!(aeth.syndrome, Syndrome::Ack { .. }) {
            return true;
        }
        told = true;
    }
    false
}

fn aeth(packet: &LoggedPacket) -> Option<(Psn, Aeth)> {
    let frame = Frame::parse(&packet.frame, packet.frame.len()).ok()?;
    Some((frame.bth().psn, frame.ext::<Aeth>(&packet.frame)?))
}

/// The last request of a rule began or continued a message: what may follow it is not known.
fn is_inside_a_message(report: &RuleReport) -> bool {
    let sent = report.packets.iter().filter(|packet| packet.direction == Direction::ToDevice);
    let mut positions = sent.filter_map(|packet| {
        let frame = Frame::parse(&packet.frame, packet.frame.len()).ok()?;
        frame.info.is_request().then_some(frame.info.position)
    });
    matches!(positions.next_back(), Some(Position::First | Position::Middle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::conform::{loopback, settings_of};
    use conform::QpAttributes;

    fn call(device: &mut Loopback, call: &DeviceCall) -> Reply {
        device.call(call, &mut || ()).unwrap_or_else(|why| panic!("{call:?}: {why:?}"))
    }

    /// A queue pair as a program beside the device would connect it to ours of this number.
    fn connected(device: &mut Loopback, name: &str, peer_ip: IpAddr, peer_qpn: u32) -> GivenQp {
        let (name, service) = (name.to_owned(), "rc".to_owned());
        let made = DeviceCall::Qp { name: name.clone(), service, pd: 0, srq: None, domain: 0 };
        let Reply::Qp { qpn } = call(device, &made) else { panic!("no queue pair") };
        let attributes = Box::new(QpAttributes {
            peer_ip,
            peer_qpn,
            peer_psn: 0x1000,
            device_psn: 0x2000,
            mtu: 1024,
            access: ["remote_write", "remote_read", "remote_atomic"].map(str::to_owned).to_vec(),
            slots: 4,
            reads: 4,
            rnr_timer: 1,
            timeout: 0,
            retry: 7,
            rnr_retry: 7,
            qkey: 0,
        });
        call(device, &DeviceCall::Modify { qp: name, state: "rts".into(), attributes });
        GivenQp {
            qpn: Qpn::new(qpn),
            peer_qpn: Qpn::new(peer_qpn),
            // Not what it expects: it is asked.
            psn: 0x0FF0,
            msn: 0,
            mtu: 1024,
            v6: false,
            rnr_timer: Some(1),
            slots: Some(4),
            memory: None,
        }
    }

    #[test]
    fn queue_pairs_that_are_there_are_held_to_what_packets_show() {
        let (mut port, mut device, place) = loopback::open().unwrap_or_else(|_| panic!("no loopback"));
        let peer_ip = place.v4.unwrap_or_else(|| panic!("no address")).0.ip();
        let access = ["local_write", "remote_write", "remote_read", "remote_atomic"].map(str::to_owned);
        let wish =
            conform::Region { name: "m".into(), len: 8192, access: access.to_vec(), pd: 0, fast: false };
        let made = call(&mut device, &DeviceCall::Region(wish));
        let Reply::Region { addr, rkey } = made else { panic!("{made:?}") };
        let memory = Some(GivenMemory { addr, rkey, len: 8192 });
        let mut qps: VecDeque<GivenQp> = [("a", 0x51), ("b", 0x52), ("c", 0x53)]
            .map(|(name, ours)| GivenQp { memory, ..connected(&mut device, name, peer_ip, ours) })
            .into();
        let qp = qps.pop_front().unwrap();
        let mut target = Given { qp, offers: Vec::new(), wire: Some(device) };
        let mut runner =
            Runner { port: &mut port, target: &mut target, place, settings: settings_of(1), held_up_ns: 0 };
        let rules = conform::suite::rules().unwrap();
        let reports = play(&mut runner, &rules, qps, &mut |_| Ok(())).unwrap_or_else(|_| panic!("no answer"));
        assert_eq!(reports.len(), rules.len());
        let of = |verdict| reports.iter().filter(move |report| report.verdict == verdict);
        let failed: Vec<&RuleReport> = of(Verdict::Failed).collect();
        assert!(failed.is_empty(), "{failed:?}");
        let passed = |id: &str| of(Verdict::Passed).any(|report| report.id == id);
        // Silence, an RNR NAK, READs: all on one queue pair, one after the other.
        for id in ["header-bad-icrc", "send-without-bytes-needs-a-receive", "read-sees-an-earlier-write"] {
            assert!(passed(id), "{id}: {:?}", reports.iter().find(|report| report.id == id));
        }
        // Those that end in ERROR come last, one for each queue pair that the others have left; then there are none.
        let ends = |rule: &&Rule| rule.on(&runner.target.qp).is_ok_and(|given| given.works_on == Some(false));
        let ended = rules.iter().filter(ends).filter(|rule| passed(&rule.id)).count();
        assert!((1..=3).contains(&ended), "three queue pairs end {ended} rules");
        let skipped = |what: &str| of(Verdict::Skipped).any(|report| report.why.contains(what));
        assert!(skipped("are spent") && skipped("only an agent can post") && skipped("another service"));
        assert!(of(Verdict::Passed).any(|report| report.why.contains("as far as packets show")));
        // Spent they are indeed.
        let probe = probe(&runner.target.qp).unwrap_or_else(|_| panic!("no probe"));
        assert!(begin(&mut runner, &probe).is_err());
    }
}
