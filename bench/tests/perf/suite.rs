//! The suite as people run it: what it lists, what it narrows to, what it writes. Runs are as short as can be: they show that the
//! report tells what was measured, not how fast anything is.

use crate::program::{command, run, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[test]
fn what_cannot_be_exits_with_2_and_says_why() {
    for (line, said) in [
        ("suite --only nothing", "no case is called nothing; groups are limits, ring"),
        ("suite --only ring/[", "no pattern"),
        ("suite --repetitions 0", "0 is not in 1..=1000"),
        ("suite --duration never", "a time"),
        ("suite --list --colour red", "unexpected argument"),
        ("suite --only limits/round-trip --output /dev/null/here", "--output"),
        ("probe fly", "unrecognized subcommand"),
        ("probe copy --size 0", "0 is not in 1"),
        ("probe jitter --cores 0", "two cores"),
        ("probe hop --interfaces one", "two names"),
        ("probe steering --taps one --arrive wrong", "two names"),
        ("probe steering --taps a,b --arrive right", "the kernel says where frames arrive"),
        ("probe steering --arrive followed", "takes --taps"),
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn the_list_names_cases_and_only_narrows_it() {
    let list = |line: &str| {
        let output = run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        stdout(&output).lines().map(first).collect::<Vec<String>>()
    };
    let all = list("suite --list");
    for name in [
        "limits/copy-crc-hot/4096",
        "ring/write/65536",
        "mtu/read/1024",
        "qps/send/10000",
        "few/write/256",
        "limits/carry/138",
        "latency/rc-write/8",
        "setup/connect",
        "memif/write/64",
        "veth/write/1048576",
        "veth/profile",
        "limits/testpmd/veth",
        "workers/tap/moving",
        "tap/send/64",
        "peers/tcp",
        "rxe/write/64",
        "counters/write/64",
    ] {
        assert!(all.iter().any(|one| one == name), "{name}: {all:?}");
    }
    let of = |group: &str| all.iter().filter(|name| name.starts_with(group)).cloned().collect::<Vec<_>>();
    assert_eq!(list("suite --list --only latency"), of("latency/"));
    assert_eq!(list("suite --list --only mtu/write --only tap/send/64").len(), 4);
    assert_eq!(list("suite --list --only ring/*/65536").len(), 7);
}

fn report(directory: &Path) -> (Value, String) {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    (serde_json::from_str(&read("suite.json")).unwrap(), read("suite.html"))
}

fn case<'a>(report: &'a Value, id: &str) -> &'a Value {
    let cases = report["cases"].as_array().unwrap();
    cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("{id}: {report}"))
}

