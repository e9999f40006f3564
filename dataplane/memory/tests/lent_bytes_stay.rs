//! What is lent stays where it is until the lender hears that all came back.

use engine::{RegionGone, RegionId, Span};
use memory::{Buffer, Lender, Regions};
use std::sync::Arc;

fn region(regions: &Regions) -> (Arc<Buffer>, RegionId) {
    let buffer = Arc::new(Buffer::new(4096).unwrap());
    buffer.write(100, b"lent").unwrap();
    let region = regions.register(Arc::clone(&buffer)).unwrap();
    (buffer, region)
}

#[test]
fn a_withdrawn_region_stays_until_the_lender_settles() {
    let regions = Regions::new(4);
    let mut reader = regions.reader();
    let mut lender = Lender::new(&reader);
    let (_, region) = region(&regions);
    let start = lender.lend(Span::new(region, 100, 4)).unwrap();
    assert!(!lender.is_awaited());
    assert!(regions.invalidate(region));
    reader.quiesce();
    assert!(lender.is_awaited() && !regions.is_released(region));
    assert_eq!(lender.lend(Span::new(region, 100, 4)), Err(RegionGone), "no more of it");

    let mut copy = [0; 4];
    // SAFETY: lent, and not settled yet.
    let state = unsafe { memory::copy_lent(start, &mut copy, 0) };
    assert_eq!((&copy, state), (b"lent", crc32fast::hash(b"lent")));
    // SAFETY: it is not read any more.
    unsafe { lender.settle() };
    assert!(!lender.is_awaited() && regions.is_released(region));
}

#[test]
fn bytes_outside_of_a_region_are_not_lent() {
    let regions = Regions::new(4);
    let lender = Lender::new(&regions.reader());
    let (_, region) = region(&regions);
    assert!(lender.lend(Span::new(region, 4092, 4)).is_ok());
    assert_eq!(lender.lend(Span::new(region, 4093, 4)), Err(RegionGone));
}

#[test]
fn a_lender_that_is_dropped_with_something_out_keeps_memory_for_good() {
    let regions = Regions::new(4);
    let (one, two) = (region(&regions), region(&regions));
    let lender = Lender::new(&regions.reader());
    lender.lend(Span::new(one.1, 0, 8)).unwrap();
    drop(lender);
    assert!(regions.invalidate(one.1));
    assert!(!regions.is_released(one.1));

    let regions = Regions::new(4);
    let lender = Lender::new(&regions.reader());
    drop((lender, two));
    let (_, region) = region(&regions);
    assert!(regions.invalidate(region) && regions.is_released(region), "nothing was out");
}
