//! `ping` where there is nobody to answer, or nothing to ask: a sentence and a status.

use super::support::{RING, Setup, run, text};

/// Pings from the two wired ports of one process; the status and what was said.
fn ping(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let config = setup.config();
    let output = run(&[&["ping", "-c", &config][..], arguments].concat());
    (output.status.code(), text(&output.stderr) + &text(&output.stdout))
}

#[test]
fn what_cannot_be_pinged_is_told_in_a_sentence() {
    let setup = Setup::new(RING);
    for (arguments, status, words) in [
        // A port that listens to nobody refuses at once.
        (&["10.1.0.2"][..], 1, "start the program there, or name its port with --port"),
        (&["10.1.0.2", "-C", "ud"], 1, "does not serve this"),
        // Nobody has this address, and no way leads to that.
        (&["10.1.0.9"], 1, "10.1.0.9"),
        (&["192.0.2.1"], 1, "192.0.2.1"),
        (&["fe80::1%elsewhere"], 1, "elsewhere"),
        (&["nowhere.invalid"], 2, "there is no host nowhere.invalid"),
        (&["10.1.0.2", "-C", "ud", "-s", "5000"], 2, "use less with --size"),
        (&["10.1.0.2", "-I", "10.7.7.7"], 2, "is no address of this endpoint"),
        (&["10.1.0.2", "--peer", "rping"], 2, "ucmatose, udaddy, cmtime and mckey"),
        (&["10.1.0.2", "-s", "1048577"], 2, "1048576"),
    ] {
        let (code, said) = ping(&setup, arguments);
        assert_eq!(code, Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn serve_does_not_serve_two_programs_at_one_port() {
    let setup = Setup::new(RING);
    let output = run(&["serve", "-c", &setup.config(), "--cm", "rping=9,perf=9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("rping and perf cannot both have port 9"),
        "{}",
        text(&output.stderr)
    );
}
