//! Captures without end: what is remembered of a connection is bounded.

use crate::edit::{edit_at, with_opcode};
use crate::support::{Seen, capture};
use check::{Checker, Options};

/// Frames that are fed until everything that grows has grown, and those that follow.
const WARM: u32 = 60_000;
const MORE: u32 = 150_000;

/// Resident memory of this process, kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line of it");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
}

/// Packets of one connection with PSNs that go on and on, as `make` has them of a number.
fn grows_by(mut make: impl FnMut(u32, &mut Checker)) -> u64 {
    let mut checker = Checker::new(Options::default());
    (0..WARM).for_each(|n| make(n, &mut checker));
    let before = resident();
    (WARM..WARM + MORE).for_each(|n| make(n, &mut checker));
    assert!(checker.report().passed(), "{:?}", checker.report().violations.first());
    resident().saturating_sub(before)
}

fn numbered(of: &Seen, psn: u32, msn: Option<u32>) -> Seen {
    let mut frame = of.clone();
    edit_at(&mut frame, |b| {
        b[9..12].copy_from_slice(&psn.to_be_bytes()[1..]);
        if let Some(msn) = msn {
            b[13..16].copy_from_slice(&msn.to_be_bytes()[1..]);
        }
    });
    frame
}

/// Acknowledged, never acknowledged, and refused again and again: a connection needs no more memory for it.
#[test]
fn memory_does_not_grow_with_the_capture() {
    let frames = capture("rc-write-1-v4");
    let (write, ack) = (&frames[with_opcode(&frames, 0x0A)[0]], &frames[with_opcode(&frames, 0x11)[0]]);
    let feed =
        |checker: &mut Checker, n: u32, frame: Seen| checker.on_frame(u64::from(n) * 1000, &frame.bytes);
    let acknowledged = grows_by(|n, checker| {
        feed(checker, n, numbered(write, 0xFF_0000 + n, None));
        feed(checker, n, numbered(ack, 0xFF_0000 + n, Some(n + 1)));
    });
    let unanswered = grows_by(|n, checker| feed(checker, n, numbered(write, n, None)));
    let again = grows_by(|n, checker| {
        feed(checker, n, numbered(write, 7 + n % 2, None));
        let mut nak = numbered(ack, 7, Some(0));
        edit_at(&mut nak, |b| b[12] = 0x60);
        if n > 1 {
            feed(checker, n, nak);
        }
    });
    for (what, kilobytes) in
        [("acknowledged", acknowledged), ("unanswered", unanswered), ("sent again", again)]
    {
        assert!(kilobytes < 4096, "{what}: {kilobytes} kB");
    }
}
