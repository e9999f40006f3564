//! Linux's software RoCE breaks no rule, wherever the checker believes to stand, and whatever the capture lacks.

use crate::support::{assert_passes, capture, check, names};
use check::{Note, Options, Rule, Vantage};
use wire::Mac;

const A: Mac = Mac([2, 0, 0, 0, 0x0A, 0]);

#[test]
fn every_linux_capture_passes() {
    let names = names();
    assert_eq!(names.len(), 62);
    let (mut roce, mut connections, mut unpaired) = (0, 0, 0);
    for name in &names {
        let report = check(&capture(name), Options::default());
        assert_passes(name, &report);
        // What connection management says of first PSNs is true.
        assert_eq!(report.notes(Note::NewEpoch), 0, "{name}");
        roce += report.roce_frames;
        connections += report.connections;
        unpaired += report.notes(Note::Unpaired);
    }
    assert_eq!(roce, 1486);
    // 53 files hold RC connections that are answered, six of them two.
    assert_eq!((connections, unpaired), (59, 0));
}

/// The captures were taken at A's port.
#[test]
fn every_linux_capture_passes_at_the_port_of_a() {
    for name in names() {
        let options = Options { vantage: Vantage::Endpoint(A), ..Options::default() };
        assert_passes(&name, &check(&capture(&name), options));
    }
}

#[test]
fn a_capture_may_begin_anywhere() {
    for name in names() {
        let frames = capture(&name);
        for begin in 1..frames.len() {
            assert_passes(&format!("{name} from {begin}"), &check(&frames[begin..], Options::default()));
        }
    }
}

#[test]
fn a_frame_may_be_doubled() {
    for name in names() {
        let frames = capture(&name);
        for at in 0..frames.len() {
            let mut doubled = frames.clone();
            doubled.insert(at, frames[at].clone());
            assert_passes(&format!("{name} with frame {at} twice"), &check(&doubled, Options::default()));
        }
    }
}

/// A capture that lacks a frame: only an answer to the last request of all that was sent would be without cause.
#[test]
fn a_request_inside_the_capture_may_be_missing() {
    const ALLOWED: [Rule; 2] = [Rule::GhostResponse, Rule::SequenceNak];
    for name in names() {
        let frames = capture(&name);
        for at in 0..frames.len() {
            let mut cut = frames.clone();
            cut.remove(at);
            let report = check(&cut, Options::default());
            let other = report.violations.iter().find(|violation| !ALLOWED.contains(&violation.rule));
            assert_eq!(other, None, "{name} without frame {at}");
        }
    }
}
