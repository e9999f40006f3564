//! A frame that follows another in a run is what the parser would say, with a right iCRC; or it does not follow.

use crate::support::{valid_vectors, vector};
use proptest::prelude::*;
use wire::*;

/// Where IPv4 and the BTH begin in a frame without a tag.
const IP: usize = 14;
const BTH: usize = 42;

/// Frames that runs begin with.
fn firsts() -> Vec<(&'static str, Vec<u8>)> {
    let vectors = valid_vectors().into_iter();
    let all = vectors.map(|vector| (vector.name, vector.frame));
    all.filter(|(_, bytes)| Run::of(&parsed(bytes), bytes).is_some()).collect()
}

fn parsed(bytes: &[u8]) -> Frame {
    Frame::parse(bytes, bytes.len()).unwrap()
}

fn run(bytes: &[u8]) -> Run {
    Run::of(&parsed(bytes), bytes).unwrap()
}

/// Makes the IPv4 checksum right.
fn right_checksum(bytes: &mut [u8]) {
    bytes[IP + 10..IP + 12].fill(0);
    let mut sum = OnesComplement::default();
    sum.bytes(&bytes[IP..IP + 20]);
    let checksum = !sum.folded();
    bytes[IP + 10..IP + 12].copy_from_slice(&checksum.to_be_bytes());
}

/// Makes the iCRC right, if the frame parses.
fn seal(bytes: &mut [u8]) {
    if let (Ok(frame), Ok(icrc)) = (Frame::parse(bytes, bytes.len()), compute_icrc(bytes)) {
        bytes[frame.icrc_offset()..frame.end()].copy_from_slice(&icrc.to_le_bytes());
    }
}

fn set_psn(bytes: &mut [u8], psn: Psn) {
    bytes[BTH + 9..BTH + 12].copy_from_slice(&psn.to_bytes());
}

/// The frame `count` places behind another, with its own identification and payload.
fn behind(first: &[u8], count: u16) -> Vec<u8> {
    let mut next = first.to_vec();
    set_psn(&mut next, parsed(first).bth().psn.add(count.into()));
    next[IP + 4..IP + 6].copy_from_slice(&(count.wrapping_mul(0x1234) + 7).to_be_bytes());
    let payload = parsed(first).payload_offset()..parsed(first).icrc_offset();
    next[payload].iter_mut().for_each(|byte| *byte ^= count as u8);
    right_checksum(&mut next);
    seal(&mut next);
    next
}

/// Whether a frame follows; if it does, it has to be right and what the parser says, with the bytes of the first below the PSN.
fn follows(run: &mut Run, first: &[u8], bytes: &[u8]) -> bool {
    let taken = run.take(bytes);
    if taken {
        let frame = parsed(bytes);
        assert_eq!(parsed(first).following(bytes), frame, "{}", hex::encode(bytes));
        assert_eq!(frame.verify_icrc(bytes, [bytes]), Ok(()), "{}", hex::encode(bytes));
        assert_eq!(frame.udp_checksum, 0);
    }
    taken
}

#[test]
fn only_untagged_v4_without_a_udp_checksum_runs() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        let runs = frame.network == Network::V4 && frame.vlan.is_none() && frame.udp_checksum == 0;
        assert_eq!(Run::of(&frame, &vector.frame).is_some(), runs, "{}", vector.name);
    }
    assert!(firsts().len() > 20);
}

#[test]
fn the_next_frames_follow_and_no_others() {
    for (name, first) in firsts() {
        let mut run = run(&first);
        assert!(!follows(&mut run, &first, &first), "{name}: the first once more");
        for count in 1..20 {
            let next = behind(&first, count);
            assert!(!follows(&mut run, &first, &behind(&first, count + 1)), "{name}: one ahead");
            assert!(follows(&mut run, &first, &next), "{name}: {count}");
            assert!(!follows(&mut run, &first, &next), "{name}: {count} once more");
        }
    }
}

#[test]
fn a_frame_of_which_something_is_missing_begins_no_run() {
    for (name, bytes) in firsts() {
        let frame = parsed(&bytes);
        assert_eq!(Run::of(&frame, &bytes[..frame.end() - 1]), None, "{name}");
    }
}

