//! Frames that arrive in several buffers: only the head is in one piece.

use crate::support::{addressings, frame_with};
use proptest::prelude::*;
use wire::{Frame, FrameError, HEAD_LEN, Opcode, OpcodeInfo};

fn write_only() -> &'static OpcodeInfo {
    Opcode(0x0A).info().expect("WRITE Only")
}

#[test]
fn the_head_is_enough_to_parse() {
    for info in OpcodeInfo::all() {
        for addressing in addressings() {
            let bytes = frame_with(&addressing, info, &[9; 1000]);
            let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
            assert_eq!(Frame::parse(&bytes[..HEAD_LEN], bytes.len()), Ok(frame));
        }
    }
}

#[test]
fn missing_segments_are_told() {
    let bytes = frame_with(&addressings()[0], write_only(), &[9; 1000]);
    let frame = Frame::parse(&bytes, bytes.len()).expect("a frame");
    for segments in [&[][..], &[&bytes[..]][..0], &[&bytes[..500], &bytes[500..bytes.len() - 1]]] {
        assert_eq!(frame.verify_icrc(&bytes, segments.iter().copied()), Err(FrameError::Truncated));
    }
}

proptest! {
    #[test]
    fn segments_may_be_cut_anywhere(
        payload in prop::collection::vec(any::<u8>(), 0..600),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        which in 0..6usize,
        wrong in any::<bool>(),
    ) {
        let mut bytes = frame_with(&addressings()[which], write_only(), &payload);
        let end = bytes.len();
        if wrong {
            bytes[end - 5] ^= 4;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(end + 1)).collect();
        cuts.extend([0, end]);
        cuts.sort_unstable();
        let segments = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let head = &bytes[..end.min(HEAD_LEN)];
        let frame = Frame::parse(head, end).expect("a frame");
        let right = if wrong { Err(FrameError::BadIcrc) } else { Ok(()) };
        prop_assert_eq!(frame.verify_icrc(head, segments), right);
    }
}
