//! Cases that are our own program: it prints one JSON object.

use crate::suite::case::{Job, Sample, Trouble};
use crate::suite::child::{Finished, Line};
use crate::suite::context::Context;
use crate::suite::metric::METRICS;
use serde_json::Value;

/// How our program is called in commands for people.
pub const NAME: &str = "rockhopper-perf";

/// Our program with arguments.
pub struct Ours {
    line: Line,
}

impl Ours {
    /// From its arguments; `--json` is added.
    pub fn new(arguments: &str) -> Ours {
        Ours { line: Line::new(arguments) }
    }
}

impl Job for Ours {
    fn run(&self, context: &mut Context) -> Result<Sample, Trouble> {
        let line = program(context, &self.line);
        sample(&context.finish(&line)?)
    }

    fn commands(&self) -> Vec<String> {
        vec![Line::new(NAME).with(self.line.0.clone()).shown()]
    }
}

/// The line that runs this program with these arguments and `--json`.
pub fn program(context: &Context, arguments: &Line) -> Line {
    let program = Line(vec![context.program.display().to_string()]).with(arguments.0.clone());
    // Probes know nothing else.
    if arguments.0.first().is_some_and(|word| word == "probe") { program } else { program.with(["--json"]) }
}

/// The figures in what our program printed. What could not begin, exit status 2, has said why in a sentence.
pub fn sample(finished: &Finished) -> Result<Sample, Trouble> {
    match finished.status.code() {
        Some(0) => {}
        Some(2) => return Err(Trouble::NotRun(sentence(&finished.err))),
        _ => return Err(Trouble::Failed(finished.complaint())),
    }
    let value: Value = serde_json::from_str(&finished.out)
        .map_err(|why| Trouble::Failed(format!("what it printed is no JSON: {why}")))?;
    Ok(figures(&value))
}

/// The complaint without the program's name.
fn sentence(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it could not begin");
    line.trim_start_matches("rockhopper-perf: ").to_owned()
}

/// From the object of a test, or of a probe.
pub fn figures(value: &Value) -> Sample {
    let mut sample = Sample::default();
    let probe = &value["values"];
    for metric in METRICS {
        if let Some(figure) = probe[metric.id].as_f64() {
            sample.0.insert(metric.id, figure);
        }
    }
    if probe.is_object() {
        return sample;
    }
    let latency = &value["latency_us"];
    if latency.is_object() {
        for (id, name) in [
            ("min_us", "min"),
            ("p50_us", "p50"),
            ("p90_us", "p90"),
            ("p99_us", "p99"),
            ("p999_us", "p999"),
            ("max_us", "max"),
            ("mean_us", "mean"),
        ] {
            latency[name].as_f64().map(|figure| sample.0.insert(id, figure));
        }
    } else {
        let mut put = |id, figure: Option<f64>| figure.map(|figure| sample.0.insert(id, figure));
        put("gbps", value["bandwidth_gbps"].as_f64());
        put("peak_gbps", value["bandwidth_peak_gbps"].as_f64());
        put("mmps", value["message_rate_mps"].as_f64().map(|rate| rate / 1e6));
        put("retransmitted", value["retransmitted_packets"].as_f64());
        let messages = value["messages"].as_f64().unwrap_or(0.0).max(1.0);
        put("lost_percent", value["lost"].as_f64().map(|lost| lost / messages * 100.0));
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_of_tests_and_probes_have_our_units() {
        let bandwidth = figures(&json!({
            "bandwidth_gbps": 8.0, "bandwidth_peak_gbps": 9.0, "message_rate_mps": 2e6, "messages": 100, "lost": 1, "retransmitted_packets": 3
        }));
        let named = |name: &str| bandwidth.0.get(name).copied();
        assert_eq!((named("gbps"), named("mmps")), (Some(8.0), Some(2.0)));
        assert_eq!(named("peak_gbps"), Some(9.0));
        assert_eq!((named("lost_percent"), named("retransmitted")), (Some(1.0), Some(3.0)));
        let latency = figures(&json!({ "bandwidth_gbps": 1.0, "latency_us": { "p50": 1.5, "p999": 9.0 } }));
        assert_eq!(latency.0.get("p50_us"), Some(&1.5));
        assert_eq!((latency.0.get("p999_us"), latency.0.get("gbps")), (Some(&9.0), None));
        let probe = figures(&json!({ "values": { "ns": 7.0, "nonsense": 1 } }));
        assert_eq!(probe.0.into_iter().collect::<Vec<_>>(), [("ns", 7.0)]);
    }

    #[test]
    fn the_sentence_of_what_could_not_begin_is_the_reason() {
        assert_eq!(sentence("\nrockhopper-perf: qps is 0; do this\n"), "qps is 0; do this");
    }
}
