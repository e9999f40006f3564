//! See `fuzz::impair_plan`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::impair_plan(data));
