//! The report as one HTML file that needs nothing else: no network, no scripts.

use super::plots::{self, PLOTS};
use super::ratios::{self, Ratio};
use super::{Report, figure};
use crate::suite::case::{CaseResult, Verdict};
use crate::suite::metric::METRICS;
use crate::suite::statistics::Summary;
use humantime::{format_duration, format_rfc3339_seconds};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use std::time::Duration;

const STYLE: &str = "
body { font: 15px/1.45 sans-serif; margin: 1.5em auto; max-width: 68em; padding: 0 1em; color: #222; }
h1 { margin-bottom: 0.1em; } h2 { margin-top: 1.8em; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 0.6em 0; font-size: 13.5px; }
th, td { border: 1px solid #ddd; padding: 0.25em 0.6em; text-align: left; vertical-align: top; }
th { background: #f4f4f4; } td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font-size: 12.5px; overflow-wrap: anywhere; } svg { max-width: 100%; height: auto; }
td:first-child code { white-space: nowrap; }
.scroll { overflow-x: auto; } .note { color: #555; } .yes { color: #06702f; } .no { color: #a02010; }
.banner { background: #fff0d0; border: 1px solid #d8a030; padding: 0.6em 1em; }
.key { display: inline-block; margin-right: 1.2em; white-space: nowrap; }
.key i { display: inline-block; width: 1em; height: 0.75em; margin-right: 0.35em; }
figure { margin: 1.5em 0; } figcaption { font-weight: bold; margin-bottom: 0.3em; }
";

/// The whole page.
pub fn page(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Rockhopper: the suite" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Rockhopper: the suite" }
                p.note {
                    (format_rfc3339_seconds(report.begun.at)) ", took "
                    (format_duration(Duration::from_secs(report.took.as_secs()))) ": " (report.summary()) "."
                }
                @if !report.is_complete() {
                    p.banner { b { "Incomplete." } " The run was stopped; what was measured until then is here." }
                }
                (reading(report))
                (missing(report))
                h2 { "Machine and versions" }
                (facts(&report.begun.machine))
                @if let Some(load) = &report.load_at_end { p.note { "Load averages at the end: " (load) "." } }
                (facts(&report.versions))
                (compared(&ratios::all(&report.results)))
                (pictures(&report.results))
                (tables(&report.results))
                (commands(&report.results))
            }
        }
    };
    page.into_string()
}

fn reading(report: &Report) -> Markup {
    html! {
        p {
            "Each case is a program of its own and was run " (report.repetitions) " times for "
            (format_duration(report.duration)) ": once in each round, so that what changes on the machine touches all alike. "
            "Figures are medians of these repetitions; the spread is the distance from the least to the most as a part of the median. "
            "Gb/s are 10" sup { "9" } " bits of payload a second. Packets carry their iCRC, made by the one end and checked by the other. "
            "Each end has a core to itself, which is application and worker in one thread."
        }
        (nearness(report))
        @if report.begun.machine["cpus"].as_u64() == Some(1) {
            p.banner { "This machine gave one CPU: both ends had to share it." }
        }
        @if report.versions["rockhopper-perf"].as_str().is_some_and(|text| text.contains("debug")) {
            p.banner { "This program was built without optimisation: its figures say nothing of Rockhopper's speed." }
        }
    }
}

/// Where the cores were.
fn nearness(report: &Report) -> Markup {
    let count = |of: fn(&CaseResult) -> usize| report.results.iter().map(of).sum::<usize>();
    let (near, apart) = (count(|result| result.samples.len()), count(|result| result.apart.len()));
    let never = report.results.iter().filter(|result| result.is_apart()).count();
    html! {
        @match report.nearest {
            Some(nearest) => p {
                "Before and after each repetition a cache line went to the other core and back, which took "
                (figure(nearest)) " ns at the least. Where it took more than twice as long, or less than two cores need, the host of this machine had "
                "put its CPUs on cores that share no cache, or on one core: figures are of the " (near) " repetitions that began and ended near, "
                "and those of the " (apart) " others are told apart. What stays on one core is measured anywhere."
                @if never > 0 { " Marked * is where they were near in none, and all count: cases, " (never) "." }
            },
            None => p.note { "Nobody looked whether the two cores share a cache." },
        }
    }
}

/// What is not in the figures, and why; and what went wrong once although there are figures.
fn missing(report: &Report) -> Markup {
    let without: Vec<&CaseResult> =
        report.results.iter().filter(|result| result.reason().is_some()).collect();
    html! {
        @if !without.is_empty() {
            h2 { "Without figures, or with trouble" }
            table {
                tr { th { "case" } th { "state" } th { "why" } }
                @for result in without {
                    tr {
                        td { code { (result.case.id()) } }
                        td class=[matches!(result.verdict, Verdict::Failed(_)).then_some("no")] { (result.verdict.name()) }
                        td { (result.reason().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// A table of an object's fields.
fn facts(object: &Value) -> Markup {
    let told = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let words = list.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            words.collect::<Vec<_>>().join(", ")
        }
        Value::Null => "not told".into(),
        other => other.to_string(),
    };
    html! {
        table {
            @for (name, value) in object.as_object().into_iter().flatten() {
                tr { th { (name.replace('_', " ")) } td { (told(value)) } }
            }
        }
    }
}

fn compared(ratios: &[Ratio]) -> Markup {
    html! {
        @if !ratios.is_empty() {
            h2 { "Against bounds, aims and peers" }
            p.note {
                "Ratios of medians. An aim is what the project wants to reach. Linux rxe runs in two User Mode Linux guests: a kernel as a "
                "process of this machine, one CPU each, without hardware virtualisation, hence slower than on bare metal; "
                "their taps lie on the bridge of the tap cases, at the same MTU of 1500."
            }
            div.scroll { table {
                tr { th { "what" } th { "median" } th { "against" } th { "ratio" } th { "aim" } }
                @for ratio in ratios {
                    tr {
                        td { (ratio.about) }
                        td.n { (figure(ratio.value)) " " (ratio.unit()) }
                        td.n { (figure(ratio.other)) }
                        td.n { b { (figure(ratio.ratio())) } }
                        td.n { @match (ratio.aim, ratio.is_reached()) {
                            (Some(aim), Some(reached)) => span class=(if reached { "yes" } else { "no" }) {
                                (if ratio.at_most { "≤ " } else { "≥ " }) (aim) (if reached { " reached" } else { " not reached" })
                            },
                            _ => "",
                        } }
                    }
                }
            } }
        }
    }
}

fn pictures(results: &[CaseResult]) -> Markup {
    let drawn = PLOTS.iter().filter_map(|plot| {
        let lines = plots::lines(plot, results);
        plots::svg(plot, &lines).map(|picture| (plot, lines, picture))
    });
    let drawn: Vec<_> = drawn.collect();
    html! {
        @if !drawn.is_empty() {
            h2 { "Plots" }
            p.note { "Points are medians, bars go from the least to the most; both axes are logarithmic." }
            @for (plot, lines, picture) in drawn {
                figure {
                    figcaption { (plot.title) }
                    div { @for (number, line) in lines.iter().enumerate() {
                        @let (red, green, blue) = plots::colour(number);
                        span.key { i style=(format!("background: rgb({red},{green},{blue})")) {} (line.name) }
                    } }
                    (PreEscaped(picture))
                }
            }
        }
    }
}

fn tables(results: &[CaseResult]) -> Markup {
    html! {
        h2 { "Figures" }
        @for group in results.chunk_by(|a, b| a.case.group == b.case.group) {
            @let measured: Vec<&CaseResult> = group.iter().filter(|result| !result.counted().is_empty()).collect();
            @if let Some(first) = measured.first() {
                h3 { code { (first.case.group) } }
                div.scroll { table {
                    tr { th { "case" } th { "what" } th { "median" } th { "least" } th { "most" } th { "spread" } th { "runs" } th { "besides (medians)" } }
                    @for result in measured { (row(result)) }
                } }
            }
        }
    }
}

fn row(result: &CaseResult) -> Markup {
    let primary = result.case.primary;
    let besides = METRICS.iter().filter(|metric| **metric != *primary).filter_map(|metric| {
        let median = result.summary(metric.id)?.median;
        // Losses and repetitions are worth a word where there are some.
        let quiet = matches!(metric.id, "lost_percent" | "retransmitted") && median == 0.0;
        (!quiet).then(|| format!("{} {} {}", metric.label, figure(median), metric.unit))
    });
    let apart = Summary::of(&result.raw_apart(primary.id));
    let apart = apart.map(|apart| {
        format!("cores apart {} {} (of {})", figure(apart.median), primary.unit, result.apart.len())
    });
    let besides = besides.chain(apart).collect::<Vec<_>>().join(", ");
    html! {
        tr {
            td { code { (result.case.name) } }
            td { (result.case.about) }
            @match result.summary(primary.id) {
                Some(summary) => {
                    td.n { b { (figure(summary.median)) " " (primary.unit) } }
                    td.n { (figure(summary.min)) }
                    td.n { (figure(summary.max)) }
                    td.n { (format!("{:.1} %", summary.spread() * 100.0)) }
                }
                None => td colspan="4" { "no figure" }
            }
            td.n { (result.counted().len()) @if result.is_apart() { "*" } }
            td { (besides) }
        }
    }
}

fn commands(results: &[CaseResult]) -> Markup {
    html! {
        h2 { "Commands" }
        p.note {
            "Of two lines the first is the server's. Foreign programs and our two processes were kept to a core each by " code { "taskset" }
            ", on wires that the suite made: see bench/README.md."
        }
        div.scroll { table {
            @for result in results {
                tr {
                    td { code { (result.case.id()) } }
                    td { @for line in result.case.job.commands() { code { (line) } br; } }
                }
            }
        } }
    }
}
