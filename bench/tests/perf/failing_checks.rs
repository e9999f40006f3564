//! A check that cannot fail checks nothing: a spoilt byte is found in every operation, told, and is no
//! success.

use crate::program::{object, run, stderr, stdout};

#[test]
fn a_spoilt_byte_is_found_in_every_operation() {
    let cases = [
        "send-bw --size 4096",
        "send-bw --size 1",
        "send-bw --connection UD --size 64",
        "write-bw --size 4096 --depth 128",
        "write-bw --size 65537 --imm",
        "read-bw --size 65537",
        "atomic-bw",
        "send-lat --size 64",
        "write-lat --size 64",
        "read-lat --size 64",
        "atomic-lat",
    ];
    for case in cases {
        // Message 99 is the last: nothing overwrites it.
        let line = format!("{case} --loopback ring --iters 100 --verify --tamper 99 --json");
        let output = run(&line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}{}", stdout(&output), stderr(&output));
        let result = object(&line, &output);
        assert_eq!(result["verified"], false, "{line}: {result}");
        assert!(result["verify"]["faults"].as_u64() > Some(0), "{line}: {result}");
        assert!(stderr(&output).contains("checks failed; the first: "), "{line}: {}", stderr(&output));
    }
}

#[test]
fn the_table_shouts_too() {
    let output = run("send-bw --loopback ring --size 64 --iters 100 --verify --tamper 5");
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("WRONG: 1 checks failed"), "{}", stdout(&output));
    assert!(stderr(&output).contains("message 5: byte 32"), "{}", stderr(&output));
}
