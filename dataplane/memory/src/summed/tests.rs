use super::*;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at + seed) * 131 + (at >> 8) * 29 + at * at % 251) as u8).collect()
}

fn expect(from: &[u8], crc: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(from);
    hasher.finalize()
}

/// One way to sum, and the same way to copy and sum. `None`: the best that there is.
#[derive(Clone, Copy, Debug)]
enum Way {
    Best,
    Pieces,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Wide(Wide),
}

/// Every way that this processor has. The wide ones need a block, less than which is left to pieces.
fn ways(len: usize) -> impl Iterator<Item = Way> {
    let ways = vec![Way::Best, Way::Pieces];
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    let ways = {
        let wide = [Wide::Xmm, Wide::Ymm, Wide::Zmm].into_iter();
        let wide = wide.filter(|wide| wide.is_there() && len >= wide.block()).map(Way::Wide);
        ways.into_iter().chain(wide).collect::<Vec<_>>()
    };
    let _ = len;
    ways.into_iter()
}

impl Way {
    fn sum(self, from: &[u8], crc: u32) -> u32 {
        // SAFETY: as many bytes as the slice has, and nobody writes them; the processor was asked.
        unsafe {
            match self {
                Way::Best => sum(from.as_ptr(), from.len(), crc),
                Way::Pieces => pieces::sum(from.as_ptr(), from.len(), crc),
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                Way::Wide(wide) => wide.sum(from.as_ptr(), from.len(), crc),
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
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                Way::Wide(wide) => wide.copy(from, to, len, crc),
            }
        }
    }

    /// What is kept of a copy, and its state.
    fn keep(self, from: &[u8], to: &mut [u8], crc: u32) -> (Kept, u32) {
        let (from, to, len) = (from.as_ptr(), to.as_mut_ptr(), from.len());
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Way::Wide(wide) = self {
            let mut kept = Kept { bytes: MaybeUninit::uninit(), len: 0 };
            // SAFETY: as above.
            let (state, left) = unsafe { wide.copy_but_last(from, to, len, crc, &mut kept.bytes) };
            kept.len = left;
            return (kept, state);
        }
        // SAFETY: as above.
        unsafe { Kept::copy(from, to, len, crc) }
    }
}

/// Sums and copies `len` bytes from `skew` bytes behind an aligned place to as many behind another, by every way.
fn one(source: &[u8], len: usize, from: usize, to: usize, crc: u32) {
    let source = &source[from..from + len];
    let expected = expect(source, crc);
    let what = |way: Way| format!("{way:?}: {len} bytes from {from} to {to}");
    for way in ways(len) {
        assert_eq!(way.sum(source, crc), expected, "{}", what(way));

        let mut room = vec![0xA5; to + len + 70];
        assert_eq!(way.copy(source, &mut room[to..to + len], crc), expected, "{}", what(way));
        check(&room, source, to, &what(way));

        let mut room = vec![0xA5; to + len + 70];
        let (kept, state) = way.keep(source, &mut room[to..to + len], crc);
        assert_eq!(state, expected, "{}", what(way));
        assert!(kept.len >= len.min(WORD), "{}: {} bytes are kept", what(way), kept.len);
        assert!(room[to + len - kept.len..].iter().all(|&byte| byte == 0xA5), "{}: kept", what(way));
        // SAFETY: the same place and length.
        unsafe { kept.place(room[to..to + len].as_mut_ptr(), len) };
        check(&room, source, to, &what(way));
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn powers_are_those_of_intels_paper() {
    // "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ": k1 and k2 of the reflected CRC-32.
    assert_eq!((wide::power(512 + 32), wide::power(512 - 32)), (0x1_5444_2bd4, 0x1_c6e4_1596));
}

/// The choice is the best that the processor has, whatever is asked first.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn the_widest_way_is_chosen() {
    let best = [Wide::Zmm, Wide::Ymm, Wide::Xmm].into_iter().find(|wide| wide.is_there());
    assert_eq!((Wide::worth(4096), Wide::worth(4096)), (best, best));
    assert_eq!(Wide::worth(100), None);
}
