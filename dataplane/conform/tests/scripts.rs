//! Scripts: the suite is whole, and mistakes are told with their place and what would be right.

use conform::{parse, suite};
use std::collections::BTreeSet;

#[test]
fn the_suite_holds_every_script_of_its_directory() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
    let entries = std::fs::read_dir(directory).unwrap();
    let files: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let listed: BTreeSet<String> = suite::SCRIPTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, listed);
}

#[test]
fn the_suite_has_enough_rules_and_each_cites_its_fact() {
    let rules = suite::rules().unwrap_or_else(|why| panic!("{why}"));
    assert!(rules.len() >= 370, "{}", rules.len());
    let cites = ["wire ", "transport ", "IBA "];
    for rule in &rules {
        assert!(cites.iter().any(|cite| rule.fact.contains(cite)), "{}: {}", rule.id, rule.fact);
        assert!(
            rule.title.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit() || c == 'r'),
            "{}",
            rule.title
        );
    }
}

/// A rule with one more line.
fn with(line: &str) -> String {
    format!("rule mine\ntitle Mine\nfact none\nqp rc\nregion A 64\n{line}\n")
}

#[test]
fn mistakes_are_told_with_their_place_and_what_would_be_right() {
    let cases = [
        ("sent send_only +0", "do you mean send?"),
        ("send sendonly +0", "do you mean send_only?"),
        ("send send_only +0 ackreg", "do you mean ackreq?"),
        ("send send_only +0 va=A", "this packet has no va"),
        ("send write_only +0 va=B rkey=A payload=data[0..8]", "there is no region \"B\""),
        ("send send_only +0 pad=4", "pad: 0x4 is more than its 2 bits hold"),
        ("send send_only +0 payload=8", "write data[0..64]"),
        ("send send_only +0 psn=+0..+2", "a packet to send has one value"),
        ("send nak +0", "Add code=sequence"),
        ("send nak +0 code=sequense", "do you mean sequence?"),
        ("send rnr +0", "Add timer=1"),
        ("send any", "name one, like send_only"),
        ("send send_only +0 to=q2", "there is no queue pair \"q2\""),
        ("send send_only +0 patch=ip:00", "layers are ip, udp, bth, ext"),
        ("expect ack +0 within=5", "write it like 250us, 20ms"),
        ("silence", "how long, like 20ms, is missing"),
        ("receive 1 A+0", "there is no word \"A+0\" here"),
        ("receive one", "is no number"),
        ("post sent 1", "do you mean send?"),
        ("complete send 1 succes", "do you mean success?"),
        ("complete both 1 success", "there are: send, recv, none"),
        ("memory A+0", "the bytes, like data[0..64], is missing"),
        ("state eror", "do you mean error?"),
        ("qp rc name=q2 mtu=1000", "256, 512, 1024, 2048 or 4096"),
        ("qp rcc", "do you mean rc?"),
        ("region B", "the length of the region is missing"),
        ("receive 1 srq=S", "there is no shared receive queue \"S\" yet: add a line like: srq S"),
        ("post bind 1 A+0:8 window=W", "add a line like: window W type=2"),
        ("window W type=3", "there is no type of window"),
        ("arm S 2", "there is no shared receive queue"),
        ("send write_only +0 va=A rkey=B_before", "there is no region \"B\""),
        ("region B 64 access=remote_writes", "do you mean remote_write?"),
        ("or something", "an or without either"),
        ("end", "an end without either"),
        ("either one\nsend send_only +0\nend", "has to begin with expect or silence"),
        ("either one\nsilence 1ms", "has no end"),
        ("needs everything", "there is no ability of a device"),
        ("rule mine", "there are two rules mine"),
        ("rule Mine", "small letters, digits and dashes"),
        ("rule other", "has no title"),
    ];
    for (line, right) in cases {
        let error = parse("mine.rule", &with(line)).expect_err(line);
        assert!(error.what.contains(right), "{line}: {error}");
        assert!((6..=9).contains(&error.line), "{error}");
        assert!(error.to_string().starts_with("mine.rule:"), "{error}");
    }
}

#[test]
fn a_script_begins_with_a_rule() {
    let error = parse("mine.rule", "\n# a comment\nqp rc\n").unwrap_err();
    assert_eq!((error.line, error.what.contains("begin with a line like: rule my-rule")), (3, true));
}

#[test]
fn what_a_device_needs_follows_from_the_steps() {
    let text = "rule a\ntitle A\nfact b\nqp uc ip=6\nregion A 64 fast\npost flush 1 at=A key=A\n";
    assert_eq!(parse("a", text).unwrap()[0].needs, ["uc", "ipv6", "fast", "post_flush"]);
    let text = "rule a\ntitle A\nfact b\nsrq S\nsrq T domain=0\nqp xrc_initiator\narm S 1\nwindow W\nwindow V type=2\n";
    assert_eq!(parse("a", text).unwrap()[0].needs, ["srq", "xrc", "srq_limit", "window_1", "window_2"]);
}
