//! The corpora, and bytes from dice: every property holds.

use std::path::Path;

/// Bytes that look random, the same ones each time.
fn dice(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn every_corpus_replays() {
    for (name, property) in fuzz::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display())) {
            property(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "{name} has no corpus");
    }
}

#[test]
fn properties_hold_for_bytes_from_dice() {
    for (name, property) in fuzz::ALL {
        for seed in 0..400 {
            let bytes = dice(seed, 1 + seed as usize * 3 % 600);
            let outcome = std::panic::catch_unwind(|| property(&bytes));
            assert!(outcome.is_ok(), "{name}, seed {seed}");
        }
    }
}
