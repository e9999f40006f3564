//! Fast registration: free → valid → free, and what keeps its key from being used at the wrong time.

use engine::{Access, KeyFault, KeyUser, MemoryRegion, MrTable, PdId, RegionId, Span};
use std::sync::Arc;
use wire::{Qpn, RKey};

const PD: PdId = PdId(1);

fn by(pd: PdId) -> KeyUser {
    KeyUser { pd, qpn: Qpn::new(3) }
}
const KEY: u32 = 0x0012_3400;
const REGION: RegionId = RegionId { slot: 0, generation: 0 };

fn free() -> (MrTable, Arc<MemoryRegion>) {
    let region = Arc::new(MemoryRegion::fast(PD, REGION, KEY, 0x1000));
    let mut table = MrTable::new(1);
    table.insert(region.clone());
    (table, region)
}

fn rights() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE
}

fn access(table: &MrTable, key: u32, addr: u64) -> Result<Span, KeyFault> {
    table.remote(RKey::new(key), by(PD), addr, 1, Access::REMOTE_WRITE)
}

#[test]
fn a_free_region_gives_no_access() {
    let (table, region) = free();
    assert!(!region.is_valid());
    assert_eq!(access(&table, KEY, 0), Err(KeyFault::Unknown));
    assert_eq!(table.invalidate(RKey::new(KEY), by(PD)), Err(KeyFault::Unknown));
}

#[test]
fn register_invalidate_and_register_again_under_another_key_byte() {
    let (table, region) = free();
    region.register(PD, RKey::new(KEY | 1), 0x5000, 0x100, rights()).unwrap();
    assert_eq!((region.is_valid(), region.key(), region.index()), (true, KEY | 1, KEY >> 8));
    assert_eq!(access(&table, KEY | 1, 0x50FF), Ok(Span::new(REGION, 0xFF, 1)));
    assert_eq!(access(&table, KEY, 0x5000), Err(KeyFault::Unknown), "the key before");
    assert_eq!(access(&table, KEY | 1, 0x5100), Err(KeyFault::Range));

    // Valid: it is not registered over.
    assert_eq!(region.register(PD, RKey::new(KEY | 2), 0, 0x10, rights()), Err(KeyFault::Unknown));
    assert!(access(&table, KEY | 1, 0x5000).is_ok());

    // The wrong key byte invalidates nothing.
    assert_eq!(table.invalidate(RKey::new(KEY | 2), by(PD)), Err(KeyFault::Unknown));
    assert_eq!(table.invalidate(RKey::new(KEY | 1), by(PdId(9))), Err(KeyFault::WrongPd));
    assert!(access(&table, KEY | 1, 0x5000).is_ok());
    table.invalidate(RKey::new(KEY | 1), by(PD)).unwrap();
    assert_eq!(access(&table, KEY | 1, 0x5000), Err(KeyFault::Unknown));
    assert_eq!(table.invalidate(RKey::new(KEY | 1), by(PD)), Err(KeyFault::Unknown), "once is enough");

    region.register(PD, RKey::new(KEY | 2), 0x9000, 0x1000, rights()).unwrap();
    assert_eq!(access(&table, KEY | 2, 0x9FFF), Ok(Span::new(REGION, 0xFFF, 1)));
    assert_eq!(access(&table, KEY | 1, 0x9000), Err(KeyFault::Unknown), "a key of an earlier life");
}

#[test]
fn registrations_that_are_refused_leave_the_region_free() {
    let (table, region) = free();
    let try_it = |pd, key, addr, len, access| region.register(pd, RKey::new(key), addr, len, access);
    assert_eq!(try_it(PD, KEY ^ 0x100, 0, 1, rights()), Err(KeyFault::Unknown));
    assert_eq!(try_it(PdId(2), KEY, 0, 1, rights()), Err(KeyFault::WrongPd));
    assert_eq!(try_it(PD, KEY, 0, 1, Access::REMOTE_WRITE), Err(KeyFault::Access));
    assert_eq!(try_it(PD, KEY, 0, 1, Access::REMOTE_ATOMIC), Err(KeyFault::Access));
    assert_eq!(try_it(PD, KEY, 0, 0x1001, rights()), Err(KeyFault::Range));
    assert_eq!(try_it(PD, KEY, u64::MAX, 2, rights()), Err(KeyFault::Range));
    assert!(!region.is_valid());
    assert_eq!(access(&table, KEY, 0), Err(KeyFault::Unknown));
    assert_eq!(try_it(PD, KEY, 0, 0x1000, rights()), Ok(()));
}

#[test]
fn an_ordinary_region_is_not_for_fast_registration() {
    let region = MemoryRegion::user(PD, REGION, KEY, 0, 16, rights());
    assert_eq!(region.register(PD, RKey::new(KEY), 0, 16, rights()), Err(KeyFault::Unknown));
}

#[test]
fn a_zero_based_registration() {
    let (table, region) = free();
    region.register(PD, RKey::new(KEY), 0x5000, 0x100, rights() | Access::ZERO_BASED).unwrap();
    assert_eq!(access(&table, KEY, 0xFF), Ok(Span::new(REGION, 0xFF, 1)));
    assert_eq!(access(&table, KEY, 0x5000), Err(KeyFault::Range));
}
