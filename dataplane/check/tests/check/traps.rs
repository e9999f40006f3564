//! What looks like a fault and is none: the network's doings, PSNs and MSNs that wrap, tags, cut frames.

use crate::edit::{bth, edit_at, seal, tag, with_opcode};
use crate::support::{Seen, assert_passes, capture, check, names};
use check::{Checker, Note, Options, Rule};

/// Adds to every PSN of a connected packet.
fn shift_psns(frames: &mut [Seen], by: u32) {
    for frame in frames {
        let Ok(parsed) = wire::Frame::parse(&frame.bytes, frame.bytes.len()) else { continue };
        if parsed.info.service == wire::Service::Ud {
            continue;
        }
        let psn = parsed.bth().psn.value().wrapping_add(by) & 0xFF_FFFF;
        edit_at(frame, |b| b[9..12].copy_from_slice(&psn.to_be_bytes()[1..]));
    }
}

/// Captures whose connections were made outside of them: nothing in them names the first PSN.
fn without_management() -> impl Iterator<Item = (String, Vec<Seen>)> {
    names().into_iter().filter(|name| !name.contains("cm-") && !name.starts_with("probe")).map(|name| {
        let frames = capture(&name);
        (name, frames)
    })
}

#[test]
fn psns_wrap_at_any_packet() {
    for (name, frames) in without_management() {
        let psns: std::collections::BTreeSet<u32> = frames
            .iter()
            .filter_map(|frame| wire::Frame::parse(&frame.bytes, frame.bytes.len()).ok())
            .map(|frame| frame.bth().psn.value())
            .collect();
        for psn in psns {
            let mut shifted = frames.clone();
            shift_psns(&mut shifted, psn.wrapping_neg() & 0xFF_FFFF);
            let (plain, report) = (check(&frames, Options::default()), check(&shifted, Options::default()));
            assert_passes(&format!("{name} with PSN {psn} at 0"), &report);
            assert_eq!(report.connections, plain.connections, "{name} with PSN {psn} at 0");
        }
    }
}

#[test]
fn msns_wrap() {
    for (name, mut frames) in without_management() {
        for opcode in [0x0D, 0x0F, 0x10, 0x11, 0x12] {
            for at in with_opcode(&frames, opcode) {
                edit_at(&mut frames[at], |b| {
                    let msn = u32::from_be_bytes([0, b[13], b[14], b[15]]).wrapping_sub(3) & 0xFF_FFFF;
                    b[13..16].copy_from_slice(&msn.to_be_bytes()[1..]);
                });
            }
        }
        assert_passes(&name, &check(&frames, Options::default()));
    }
}

#[test]
fn tags_change_nothing() {
    for name in names() {
        let plain = capture(&name);
        let mut tagged = plain.clone();
        tagged.iter_mut().for_each(tag);
        let (plain, tagged) = (check(&plain, Options::default()), check(&tagged, Options::default()));
        assert_passes(&name, &tagged);
        assert_eq!(
            (plain.roce_frames, plain.connections),
            (tagged.roce_frames, tagged.connections),
            "{name}"
        );
    }
}

/// From a length on which holds the headers up to the BTH, that is; shorter ones have nothing to judge.
#[test]
fn frames_may_be_cut_anywhere() {
    for name in names() {
        let frames = capture(&name);
        for kept in (14..140).chain([200, 500, 1000]) {
            let mut checker = Checker::new(Options::default());
            for Seen { time_ns, bytes } in &frames {
                checker.on_cut_frame(*time_ns, &bytes[..kept.min(bytes.len())], bytes.len());
            }
            assert_passes(&format!("{name} cut at {kept}"), &checker.finish());
        }
    }
}

/// Frames of one sender overtake each other on their way: each in turn comes up to four places later.
#[test]
fn packets_of_a_sender_may_come_late() {
    for name in names() {
        let frames = capture(&name);
        for at in 0..frames.len() {
            let from = frames[at].bytes[6..12].to_vec();
            let behind = |frame: &&Seen| frame.bytes[6..12] == from;
            let run = frames[at + 1..].iter().take(4).take_while(behind).count();
            for places in 1..=run {
                let mut late = frames.clone();
                let times: Vec<_> = frames.iter().map(|frame| frame.time_ns).collect();
                late[at..=at + places].rotate_left(1);
                late.iter_mut().zip(times).for_each(|(frame, time_ns)| frame.time_ns = time_ns);
                let report = check(&late, Options::default());
                assert_passes(&format!("{name} with frame {at} {places} places later"), &report);
            }
        }
    }
}

