//! Memory over a file: what is made persistent is written to it, memory without one refuses, and single words are stored at
//! once. Miri maps no files.
#![cfg(not(miri))]

use engine::{Extent, Memory, PersistError, RegionGone, RegionId, Span};
use memory::{Buffer, BufferError, Regions};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

const PAGES: usize = 16;
const PAGE: usize = 4096;

fn file() -> File {
    tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Kilobytes of a mapping that no disk has yet: what the kernel says of the mapping that begins at `addr`.
fn dirty_kb(addr: u64) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps.lines().skip_while(|line| !line.starts_with(&format!("{addr:x}-")));
    lines.next().expect("the mapping is there");
    let dirty = lines
        .take_while(|line| !line.starts_with("VmFlags"))
        .filter(|line| line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:"));
    dirty.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

fn extent(region: RegionId, offset: usize, len: usize) -> Extent {
    Extent::new(region, offset as u64, len as u64)
}

#[test]
fn what_is_made_persistent_is_written_to_the_file_and_nothing_else() {
    let file = file();
    let buffer = Arc::new(Buffer::of_file(&file, PAGES * PAGE).unwrap());
    assert!(buffer.is_durable());
    let facts = file.metadata().unwrap();
    assert_eq!(facts.len(), (PAGES * PAGE) as u64);
    assert!(facts.blocks() * 512 >= facts.len(), "its place on the disk is taken: {} blocks", facts.blocks());
    let regions = Regions::new(1);
    let memory = regions.reader();
    let region = regions.register(Arc::clone(&buffer)).unwrap();
    for page in 0..PAGES {
        memory.write(Span::new(region, (page * PAGE + 7) as u64, 5), b"bytes").unwrap();
    }
    assert_eq!(dirty_kb(buffer.addr()), (PAGES * PAGE / 1024) as u64);
    // Ten bytes across the border of two pages.
    memory.persist(extent(region, 3 * PAGE - 5, 10)).unwrap();
    assert_eq!(dirty_kb(buffer.addr()), ((PAGES - 2) * PAGE / 1024) as u64);
    memory.persist(extent(region, 0, 0)).unwrap();
    memory.persist(extent(region, 0, PAGES * PAGE)).unwrap();
    assert_eq!(dirty_kb(buffer.addr()), 0);
    let mut read = [0; 5];
    file.read_exact_at(&mut read, 7).unwrap();
    assert_eq!(&read, b"bytes");
}

#[test]
fn a_part_of_a_buffer_persists_at_its_own_place() {
    let buffer = Arc::new(Buffer::of_file(&file(), PAGES * PAGE).unwrap());
    let regions = Regions::new(1);
    let memory = regions.reader();
    let region = regions.register_part(Arc::clone(&buffer), 5 * PAGE + 100, 2 * PAGE).unwrap();
    memory.write(Span::new(region, 0, 1), &[1]).unwrap();
    memory.write(Span::new(region, PAGE as u64, 1), &[1]).unwrap();
    memory.persist(extent(region, 0, 1)).unwrap();
    assert_eq!(dirty_kb(buffer.addr()), PAGE as u64 / 1024);
    memory.persist(extent(region, PAGE, 1)).unwrap();
    assert_eq!(dirty_kb(buffer.addr()), 0);
}

#[test]
fn what_is_there_already_stays() {
    let file = file();
    file.write_all_at(b"before", 0).unwrap();
    let buffer = Buffer::of_file(&file, PAGE).unwrap();
    let mut read = [0; 8];
    buffer.read(0, &mut read).unwrap();
    assert_eq!(&read, b"before\0\0");
}

#[test]
fn memory_without_a_file_refuses_and_so_do_ranges_outside() {
    let regions = Regions::new(2);
    let memory = regions.reader();
    let plain = regions.register(Arc::new(Buffer::new(PAGE).unwrap())).unwrap();
    assert_eq!(memory.persist(extent(plain, 0, 8)), Err(PersistError::Volatile));
    assert_eq!(memory.make_visible(extent(plain, 0, 8)), Ok(()));

    let durable = regions.register(Arc::new(Buffer::of_file(&file(), PAGE).unwrap())).unwrap();
    for (offset, len) in [(0, PAGE + 1), (PAGE, 1), (usize::MAX, 2)] {
        let outside = memory.persist(extent(durable, offset, len));
        assert_eq!(outside, Err(PersistError::Gone(RegionGone)), "{offset} {len}");
    }
    for region in [plain, durable] {
        regions.invalidate(region);
        assert_eq!(memory.persist(extent(region, 0, 8)), Err(PersistError::Gone(RegionGone)));
        assert_eq!(memory.make_visible(extent(region, 0, 8)), Err(RegionGone));
    }
}

#[test]
fn a_slot_forgets_the_file_of_its_last_region() {
    let regions = Regions::new(1);
    let mut memory = regions.reader();
    let durable = regions.register(Arc::new(Buffer::of_file(&file(), PAGE).unwrap())).unwrap();
    regions.invalidate(durable);
    memory.quiesce();
    let plain = regions.register(Arc::new(Buffer::new(PAGE).unwrap())).unwrap();
    assert_eq!(plain.slot, durable.slot);
    assert_eq!(memory.persist(extent(plain, 0, 8)), Err(PersistError::Volatile));
}

#[test]
fn files_that_cannot_hold_it_are_refused() {
    assert!(matches!(Buffer::of_file(&file(), 0), Err(BufferError::Empty)));
    assert!(matches!(Buffer::of_file(&file(), usize::MAX), Err(BufferError::File { .. })));
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let error = Buffer::of_file(&null, PAGE).unwrap_err();
    assert!(matches!(error, BufferError::File { .. } | BufferError::Volatile), "{error}");
    let in_memory = tempfile::tempfile_in("/dev/shm").unwrap();
    let error = Buffer::of_file(&in_memory, PAGE).unwrap_err();
    assert!(
        matches!(error, BufferError::Volatile) && error.to_string().contains("a file on a disk"),
        "{error}"
    );
}

#[test]
fn a_stored_word_is_there_as_it_came() {
    let buffer = Arc::new(Buffer::new(64).unwrap());
    let regions = Regions::new(1);
    let memory = regions.reader();
    let region = regions.register(Arc::clone(&buffer)).unwrap();
    memory.store(Span::new(region, 8, 8), *b"in order").unwrap();
    let mut read = [0; 24];
    buffer.read(0, &mut read).unwrap();
    assert_eq!(&read, b"\0\0\0\0\0\0\0\0in order\0\0\0\0\0\0\0\0");
    for offset in [4, 60, 64] {
        assert_eq!(memory.store(Span::new(region, offset, 8), [1; 8]), Err(RegionGone), "{offset}");
    }
}
