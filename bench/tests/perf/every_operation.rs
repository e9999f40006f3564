//! Every operation of every service moves the right bytes: over a ring pair, at sizes of one packet, a full
//! packet and many packets with an odd end.

use crate::program::measure;
use serde_json::Value;

/// Runs a test at several sizes with every byte compared.
fn verified(line: &str, sizes: &[u32]) {
    for size in sizes {
        let line = format!("{line} --loopback ring --size {size} --iters 100 --verify");
        let result = measure(&line);
        assert_eq!(result["verified"], true, "{line}: {result}");
        assert_eq!(result["messages"], 100, "{line}: {result}");
        assert!(result["verify"]["compared"].as_u64() >= Some(100), "{line}: {result}");
        assert_eq!(result["lost"], 0, "{line}: {result}");
    }
}

const SIZES: [u32; 3] = [64, 4096, 65537];

#[test]
fn rc_sends() {
    verified("send-bw", &SIZES);
    verified("send-lat", &SIZES);
}

#[test]
fn rc_writes() {
    verified("write-bw --depth 128", &SIZES);
    verified("write-lat", &SIZES);
}

#[test]
fn rc_reads() {
    verified("read-bw", &SIZES);
    verified("read-lat", &SIZES);
}

#[test]
fn rc_atomics() {
    verified("atomic-bw", &[8]);
    verified("atomic-lat", &[8]);
}

/// A service that may lose messages loses some when a core is taken away for long enough, so only what
/// arrives has to be right.
fn arrives_right(line: &str, sizes: &[u32]) {
    for size in sizes {
        let line = format!("{line} --loopback ring --size {size} --iters 100 --verify");
        let result = measure(&line);
        assert_eq!(result["verify"]["faults"], 0, "{line}: {result}");
        assert_eq!(result["messages"], 100, "{line}: {result}");
        assert!(result["verify"]["compared"].as_u64() > Some(0), "{line}: {result}");
    }
}

#[test]
fn uc_sends_and_writes() {
    for op in ["send-bw", "send-lat", "write-bw", "write-lat"] {
        arrives_right(
            &format!("{op} --connection UC --depth {}", if op.ends_with("lat") { 1 } else { 16 }),
            &SIZES,
        );
    }
}

#[test]
fn ud_sends() {
    for op in ["send-bw", "send-lat"] {
        arrives_right(&format!("{op} --connection UD"), &[1, 64, 4096]);
    }
}

#[test]
fn several_qps_in_both_directions() {
    for op in ["send-bw", "write-bw", "read-bw", "atomic-bw"] {
        let size = if op == "atomic-bw" { 8 } else { 4096 };
        let line = format!("{op} --loopback ring --size {size} --qps 3 --bidirectional --iters 50 --verify");
        let result = measure(&line);
        assert_eq!(result["verified"], true, "{line}: {result}");
        assert_eq!(result["messages"], 2 * 3 * 50, "{line}: {result}");
        assert_eq!(sent(&result, "client") + sent(&result, "server"), 300, "{line}: {result}");
    }
}

fn sent(result: &Value, end: &str) -> u64 {
    result[end]["sent"].as_u64().unwrap()
}

#[test]
fn variations_of_posting_and_addressing() {
    for variation in [
        "--inline 128 --size 128",
        "--post-list 16 --cq-mod 16",
        "--imm",
        "--mtu 256",
        "--depth 1",
        "--ipv6",
        "--tos 8",
        "--qps 64 --depth 4",
    ] {
        let result = measure(
            &format!("write-bw --loopback ring --size 4096 --iters 64 --verify {variation}").replace(
                // The last of two sizes would be refused as a repetition.
                "--size 4096 --iters 64 --verify --inline 128",
                "--iters 64 --verify --inline 128",
            ),
        );
        assert_eq!(result["verified"], true, "{variation}: {result}");
    }
    let result = measure("read-bw --loopback ring --size 4096 --iters 64 --verify --outs 1");
    assert_eq!(result["verified"], true, "{result}");
}

#[test]
fn messages_without_bytes() {
    for line in ["send-bw --size 0", "write-bw --size 0", "send-lat --size 0", "read-bw --size 0"] {
        let result = measure(&format!("{line} --loopback ring --iters 50"));
        assert_eq!(result["messages"], 50, "{line}: {result}");
    }
}
