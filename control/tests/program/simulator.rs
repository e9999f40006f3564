//! `rockhopper sim`: seeds that find nothing, forged frames that are found, and plan files.

use super::support::*;
use serde_json::Value;

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn seeds_are_played_and_counted() {
    let output = run(&["sim", "--seeds", "40", "--json"]);
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!((report["seeds"].as_u64(), report["failed"].as_u64()), (Some(40), Some(0)));
    assert!(report["packets"].as_u64() > Some(100) && report["operations"]["write"].as_u64() > Some(0));
}

#[test]
fn a_failing_seed_is_told_with_a_replay_and_a_plan_that_fails_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("small.toml");
    let forged = ["sim", "--seeds", "10", "--forge", "4", "--impair", "drop 1%", "--json", "--save"];
    let output = program(&forged).arg(&file).output().expect("the program");
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1), "{report}");
    let replay = report["failures"][0]["replay"].as_str().expect("a replay line");
    assert!(
        replay.starts_with("rockhopper sim --seed ")
            && replay.contains("--forge 4")
            && replay.contains("'drop 1%'"),
        "{replay}"
    );
    assert!(report["shrunken"]["trace"].as_str().is_some_and(|trace| trace.contains("PSN")));

    let again = program(&["sim"]).arg(&file).output().expect("the program");
    assert_eq!(again.status.code(), Some(1), "the saved plan fails too");
}

#[test]
fn what_cannot_be_played_is_refused_in_a_sentence() {
    for (arguments, words) in
        [(&["sim", "--impair", "dorp 1%"][..], "dorp"), (&["sim", "nowhere.toml"][..], "nowhere.toml")]
    {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(words), "{told}");
    }
}
