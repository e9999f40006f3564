//! See `fuzz::requester`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::requester(data));
