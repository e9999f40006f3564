//! `rockhopper check`: captures held against the rules of the protocol.

use super::failure::Failure;
use super::out::say;
use ::check::capture::each_frame;
use ::check::{Checker, Note, Options, Report, Rule};
use serde_json::{Map, Value, json};
use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Lines of text for one file; `--json` has more.
const MOST_LINES: usize = 100;

/// Checks each file by itself and reports. A broken rule is a failure; a file that cannot be read is one to begin.
pub fn run(files: &[PathBuf], as_json: bool) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for file in files {
        let mut checker = Checker::new(Options::default());
        let refuse = |why: &dyn Display| Failure::Setup(format!("{}: {why}", file.display()));
        let opened = File::open(file)
            .map_err(|why| refuse(&format_args!("cannot be opened ({why}): give a pcap or pcapng file")))?;
        let frames = each_frame(BufReader::new(opened), |time_ns, bytes, len| {
            checker.on_cut_frame(time_ns, bytes, len);
        });
        frames.map_err(|why| refuse(&why))?;
        reports.push((file, checker.finish()));
    }
    let passed = reports.iter().all(|(_, report)| report.passed());
    if as_json {
        let files: Vec<_> = reports.iter().map(|(file, report)| in_json(file, report)).collect();
        let sum = |count: fn(&Report) -> u64| reports.iter().map(|(_, report)| count(report)).sum::<u64>();
        say(json!({
            "passed": passed,
            "frames": sum(|report| report.frames),
            "roce_frames": sum(|report| report.roce_frames),
            "violations": sum(|report| Rule::ALL.iter().map(|&rule| report.violations_by_rule(rule)).sum()),
            "files": files,
        }));
    } else {
        reports.iter().for_each(|(file, report)| in_words(file, report));
    }
    if passed { Ok(()) } else { Err(Failure::Told) }
}

fn in_words(file: &Path, report: &Report) {
    let mark = if report.passed() { '✓' } else { '✗' };
    let Report { frames, roce_frames, cut_frames, connections, directions, .. } = report;
    say(format_args!(
        "{mark} {}: {roce_frames} of {frames} frames are RoCE, {connections} connections, {directions} directions",
        file.display()
    ));
    for violation in report.violations.iter().take(MOST_LINES) {
        say(format_args!("    {violation}"));
    }
    for &rule in Rule::ALL.iter().filter(|&&rule| report.violations_by_rule(rule) > 0) {
        let (count, words, source) = (report.violations_by_rule(rule), rule.words(), rule.source());
        say(format_args!("  broken {count} times: {rule}: {words} (facts {source})"));
    }
    for &note in Note::ALL.iter().filter(|&&note| report.notes(note) > 0) {
        say(format_args!("  note: {}: {}", report.notes(note), note.words()));
    }
    if *cut_frames > 0 {
        say(format_args!(
            "  note: {cut_frames} frames were captured in part: iCRC, pad and payload were not judged"
        ));
    }
}

fn in_json(file: &Path, report: &Report) -> Value {
    let rules: Map<_, _> =
        Rule::ALL.iter().map(|&rule| (rule.id().into(), report.violations_by_rule(rule).into())).collect();
    let notes: Map<_, _> =
        Note::ALL.iter().map(|&note| (note.id().into(), report.notes(note).into())).collect();
    let violations: Vec<_> = report.violations.iter().map(violation).collect();
    json!({
        "file": file.display().to_string(),
        "passed": report.passed(),
        "frames": report.frames,
        "roce_frames": report.roce_frames,
        "cut_frames": report.cut_frames,
        "connections": report.connections,
        "directions": report.directions,
        "rules": rules,
        "notes": notes,
        "violations": violations,
    })
}

fn violation(violation: &::check::Violation) -> Value {
    json!({
        "rule": violation.rule.id(),
        "frame": violation.frame,
        "time_ns": violation.time_ns,
        "words": violation.words,
        "source": violation.src.ip().to_string(),
        "destination": violation.dst.ip().to_string(),
        "qp": violation.qpn.value(),
        "psn": violation.psn.value(),
    })
}
