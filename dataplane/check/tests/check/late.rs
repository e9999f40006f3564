//! Packets that arrive late are held against what came before its turn.

use crate::edit::{READ, edit, edit_at, last_with, psn, set_psn, with_opcode};
use crate::support::{Seen, assert_passes, capture, check};
use check::{Options, Rule};

/// Swaps two frames, and leaves the times in their order.
fn swap(frames: &mut [Seen], one: usize, other: usize) {
    frames.swap(one, other);
    let time_ns = frames[one].time_ns;
    frames[one].time_ns = frames[other].time_ns;
    frames[other].time_ns = time_ns;
}

/// What is said of the one breach of a rule, which comes first.
fn words(frames: &[Seen], rule: Rule) -> String {
    let report = check(frames, Options::default());
    assert_eq!(report.violations_by_rule(rule), 1, "{:#?}", report.violations);
    assert_eq!(report.violations[0].rule, rule);
    report.violations[0].words.clone()
}

/// It may follow the packet before it, but the one behind it may not follow it.
#[test]
fn a_late_packet_that_its_successor_may_not_follow() {
    let mut frames = capture("rc-send-v4");
    let middle = last_with(&frames, 0x01);
    swap(&mut frames, middle, middle + 1);
    assert_passes("a late Middle", &check(&frames, Options::default()));
    edit_at(&mut frames[middle + 1], |b| b[0] = 0x02);
    assert_eq!(words(&frames, Rule::OpcodeOrder), "RC SEND Last comes before RC SEND Last");
}

/// Its responses take PSNs that the next request has taken already.
#[test]
fn a_late_read_that_reaches_over_the_next_request() {
    let mut frames = capture("rc-read-5000-v4");
    let reads = with_opcode(&frames, READ);
    let [first, second] = [reads[reads.len() - 2], reads[reads.len() - 1]];
    let mut pair = frames[..second + 1].to_vec();
    // Only the two requests of the last READs, the second one first; what was answered before tells the path MTU.
    let late = pair.remove(first);
    let responses = with_opcode(&pair, 0x0F);
    pair.truncate(responses[responses.len() - 2] + 1);
    let mut early = frames.remove(second);
    let begins = psn(&late.bytes);
    pair.push(early.clone());
    pair.push(late.clone());
    assert_passes("a late READ", &check(&pair, Options::default()));
    edit(&mut early, |b| set_psn(b, begins + 4));
    let at = pair.len() - 2;
    pair[at] = early;
    let words = words(&pair, Rule::ReadSpan);
    assert!(words.starts_with("RC READ Request reaches over the request with PSN"), "{words}");
}
