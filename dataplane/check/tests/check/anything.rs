//! Nothing makes the checker panic: arbitrary bytes, and captured frames with arbitrary bytes in them, in any order.

use crate::edit::BTH;
use crate::support::{Seen, capture, check, names};
use check::{Damage, End, Options, Vantage, link};
use proptest::prelude::*;
use wire::{Gid, Mac, Mtu, Psn, Qpn};

fn vantages() -> impl Strategy<Value = Options> {
    let vantage = prop_oneof![
        Just(Vantage::Anywhere),
        Just(Vantage::Senders),
        Just(Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0A, 0]))),
    ];
    (vantage, any::<bool>()).prop_map(|(vantage, loss)| Options {
        vantage,
        damage: if loss { Damage::IsLoss } else { Damage::Breaks },
        ..Options::default()
    })
}

proptest! {
    #[test]
    fn any_bytes(options in vantages(), frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        let frames: Vec<_> = frames.into_iter().map(|bytes| Seen { time_ns: 0, bytes }).collect();
        let report = check(&frames, options);
        prop_assert_eq!(report.frames, frames.len() as u64);
        for link in [1, 101, 113, 276].map(|number| link::LinkType::from_number(number).unwrap()) {
            for frame in &frames {
                let mut scratch = Vec::new();
                let (bytes, longer) = link::ethernet(link, &frame.bytes, &mut scratch);
                prop_assert!(bytes.is_empty() || bytes.len() as isize == frame.bytes.len() as isize + longer);
            }
        }
    }

    /// Behind the parser: headers changed and the iCRC made right again, frames left out, doubled and swapped.
    #[test]
    fn captured_frames_with_anything_in_their_headers(
        options in vantages(),
        file in 0usize..62,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, any::<u8>()), 0..30),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let mut frames = capture(&names()[file]);
        for (frame, at, value) in changes {
            let frame = frame.get(&frames).clone();
            let index = frames.iter().position(|other| other.bytes == frame.bytes).unwrap();
            if let Some(byte) = frames[index].bytes.get_mut(BTH + at) {
                *byte = value;
            }
            if let Ok(icrc) = wire::compute_icrc(&frames[index].bytes) {
                let end = frames[index].bytes.len();
                frames[index].bytes[end - 4..].copy_from_slice(&icrc.to_le_bytes());
            }
        }
        let shuffled: Vec<_> = order.iter().map(|index| index.get(&frames).clone()).collect();
        frames.extend(shuffled);
        prop_assert_eq!(check(&frames, options).frames, frames.len() as u64);
    }
}

/// QP numbers that are used again begin anew, told or not.
#[test]
fn a_connection_that_is_made_again_is_no_fault() {
    let first = capture("rc-send-v4");
    let mut again = first.clone();
    for frame in &mut again {
        crate::edit::edit(frame, |bytes| {
            let psn = crate::edit::psn(bytes) ^ 0x40_0000;
            crate::edit::set_psn(bytes, psn);
        });
    }
    let both: Vec<_> = first.into_iter().chain(again).collect();
    let report = check(&both, Options::default());
    crate::support::assert_passes("twice", &report);
    assert_eq!(report.notes(check::Note::NewEpoch), 2);
}

/// What is told of a connection is held against its first packet.
#[test]
fn a_connection_can_be_told() {
    let frames = capture("rc-write-5-v4");
    let parsed: Vec<_> =
        frames.iter().map(|seen| wire::Frame::parse(&seen.bytes, seen.bytes.len()).unwrap()).collect();
    let request = parsed[0];
    let answer = parsed.iter().find(|frame| frame.src == request.dst).unwrap();
    let told = |first: Psn| {
        let mut checker = check::Checker::new(Options { vantage: Vantage::Senders, ..Options::default() });
        let one = End { gid: request.src, qpn: answer.bth().dest_qpn, psn: first };
        let other =
            End { gid: Gid(request.dst.0), qpn: Qpn::new(request.bth().dest_qpn.value()), psn: Psn::new(0) };
        checker.connect(one, other, Some(Mtu::Mtu1024));
        frames.iter().for_each(|frame| checker.on_frame(frame.time_ns, &frame.bytes));
        checker.finish()
    };
    crate::support::assert_passes("told right", &told(request.bth().psn));
    let report = told(request.bth().psn.prev());
    assert_eq!(report.violations_by_rule(check::Rule::PsnOrder), 1, "{:?}", report.violations);
}
