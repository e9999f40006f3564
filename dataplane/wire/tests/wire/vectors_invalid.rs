//! Vectors that must be dropped are dropped for their reason.

use crate::support::vector;
use wire::{Frame, FrameError, PKey};

fn verdict(name: &str) -> Result<Frame, FrameError> {
    let bytes = vector(name).frame;
    let frame = Frame::parse(&bytes, bytes.len())?;
    frame.verify_icrc(&bytes, [&bytes[..]])?;
    Ok(frame)
}

#[test]
fn invalid_vectors_are_dropped_for_their_reason() {
    assert_eq!(verdict("bad_icrc"), Err(FrameError::BadIcrc));
    assert_eq!(verdict("bad_payload_bit"), Err(FrameError::BadIcrc));
    assert_eq!(verdict("bad_tver"), Err(FrameError::TransportVersion));
    assert_eq!(verdict("truncated"), Err(FrameError::Truncated));
}

/// The frame is right; the partition is another. Whose P_Key counts is the QP's to know.
#[test]
fn bad_pkey_does_not_match() {
    let frame = verdict("bad_pkey").expect("a right frame");
    assert_eq!(frame.bth().pkey, PKey(0x1234));
    assert!(!PKey::DEFAULT.matches(frame.bth().pkey));
}
