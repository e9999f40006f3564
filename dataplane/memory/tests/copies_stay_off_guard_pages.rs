//! Registered memory between pages that may not be touched: a copy one byte too long ends the test with a fault.
#![cfg(not(miri))]

use engine::{Memory, PersistError, Span};
use memory::Regions;
use std::ptr::null_mut;

const PAGE: usize = 4096;

/// Two usable pages between two that are not.
struct Guarded(*mut u8);

impl Guarded {
    fn new() -> Guarded {
        let (flags, none) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_NONE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody's memory.
        let map = unsafe { libc::mmap(null_mut(), 4 * PAGE, none, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        let start = map.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: the middle pages belong to the mapping just made.
        let rc = unsafe { libc::mprotect(start.cast(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(rc, 0);
        Guarded(start)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, which nothing refers to any more: the table of the test is gone.
        unsafe { libc::munmap(self.0.wrapping_sub(PAGE).cast(), 4 * PAGE) };
    }
}

#[test]
fn copies_stay_off_guard_pages() {
    let guarded = Guarded::new();
    let regions = Regions::new(4);
    let mut reader = regions.reader();
    for len in (0..=1100).chain([PAGE - 1, PAGE, PAGE + 1, 2 * PAGE]) {
        for start in [guarded.0, guarded.0.wrapping_add(2 * PAGE - len)] {
            // SAFETY: `len` bytes from `start` lie in the usable pages, which outlive the table and have no references.
            let region = unsafe { regions.register_raw(start, len) }.unwrap();
            let span = Span::new(region, 0, len as u32);
            let data: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
            reader.write(span, &data).unwrap();
            let mut out = vec![0; len];
            reader.read(span, &mut out).unwrap();
            assert_eq!(out, data);
            assert_eq!(reader.sum(span, 0).unwrap(), crc32fast::hash(&data));
            assert_eq!(reader.persist(span.into()), Err(PersistError::Volatile), "no file is known below it");
            assert!(regions.invalidate(region));
            reader.quiesce();
            assert!(regions.is_released(region));
        }
    }
    drop((regions, reader));
}
