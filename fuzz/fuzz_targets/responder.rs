//! See `fuzz::responder`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::responder(data));
