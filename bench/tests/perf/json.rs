//! What `--json` prints, and the table beside it.

use crate::program::{measure, run, stdout};
use serde_json::Value;

#[test]
fn one_run_is_one_object_with_the_documented_fields() {
    let result = measure("write-bw --loopback ring --size 65536 --qps 1 --duration 300ms --verify");
    for (field, value) in [
        ("op", "write-bw".into()),
        ("size_bytes", 65536.into()),
        ("qps", 1.into()),
        ("transport", "RC".into()),
        ("mtu", 4096.into()),
        ("verified", Value::Bool(true)),
        ("polling", "caller".into()),
    ] {
        assert_eq!(result[field], value, "{field}: {result}");
    }
    assert_eq!(result["cores"].as_array().map(Vec::len), Some(2), "{result}");
    let number = |field: &str| result[field].as_f64().unwrap_or_else(|| panic!("{field}: {result}"));
    assert!(number("seconds") >= 0.29, "{result}");
    assert!(number("messages") > 0.0, "{result}");
    // The figures fit each other.
    let rate = number("messages") / number("seconds");
    assert!((number("message_rate_mps") / rate - 1.0).abs() < 0.01, "{result}");
    assert!((number("bandwidth_gbps") / (rate * 65536.0 * 8.0 / 1e9) - 1.0).abs() < 0.01, "{result}");
    assert!(number("bandwidth_peak_gbps") >= 0.99 * number("bandwidth_gbps"), "{result}");
    for field in ["retransmitted_packets", "discarded_packets", "lost"] {
        assert!(result[field].is_u64(), "{field}: {result}");
    }
    assert!(result["versions"]["dpdk"].as_str().is_some_and(|text| text.starts_with("DPDK")), "{result}");
    assert!(
        result["server"]["counters"]["rx_write_requests"].as_u64() >= result["messages"].as_u64(),
        "{result}"
    );
    assert!(result.get("latency_us").is_none(), "{result}");
}

#[test]
fn latency_has_percentiles_in_order() {
    for op in ["send-lat", "write-lat", "read-lat", "atomic-lat"] {
        let result = measure(&format!("{op} --loopback ring --iters 200"));
        let latency = &result["latency_us"];
        assert_eq!(latency["samples"], 200, "{op}: {result}");
        let values: Vec<f64> = ["min", "p50", "p90", "p99", "p999", "max"]
            .map(|name| latency[name].as_f64().unwrap_or_else(|| panic!("{op}, {name}: {result}")))
            .into();
        assert!(values[0] > 0.0 && values.is_sorted(), "{op}: {result}");
        assert!(latency["mean"].as_f64() >= Some(values[0]), "{op}: {result}");
    }
}

#[test]
fn all_sizes_are_one_object_with_results() {
    let result = measure("send-bw --loopback ring --size all --iters 20 --depth 4");
    let results = result["results"].as_array().unwrap();
    let sizes: Vec<u64> = results.iter().map(|one| one["size_bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, (1..=23).map(|shift| 1 << shift).collect::<Vec<u64>>());
    assert!(results.iter().all(|one| one["messages"] == 20), "{result}");
    assert_eq!(result["verified"], false, "nobody asked for checks: {result}");
}

#[test]
fn the_table_has_a_row_per_run_and_says_what_was_compared() {
    let text = stdout(&run("send-bw --loopback ring --size 64 --iters 100 --verify"));
    let rows: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("64 ")).collect();
    assert_eq!(rows.len(), 1, "{text}");
    assert!(text.contains("average[Gb/s]") && text.contains("rate[M/s]"), "{text}");
    assert!(text.contains("verified: 100 messages compared"), "{text}");
    let latency = stdout(&run("write-lat --loopback ring --size 64 --iters 100"));
    assert!(latency.contains("p99.9[us]") && !latency.contains("verified"), "{latency}");
}
