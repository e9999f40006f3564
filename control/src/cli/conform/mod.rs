//! `rockhopper conform`: a scripted peer holds a device to the rules, one by one.

mod agent;
pub(super) mod given;
pub(super) mod link;
mod loopback;
mod report;
mod run;

use super::ConformArgs;
use super::failure::Failure;
use super::out::say;
use super::stop;
use conform::{Rule, RuleReport, Settings, Verdict};
use rockhopper::{Config, RawPort};
use run::{Place, Runner, Target};
use std::path::Path;

pub fn run(args: &ConformArgs, json: bool) -> Result<(), Failure> {
    let rules = chosen(args)?;
    if args.list {
        return list(&rules, json);
    }
    match (args.loopback, args.target, args.agent, &args.config) {
        (true, None, ..) => {
            let (mut port, mut device, place) = loopback::open()?;
            let name = device.info.name.clone();
            play(args, json, &rules, &mut port, &mut device, place, &name)
        }
        (false, Some(target), Some(agent), Some(config)) => {
            let mut device = link::Remote::connect(agent)?;
            let mut port = RawPort::open(&Config::load(config)?)?;
            let place = device.place(&mut port, target)?;
            let name = device.info.name.clone();
            play(args, json, &rules, &mut port, &mut device, place, &name)
        }
        (false, Some(target), None, Some(config)) if !args.given.qp.is_empty() => {
            given::run(args, json, &rules, target, &Config::load(config)?)
        }
        (false, Some(_), ..) => Err(Failure::setup(
            "a target also needs --config FILE, which describes our port, and either --agent ADDRESS:PORT, where its device agent listens, or --qp and --psn of a queue pair that is connected to us",
        )),
        _ => Err(Failure::setup(
            "say which device to test: --loopback for an endpoint in this process, or --target with --agent and --config",
        )),
    }
}

/// The rules that were asked for.
fn chosen(args: &ConformArgs) -> Result<Vec<Rule>, Failure> {
    let rules = match &args.scripts {
        Some(directory) => read(directory)?,
        None => conform::suite::rules().map_err(Failure::setup)?,
    };
    let Some(pattern) = &args.only else { return Ok(rules) };
    let chosen: Vec<Rule> = rules.iter().filter(|rule| rule.id.contains(pattern.as_str())).cloned().collect();
    if chosen.is_empty() {
        return Err(Failure::setup(format!("no rule's name contains {pattern:?}; --list shows all names")));
    }
    Ok(chosen)
}

/// The rules of a directory's `*.rule` files.
fn read(directory: &Path) -> Result<Vec<Rule>, Failure> {
    let cannot = |why: std::io::Error| {
        Failure::setup(format!(
            "{} cannot be read: {why}; name a directory of *.rule files",
            directory.display()
        ))
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "rule") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut rules = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).map_err(cannot)?;
        rules.extend(conform::parse(&path.display().to_string(), &text).map_err(Failure::setup)?);
    }
    if rules.is_empty() {
        return Err(Failure::setup(format!(
            "there are no rules in {}; write one into a file whose name ends in .rule",
            directory.display()
        )));
    }
    Ok(rules)
}

fn list(rules: &[Rule], json: bool) -> Result<(), Failure> {
    if json {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| {
                serde_json::json!({
                    "id": rule.id, "title": rule.title, "fact": rule.fact, "needs": rule.needs, "open": rule.open,
                    "file": rule.place.0, "line": rule.place.1,
                })
            })
            .collect();
        say(serde_json::json!({ "rules": rules }));
    } else {
        rules.iter().for_each(|rule| say(format_args!("{}: {} ({})", rule.id, rule.title, rule.fact)));
    }
    Ok(())
}

fn play<T: Target>(
    args: &ConformArgs,
    json: bool,
    rules: &[Rule],
    port: &mut RawPort,
    target: &mut T,
    place: Place,
    device: &str,
) -> Result<(), Failure> {
    let stop = stop::on_signal()?;
    let mut runner = Runner { port, target, place, settings: settings(args), held_up_ns: 0 };
    let mut reports = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        if stop.is_stopped() {
            return Err(Failure::Interrupted);
        }
        let report = runner.play(rule, index);
        tell(args, json, &report)?;
        reports.push(report);
    }
    finish(json, device, &reports)
}

fn settings(args: &ConformArgs) -> Settings {
    settings_of(args.stretch)
}

fn settings_of(stretch: u32) -> Settings {
    let patience = Settings::default();
    Settings {
        stretch,
        tail_ns: patience.tail_ns * u64::from(stretch),
        patience_ns: patience.patience_ns * u64::from(stretch),
        ..patience
    }
}

/// Tells of one rule as it is done.
fn tell(args: &ConformArgs, json: bool, report: &RuleReport) -> Result<(), Failure> {
    if !json {
        report::tell(report, args.verbose);
    }
    match args.pcapng.as_deref() {
        Some(directory) if report.verdict == Verdict::Failed => report::save(directory, report),
        _ => Ok(()),
    }
}

/// The account of the whole run, and its exit status.
fn finish(json: bool, device: &str, reports: &[RuleReport]) -> Result<(), Failure> {
    let failed = report::count(reports, Verdict::Failed);
    if json {
        say(report::json(device, reports));
    } else {
        let [passed, open, skipped] =
            [Verdict::Passed, Verdict::Open, Verdict::Skipped].map(|verdict| report::count(reports, verdict));
        say(format_args!(
            "{device}: {passed} rules passed, {failed} failed, {open} left open by the facts, {skipped} skipped"
        ));
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Told) }
}
