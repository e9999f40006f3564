//! Properties of single functions.

use crate::bytes::Bytes;
use check::capture::each_frame;
use check::{Checker, Options};
use impair::{Direction, Hold, Plan, Shelf, Stage};
use wire::{Flow, Frame, HEAD_LEN, Icrc};

/// The parser takes any bytes; what it says of a frame lies within the frame, and does not depend on how much of the frame
/// it was shown.
pub fn wire_parser(data: &[u8]) {
    let parsed = Frame::parse(data, data.len());
    let head = &data[..data.len().min(HEAD_LEN)];
    assert_eq!(Frame::parse(head, data.len()), parsed);
    let Ok(frame) = parsed else { return };
    assert!(frame.end() <= data.len());
    assert!(
        frame.payload_offset() + frame.payload_len() + usize::from(frame.bth().pad_count)
            == frame.icrc_offset()
    );
    assert!(frame.payload_offset() <= HEAD_LEN);
    let whole = frame.verify_icrc(head, [data]);
    let (left, right) = data.split_at(data.len() / 3);
    assert_eq!(frame.verify_icrc(head, [left, right]), whole, "cut anywhere");
    let _ = frame.verify_udp_checksum([left, right]);
    assert_eq!(frame.network_header(data).len(), frame.network.header_len());
    if let Some(flow) = Flow::of(&frame, head) {
        let mut place = None;
        let icrc = flow.parse(head, data.len(), &mut place);
        let before = Icrc::before(frame.network, &head[frame.l3_offset()..]);
        assert!(icrc == Some(before) && place == Some(frame), "it is of its own flow");
    }
}

/// Any text is a plan that reads back from its print, or is refused at one of its words; and a stage with it keeps every frame
/// within its length.
pub fn impair_plan(data: &[u8]) {
    let split = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let (text, frames) = data.split_at(split);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let plan = match Plan::parse(text) {
        Err(error) => {
            assert_eq!(text.get(error.at()), Some(error.word()));
            assert!(!error.to_string().is_empty());
            return;
        }
        Ok(plan) => plan,
    };
    assert_eq!(Plan::parse(&plan.to_string()).as_ref(), Ok(&plan));
    let (mut stage, mut again) = (Stage::new(&plan, 1), Stage::new(&plan, 1));
    let mut shelf = Shelf::with_capacity(4);
    let mut rest = Bytes(frames);
    let mut now = 0;
    while !rest.is_empty() {
        let direction = rest.one_of(&[Direction::Rx, Direction::Tx]);
        let len = usize::from(rest.byte());
        let mut frame = rest.take(len).to_vec();
        now += 1000;
        let verdict = stage.decide(now, direction, &frame, frame.len());
        assert_eq!(again.decide(now, direction, &frame, frame.len()), verdict, "one seed, one fate");
        let before = frame.len();
        assert!(verdict.apply(&mut frame) <= before);
        match verdict.hold() {
            Some(hold) => {
                assert!(
                    matches!(hold, Hold::Frames(1..)) || matches!(hold, Hold::Until(time) if time >= now)
                );
                let _ = shelf.hold(now, hold, frame);
            }
            None => shelf.frame_passed(now),
        }
        while shelf.pop(now).is_some() {}
        assert!(shelf.len() <= 4 && shelf.next_due().is_none_or(|due| due > now));
    }
}

/// The checker takes any frames in any order, and numbers the faults that it finds by frames that it was shown.
pub fn checker(data: &[u8]) {
    let mut checker = Checker::new(Options::default());
    let mut rest = Bytes(data);
    let (mut frames, mut time) = (0, 0);
    while !rest.is_empty() {
        let len = usize::from(rest.byte()) + 40;
        let mut frame = rest.take(len).to_vec();
        // A frame with a wrong iCRC is not looked at further; so most get a right one.
        if len % 8 != 7 {
            seal(&mut frame);
        }
        checker.on_frame(time, &frame);
        time += 1000;
        frames += 1;
    }
    let report = checker.finish();
    assert!(report.violations.iter().all(|violation| (1..=frames).contains(&violation.frame)));
}

fn seal(frame: &mut [u8]) {
    if let (Ok(parsed), Ok(icrc)) = (Frame::parse(frame, frame.len()), wire::compute_icrc(frame)) {
        let at = parsed.icrc_offset();
        frame[at..at + 4].copy_from_slice(&icrc.to_le_bytes());
    }
}

/// Any bytes are a capture or are refused with a sentence; frames are what the file holds, not more.
pub fn capture(data: &[u8]) {
    let (mut frames, mut bytes) = (0usize, 0);
    let read = each_frame(data, |_, frame, len| {
        frames += 1;
        bytes += frame.len();
        assert!(frame.len() <= data.len() + MADE_UP, "{} bytes of {}", frame.len(), data.len());
        // Cut frames tell a longer length, and a link header that is replaced is counted.
        assert!(len + MADE_UP >= frame.len());
    });
    assert!(bytes <= data.len() + MADE_UP * frames);
    if let Err(why) = read {
        assert!(!why.to_string().is_empty());
    }
}

/// The Ethernet header that frames of other links get.
const MADE_UP: usize = 14;
