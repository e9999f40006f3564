//! The conformance suite against ourselves: nothing fails, and what the facts leave open has a name.

use super::support::{run, text};
use serde_json::Value;

/// Rules whose outcome the facts leave open. A new one belongs here when its script says why.
const OPEN: &[&str] = &[
    "ask-reserved-nak",
    "duplicate-with-an-error",
    "duplicate-without-ackreq",
    "header-reserved-opcode",
    "invalidate-of-an-ordinary-region",
    "read-with-a-payload",
    "retry-sequence-naks-run-out",
    "rnr-packets-behind",
    "send-with-invalidate-of-an-unknown-key",
    "srq-broken-message-on-uc",
    "srq-receive-of-another-domain",
    "ud-ask-privileged-q-key",
    "window-2-invalidated-by-another-queue-pair",
    "write-pad-with-garbage",
    "xrc-keys-of-the-srq",
    "xrc-number-changes-inside-a-message",
    "xrc-number-of-another-domain",
    "xrc-number-of-nobody",
];

fn report(arguments: &[&str], status: i32) -> Value {
    let output = run(arguments);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(status), "{}{said}", text(&output.stderr));
    serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"))
}

fn ids(report: &Value, verdict: &str) -> Vec<String> {
    let rules = report["rules"].as_array().unwrap().iter();
    let mut ids: Vec<String> = rules
        .filter(|rule| rule["verdict"] == verdict)
        .map(|rule| rule["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[test]
fn every_rule_of_the_suite_holds_against_ourselves() {
    let report = report(&["conform", "--loopback", "--json"], 0);
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["passed"].as_u64() >= Some(360), "{}", report["passed"]);
    assert_eq!(report["skipped"], 0, "our device has all that rules ask for");
    assert_eq!(ids(&report, "open"), OPEN);
    let rules = report["rules"].as_array().unwrap();
    for rule in rules {
        assert!(rule["title"].is_string() && rule["fact"].is_string(), "{rule}");
        assert!(rule["why"] != "" || rule["verdict"] == "passed", "{rule}");
    }
    let packets: usize = rules.iter().map(|rule| rule["packets"].as_array().unwrap().len()).sum();
    assert!(packets > 800, "{packets} packets for {} rules", rules.len());
}

/// A rule that we break must be told as broken: with its packets, and status 1.
#[test]
fn a_rule_that_does_not_hold_is_told_with_its_packets() {
    let directory = tempfile::tempdir().unwrap();
    let script = "rule wrong\ntitle A SEND without a receive is acknowledged\nfact none\nqp rc rnr_timer=1\n\
                  send send_only +0 ackreq\nexpect ack +0 msn=1\n";
    std::fs::write(directory.path().join("wrong.rule"), script).unwrap();
    let path = directory.path().to_str().unwrap();
    let report = report(&["conform", "--loopback", "--json", "--scripts", path, "--pcapng", path], 1);
    assert_eq!((&report["passed"], &report["failed"]), (&Value::from(0), &Value::from(1)));
    let rule = &report["rules"][0];
    let why = rule["why"].as_str().unwrap();
    assert!(why.starts_with("line 6: ") && why.contains("RNR NAK, timer code 1"), "{why}");
    assert_eq!(rule["packets"].as_array().unwrap().len(), 2);
    let saved = std::fs::read(directory.path().join("wrong.pcapng")).unwrap();
    assert_eq!(saved[..4], [0x0A, 0x0D, 0x0D, 0x0A], "a section header begins a pcapng");
    assert!(saved.len() > 200);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let said = |arguments: &[&str]| {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    assert!(said(&["conform", "--loopback", "--scripts", path]).contains("there are no rules in"));
    let script = "rule mine\ntitle Mine\nfact none\nqp rc\nsend sendonly +0\n";
    std::fs::write(directory.path().join("mine.rule"), script).unwrap();
    let said_of_script = said(&["conform", "--loopback", "--scripts", path]);
    assert!(said_of_script.contains("mine.rule:5: "), "{said_of_script}");
    assert!(said_of_script.contains("do you mean send_only?"), "{said_of_script}");
    assert!(said(&["conform", "--loopback", "--only", "nosuchrule"]).contains("--list shows all names"));
    assert!(said(&["conform"]).contains("--loopback"));
    let target = ["conform", "--target", "10.0.0.1", "-c", "nosuchfile"];
    assert!(said(&target).contains("--agent ADDRESS:PORT") && said(&target).contains("--qp"));
    assert!(said(&[&target[..], &["--qp", "one"]].concat()).contains("write it like 17 or 0x11"));
}