#[test]
fn the_psn_after_the_last_is_the_first() {
    for (name, mut first) in firsts() {
        for ack in [0, 0x80, 0x7F, 0xFF] {
            first[BTH + 8] = ack;
            set_psn(&mut first, Psn::new(0xFF_FFFE));
            seal(&mut first);
            let mut run = run(&first);
            let [last, wrapped] = [1, 2].map(|count| behind(&first, count));
            assert_eq!(parsed(&wrapped).bth().psn, Psn::new(0));
            assert!(follows(&mut run, &first, &last), "{name}");
            let mut carried = wrapped.clone();
            carried[BTH + 8] = ack.wrapping_add(1);
            seal(&mut carried);
            assert!(!follows(&mut run, &first, &carried), "{name}: nothing is carried into the byte before");
            assert!(follows(&mut run, &first, &wrapped), "{name}");
        }
    }
}

#[test]
fn a_frame_that_asks_for_an_acknowledgement_follows_one_that_does_not() {
    for (name, first) in firsts() {
        let mut run = run(&first);
        for count in 1..=4 {
            let mut next = behind(&first, count);
            next[BTH + 8] ^= if count % 2 == 0 { 0x80 } else { 0 };
            seal(&mut next);
            assert!(follows(&mut run, &first, &next), "{name}: {count}");
            let last = next[BTH + 8..BTH + 12].try_into().unwrap();
            assert_eq!(Bth::asks_ack(last), parsed(&next).bth().ack_req);
        }
    }
}

/// Two frames at once are taken as one after the other; `bend` makes them of the next two.
#[track_caller]
fn two_as_one_by_one(first: &[u8], what: &str, mut bend: impl FnMut(&mut Vec<u8>, &mut Vec<u8>)) {
    let (mut both, mut single) = (run(first), run(first));
    // From the second time on something is known of those before.
    for at in [1, 3] {
        let (mut next, mut later) = (behind(first, at), behind(first, at + 1));
        bend(&mut next, &mut later);
        let one_by_one =
            [&next, &later].into_iter().take_while(|bytes| follows(&mut single, first, bytes)).count();
        assert_eq!(both.take_two(&next, &later), one_by_one, "{what}");
        for count in at + one_by_one as u16..at + 2 {
            let due = behind(first, count);
            assert!(
                follows(&mut both, first, &due) && follows(&mut single, first, &due),
                "{what}: {count} is due"
            );
        }
    }
}

#[test]
fn two_frames_at_once_follow_as_one_after_the_other() {
    for (name, first) in firsts() {
        let told = |what: &str| format!("{name}: {what}");
        two_as_one_by_one(&first, &told("both"), |_, _| {});
        two_as_one_by_one(&first, &told("by turns"), std::mem::swap);
        two_as_one_by_one(&first, &told("the same again"), |next, later| later.clone_from(next));
        two_as_one_by_one(&first, &told("one is left out"), |_, later| {
            let psn = parsed(later).bth().psn.next();
            set_psn(later, psn);
            seal(later);
        });
        let alike = |next: &[u8], later: &mut [u8]| {
            later[IP + 4..IP + 6].copy_from_slice(&next[IP + 4..IP + 6]);
            right_checksum(later);
            seal(later);
        };
        two_as_one_by_one(&first, &told("of one identification"), |next, later| alike(next, later));
        two_as_one_by_one(&first, &told("longer"), |_, later| later.push(0));
        two_as_one_by_one(&first, &told("cut"), |_, later| later.truncate(BTH + 4));
        for at in (0..BTH + 12).chain([first.len() - 1]) {
            two_as_one_by_one(&first, &format!("{name}: {at} of the first"), |next, _| next[at] ^= 0x10);
            two_as_one_by_one(&first, &format!("{name}: {at} of the second"), |_, later| later[at] ^= 0x10);
            two_as_one_by_one(
                &first,
                &format!("{name}: {at} of one that is like the first"),
                |next, later| {
                    alike(next, later);
                    later[at] ^= 0x10;
                },
            );
            two_as_one_by_one(&first, &format!("{name}: {at} of both"), |next, later| {
                next[at] ^= 0x10;
                later[at] ^= 0x10;
            });
        }
    }
}

#[test]
fn a_frame_of_another_length_does_not_follow() {
    for (name, first) in firsts() {
        let mut run = run(&first);
        let mut next = behind(&first, 1);
        next.push(0);
        assert!(!follows(&mut run, &first, &next), "{name}: padded");
        next.truncate(first.len() - 1);
        assert!(!follows(&mut run, &first, &next), "{name}: cut");
        assert!(!follows(&mut run, &first, &next[..BTH + 11]), "{name}: cut to less than a BTH");
    }
}

