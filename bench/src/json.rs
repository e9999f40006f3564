//! The JSON object. Its fields are documented in `bench/README.md`.

use crate::report::Place;
use hdrhistogram::Histogram;
use rockhopper::perf::{EndReport, Outcome};
use serde_json::{Map, Value, json};

/// One run as one object; all sizes as one object with `results`.
pub fn object(outcomes: &[Outcome], place: &Place, many: bool) -> Value {
    match outcomes {
        [outcome] if !many => result(outcome, place),
        _ => {
            let results: Vec<Value> = outcomes.iter().map(|outcome| result(outcome, place)).collect();
            let op = outcomes.first().map(|outcome| outcome.params.op.to_string());
            json!({
                "op": op,
                "results": results,
                "verified": !outcomes.is_empty() && outcomes.iter().all(Outcome::is_verified),
                "interrupted": outcomes.iter().any(|outcome| outcome.interrupted),
                "versions": versions(),
            })
        }
    }
}

fn result(outcome: &Outcome, place: &Place) -> Value {
    let params = &outcome.params;
    let mut object = json!({
        "op": params.op.to_string(),
        "transport": params.transport.to_string(),
        "size_bytes": params.size,
        "qps": params.qps,
        "depth": outcome.window,
        "mtu": params.mtu,
        "area_bytes": outcome.area_bytes(),
        "bidirectional": params.bidirectional,
        "imm": params.imm,
        "cq_mod": params.cq_mod,
        "post_list": params.post_list,
        "inline": params.inline,
        "seconds": outcome.seconds(),
        "messages": outcome.messages(),
        "bandwidth_gbps": outcome.bandwidth_gbps(),
        "bandwidth_peak_gbps": outcome.peak_gbps(),
        "message_rate_mps": outcome.message_rate(),
        "verified": outcome.is_verified(),
        "verify": {
            "asked": params.verify,
            "compared": outcome.compared(),
            "faults": outcome.faults(),
            "first_fault": outcome.first_fault(),
        },
        "lost": outcome.lost() + outcome.client.sent.unanswered,
        "retransmitted_packets": outcome.counter("retransmitted_packets"),
        "discarded_packets": outcome.drops(),
        "client": end(&outcome.client),
        "server": end(&outcome.server),
        "driver": place.driver,
        "cores": place.cores,
        "polling": place.polling,
        "interrupted": outcome.interrupted,
        "versions": versions(),
    });
    if let (Some(record), Some(object)) = (&outcome.latency, object.as_object_mut()) {
        object.insert("latency_us".into(), latency(record));
    }
    object
}

fn end(end: &EndReport) -> Value {
    let received = end.received.messages.as_ref().map(|messages| messages.iter().sum::<u64>());
    json!({ "sent": end.sent.total(), "received": received, "counters": end.counters })
}

fn latency(record: &Histogram<u64>) -> Value {
    let us = |nanos: u64| Value::from(nanos as f64 / 1e3);
    let mut object = Map::new();
    object.insert("samples".into(), record.len().into());
    object.insert("min".into(), us(record.min()));
    for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        object.insert(name.into(), us(record.value_at_quantile(quantile)));
    }
    object.insert("max".into(), us(record.max()));
    object.insert("mean".into(), Value::from(record.mean() / 1e3));
    object.into()
}

fn versions() -> Value {
    json!({ "rockhopper-perf": env!("CARGO_PKG_VERSION"), "dpdk": rockhopper::perf::dpdk_version() })
}