#[test]
fn two_cases_twice_make_a_report_with_medians_of_what_was_measured() {
    let directory = TempDir::new().unwrap();
    let line = "suite --only ring/write/64 --only limits/copy-crc-hot/4096 --anywhere -r 2 -D 30ms --json -o";
    let output = command(line).arg(directory.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // One round of all before the next of any.
    let told = stderr(&output);
    let order: Vec<&str> = told.lines().filter(|line| line.contains("round")).collect();
    assert_eq!(order.len(), 4, "{told}");
    for (line, words) in order.iter().zip(["copy-crc", "ring/write/64", "copy-crc", "ring/write/64"]) {
        assert!(line.contains(words), "{told}");
    }
    assert!(order[0].contains("[   1/4] round 1 of 2") && order[0].contains("left"), "{told}");

    let (written, html) = report(directory.path());
    assert_eq!(serde_json::from_str::<Value>(&stdout(&output)).unwrap(), written);
    assert_eq!(written["complete"], true);
    for (id, metric) in [("ring/write/64", "mmps"), ("limits/copy-crc-hot/4096", "gbps")] {
        let case = case(&written, id);
        assert_eq!((&case["status"], &case["metric"]), (&"measured".into(), &metric.into()), "{case}");
        let figures = &case["values"][metric];
        let raw: Vec<f64> = figures["raw"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(raw.len(), 2, "{case}");
        assert!(raw.iter().all(|value| *value > 0.0), "{case}");
        let (least, most) = (raw[0].min(raw[1]), raw[0].max(raw[1]));
        let near = |field: &str, value: f64| {
            let got = figures[field].as_f64().unwrap();
            assert!((got - value).abs() <= 1e-9 * value.abs(), "{field}: {case}");
        };
        near("median", (least + most) / 2.0);
        near("min", least);
        near("max", most);
        near("spread", (most - least) / ((least + most) / 2.0));
        // In the page: the case, its command.
        let command = case["commands"][0].as_str().unwrap();
        assert!(html.contains(id.split_once('/').unwrap().1) && html.contains(command), "{command}: {html}");
    }
    for words in ["<svg", "copy and CRC, hot", "Gb/s", "DPDK", "rustc", "</html>"] {
        assert!(html.contains(words), "{words}: {html}");
    }
    // Self-contained: nothing is loaded, nothing runs.
    for words in ["<script", "<link", "src=", "@import", "url("] {
        assert!(!html.contains(words), "{words}: {html}");
    }
    for field in ["cpu", "caches", "kernel", "hugepages", "memory"] {
        assert!(!written["machine"][field].is_null(), "{field}: {}", written["machine"]);
    }
}

#[test]
fn a_missing_tool_is_told_and_no_failure() {
    let directory = TempDir::new().unwrap();
    let empty = TempDir::new().unwrap();
    let line = "suite --only peers/tcp --only counters/write/64 --only limits/testpmd --only veth/profile -r 1 -D 30ms -o";
    let output = command(line).arg(directory.path()).env("PATH", empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("0 cases measured, 5 not run, 0 failed"), "{}", stderr(&output));
    let (written, html) = report(directory.path());
    for (id, tool) in [
        ("peers/tcp", "iperf3"),
        ("counters/write/64", "perf"),
        ("limits/testpmd/veth", "dpdk-testpmd"),
        ("veth/profile", "perf"),
    ] {
        let case = case(&written, id);
        assert_eq!(case["status"], "not run", "{case}");
        let reason = case["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("there is no {tool}")), "{case}");
        assert!(reason.contains("setup-bench") && html.contains(reason.split('`').next().unwrap()), "{case}");
    }
}

#[test]
fn what_goes_wrong_is_a_failure_with_its_reason() {
    let (directory, tools) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // A perf that finds no program to run.
    let fake = tools.path().join("perf");
    std::fs::write(&fake, "#!/bin/sh\necho it is broken >&2\nexit 7\n").unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&fake).status().unwrap();
    let line = "suite --only counters/write/64 --only limits/round-trip -r 2 -D 20ms -o";
    let output = command(line).arg(directory.path()).env("PATH", tools.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let (written, html) = report(directory.path());
    let failed = case(&written, "counters/write/64");
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["reason"].as_str().unwrap().contains("it is broken"), "{failed}");
    assert!(html.contains("it is broken"), "{html}");
    // The others go on, and the failed one is not tried again.
    assert_eq!(case(&written, "limits/round-trip")["status"], "measured");
    assert_eq!(stderr(&output).matches("FAILED").count(), 1, "{}", stderr(&output));
}

#[test]
fn ctrl_c_leaves_a_report_marked_incomplete() {
    let directory = TempDir::new().unwrap();
    let mut child = command("suite --only limits/round-trip --only ring/write/64 -r 500 -D 200ms -o")
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    // Interrupted in the middle of the second round.
    let second = told.by_ref().map(Result::unwrap).find(|line| line.contains("round 2 of 500"));
    assert!(second.is_some());
    let begin = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let rest: Vec<String> = told.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(30), "it took {:?} to end", begin.elapsed());
    assert_eq!(status.code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("INCOMPLETE")), "{rest:?}");
    let (written, html) = report(directory.path());
    assert_eq!(written["complete"], false);
    assert!(html.contains("Incomplete."), "{html}");
    let trip = case(&written, "limits/round-trip");
    // Those that do not count, since another had the cores near, are here, too.
    let of = |which: &str| trip["values"]["p50_us"][which].as_array().map_or(0, Vec::len);
    assert!(of("raw") + of("raw_apart") >= 2, "{trip}");
    assert_eq!(case(&written, "ring/write/64")["status"], "measured");
}