/// With checksum and iCRC made right or left alone, so that each check has to notice by itself.
#[test]
fn a_flipped_bit_below_the_psn_is_noticed() {
    for (name, first) in firsts() {
        let next = behind(&first, 1);
        for bit in 0..(BTH + 12) * 8 {
            for redone in [false, true] {
                let mut bent = next.clone();
                bent[bit / 8] ^= 1 << (bit % 8);
                if redone {
                    right_checksum(&mut bent);
                    seal(&mut bent);
                }
                // Identification and checksum are a frame's own; AckReq is any frame's.
                let free = redone && (matches!(bit / 8, 18..=19 | 24..=25) || bit == (BTH + 8) * 8 + 7);
                assert_eq!(
                    follows(&mut run(&first), &first, &bent),
                    free,
                    "{name}: bit {bit}, redone: {redone}"
                );
            }
        }
    }
}

#[test]
fn a_flipped_bit_behind_the_bth_is_noticed() {
    for (name, first) in firsts() {
        let next = behind(&first, 1);
        for bit in (BTH + 12) * 8..parsed(&next).end() * 8 {
            let mut bent = next.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!follows(&mut run(&first), &first, &bent), "{name}: bit {bit}");
        }
    }
}

#[test]
fn every_identification_is_covered() {
    let (_, first) = firsts().swap_remove(0);
    for id in (0..=u16::MAX).step_by(if cfg!(miri) { 4099 } else { 7 }) {
        let mut next = behind(&first, 1);
        next[IP + 4..IP + 6].copy_from_slice(&id.to_be_bytes());
        right_checksum(&mut next);
        assert!(!follows(&mut run(&first), &first, &next) || id == 0x1234 + 7, "{id}: by the iCRC");
        seal(&mut next);
        assert!(follows(&mut run(&first), &first, &next), "{id}");
    }
}

/// By its headers a frame follows if the parser would say the same of it, and they have the iCRC that they have by themselves.
fn follows_by_headers(run: &mut Run, first: &[u8], bytes: &[u8]) -> bool {
    let headers = &bytes[..parsed(first).payload_offset().min(bytes.len())];
    let Some(icrc) = run.take_headers(headers, bytes.len()) else { return false };
    let frame = parsed(bytes);
    assert_eq!(parsed(first).following(headers), frame, "{}", hex::encode(bytes));
    let mut own = Icrc::before(frame.network, &headers[frame.l3_offset()..]);
    own.update(&headers[frame.l3_offset()..]);
    assert_eq!(icrc, own, "{}", hex::encode(bytes));
    true
}

fn run_of_headers(bytes: &[u8]) -> Run {
    let frame = parsed(bytes);
    Run::of_headers(&frame, &bytes[..frame.payload_offset()], bytes.len()).unwrap()
}

#[test]
fn the_next_frames_follow_by_their_headers_and_no_others() {
    for (name, first) in firsts() {
        let mut run = run_of_headers(&first);
        for count in 1..20 {
            let next = behind(&first, count);
            assert!(!follows_by_headers(&mut run, &first, &behind(&first, count + 1)), "{name}: one ahead");
            assert!(follows_by_headers(&mut run, &first, &next), "{name}: {count}");
            assert!(!follows_by_headers(&mut run, &first, &next), "{name}: {count} once more");
        }
        let (end, next) = (parsed(&first).payload_offset(), behind(&first, 20));
        assert_eq!(run.take_headers(&next[..end - 1], next.len()), None, "{name}: cut");
        assert_eq!(run.take_headers(&next[..end + 1], next.len()), None, "{name}: more than headers");
        assert_eq!(run.take_headers(&next[..end], next.len() + 1), None, "{name}: padded");
        let frame = parsed(&first);
        assert_eq!(Run::of_headers(&frame, &first[..end - 1], first.len()), None, "{name}: cut");
        assert_eq!(Run::of_headers(&frame, &first[..end + 1], first.len()), None, "{name}: more");
    }
}

