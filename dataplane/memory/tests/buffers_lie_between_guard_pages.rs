//! An access beside a buffer does not go unnoticed in tests: it is a fault, or the buffer tells when it is given back.
#![cfg(not(miri))]

use engine::{Memory, RegionId, Span};
use memory::{Buffer, Regions};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;

const PAGE: usize = 4096;

/// A region of the buffer's bytes and some beside it, as a mistake in a range would make it.
fn too_large(regions: &Regions, buffer: &Buffer, before: usize, behind: usize) -> RegionId {
    let start = std::ptr::with_exposed_provenance_mut::<u8>(buffer.addr() as usize).wrapping_sub(before);
    // SAFETY: it does not hold, which is what this test is about: no reference is made, and the bytes beside the buffer are
    // of guard pages, or of a gap that nobody else uses.
    unsafe { regions.register_raw(start, before + buffer.len() + behind) }.unwrap()
}

/// Writes one byte at `at` of a region that begins `before` bytes before a buffer of `len` bytes and ends `behind` bytes behind.
fn stray(len: usize, before: usize, behind: usize, at: u64) {
    let regions = Regions::new(1);
    let buffer = Buffer::new(len).unwrap();
    let region = too_large(&regions, &buffer, before, behind);
    regions.reader().write(Span::new(region, at, 1), &[1]).unwrap();
}

/// How this test's process ends when it is run again for one case.
fn signal_of(case: &str) -> Option<i32> {
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_access_beside_a_buffer_is_a_fault", "--nocapture"])
        .env("CASE", case)
        .output()
        .unwrap();
    again.status.signal()
}

#[test]
fn an_access_beside_a_buffer_is_a_fault() {
    match std::env::var("CASE").as_deref() {
        Ok("inside") => return stray(2 * PAGE, 0, 1, 2 * PAGE as u64 - 1),
        Ok("behind") => return stray(2 * PAGE, 0, 1, 2 * PAGE as u64),
        Ok("before") => return stray(2 * PAGE, 1, 0, 0),
        _ => {}
    }
    assert_eq!(signal_of("inside"), None, "the last byte is the buffer's");
    assert_eq!(signal_of("behind"), Some(libc::SIGSEGV));
    assert_eq!(signal_of("before"), Some(libc::SIGSEGV));
}

#[test]
#[should_panic(expected = "bytes beside a buffer of 100 bytes were written")]
fn a_byte_behind_a_buffer_of_no_whole_pages_is_noticed() {
    stray(100, 0, 1, 100);
}

#[test]
#[should_panic(expected = "bytes beside a buffer of 100 bytes were written")]
fn a_byte_before_a_buffer_of_no_whole_pages_is_noticed() {
    stray(100, 1, 0, 0);
}

#[test]
fn buffers_are_zeroed_and_end_close_to_their_guard() {
    for len in [1, 8, 63, 64, 65, 100, PAGE - 1, PAGE, PAGE + 1, 10 * PAGE] {
        let buffer = Arc::new(Buffer::new(len).unwrap());
        let end = buffer.addr() as usize + len;
        assert!(end.next_multiple_of(PAGE) - end < 64 && buffer.addr().is_multiple_of(64), "{len} bytes");
        let mut bytes = vec![1; len];
        buffer.read(0, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == 0), "{len} bytes");
        buffer.fill(0, len, 0xFF).unwrap();
    }
}
