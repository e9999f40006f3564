//! `--impair` and `impair = "…"`: the link is spoiled, and everything arrives all the same.

use super::support::{RING, Serving, Setup, program, run, text};
use serde_json::Value;

const EVERYTHING: &str =
    "drop 1%; duplicate 1%; reorder 3 1%; delay 10us..100us 1%; corrupt 1%; truncate 1%; ce 1%; seed 7";

#[test]
fn demo_verifies_over_a_link_that_does_everything_wrong() {
    let output = run(&["demo", "--json", "--no-speed", "--impair", EVERYTHING]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}{}", text(&output.stdout), text(&output.stderr)));
    let faults: Vec<_> =
        report["operations"].as_array().unwrap().iter().filter(|check| !check["fault"].is_null()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    for kind in ["dropped", "duplicated", "reordered", "delayed", "corrupted", "truncated", "ce_marked"] {
        let count = report["impaired"][format!("impair_{kind}")].as_u64();
        assert!(count > Some(0), "{kind}: {}", report["impaired"]);
    }
}

#[test]
fn a_clean_demo_tells_of_no_impairments() {
    let output = run(&["demo", "--json", "--no-speed"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["impaired"].is_null());
}

#[test]
fn a_plan_that_cannot_be_read_is_refused_at_its_word() {
    for arguments in
        [&["demo", "--impair", "drop 1%; dorp 2%"][..], &["serve", "-c", "x", "--impair", "drop 1%; dorp 2%"]]
    {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        assert!(told.contains("`dorp` at character 10") && told.contains("say drop, duplicate"), "{told}");
    }
}

/// Two ports, of which `left` sees nothing that comes.
fn spoiled() -> Setup {
    Setup::new(&RING.replacen("[[port]]", "[[port]]\nimpair = \"drop 100% any rx\"", 1))
}

/// Ports tell of their link-local addresses when they come up: what the other one sends, `left` never sees.
#[test]
fn stats_tell_what_a_configured_plan_did() {
    let setup = spoiled();
    let serving = Serving::start(&setup, &[]);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let dropped = loop {
        let output = program(&["stats", "-c", &setup.config(), "--json"]).output().unwrap();
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |port: usize| stats["ports"][port]["roce"]["impair_dropped"].as_u64();
        if of(0) > Some(0) || std::time::Instant::now() > end {
            break [of(0), of(1)];
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert!(dropped[0] > Some(0), "{dropped:?}");
    assert_eq!(dropped[1], Some(0));
    assert_eq!(serving.interrupt().status.code(), Some(0));
}

/// The flag stands for what every port's section says.
#[test]
fn the_flag_takes_the_place_of_the_configured_plan() {
    let setup = spoiled();
    let serving = Serving::start(&setup, &["--impair", "ce packet 1", "--json"]);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let output = serving.interrupt();
    assert_eq!(output.status.code(), Some(0));
    assert!(!text(&output.stdout).contains("\"impair_dropped\":1"), "{}", text(&output.stdout));
}
