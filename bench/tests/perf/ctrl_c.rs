//! Ctrl-C ends a run early: what was measured so far is printed, and the exit status says that it was not
//! all.

use crate::program::{command, object, stderr, stdout};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

fn interrupted(line: &str, after: Duration) -> Output {
    let child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(after);
    let begin = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20), "{line}: it took {:?} to end", begin.elapsed());
    assert_eq!(output.status.code(), Some(130), "{line}: {}{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn a_run_prints_what_was_measured_so_far() {
    for op in ["write-bw", "send-lat"] {
        let line = format!("{op} --loopback ring --size 64 --duration 10m --verify --json");
        let result = object(&line, &interrupted(&line, Duration::from_secs(3)));
        assert_eq!(result["interrupted"], true, "{line}: {result}");
        assert!(result["messages"].as_u64() > Some(0), "{line}: {result}");
        assert_eq!(result["verified"], true, "what was sent was compared: {line}: {result}");
        assert!(result["seconds"].as_f64() < Some(60.0), "{line}: {result}");
    }
}

#[test]
fn sizes_that_were_done_are_printed() {
    let output = interrupted("write-bw --loopback ring --size all --duration 1s", Duration::from_secs(4));
    let text = stdout(&output);
    let rows =
        text.lines().filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())).count();
    assert!((1..23).contains(&rows), "{text}");
    assert!(text.contains("interrupted"), "{text}");
}

#[test]
fn a_server_that_waits_ends_too() {
    let output =
        interrupted("send-bw --vdev net_null0 --address 192.0.2.1/24 --port 18592", Duration::from_secs(3));
    assert!(stderr(&output).contains("waiting for a client"), "{}", stderr(&output));
}
