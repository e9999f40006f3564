use super::*;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| ((at + seed) * 131 + (at >> 8) * 29 + at * at % 251) as u8).collect()
}

fn expect(from: &[u8], crc: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(from);
    hasher.finalize()
}

#[test]
fn check_value() {
    assert_eq!(update(0, b"123456789"), 0xCBF4_3926);
    assert_eq!(update(update(0, b"1234"), b"56789"), 0xCBF4_3926);
    assert_eq!(update(0x1234_5678, b""), 0x1234_5678);
}

#[test]
fn any_split_has_the_same_state() {
    let source = bytes(300, 7);
    let step = if cfg!(miri) { 37 } else { 1 };
    for at in (0..=source.len()).step_by(step) {
        let (left, right) = source.split_at(at);
        assert_eq!(update(update(77, left), right), expect(&source, 77), "{at}");
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

    fn ways() -> impl Iterator<Item = Wide> {
        Wide::ALL.into_iter().filter(|wide| wide.is_there())
    }

    /// States of all kinds, one after the other.
    fn state(turn: usize) -> u32 {
        match turn % 5 {
            0 => 0,
            1 => !0,
            2 => 1 << (turn / 5 % 32),
            _ => (turn as u32).wrapping_mul(0x9E37_79B9),
        }
    }

    /// Sums and copies what lies at the end of `source`'s first bytes, by every way.
    #[track_caller]
    fn one(source: &[u8], to: usize, crc: u32) {
        let (from, len, expected) = (source.as_ptr(), source.len(), expect(source, crc));
        for way in ways() {
            let what = format!("{way:?}: {len} bytes to {to}, after {crc:#x}");
            // SAFETY: as many bytes as the slice has, and nobody writes them; the processor was asked.
            assert_eq!(unsafe { way.sum(from, len, crc) }, expected, "{what}");

            let mut room = vec![0xA5; to + len + 70];
            // SAFETY: as above, and as many to write.
            let state = unsafe { way.copy(from, room[to..].as_mut_ptr(), len, crc) };
            assert_eq!(state, expected, "{what}");
            check(&room, source, to, &what);

            last_kept(way, source, to, crc, None);
            for follows in [0, 700, 1 << 20] {
                for far in [false, true] {
                    last_kept(way, source, to, crc, Some(Ahead { follows, far }));
                }
            }
        }
    }

    /// Copies, and keeps the last bytes; lines behind are asked for that may be nobody's.
    #[track_caller]
    fn last_kept(way: Wide, source: &[u8], to: usize, crc: u32, ahead: Option<Ahead>) {
        let (from, len) = (source.as_ptr(), source.len());
        let what = format!("{way:?}: {len} bytes to {to}, after {crc:#x}, {ahead:?}");
        let (mut room, mut kept) = (vec![0xA5; to + len + 70], [0x5A; Wide::MOST]);
        let target = room[to..].as_mut_ptr();
        // SAFETY: as many bytes as the slice has to read and to write, and room for a block; the processor was asked.
        let (state, most) = unsafe { way.copy_but_last(from, target, kept.as_mut_ptr(), len, crc, ahead) };
        assert_eq!(
            (state, most),
            (expect(source, crc), if len < way.block() { len } else { way.last() }),
            "{what}"
        );
        assert!(room[to + len - most..].iter().all(|&byte| byte == 0xA5), "{what}: kept");
        assert!(kept[most..].iter().all(|&byte| byte == 0x5A), "{what}: no more is kept");
        room[to + len - most..][..most].copy_from_slice(&kept[..most]);
        check(&room, source, to, &what);
    }

    /// Copies what comes behind a lead, of every kind of place.
    #[track_caller]
    fn led(string: &[u8], behind: usize, to: usize, crc: u32) {
        let (head, source) = string.split_at(16 + behind);
        let zeros = [&[0; 16], &head[16..]].concat();
        let word = |at: usize| u64::from_le_bytes(head[at..][..8].try_into().unwrap());
        let lead = Lead { crc: expect(&zeros, crc), bytes: [word(0), word(8)], behind };
        let what = format!("{} bytes to {to}, {behind} behind the lead, after {crc:#x}", source.len());
        assert_eq!(update(lead.state(), source), expect(string, crc), "{what}");
        assert!(lead.reaches(source.len()), "{what}");
        for way in ways() {
            let mut room = vec![0xA5; to + source.len() + 70];
            // SAFETY: as many bytes as the slice has to read and to write; the processor and the lead were asked.
            let state = unsafe { way.copy_led(source.as_ptr(), room[to..].as_mut_ptr(), source.len(), lead) };
            assert_eq!(state, expect(string, crc), "{way:?}: {what}");
            check(&room, source, to, &what);
        }
    }

    #[test]
    fn what_follows_a_lead_has_the_sum_of_both() {
        let string = bytes(700, 11);
        for len in (4..=504).step_by(4) {
            for behind in [0, 4] {
                led(&string[len % 37..][..16 + behind + len], behind, len % 5, state(len + behind));
            }
        }
        led(&string[..16 + 8], 4, 0, 3);
        led(&string[..16 + 4], 4, 0, 3);
    }

    /// Copies two strings at once, whose leads differ.
    #[track_caller]
    fn led_pair(strings: [&[u8]; 2], behind: usize, to: usize, crc: u32) {
        let [(head, source), (other_head, other)] = strings.map(|string| string.split_at(16 + behind));
        let between = &[&[0; 16], &head[16..]].concat();
        assert_eq!(head[16..], other_head[16..], "what is between is the same");
        let bytes = [head, other_head]
            .map(|head| [0, 8].map(|at| u64::from_le_bytes(head[at..][..8].try_into().unwrap())));
        let (len, lead) = (source.len(), Lead { crc: expect(between, crc), bytes: bytes[0], behind });
        let what = format!("{len} bytes to {to}, {behind} behind the lead, after {crc:#x}");
        for way in ways() {
            let (mut room, mut its) = (vec![0xA5; to + len + 70], vec![0xA5; len + 70]);
            let first = (source.as_ptr(), room[to..].as_mut_ptr());
            let second = (other.as_ptr(), its.as_mut_ptr());
            // SAFETY: as many bytes as both slices have to read and to write; the processor and the lead are as the other test's.
            let states = unsafe { way.copy_led_pair(first, second, len, lead, bytes[1]) };
            assert_eq!(
                <[u32; 2]>::from(states),
                strings.map(|string| expect(string, crc)),
                "{way:?}: {what}"
            );
            check(&room, source, to, &what);
            check(&its, other, 0, &what);
        }
    }

    #[test]
    fn of_two_strings_at_once_each_has_its_bytes_and_its_sum() {
        let (string, mut other) = (bytes(700, 13), bytes(900, 14));
        for len in (4..=504).step_by(4) {
            for behind in [0, 4] {
                let (at, its) = (len % 37, len % 41);
                let end = 16 + behind + len;
                other[its + 16..][..behind].copy_from_slice(&string[at + 16..][..behind]);
                led_pair([&string[at..][..end], &other[its..][..end]], behind, len % 5, state(len + behind));
            }
        }
        // The same bytes for both.
        led_pair([&string[..84], &string[..84]], 4, 1, 3);
    }

    #[test]
    fn two_strings_are_summed_as_each_by_itself() {
        let (string, other) = (bytes(700, 15), bytes(700, 16));
        for len in 0..=520 {
            let (first, second) = (&string[len % 31..][..len], &other[len % 29..][..len]);
            let (crc, its_crc) = (state(len), state(len + 1));
            let expected = (expect(first, crc), expect(second, its_crc));
            assert_eq!(update_pair((crc, first), (its_crc, second)), expected, "{len} bytes");
            for way in ways() {
                // SAFETY: so many bytes are in both slices; the processor was asked.
                let found = unsafe { way.sum_pair((first.as_ptr(), crc), (second.as_ptr(), its_crc), len) };
                assert_eq!(found, expected, "{way:?}: {len} bytes");
            }
        }
        let (short, long) = (&string[..40], &other[..90]);
        assert_eq!(
            update_pair((1, short), (2, long)),
            (expect(short, 1), expect(long, 2)),
            "of other lengths"
        );
    }

    #[test]
    fn a_lead_reaches_over_fours_up_to_what_there_is_a_factor_for() {
        let lead = |behind| Lead { crc: 0, bytes: [0; 2], behind };
        assert_eq!(
            [0, 1, 4, 62, 508, 512].map(|len| lead(0).reaches(len)),
            [false, false, true, false, true, false]
        );
        assert_eq!([0, 1, 504, 508].map(|len| lead(4).reaches(len)), [true, false, true, false]);
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
        for len in (0..=1200).chain(2000..2100).chain(4000..=4200).chain(8900..9000) {
            one(&source[..len], 0, state(len));
            one(&source[len % 61..][..len], 3, state(len + 3));
        }
    }

    #[test]
    fn every_alignment_has_its_bytes_and_its_sum() {
        let source = bytes(1300, 5);
        for len in [5, 13, 31, 124, 127, 645] {
            for (from, to) in (0..=64).flat_map(|from| (0..=64).map(move |to| (from, to))) {
                one(&source[from..][..len], to, state(from + to));
            }
        }
    }

    #[test]
    fn every_bit_of_the_state_goes_on() {
        let source = bytes(300, 9);
        for len in (0..40).chain([64, 127, 128, 129, 131, 255, 256, 300]) {
            (0..32).for_each(|bit| one(&source[..len], 0, 1 << bit));
            (0..32).for_each(|bit| one(&source[..len], 0, !(1 << bit)));
        }
    }

    /// Ends a thread that looks at it, also when the test fails.
    struct Over<'a>(&'a AtomicBool);

    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// The sum is that of the copy, not that of what its bytes become meanwhile.
    #[test]
    fn what_is_summed_is_what_was_copied() {
        let source: Vec<AtomicU8> = (0..400).map(|_| AtomicU8::new(0)).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = Over(&over);
            scope.spawn(|| {
                let mut turn = 0u8;
                while !over.load(Ordering::Relaxed) {
                    turn = turn.wrapping_add(1);
                    source.iter().for_each(|byte| byte.store(turn, Ordering::Relaxed));
                }
            });
            for turn in 0..400_000 {
                // Two loads of the same bytes differ mostly where one of them reaches into another cache line.
                let (len, from) = (turn % if turn % 2 == 0 { 300 } else { 32 }, turn / 32 % 100);
                let from = source[from..][..300].as_ptr().cast::<u8>();
                let lead = Lead { crc: 1, bytes: [0; 2], behind: 0 };
                let short = 4 + len % 64 / 4 * 4;
                for way in ways() {
                    let (mut room, mut its) = ([0; 300], [0; 300]);
                    // SAFETY: so many bytes, which others write, and room for them.
                    let state = unsafe { way.copy(from, room.as_mut_ptr(), len, 1) };
                    assert_eq!(state, expect(&room[..len], 1), "{way:?}: {len} bytes");
                    let (first, second) = ((from, room.as_mut_ptr()), (from, its.as_mut_ptr()));
                    // SAFETY: the same of both.
                    let (state, its_state) = unsafe { way.copy_led_pair(first, second, short, lead, [0; 2]) };
                    assert_eq!(state, expect(&room[..short], 1), "{way:?}: {short} bytes");
                    assert_eq!(its_state, expect(&its[..short], 1), "{way:?}: {short} bytes, the other");
                }
            }
        });
    }

    /// The choice is the best that the processor has, whatever is asked first.
    #[test]
    fn the_widest_way_is_chosen() {
        assert_eq!((Wide::found(), Wide::found()), (ways().next(), ways().next()));
    }
}
