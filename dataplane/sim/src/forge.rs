//! Forged frames: a payload byte changed and the iCRC made right for it. No transport can notice; the oracles must. This is
//! how one finds out that they look.

use wire::{Frame, ICRC_LEN};

/// Changes the first payload byte, if there is one.
pub(crate) fn forge(bytes: &mut [u8]) {
    let Ok(frame) = Frame::parse(bytes, bytes.len()) else { return };
    if frame.payload_len() == 0 {
        return;
    }
    bytes[frame.payload_offset()] ^= 0x80;
    if let (Ok(icrc), Some(at)) = (wire::compute_icrc(bytes), bytes.len().checked_sub(ICRC_LEN)) {
        bytes[at..].copy_from_slice(&icrc.to_le_bytes());
    }
}
