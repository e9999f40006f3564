use super::*;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at + seed) * 131 + (at >> 8) * 29 + at * at % 251) as u8).collect()
}

fn expect(from: &[u8], crc: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(from);
    hasher.finalize()
}

/// A word at the end that programs poll.
const WORD: usize = 8;

/// One way to sum, and the same way to copy and sum.
#[derive(Clone, Copy, Debug)]
enum Way {
    Best,
    Pieces,
}

impl Way {
    fn sum(self, from: &[u8], crc: u32) -> u32 {
        // SAFETY: as many bytes as the slice has, and nobody writes them; the processor was asked.
        unsafe {
            match self {
                Way::Best => sum(from.as_ptr(), from.len(), crc),
                Way::Pieces => pieces::sum(from.as_ptr(), from.len(), crc),
            }
        }
    }

    fn copy(self, from: &[u8], to: &mut [u8], crc: u32) -> u32 {
        let (from, to, len) = (from.as_ptr(), to.as_mut_ptr(), from.len());
        // SAFETY: as above, and as many to write.
        unsafe {
            match self {
                Way::Best => copy(from, to, len, crc),
                Way::Pieces => pieces::copy(from, to, len, crc),
            }
        }
    }
}

/// Sums and copies `len` bytes from `skew` bytes behind an aligned place to as many behind another, by every way.
fn one(source: &[u8], len: usize, from: usize, to: usize, crc: u32) {
    let source = &source[from..from + len];
    let expected = expect(source, crc);
    let what = |way: Way| format!("{way:?}: {len} bytes from {from} to {to}");
    for way in [Way::Best, Way::Pieces] {
        assert_eq!(way.sum(source, crc), expected, "{}", what(way));

        let mut room = vec![0xA5; to + len + 70];
        assert_eq!(way.copy(source, &mut room[to..to + len], crc), expected, "{}", what(way));
        check(&room, source, to, &what(way));
    }
    for (follows, region) in [(0, len), (1 << 20, 1 << 20), (1 << 20, 1 << 30)] {
        kept(source, to, crc, follows, region);
    }
}

/// The same, but for what waits for the sum.
fn kept(source: &[u8], to: usize, crc: u32, follows: usize, region: usize) {
    let len = source.len();
    for right in [false, true] {
        let what = format!("{len} bytes to {to}, {follows} follow of {region}, right: {right}");
        let mut room = vec![0xA5; to + len + 70];
        let target = room[to..to + len].as_mut_ptr();
        let mut tail = None;
        // SAFETY: as many bytes as the slices have, and nobody else writes them.
        let placed = unsafe {
            copy_if(source.as_ptr(), target, len, crc, (follows, region), |state| {
                assert_eq!(state, expect(source, crc), "{what}");
                let word = len.min(WORD);
                // SAFETY: the last of so many.
                tail = Some(std::slice::from_raw_parts(target.add(len - word), word).to_vec());
                right
            })
        };
        assert_eq!(placed, right, "{what}");
        assert_eq!(tail, Some(vec![0xA5; len.min(WORD)]), "{what}: kept");
        if right {
            check(&room, source, to, &what);
        } else {
            assert!(room[to + len - len.min(WORD)..].iter().all(|&byte| byte == 0xA5), "{what}: not placed");
        }
    }
}

#[track_caller]
fn check(room: &[u8], source: &[u8], to: usize, what: &str) {
    let (before, rest) = room.split_at(to);
    let (copy, behind) = rest.split_at(source.len());
    assert_eq!(copy, source, "{what}");
    assert!(before.iter().chain(behind).all(|&byte| byte == 0xA5), "{what} stay inside");
}

#[test]
fn every_length_has_its_bytes_and_its_sum() {
    let source = bytes(9100, 3);
    let step = if cfg!(miri) { 611 } else { 1 };
    for len in (0..=2100).chain((4000..=4200).chain(8900..9000)).step_by(step) {
        one(&source, len, 0, 0, 0x1234_5678);
    }
}

#[test]
fn every_alignment_has_its_bytes_and_its_sum() {
    let source = bytes(1300, 5);
    let step = if cfg!(miri) { 37 } else { 1 };
    for from in (0..=64).step_by(step) {
        for to in (0..=64).step_by(step) {
            one(&source, 1025, from, to, !0);
        }
    }
}

#[test]
fn any_state_goes_on() {
    let source = bytes(1111, 9);
    for crc in [0, 1, !0, 0x8000_0000, 0x2144_DF1C] {
        one(&source, 1111, 0, 0, crc);
    }
}
