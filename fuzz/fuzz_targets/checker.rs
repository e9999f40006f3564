//! See `fuzz::checker`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checker(data));
