//! What ping says: a line for each round trip and a summary, or one JSON object.

use super::super::failure::Failure;
use super::super::out::say;
use rockhopper::programs::{PingOptions, PingOutcome, Pinged, Program, VisitOptions, VisitOutcome};
use serde_json::json;
use std::time::Duration;

/// Says what is seen.
pub struct Report<'a> {
    host: &'a str,
    options: &'a PingOptions,
    json: bool,
    quiet: bool,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl<'a> Report<'a> {
    pub fn new(host: &'a str, options: &'a PingOptions, json: bool, quiet: bool) -> Report<'a> {
        Report { host, options, json, quiet }
    }

    fn service(&self) -> &'static str {
        if self.options.program == Program::Udaddy { "UD" } else { "RC" }
    }

    /// One thing.
    pub fn say(&self, pinged: &Pinged) {
        if self.json || self.quiet {
            return;
        }
        let (host, size, port) = (self.host, self.options.size, self.options.to.port);
        match pinged {
            Pinged::Connected { time, path_mtu } => {
                let mtu = path_mtu.map_or(String::new(), |mtu| format!(", path MTU {mtu}"));
                say(format!("{host} port {port}: {} in {:.3} ms{mtu}", self.service(), ms(*time)));
            }
            Pinged::Answered { number, time, wrong } => {
                let wrong = if *wrong > 0 { format!(", {wrong} BYTES WRONG") } else { String::new() };
                say(format!("{size} bytes from {host}: seq={number} time={:.3} ms{wrong}", ms(*time)));
            }
            Pinged::Lost { number } => say(format!("no answer from {host}: seq={number}")),
        }
    }

    /// What came of it.
    pub fn end(&self, outcome: PingOutcome, stopped: bool) -> Result<(), Failure> {
        let times = &outcome.times;
        let us = |nanos: u64| nanos as f64 / 1e3;
        let at = |quantile| us(times.value_at_quantile(quantile));
        // Without a single answer there are no times.
        let some = |value: f64| (!times.is_empty()).then_some(value);
        if self.json {
            say(json!({
                "host": self.host, "port": self.options.to.port, "service": self.service(),
                "program": self.options.program.to_string(), "size_bytes": self.options.size,
                "connect_us": outcome.connect.as_secs_f64() * 1e6,
                "sent": outcome.sent, "answered": outcome.answered, "wrong_bytes": outcome.wrong,
                "rtt_us": {
                    "min": some(us(times.min())), "mean": some(times.mean() / 1e3), "p50": some(at(0.5)),
                    "p90": some(at(0.9)), "p99": some(at(0.99)), "max": some(us(times.max())),
                },
                "broken": outcome.broken, "verified": outcome.is_good(),
            }));
        } else {
            self.summary(&outcome);
        }
        if outcome.is_good() {
            return Ok(());
        }
        match outcome.broken {
            Some(why) => Err(Failure::Run(format!("{}: {why}", self.host))),
            None if outcome.sent == 0 && stopped => Err(Failure::Interrupted),
            None => Err(Failure::Told),
        }
    }

    fn summary(&self, outcome: &PingOutcome) {
        let lost = outcome.sent - outcome.answered;
        say(format!("--- {}, {}: connected in {:.3} ms", self.host, self.service(), ms(outcome.connect)));
        say(format!(
            "{} round trips, {} answered, {lost} lost, {} bytes wrong",
            outcome.sent, outcome.answered, outcome.wrong
        ));
        let times = &outcome.times;
        if !times.is_empty() {
            let at = |quantile| times.value_at_quantile(quantile) as f64 / 1e6;
            say(format!(
                "min/avg/p50/p99/max = {:.3}/{:.3}/{:.3}/{:.3}/{:.3} ms",
                times.min() as f64 / 1e6,
                times.mean() / 1e6,
                at(0.5),
                at(0.99),
                times.max() as f64 / 1e6
            ));
        }
    }
}

/// What came of being another program's client.
pub fn visited(host: &str, options: &VisitOptions, outcome: &VisitOutcome, json: bool) {
    let VisitOutcome { connects, received, time } = outcome;
    let us = |quantile| connects.value_at_quantile(quantile) as f64 / 1e3;
    let program = options.program.to_string();
    if json {
        return say(json!({
            "host": host, "port": options.to.port, "program": program, "connections": options.connections,
            "messages": received, "seconds": time.as_secs_f64(),
            "connect_us": { "min": us(0.0), "p50": us(0.5), "p99": us(0.99), "max": us(1.0) },
        }));
    }
    say(format!(
        "{host}, {program}: {} connections, {received} messages in {:.3} s; connecting took {:.3} ms, {:.3} ms at most",
        options.connections,
        time.as_secs_f64(),
        us(0.5) / 1e3,
        us(1.0) / 1e3
    ));
}