/// Runs of frames that the capture lacks: answers may then seem to be without cause, and that is all.
#[test]
fn runs_of_frames_may_be_missing() {
    const ALLOWED: [Rule; 2] = [Rule::GhostResponse, Rule::SequenceNak];
    for name in names() {
        let frames = capture(&name);
        for at in 0..frames.len() {
            for run in 2..6 {
                let mut cut = frames.clone();
                cut.drain(at..(at + run).min(frames.len()));
                let report = check(&cut, Options::default());
                let other = report.violations.iter().find(|violation| !ALLOWED.contains(&violation.rule));
                assert_eq!(other, None, "{name} without {run} frames from {at}");
            }
        }
    }
}

/// Ethernet pads short frames, and a capture shows it.
#[test]
fn the_padding_of_ethernet_is_no_part_of_a_packet() {
    for name in ["rc-send-v4", "rc-read-1-v4", "rc-atomic-fadd-v6"] {
        let mut frames = capture(name);
        frames.iter_mut().for_each(|frame| frame.bytes.extend_from_slice(&[0xAA; 6]));
        assert_passes(name, &check(&frames, Options::default()));
    }
}

/// A sender that sends again may ask for an ACK where it did not before, and gives the packet another identification.
#[test]
fn a_retransmission_may_ask_for_an_acknowledgement() {
    let mut frames = capture("rc-write-5000-v4");
    let of = with_opcode(&frames, 0x07)[0];
    let mut again = frames[of].clone();
    let flags = bth(&again) + 8;
    again.bytes[flags] |= 0x80;
    again.bytes[18] ^= 1;
    seal(&mut again);
    again.time_ns += 1_000_000;
    frames.insert(of + 3, again);
    let report = check(&frames, Options::default());
    assert_passes("with AckReq", &report);
    assert_eq!(report.notes(Note::Retransmission), 1);
}

/// A WRITE of five packets, of which the last three are sent again after `pause_ns`, to the last bit; a NAK may ask for them.
fn sent_again(pause_ns: u64, nak: bool) -> check::Report {
    let mut frames = capture("rc-write-5000-v4");
    let ack = with_opcode(&frames, 0x11)[0];
    frames.truncate(ack + 1);
    let mut asks = frames[ack].clone();
    let burst: Vec<_> = frames[ack - 3..ack].to_vec();
    let mut now = frames[ack - 1].time_ns;
    frames.truncate(ack);
    if nak {
        edit_at(&mut asks, |b| {
            b[12] = 0x60;
            b[11] -= 2;
            b[15] -= 1;
        });
        frames.push(asks);
    }
    for (at, mut frame) in burst.into_iter().enumerate() {
        now += if at == 0 { pause_ns } else { 2_000 };
        frame.time_ns = now;
        frames.push(frame);
    }
    check(&frames, Options::default())
}

#[test]
fn what_is_sent_again_to_the_last_bit_is_told_from_what_the_network_doubles() {
    // Doubled at once; after a timeout; at once, but asked for.
    for (pause_ns, nak, again, doubled) in
        [(3_000, false, 0, 3), (4_000_000, false, 3, 0), (3_000, true, 3, 0)]
    {
        let report = sent_again(pause_ns, nak);
        assert_passes("a WRITE", &report);
        let counted = (report.notes(Note::Retransmission), report.notes(Note::Duplicate));
        assert_eq!(counted, (again, doubled), "{pause_ns} {nak}");
    }
}

/// UC repeats nothing: a copy is the network's doing however late it is.
#[test]
fn a_doubled_uc_packet_is_no_retransmission() {
    let mut frames = capture("uc-send-v6");
    let mut copy = frames[2].clone();
    copy.time_ns = frames.last().unwrap().time_ns + 50_000_000;
    frames.push(copy);
    let report = check(&frames, Options::default());
    assert_passes("doubled", &report);
    assert_eq!((report.notes(Note::Retransmission), report.notes(Note::Duplicate)), (0, 1));
}
