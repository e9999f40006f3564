//! `rockhopper doctor`: what this machine and a configuration need, checked without changing anything.

mod machine;
mod ports;

use super::failure::Failure;
use super::out::say;
use rockhopper::Config;
use rockhopper::preflight::Problem;
use serde::Serialize;
use std::path::Path;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// As it should be.
    Ok,
    /// Works, but not at its best, or only for some ports.
    Warn,
    /// What was asked for will not work.
    Fail,
}

/// One check.
#[derive(Debug, Serialize)]
struct Check {
    name: String,
    status: Status,
    /// What was found.
    found: String,
    /// How to mend it; empty when there is nothing to mend.
    remedy: String,
}

impl Check {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check { name: name.into(), status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    fn warn(name: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name: name.into(), status: Status::Warn, found: found.into(), remedy: remedy.into() }
    }

    fn fail(name: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name: name.into(), status: Status::Fail, found: found.into(), remedy: remedy.into() }
    }

    /// A problem that matters only if the configuration needs the thing.
    fn needed(needed: bool, name: impl Into<String>, problem: Problem) -> Check {
        let Problem { found, remedy } = problem;
        if needed { Check::fail(name, found, remedy) } else { Check::warn(name, found, remedy) }
    }
}

/// Checks and reports. A failed check is a setup error.
pub fn run(config: Option<&Path>, json: bool) -> Result<(), Failure> {
    let config = config.map(Config::load).transpose()?;
    let mut checks = machine::checks(config.as_ref());
    if let Some(config) = &config {
        checks.extend(ports::checks(config));
    }
    let worst = |status| checks.iter().filter(|check| check.status == status).count();
    let (failed, warned) = (worst(Status::Fail), worst(Status::Warn));
    if json {
        let report = serde_json::json!({ "checks": checks, "failed": failed, "warnings": warned });
        say(report);
    } else {
        checks.iter().for_each(|check| say(line(check)));
        say(format_args!("\n{} checks, {failed} failed, {warned} with a remark", checks.len()));
    }
    if failed > 0 { Err(Failure::SetupTold) } else { Ok(()) }
}

fn line(check: &Check) -> String {
    let mark = match check.status {
        Status::Ok => "✓",
        Status::Warn => "!",
        Status::Fail => "✗",
    };
    let remedy = if check.remedy.is_empty() { String::new() } else { format!("\n    → {}", check.remedy) };
    format!("{mark} {:<18} {}{remedy}", check.name, check.found)
}
