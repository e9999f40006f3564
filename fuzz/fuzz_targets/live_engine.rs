//! See `fuzz::live_engine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::live_engine(data));
