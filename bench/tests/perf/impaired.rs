//! A spoiled link: reliable tests verify every byte all the same, unreliable ones what arrives.

use crate::program::{command, object, stderr};
use serde_json::Value;

const EVERYTHING: &str =
    "drop 1%; duplicate 1%; reorder 3 1%; delay 10us..100us 1%; corrupt 1%; truncate 1%; ce 1%; seed 7";

fn measure(line: &str) -> Value {
    let output =
        command(line).args(["--loopback", "ring", "--verify", "--json", "--impair", EVERYTHING]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    object(line, &output)
}

#[test]
fn reliable_operations_verify_over_a_spoiled_link() {
    for op in ["send-bw", "write-bw --imm", "read-bw"] {
        let result = measure(&format!("{op} --size 4096 --iters 300 --depth 16"));
        assert_eq!((&result["verified"], &result["lost"]), (&true.into(), &0.into()), "{op}: {result}");
        assert_eq!(result["messages"], 300, "{op}: {result}");
        assert!(result["retransmitted_packets"].as_u64() > Some(0), "{op}: {result}");
        assert!(result["discarded_packets"].as_u64() > Some(0), "{op}: {result}");
    }
}

#[test]
fn a_plan_that_cannot_be_read_is_refused() {
    let output = command("send-bw --loopback ring").args(["--impair", "drop 1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`1` at character 6"), "{}", stderr(&output));
}
