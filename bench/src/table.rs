//! The table, after perftest's.

use crate::report::Place;
use rockhopper::perf::Outcome;
use std::fmt::Write;

/// What is run, and the column heads.
pub fn head(outcome: &Outcome, place: &Place) -> String {
    let params = &outcome.params;
    let mut text = format!(
        "{} {} on {}: {} QP{}, {} under way each, MTU {}, {}{}{}\n",
        params.transport,
        params.op,
        place.driver,
        params.qps,
        if params.qps == 1 { "" } else { "s" },
        outcome.window,
        params.mtu,
        if params.bidirectional { "both directions, " } else { "" },
        if params.verify { "every byte compared, " } else { "" },
        cores(place),
    );
    let heads = if params.op.is_latency() {
        ["min[us]", "p50[us]", "p90[us]", "p99[us]", "p99.9[us]", "max[us]", "mean[us]"].as_slice()
    } else {
        ["peak[Gb/s]", "average[Gb/s]", "average[MB/s]", "rate[M/s]"].as_slice()
    };
    let _ = write!(text, "{:>10} {:>12}", "#bytes", "#messages");
    for head in heads {
        let _ = write!(text, " {head:>13}");
    }
    text.push('\n');
    text
}

fn cores(place: &Place) -> String {
    if place.cores.is_empty() {
        return format!("polling {}", place.polling);
    }
    let list: Vec<String> = place.cores.iter().map(ToString::to_string).collect();
    format!("cores {} polling {}", list.join(","), place.polling)
}

/// One run.
pub fn row(outcome: &Outcome) -> String {
    let mut text = format!("{:>10} {:>12}", outcome.params.size, outcome.messages());
    match &outcome.latency {
        Some(record) => {
            for nanos in [
                record.min(),
                record.value_at_quantile(0.5),
                record.value_at_quantile(0.9),
                record.value_at_quantile(0.99),
                record.value_at_quantile(0.999),
                record.max(),
            ] {
                let _ = write!(text, " {:>13.2}", nanos as f64 / 1e3);
            }
            let _ = write!(text, " {:>13.2}", record.mean() / 1e3);
        }
        None => {
            let gbps = outcome.bandwidth_gbps();
            let _ = write!(text, " {:>13.3} {gbps:>13.3}", outcome.peak_gbps());
            let _ = write!(text, " {:>13.2} {:>13.4}", gbps * 1e9 / 8e6, outcome.message_rate() / 1e6);
        }
    }
    text.push('\n');
    text
}

/// What there is to say about all runs.
pub fn foot(outcomes: &[Outcome]) -> String {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    let mut text = String::new();
    if outcomes.iter().all(Outcome::is_verified) {
        let _ = writeln!(text, "verified: {} messages compared, every byte right", sum(Outcome::compared));
    }
    let faults = sum(Outcome::faults);
    if faults > 0 {
        let _ = writeln!(text, "WRONG: {faults} checks failed");
    }
    let lost = sum(Outcome::lost) + sum(|outcome| outcome.client.sent.unanswered);
    if lost > 0 {
        let _ = writeln!(text, "lost: {lost} messages");
    }
    let retransmitted = sum(|outcome| outcome.counter("retransmitted_packets"));
    let drops = sum(Outcome::drops);
    if retransmitted + drops > 0 {
        let _ = writeln!(text, "retransmitted packets: {retransmitted}, discarded packets: {drops}");
    }
    if outcomes.iter().any(|outcome| outcome.interrupted) {
        let _ = writeln!(text, "interrupted: this is what was measured so far");
    }
    text
}
