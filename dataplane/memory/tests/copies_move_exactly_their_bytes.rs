//! Copies of every length and alignment: all bytes, only those, the last one last.

use memory::{Buffer, OutOfRange};
use std::sync::Arc;

fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at as u8).wrapping_mul(37).wrapping_add(seed) | 1).collect()
}

#[test]
fn every_length_and_alignment() {
    let lengths: Vec<usize> =
        if cfg!(miri) { vec![0, 1, 3, 8, 17, 33] } else { (0..=600).chain([4096, 4097, 9000]).collect() };
    let buffer = Buffer::new(if cfg!(miri) { 320 } else { 16 * 1024 }).unwrap();
    let mut all = vec![0; buffer.len()];
    for len in lengths {
        for at in [0, 1, 7, 8, 15, 64] {
            buffer.fill(0, buffer.len().min(len + 256), 0).unwrap();
            let data = pattern(len, at as u8);
            buffer.write(at, &data).unwrap();
            buffer.read(0, &mut all).unwrap();
            assert!(all[..at].iter().all(|&byte| byte == 0), "before: {len} at {at}");
            assert_eq!(all[at..at + len], data, "{len} at {at}");
            assert!(all[at + len..].iter().all(|&byte| byte == 0), "behind: {len} at {at}");
            let mut out = vec![0; len];
            buffer.read(at, &mut out).unwrap();
            assert_eq!(out, data);
        }
    }
}

#[test]
fn a_buffer_is_zeroed_aligned_and_bounded() {
    assert_eq!(Buffer::new(8192).unwrap().addr() % 4096, 0, "whole pages begin with one");
    let buffer = Buffer::new(100).unwrap();
    assert_eq!((buffer.len(), buffer.addr() % 64), (100, 0));
    let mut all = [1; 100];
    buffer.read(0, &mut all).unwrap();
    assert_eq!(all, [0; 100]);
    assert_eq!(buffer.write(99, &[1, 2]), Err(OutOfRange));
    assert_eq!(buffer.read(usize::MAX, &mut [0; 2]), Err(OutOfRange));
    assert_eq!(buffer.fill(50, 51, 1), Err(OutOfRange));
    assert_eq!(buffer.load_u8(100), Err(OutOfRange));
    assert_eq!(buffer.load_u64(93), Err(OutOfRange));
    assert_eq!(buffer.load_u64(4), Err(OutOfRange), "not aligned");
    assert_eq!(buffer.store_u64(96, 1), Err(OutOfRange));
    buffer.fill(98, 2, 7).unwrap();
    assert_eq!((buffer.load_u8(97), buffer.load_u8(98), buffer.load_u8(99)), (Ok(0), Ok(7), Ok(7)));
    assert!(Buffer::new(0).is_err());
    // Miri takes the program down where the system says no.
    assert!(cfg!(miri) || Buffer::new(usize::MAX / 2).is_err());
}

/// A program that polls the last byte finds all others in place. Long copies, so that it would find them missing.
#[test]
fn the_last_byte_comes_last() {
    // The lengths end on an aligned word, and not.
    let (lengths, rounds) = if cfg!(miri) { ([64, 61], 5u64) } else { ([1 << 20, (1 << 20) - 3], 200) };
    for len in lengths {
        let buffer = Arc::new(Buffer::new(len).unwrap());
        let turn = Arc::new(Buffer::new(8).unwrap());
        let writer = {
            let (buffer, turn) = (Arc::clone(&buffer), Arc::clone(&turn));
            std::thread::spawn(move || {
                for round in 1..=rounds {
                    buffer.write(0, &vec![round as u8 | 1; len]).unwrap();
                    while turn.load_u64(0).unwrap() != round {
                        std::thread::yield_now();
                    }
                }
            })
        };
        let mut bytes = vec![0; len];
        for round in 1..=rounds {
            while buffer.load_u8(len - 1).unwrap() != round as u8 | 1 {
                std::hint::spin_loop();
            }
            buffer.read(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|&byte| byte == round as u8 | 1), "round {round}");
            buffer.fill(0, len, 0).unwrap();
            turn.store_u64(0, round).unwrap();
        }
        writer.join().unwrap();
    }
}