/// What the iCRC covers is noticed by who sums the rest.
#[test]
fn a_flipped_bit_in_headers_is_noticed_or_summed() {
    for (name, first) in firsts() {
        let next = behind(&first, 1);
        for bit in 0..(BTH + 12) * 8 {
            for redone in [false, true] {
                let mut bent = next.clone();
                bent[bit / 8] ^= 1 << (bit % 8);
                if redone {
                    right_checksum(&mut bent);
                }
                let free = redone && matches!(bit / 8, 18..=19 | 24..=25) || bit == (BTH + 8) * 8 + 7;
                let follows = follows_by_headers(&mut run_of_headers(&first), &first, &bent);
                assert_eq!(follows, free, "{name}: bit {bit}, redone: {redone}");
            }
        }
    }
}

/// The frame with another opcode and so many bytes of extension headers, with lengths and sums that are right.
fn with_opcode(bytes: &[u8], opcode: Opcode, extension: usize) -> Vec<u8> {
    let mut other = bytes.to_vec();
    other.splice(BTH + 12..parsed(bytes).payload_offset(), vec![0; extension]);
    other[BTH] = opcode.0;
    let len = (other.len() - IP) as u16;
    other[IP + 2..IP + 4].copy_from_slice(&len.to_be_bytes());
    other[IP + 24..IP + 26].copy_from_slice(&(len - 20).to_be_bytes());
    right_checksum(&mut other);
    seal(&mut other);
    other
}

#[test]
fn middles_follow_the_first_packet_of_their_message() {
    let write = vector("rc_write_first_ipv4_mtu256").frame;
    let of = |operation, position| Opcode::of(Service::Rc, operation, position).unwrap();
    for (operation, extension) in [(Operation::Write, 16), (Operation::Send, 0), (Operation::ReadResponse, 4)]
    {
        let first = with_opcode(&write, of(operation, Position::First), extension);
        let middle = with_opcode(&first, of(operation, Position::Middle), 0);
        let headers = &first[..parsed(&first).payload_offset()];
        let (frame, mut run) = Run::of_middles(&parsed(&first), headers, first.len()).unwrap();
        assert_eq!(frame, parsed(&middle), "{operation:?}");
        let next = behind(&middle, 1);
        for bit in 0..(BTH + 12) * 8 {
            let mut bent = next.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            for bytes in [&bent, &[&bent[..], &[0]].concat()] {
                let follows = follows_by_headers(&mut run_of_headers(&middle), &middle, bytes);
                let name = format!("{operation:?}, bit {bit}");
                assert_eq!(follows_by_headers(&mut run.clone(), &middle, bytes), follows, "{name}");
            }
        }
        assert!(follows_by_headers(&mut run, &middle, &next), "{operation:?}");
        assert!(!follows_by_headers(&mut run, &middle, &next), "{operation:?} once more");
        assert!(follows_by_headers(&mut run, &middle, &behind(&middle, 2)), "{operation:?}");
        let cut = &headers[..headers.len() - 1];
        assert_eq!(Run::of_middles(&parsed(&first), cut, first.len()), None, "{operation:?}");
    }
    // As they were sent.
    let (first, middle) = (parsed(&write), vector("rc_write_middle_ipv4_mtu256").frame);
    let (frame, mut run) = Run::of_middles(&first, &write[..first.payload_offset()], write.len()).unwrap();
    let mut next = middle.clone();
    set_psn(&mut next, first.bth().psn.next());
    seal(&mut next);
    let headers = &next[..frame.payload_offset()];
    assert_eq!(frame.following(headers), parsed(&next));
    assert!(run.take_headers(headers, next.len()).is_some());
}

#[test]
fn no_middles_follow_what_begins_no_message_or_ends_it() {
    for vector in valid_vectors() {
        let frame = vector.parse();
        let headers = &vector.frame[..frame.payload_offset()];
        let run = Run::of_middles(&frame, headers, vector.frame.len());
        assert_eq!(run.is_some(), frame.info.position == Position::First, "{}", vector.name);
    }
}

proptest! {
    /// Whatever else is in the frame.
    #[test]
    fn never_takes_what_the_parser_refuses(
        index in 0usize..1000,
        changes in proptest::collection::vec((0usize..90, any::<u8>()), 0..4),
        end in 0usize..200,
        redone: bool,
    ) {
        let firsts = firsts();
        let (_, first) = &firsts[index % firsts.len()];
        let mut bent = behind(first, 1);
        for (at, value) in changes {
            if let Some(byte) = bent.get_mut(at) {
                *byte = value;
            }
        }
        if redone {
            right_checksum(&mut bent);
            seal(&mut bent);
        }
        if end > 100 {
            bent.truncate(end.max(20));
        }
        follows(&mut run(first), first, &bent);
    }
}
