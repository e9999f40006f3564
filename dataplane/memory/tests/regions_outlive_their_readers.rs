//! When memory of a withdrawn region is let go: not before every reader has said that it is outside.

use engine::{Memory, RegionGone, RegionId, Span};
use memory::{Buffer, PartError, Regions, TableFull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn buffer(len: usize) -> Arc<Buffer> {
    Arc::new(Buffer::new(len).unwrap())
}

fn span(region: RegionId, offset: u64, len: u32) -> Span {
    Span::new(region, offset, len)
}

#[test]
fn a_withdrawn_region_is_gone_at_once_and_freed_after_the_burst() {
    let regions = Regions::new(4);
    let mut reader = regions.reader();
    let mut other = reader.clone();
    let memory = buffer(64);
    let region = regions.register(Arc::clone(&memory)).unwrap();
    assert!(!regions.is_released(region));
    reader.write(span(region, 0, 3), &[1, 2, 3]).unwrap();

    assert!(regions.invalidate(region));
    assert!(!regions.invalidate(region), "once only");
    let mut out = [0; 3];
    assert_eq!(reader.read(span(region, 0, 3), &mut out), Err(RegionGone));
    assert_eq!(reader.write(span(region, 0, 3), &[9; 3]), Err(RegionGone));
    assert_eq!(reader.fetch_add(span(region, 0, 8), 1), Err(RegionGone));
    assert_eq!(reader.compare_swap(span(region, 0, 8), 0, 1), Err(RegionGone));

    assert_eq!((regions.reclaim(), regions.is_released(region)), (1, false));
    reader.quiesce();
    assert_eq!(regions.reclaim(), 1, "one of two readers may still be inside");
    assert_eq!(Arc::strong_count(&memory), 2);
    other.quiesce();
    assert!(regions.is_released(region));
    assert_eq!((regions.reclaim(), Arc::strong_count(&memory)), (0, 1));
    let mut first = [0; 3];
    memory.read(0, &mut first).unwrap();
    assert_eq!(first, [1, 2, 3]);
}

#[test]
fn a_reader_that_leaves_holds_nothing_up() {
    let regions = Regions::new(1);
    let reader = regions.reader();
    let region = regions.register(buffer(8)).unwrap();
    regions.invalidate(region);
    assert_eq!(regions.reclaim(), 1);
    drop(reader);
    assert_eq!(regions.reclaim(), 0);
}

#[test]
fn a_reader_that_comes_later_holds_nothing_up() {
    let regions = Regions::new(2);
    let region = regions.register(buffer(8)).unwrap();
    let mut early = regions.reader();
    regions.invalidate(region);
    let late = regions.reader();
    assert_eq!(late.read(span(region, 0, 1), &mut [0]), Err(RegionGone));
    early.quiesce();
    assert_eq!(regions.reclaim(), 0);
}

#[test]
fn a_slot_is_used_again_under_another_number() {
    let regions = Regions::new(1);
    let mut reader = regions.reader();
    let first = regions.register(buffer(8)).unwrap();
    assert_eq!(regions.register(buffer(8)), Err(TableFull(1)));
    regions.invalidate(first);
    assert_eq!(regions.register(buffer(8)), Err(TableFull(1)), "a reader may be inside the first");
    reader.quiesce();
    let second = regions.register(buffer(16)).unwrap();
    assert_ne!(first, second);
    assert!(regions.is_released(first));
    assert_eq!(reader.read(span(first, 0, 1), &mut [0]), Err(RegionGone), "the old number stays dead");
    assert!(!regions.invalidate(first), "and does not withdraw the new region");
    reader.write(span(second, 8, 8), &[7; 8]).unwrap();
}

#[test]
fn numbers_that_were_never_given_name_nothing() {
    let regions = Regions::new(2);
    let reader = regions.reader();
    for region in [
        RegionId { slot: 0, generation: 0 },
        RegionId { slot: 1, generation: 1 },
        RegionId { slot: 9, generation: 1 },
    ] {
        assert_eq!(reader.read(span(region, 0, 1), &mut [0]), Err(RegionGone));
        assert!(!regions.invalidate(region));
    }
}

#[test]
fn spans_outside_their_region_are_refused() {
    let regions = Regions::new(2);
    let reader = regions.reader();
    let memory = buffer(64);
    let part = regions.register_part(Arc::clone(&memory), 16, 32).unwrap();
    reader.write(span(part, 0, 32), &[5; 32]).unwrap();
    assert_eq!(memory.load_u64(8), Ok(0));
    assert_eq!(memory.load_u64(16), Ok(u64::from_ne_bytes([5; 8])));
    assert_eq!(memory.load_u64(48), Ok(0));
    for (offset, len) in [(0, 33), (32, 1), (33, 0), (u64::MAX, 1), (u64::MAX - 3, 8)] {
        assert_eq!(
            reader.read(span(part, offset, len), &mut vec![0; len as usize]),
            Err(RegionGone),
            "{offset} {len}"
        );
        assert_eq!(
            reader.write(span(part, offset, len), &vec![0; len as usize]),
            Err(RegionGone),
            "{offset} {len}"
        );
    }
    reader.read(span(part, 32, 0), &mut []).unwrap();
    for (offset, len) in [(60, 5), (usize::MAX, 1), (65, 0)] {
        assert!(matches!(
            regions.register_part(Arc::clone(&memory), offset, len),
            Err(PartError::OutOfRange(_))
        ));
    }
}

#[test]
fn atomics_act_once_on_aligned_words_only() {
    let regions = Regions::new(1);
    let reader = regions.reader();
    let memory = buffer(64);
    let region = regions.register(Arc::clone(&memory)).unwrap();
    memory.store_u64(8, 40).unwrap();
    assert_eq!(reader.fetch_add(span(region, 8, 8), 2), Ok(40));
    assert_eq!(reader.compare_swap(span(region, 8, 8), 41, 1), Ok(42), "another value: nothing is stored");
    assert_eq!(reader.compare_swap(span(region, 8, 8), 42, 7), Ok(42));
    assert_eq!(memory.load_u64(8), Ok(7));
    assert_eq!(reader.fetch_add(span(region, 8, 8), u64::MAX), Ok(7), "the sum wraps");
    assert_eq!(memory.load_u64(8), Ok(6));
    for at in [1, 4, 57, 64] {
        assert_eq!(reader.fetch_add(span(region, at, 8), 1), Err(RegionGone));
        assert_eq!(reader.compare_swap(span(region, at, 8), 0, 1), Err(RegionGone));
    }
}

/// Readers copy without pause while regions come and go. A region's bytes are all its own number: a copy from memory that
/// was let go would crash, and one from another region's would be seen.
#[test]
fn readers_never_meet_freed_memory() {
    let rounds = if cfg!(miri) { 20 } else { 200 };
    let regions = Regions::new(3);
    let current = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let end = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (mut reader, current, end) = (regions.reader(), Arc::clone(&current), Arc::clone(&end));
            std::thread::spawn(move || {
                let (mut found, mut gone) = (0u64, 0u64);
                while !end.load(Ordering::Acquire) {
                    for at in &*current {
                        let packed = at.load(Ordering::Acquire);
                        let region = RegionId { slot: (packed >> 32) as u32, generation: packed as u32 };
                        let mut bytes = [0; 600];
                        match reader.read(span(region, 0, 600), &mut bytes) {
                            Ok(()) => {
                                let word = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
                                assert!(bytes.chunks(8).all(|chunk| chunk == word.to_ne_bytes()));
                                assert_eq!(word, packed);
                                found += 1;
                            }
                            Err(RegionGone) => gone += 1,
                        }
                    }
                    reader.quiesce();
                }
                (found, gone)
            })
        })
        .collect();
    for round in 0..rounds {
        let at = &current[round % 2];
        let old = at.load(Ordering::Relaxed);
        regions.invalidate(RegionId { slot: (old >> 32) as u32, generation: old as u32 });
        // The table has a slot for each of the two regions and one more for the one being let go.
        let region = loop {
            let memory = buffer(600);
            match regions.register(Arc::clone(&memory)) {
                Ok(region) => {
                    let packed = u64::from(region.slot) << 32 | u64::from(region.generation);
                    memory.write(0, &packed.to_ne_bytes().repeat(75)).unwrap();
                    break packed;
                }
                Err(TableFull(_)) => std::thread::yield_now(),
            }
        };
        at.store(region, Ordering::Release);
    }
    end.store(true, Ordering::Release);
    let (found, _gone) = readers
        .into_iter()
        .map(|reader| reader.join().unwrap())
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(found > 0);
}
