//! No frame of any capture is left out silently: what each file's frames were used for is a snapshot.

use crate::capture::{self, Capture};
use crate::datagrams::datagrams;
use crate::flows;
use std::fmt::Write;

/// One line per file. Requests are fed to our responder and compared with our requester's; responses are compared with our
/// responder's and fed to our requester; datagrams are received and compared with those that we send. The test's failure
/// prints the text to put into `coverage.txt`.
#[test]
fn every_frame_is_used() {
    let mut lines = String::new();
    for capture in capture::all() {
        let flows = flows::connected(&capture);
        let requests: usize = flows.iter().map(|flow| flow.requests().count()).sum();
        let responses: usize = flows.iter().map(|flow| flow.responses().count()).sum();
        let groups = datagrams(&capture).filter(|seen| seen.frame.dst.is_multicast()).count();
        let singles = datagrams(&capture).count() - groups;
        let used = requests + responses + singles + groups;
        assert_eq!(used, capture.frames.len(), "{}: frames that belong to nothing", capture.name);
        writeln!(lines, "{}: {}", capture.name, describe(requests, responses, singles, groups, &capture))
            .expect("a string takes all");
    }
    assert!(lines == include_str!("coverage.txt"), "the coverage is now:\n{lines}");
}

fn describe(requests: usize, responses: usize, singles: usize, groups: usize, capture: &Capture) -> String {
    [
        (requests, "requests"),
        (responses, "responses"),
        (singles, "datagrams"),
        (groups, "multicast datagrams"),
        (capture.others, "frames that are not RoCE"),
    ]
    .into_iter()
    .filter(|&(count, _)| count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect::<Vec<_>>()
    .join(", ")
}
