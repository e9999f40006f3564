//! The report as JSON. Its fields are documented in `bench/README.md`.

use super::Report;
use crate::suite::case::CaseResult;
use crate::suite::metric::METRICS;
use serde_json::{Map, Value, json};

pub fn object(report: &Report) -> Value {
    json!({
        "complete": report.is_complete(),
        "started": humantime::format_rfc3339_seconds(report.begun.at).to_string(),
        "seconds": report.took.as_secs_f64(),
        "options": {
            "repetitions": report.repetitions,
            "duration_ms": report.duration.as_millis() as u64,
            "only": report.only,
            "anywhere": report.anywhere,
        },
        "nearest_trip_ns": report.nearest,
        "machine": report.begun.machine,
        "load_at_end": report.load_at_end,
        "versions": report.versions,
        "cases": report.results.iter().map(case).collect::<Vec<_>>(),
        "ratios": super::ratios::all(&report.results).iter().map(|ratio| ratio.json()).collect::<Vec<_>>(),
    })
}

fn case(result: &CaseResult) -> Value {
    let case = &result.case;
    let mut values = Map::new();
    for metric in METRICS {
        if let Some(summary) = result.summary(metric.id) {
            let figures = json!({
                "unit": metric.unit,
                "raw": result.raw(metric.id),
                "raw_apart": result.raw_apart(metric.id),
                "median": summary.median,
                "min": summary.min,
                "max": summary.max,
                "spread": summary.spread(),
            });
            values.insert(metric.id.into(), figures);
        }
    }
    json!({
        "id": case.id(),
        "group": case.group,
        "about": case.about,
        "metric": case.primary.id,
        "status": result.verdict.name(),
        "reason": result.reason(),
        "apart": result.is_apart(),
        "commands": case.job.commands(),
        "values": values,
    })
}
