//! See `fuzz::wire_parser`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::wire_parser(data));
