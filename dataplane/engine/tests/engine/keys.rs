//! Key checks: each fault, in its order, and the edges of ranges.

use engine::{Access, KeyFault, KeyUser, MemoryRegion, MrTable, PdId, RegionId, Span};
use std::sync::Arc;
use wire::{LKey, Qpn, RKey};

const PD: PdId = PdId(7);

fn by(pd: PdId) -> KeyUser {
    KeyUser { pd, qpn: Qpn::new(3) }
}
const KEY: u32 = 0xABCD_EF12;
const REGION: RegionId = RegionId { slot: 3, generation: 9 };

fn table(region: MemoryRegion) -> MrTable {
    let mut table = MrTable::new(4);
    assert!(table.insert(Arc::new(region)).is_none());
    table
}

fn user(addr: u64, len: u64, access: Access) -> MrTable {
    table(MemoryRegion::user(PD, REGION, KEY, addr, len, access))
}

fn rw() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE
}

fn remote(table: &MrTable, addr: u64, len: u32) -> Result<Span, KeyFault> {
    table.remote(RKey::new(KEY), by(PD), addr, len, Access::REMOTE_WRITE)
}

#[test]
fn a_good_access_names_its_bytes() {
    let table = user(0x1000, 0x100, rw());
    assert_eq!(remote(&table, 0x1000, 0x100), Ok(Span::new(REGION, 0, 0x100)));
    assert_eq!(remote(&table, 0x1080, 0x10), Ok(Span::new(REGION, 0x80, 0x10)));
    let local = table.local(LKey::new(KEY), PD, 0x10FF, 1, Access::empty());
    assert_eq!(local, Ok(Span::new(REGION, 0xFF, 1)));
}

#[test]
fn unknown_keys() {
    let table = user(0x1000, 0x100, rw());
    let need = Access::empty();
    // Another index, another consumer byte, and the key of a region that was removed.
    for key in [KEY ^ 0x100, KEY ^ 1, 0] {
        assert_eq!(table.remote(RKey::new(key), by(PD), 0x1000, 1, need), Err(KeyFault::Unknown));
    }
    let mut table = table;
    assert_eq!(table.len(), 1);
    assert!(table.remove(KEY >> 8).is_some());
    assert!(table.is_empty());
    assert_eq!(table.remote(RKey::new(KEY), by(PD), 0x1000, 1, need), Err(KeyFault::Unknown));
    assert!(table.find(KEY).is_none());
}

#[test]
fn faults_are_told_in_their_order() {
    let table = user(0x1000, 0x100, Access::LOCAL_WRITE);
    let check = |key, pd, need, addr| table.remote(RKey::new(key), by(pd), addr, 1, need);
    let (bad_key, bad_pd, bad_need, bad_addr) = (KEY ^ 1, PdId(8), Access::REMOTE_READ, 0);
    assert_eq!(check(bad_key, bad_pd, bad_need, bad_addr), Err(KeyFault::Unknown));
    assert_eq!(check(KEY, bad_pd, bad_need, bad_addr), Err(KeyFault::WrongPd));
    assert_eq!(check(KEY, PD, bad_need, bad_addr), Err(KeyFault::Access));
    assert_eq!(check(KEY, PD, Access::empty(), bad_addr), Err(KeyFault::Range));
    assert!(check(KEY, PD, Access::empty(), 0x1000).is_ok());
}

#[test]
fn each_right_is_needed_by_itself() {
    let rights = [
        Access::LOCAL_WRITE,
        Access::REMOTE_WRITE,
        Access::REMOTE_READ,
        Access::REMOTE_ATOMIC,
        Access::FLUSH_GLOBAL,
    ];
    for granted in rights {
        let table = user(0, 16, granted);
        for need in rights {
            let result = table.remote(RKey::new(KEY), by(PD), 0, 8, need);
            assert_eq!(result.err(), (need != granted).then_some(KeyFault::Access), "{granted:?} {need:?}");
        }
        let both = table.remote(RKey::new(KEY), by(PD), 0, 8, granted | Access::MW_BIND);
        assert_eq!(both, Err(KeyFault::Access), "all rights asked for must be there");
    }
}

#[test]
fn ranges_at_the_edges_of_a_region() {
    let table = user(0x1000, 0x100, rw());
    for (addr, len) in
        [(0xFFF, 1), (0xFFF, 2), (0x1000, 0x101), (0x10FF, 2), (0x1100, 1), (0x1101, 0), (0, u32::MAX)]
    {
        assert_eq!(remote(&table, addr, len), Err(KeyFault::Range), "{addr:#x} {len}");
    }
    // Nothing, at either end, touches nothing.
    for addr in [0x1000, 0x1100] {
        assert_eq!(remote(&table, addr, 0).map(Span::len), Ok(0));
    }
}

#[test]
fn ranges_at_the_end_of_the_address_space() {
    let table = user(u64::MAX - 0xFF, 0xFF, rw());
    assert!(remote(&table, u64::MAX - 0xFF, 0xFF).is_ok());
    for (addr, len) in
        [(u64::MAX, 1), (u64::MAX, u32::MAX), (u64::MAX - 0xFF, 0x100), (u64::MAX - 1, 2), (0, 1)]
    {
        assert_eq!(remote(&table, addr, len), Err(KeyFault::Range), "{addr:#x} {len}");
    }
    // A region registered past 2^64 would wrap: what lies beyond is out of range all the same.
    let table = user(u64::MAX - 0xF, 0x100, rw());
    for (addr, len) in [(0, 1), (0x10, 1), (u64::MAX, 2), (u64::MAX - 0xF, 0x11)] {
        assert_eq!(remote(&table, addr, len), Err(KeyFault::Range), "{addr:#x} {len}");
    }
}

#[test]
fn a_region_larger_than_any_message() {
    let table = user(0x10_0000, 1 << 40, rw());
    let last = remote(&table, 0x10_0000 + (1 << 40) - (1 << 31), 1 << 31).unwrap();
    assert_eq!((last.offset(), last.len()), ((1 << 40) - (1 << 31), 1 << 31));
    assert_eq!(remote(&table, 0x10_0000 + (1 << 40) - (1 << 31) + 1, 1 << 31), Err(KeyFault::Range));
}

#[test]
fn a_zero_based_region_counts_from_zero() {
    let table = user(0x7000_0000, 0x100, rw() | Access::ZERO_BASED);
    assert_eq!(remote(&table, 0x10, 4), Ok(Span::new(REGION, 0x10, 4)));
    assert_eq!(remote(&table, 0xFF, 2), Err(KeyFault::Range));
    assert_eq!(remote(&table, 0x7000_0000, 1), Err(KeyFault::Range));
}

#[test]
fn ordinary_regions_are_not_invalidated() {
    let table = user(0, 16, rw());
    assert_eq!(table.invalidate(RKey::new(KEY), by(PD)), Err(KeyFault::Access));
    assert_eq!(table.invalidate(RKey::new(KEY), by(PdId(8))), Err(KeyFault::WrongPd));
    assert_eq!(table.invalidate(RKey::new(KEY ^ 0x100), by(PD)), Err(KeyFault::Unknown));
    assert!(remote(&table, 0, 16).is_ok());
}

#[test]
fn two_regions_of_one_index_are_not_both_kept() {
    let mut table = user(0, 16, rw());
    let other = MemoryRegion::user(PD, RegionId { slot: 4, generation: 1 }, KEY ^ 1, 0, 16, rw());
    assert!(table.insert(Arc::new(other)).is_some(), "the old one is given back");
    assert_eq!(table.len(), 1);
    assert_eq!(remote(&table, 0, 1), Err(KeyFault::Unknown));
}
