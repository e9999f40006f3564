//! Memory windows: what may be bound to what, what a bound window grants to whom, and what takes it away.

use engine::wr::Bind;
use engine::{
    Access, BindError, Binding, Extent, KeyFault, KeyUser, MemoryRegion, MemoryWindow, MrTable, MwType, PdId,
    RegionId, Span,
};
use std::sync::Arc;
use wire::{LKey, Qpn, RKey};

const PD: PdId = PdId(7);
const REGION: RegionId = RegionId { slot: 3, generation: 9 };
const MR_KEY: u32 = 0x0012_3401;
const MW_KEY: u32 = 0x0098_7600;
const ADDR: u64 = 0x5_0000;
const LEN: u64 = 0x1000;
const US: KeyUser = KeyUser { pd: PD, qpn: Qpn::new(3) };
const READ: Access = Access::REMOTE_READ;
const WRITE: Access = Access::REMOTE_WRITE;

struct Keys {
    table: MrTable,
    mr: Arc<MemoryRegion>,
    mw: Arc<MemoryWindow>,
}

/// A region that windows may be bound to, and a window.
fn keys(mw_type: MwType) -> Keys {
    keys_over(mw_type, Access::LOCAL_WRITE | Access::MW_BIND)
}

fn keys_over(mw_type: MwType, access: Access) -> Keys {
    let mr = Arc::new(MemoryRegion::user(PD, REGION, MR_KEY, ADDR, LEN, access));
    let mw = Arc::new(MemoryWindow::new(PD, mw_type, MW_KEY));
    let mut table = MrTable::new(4);
    table.insert(Arc::clone(&mr));
    table.insert_window(Arc::clone(&mw));
    Keys { table, mr, mw }
}

impl Keys {
    fn to(&self, addr: u64, len: u64, access: Access) -> Option<Binding> {
        Some(Binding { mr: Arc::clone(&self.mr), mr_key: self.mr.key(), addr, len, access })
    }

    fn bind_as(&self, user: KeyUser, byte: u32, to: Option<Binding>) -> Result<(), BindError> {
        self.table.bind(&Bind { mw: Arc::clone(&self.mw), key: RKey::new(MW_KEY | byte), to }, user)
    }

    fn bind(&self, byte: u32, to: Option<Binding>) -> Result<(), BindError> {
        self.bind_as(US, byte, to)
    }

    fn reach_as(
        &self,
        user: KeyUser,
        byte: u32,
        addr: u64,
        len: u32,
        need: Access,
    ) -> Result<Span, KeyFault> {
        self.table.remote(RKey::new(MW_KEY | byte), user, addr, len, need)
    }

    fn reach(&self, byte: u32, addr: u64, len: u32, need: Access) -> Result<Span, KeyFault> {
        self.reach_as(US, byte, addr, len, need)
    }

    fn invalidate(&self, byte: u32, user: KeyUser) -> Result<(), KeyFault> {
        self.table.invalidate(RKey::new(MW_KEY | byte), user)
    }
}

const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];

#[test]
fn a_window_grants_its_range_and_rights_under_its_own_key() {
    for mw_type in BOTH {
        let keys = keys(mw_type);
        assert_eq!(keys.reach(0, ADDR, 1, Access::empty()), Err(KeyFault::Unknown), "not bound");
        keys.bind(5, keys.to(ADDR + 0x100, 0x200, READ)).unwrap();
        assert_eq!((keys.mw.key(), keys.mw.is_bound(), keys.mr.windows()), (MW_KEY | 5, true, 1));
        assert_eq!(keys.mw.range(), Some((ADDR + 0x100, 0x200)));
        // Though the region itself gives peers nothing.
        let region = keys.table.remote(RKey::new(MR_KEY), US, ADDR + 0x100, 1, READ);
        assert_eq!(region, Err(KeyFault::Access));
        assert_eq!(keys.reach(5, ADDR + 0x100, 0x200, READ), Ok(Span::new(REGION, 0x100, 0x200)));
        assert_eq!(keys.reach(5, ADDR + 0x2FF, 1, READ), Ok(Span::new(REGION, 0x2FF, 1)));
        for (addr, len) in [(ADDR + 0xFF, 1), (ADDR + 0x100, 0x201), (ADDR + 0x300, 1), (u64::MAX, 1)] {
            assert_eq!(keys.reach(5, addr, len, READ), Err(KeyFault::Range), "{addr:#x} {len}");
        }
        assert_eq!(keys.reach(5, ADDR + 0x100, 1, WRITE), Err(KeyFault::Access));
        assert_eq!(keys.reach(4, ADDR + 0x100, 1, READ), Err(KeyFault::Unknown), "another key byte");
        let whole = keys.table.whole(RKey::new(MW_KEY | 5), US, READ);
        assert_eq!(whole, Ok(Extent::new(REGION, 0x100, 0x200)));
        // It is no key for local use.
        let local = keys.table.local(LKey::new(MW_KEY | 5), PD, ADDR + 0x100, 1, Access::empty());
        assert_eq!(local, Err(KeyFault::Unknown));
    }
}

#[test]
fn faults_are_told_in_their_order() {
    let keys = keys(MwType::Type2);
    keys.bind(0, keys.to(ADDR, 16, READ)).unwrap();
    let (other_pd, other_qp) = (KeyUser { pd: PdId(8), ..US }, KeyUser { qpn: Qpn::new(4), ..US });
    let other = KeyUser { pd: PdId(8), qpn: Qpn::new(4) };
    assert_eq!(keys.reach_as(other, 1, 0, 1, WRITE), Err(KeyFault::Unknown));
    assert_eq!(keys.reach_as(other, 0, 0, 1, WRITE), Err(KeyFault::WrongPd));
    assert_eq!(keys.reach_as(other_pd, 0, ADDR, 1, READ), Err(KeyFault::WrongPd));
    assert_eq!(keys.reach_as(other_qp, 0, 0, 1, WRITE), Err(KeyFault::WrongQp));
    assert_eq!(keys.reach(0, 0, 1, WRITE), Err(KeyFault::Access));
    assert_eq!(keys.reach(0, 0, 1, READ), Err(KeyFault::Range));
}

/// rocev2 facts, transport 18: type 1 is checked for its PD, type 2B for the queue pair, too.
#[test]
fn a_window_of_type_1_is_for_every_queue_pair_of_its_domain() {
    let keys = keys(MwType::Type1);
    keys.bind(0, keys.to(ADDR, 16, READ)).unwrap();
    let other_qp = KeyUser { qpn: Qpn::new(4), ..US };
    assert!(keys.reach_as(other_qp, 0, ADDR, 1, READ).is_ok());
    assert_eq!(keys.bind_as(other_qp, 1, keys.to(ADDR, 8, READ)), Ok(()));
    let other_pd = KeyUser { pd: PdId(8), ..US };
    assert_eq!(keys.reach_as(other_pd, 1, ADDR, 1, READ), Err(KeyFault::WrongPd));
    assert_eq!(keys.bind_as(other_pd, 2, keys.to(ADDR, 8, READ)), Err(BindError::WrongPd));
}

#[test]
fn a_window_of_type_1_is_bound_anew_and_its_old_key_dies() {
    let keys = keys(MwType::Type1);
    keys.bind(1, keys.to(ADDR, 16, READ)).unwrap();
    keys.bind(2, keys.to(ADDR + 16, 16, WRITE)).unwrap();
    assert_eq!(keys.mr.windows(), 1, "one window, however often it is bound");
    assert_eq!(keys.reach(1, ADDR, 1, READ), Err(KeyFault::Unknown));
    assert_eq!(keys.reach(2, ADDR, 1, WRITE), Err(KeyFault::Range));
    assert!(keys.reach(2, ADDR + 16, 1, WRITE).is_ok());
    // No bytes: unbound, with a region or without.
    for to in [None, keys.to(ADDR, 0, READ)] {
        keys.bind(3, keys.to(ADDR, 16, READ)).unwrap();
        keys.bind(4, to).unwrap();
        assert_eq!((keys.mw.is_bound(), keys.mr.windows(), keys.mw.range()), (false, 0, None));
        assert_eq!(keys.reach(4, ADDR, 0, Access::empty()), Err(KeyFault::Unknown));
    }
}

#[test]
fn a_window_of_type_1_cannot_be_invalidated() {
    let keys = keys(MwType::Type1);
    keys.bind(1, keys.to(ADDR, 16, READ)).unwrap();
    assert_eq!(keys.invalidate(1, US), Err(KeyFault::Access));
    assert!(keys.reach(1, ADDR, 1, READ).is_ok());
}

#[test]
fn a_window_of_type_2_is_bound_when_it_is_free_and_freed_by_its_own_queue_pair() {
    let keys = keys(MwType::Type2);
    assert_eq!(keys.bind(1, None), Err(BindError::Empty));
    assert_eq!(keys.bind(1, keys.to(ADDR, 0, READ)), Err(BindError::Empty));
    assert_eq!(keys.invalidate(0, US), Err(KeyFault::Unknown), "it is free");
    keys.bind(1, keys.to(ADDR, 16, READ)).unwrap();
    assert_eq!(keys.bind(2, keys.to(ADDR, 16, READ)), Err(BindError::NotFree));
    assert_eq!((keys.mw.key(), keys.mr.windows()), (MW_KEY | 1, 1), "a refused bind leaves all as it was");

    assert_eq!(keys.invalidate(2, US), Err(KeyFault::Unknown), "another key byte");
    assert_eq!(keys.invalidate(1, KeyUser { qpn: Qpn::new(4), ..US }), Err(KeyFault::WrongQp));
    assert_eq!(keys.invalidate(1, KeyUser { pd: PdId(8), ..US }), Err(KeyFault::WrongPd));
    assert!(keys.reach(1, ADDR, 1, READ).is_ok());
    assert_eq!(keys.invalidate(1, US), Ok(()));
    assert_eq!((keys.mw.is_bound(), keys.mr.windows()), (false, 0));
    assert_eq!(keys.reach(1, ADDR, 1, READ), Err(KeyFault::Unknown));
    assert_eq!(keys.invalidate(1, US), Err(KeyFault::Unknown), "once is enough");
    // By another queue pair, whose own it is then.
    let other = KeyUser { qpn: Qpn::new(4), ..US };
    keys.bind_as(other, 1, keys.to(ADDR, 16, READ)).unwrap();
    assert_eq!(keys.reach(1, ADDR, 1, READ), Err(KeyFault::WrongQp));
    assert!(keys.reach_as(other, 1, ADDR, 1, READ).is_ok());
}

#[test]
fn only_a_window_of_type_2_counts_from_zero() {
    let zero_based = READ | Access::ZERO_BASED;
    let one = keys(MwType::Type1);
    assert_eq!(one.bind(1, one.to(ADDR, 16, zero_based)), Err(BindError::ZeroBasedType1));
    let two = keys(MwType::Type2);
    two.bind(1, two.to(ADDR + 0x40, 16, zero_based)).unwrap();
    assert_eq!(two.reach(1, 4, 12, READ), Ok(Span::new(REGION, 0x44, 12)));
    assert_eq!(two.reach(1, 4, 13, READ), Err(KeyFault::Range));
    assert_eq!(two.reach(1, ADDR + 0x40, 1, READ), Err(KeyFault::Range));
    assert_eq!(two.mw.range(), Some((0, 16)));
}

#[test]
fn the_range_lies_inside_of_the_region() {
    for mw_type in BOTH {
        for (addr, len, inside) in [
            (ADDR, LEN, true),
            (ADDR + LEN - 1, 1, true),
            (ADDR - 1, 2, false),
            (ADDR, LEN + 1, false),
            (ADDR + LEN, 1, false),
            (0, 1, false),
            (u64::MAX, 1, false),
            (ADDR + 1, u64::MAX, false),
            (ADDR, u64::MAX - ADDR + 1, false),
        ] {
            let keys = keys(mw_type);
            let bound = keys.bind(1, keys.to(addr, len, READ));
            assert_eq!(bound, if inside { Ok(()) } else { Err(BindError::Range) }, "{addr:#x} {len:#x}");
            assert_eq!((keys.mr.windows(), keys.mw.is_bound()), (inside.into(), inside));
        }
    }
}

/// rocev2 facts, transport 18: rights to write, atomics among them, need the region's local one; MW_BIND is always needed.
#[test]
fn the_region_allows_windows_and_what_they_write() {
    let remote = [WRITE, READ, Access::REMOTE_ATOMIC, WRITE | READ, Access::FLUSH_GLOBAL, Access::empty()];
    for access in remote {
        for local in [Access::empty(), Access::LOCAL_WRITE] {
            let keys = keys_over(MwType::Type2, local | Access::MW_BIND);
            let writes = access.intersects(WRITE | Access::REMOTE_ATOMIC);
            let allowed = !writes || local == Access::LOCAL_WRITE;
            let bound = keys.bind(1, keys.to(ADDR, 8, access));
            assert_eq!(bound, if allowed { Ok(()) } else { Err(BindError::Rights) }, "{access:?} {local:?}");
            assert_eq!(keys.mr.windows(), allowed.into());
            let keys = keys_over(MwType::Type2, local);
            assert_eq!(keys.bind(1, keys.to(ADDR, 8, access)), Err(BindError::NoBindRight));
        }
    }
    for access in [Access::LOCAL_WRITE, Access::MW_BIND, READ | Access::MW_BIND] {
        let keys = keys(MwType::Type2);
        assert_eq!(keys.bind(1, keys.to(ADDR, 8, access)), Err(BindError::Rights), "{access:?}");
    }
    let persistent = Access::FLUSH_PERSISTENT;
    let plain = keys(MwType::Type2);
    assert_eq!(plain.bind(1, plain.to(ADDR, 8, persistent)), Err(BindError::Rights));
    let durable = keys_over(MwType::Type2, persistent | Access::MW_BIND);
    assert_eq!(durable.bind(1, durable.to(ADDR, 8, persistent)), Ok(()));
}

#[test]
fn other_regions_and_keys_are_refused() {
    for mw_type in BOTH {
        let zero_based = Access::MW_BIND | Access::ZERO_BASED;
        let mut keys = keys_over(mw_type, zero_based);
        assert_eq!(keys.bind(1, keys.to(0, 8, READ)), Err(BindError::ZeroBasedRegion));
        let region = |pd| Arc::new(MemoryRegion::user(pd, REGION, 0x5500, ADDR, LEN, Access::MW_BIND));
        let to = |mr: &Arc<MemoryRegion>| {
            Some(Binding { mr: mr.clone(), mr_key: 0x5500, addr: ADDR, len: 8, access: READ })
        };
        let foreign = region(PdId(8));
        assert_eq!(keys.bind(1, to(&foreign)), Err(BindError::Region), "of no key here");
        keys.table.insert(foreign.clone());
        assert_eq!(keys.bind(1, to(&foreign)), Err(BindError::WrongPd));
        // The same key and domain, but those of another device: its memory is not what this table's engine reaches.
        keys.table.insert(region(PD));
        assert_eq!(keys.bind(1, to(&region(PD))), Err(BindError::Region));
        let elsewhere = Arc::new(MemoryWindow::new(PD, mw_type, MW_KEY));
        let bind = Bind { mw: elsewhere, key: RKey::new(MW_KEY), to: to(&region(PD)) };
        assert_eq!(keys.table.bind(&bind, US), Err(BindError::Key));
        assert_eq!(keys.bind(0x100, keys.to(ADDR, 8, READ)), Err(BindError::Key), "another index");
        assert!(!keys.mw.is_bound());
    }
}

#[test]
fn a_region_with_windows_is_not_deregistered() {
    let keys = keys(MwType::Type2);
    keys.bind(1, keys.to(ADDR, 8, READ)).unwrap();
    assert_eq!(keys.mr.close(), Err(1));
    assert!(keys.reach(1, ADDR, 1, READ).is_ok());
    keys.invalidate(1, US).unwrap();
    assert_eq!(keys.mr.close(), Ok(()));
    assert_eq!(keys.bind(2, keys.to(ADDR, 8, READ)), Err(BindError::Region), "too late");
    assert_eq!((keys.mr.windows(), keys.mr.close()), (0, Ok(())));
}

#[test]
fn a_fast_region_with_windows_stays_valid() {
    let mr = Arc::new(MemoryRegion::fast(PD, REGION, MR_KEY, LEN));
    let mut keys = Keys { mr: Arc::clone(&mr), ..keys(MwType::Type2) };
    keys.table.insert(Arc::clone(&mr));
    let access = Access::LOCAL_WRITE | Access::MW_BIND;
    assert_eq!(keys.bind(1, keys.to(ADDR, 8, READ)), Err(BindError::Region), "not registered");
    mr.register(PD, RKey::new(MR_KEY + 1), ADDR, LEN, access).unwrap();
    let stale = Binding { mr_key: MR_KEY, ..keys.to(ADDR, 8, READ).unwrap() };
    assert_eq!(keys.bind(1, Some(stale)), Err(BindError::Region), "a key of another life");
    keys.bind(1, keys.to(ADDR, 8, READ)).unwrap();
    let invalidate = |key| keys.table.invalidate(RKey::new(key), US);
    assert_eq!(invalidate(MR_KEY + 1), Err(KeyFault::Bound));
    assert!(mr.is_valid());
    keys.invalidate(1, US).unwrap();
    assert_eq!((invalidate(MR_KEY + 1), mr.is_valid()), (Ok(()), false));
    // And again.
    mr.register(PD, RKey::new(MR_KEY + 2), ADDR, LEN, access).unwrap();
    keys.bind(1, keys.to(ADDR, 8, READ)).unwrap();
    keys.invalidate(1, US).unwrap();
    assert_eq!(mr.close(), Ok(()));
    assert_eq!(invalidate(MR_KEY + 2), Ok(()));
    let late = mr.register(PD, RKey::new(MR_KEY), ADDR, LEN, access);
    assert_eq!(late, Err(KeyFault::Unknown), "deregistered for good");
}

#[test]
fn a_window_that_is_given_back_is_dead_everywhere() {
    for mw_type in BOTH {
        let mut keys = keys(mw_type);
        let mut elsewhere = MrTable::new(1);
        elsewhere.insert_window(Arc::clone(&keys.mw));
        keys.bind(1, keys.to(ADDR, 8, READ)).unwrap();
        assert!(elsewhere.remote(RKey::new(MW_KEY | 1), US, ADDR, 1, READ).is_ok());
        assert!(keys.table.remove(MW_KEY >> 8).is_none(), "it is no region");
        assert!(keys.table.remove_window(MR_KEY >> 8).is_none(), "it is no window");
        assert!(keys.table.remove_window(MW_KEY >> 8).is_some());
        assert_eq!((keys.mw.is_bound(), keys.mr.windows(), keys.mr.close()), (false, 0, Ok(())));
        let late = elsewhere.remote(RKey::new(MW_KEY | 1), US, ADDR, 1, READ);
        assert_eq!(late, Err(KeyFault::Unknown));
        // A worker that has not forgotten it yet.
        let mr = Arc::new(MemoryRegion::user(PD, REGION, MR_KEY, ADDR, LEN, Access::MW_BIND));
        elsewhere.insert(Arc::clone(&mr));
        let keys = Keys { mr, table: elsewhere, ..keys };
        assert_eq!(keys.bind(2, keys.to(ADDR, 8, READ)), Err(BindError::Key), "a request that came late");
        assert_eq!(keys.mr.windows(), 0);
    }
}

/// The count belongs to a region, not to whoever has its index next.
#[test]
fn a_later_region_of_the_same_index_has_no_windows() {
    let mut keys = keys(MwType::Type2);
    keys.bind(1, keys.to(ADDR, 8, READ)).unwrap();
    keys.mr.close_anyway();
    let next = RegionId { generation: 10, ..REGION };
    let mr = Arc::new(MemoryRegion::user(PD, next, MR_KEY, ADDR, LEN, Access::MW_BIND));
    keys.table.insert(Arc::clone(&mr));
    keys.invalidate(1, US).unwrap();
    assert_eq!((mr.windows(), mr.close()), (0, Ok(())));
}

/// A check sees one bind or another, never a mixture, while another core binds and invalidates.
#[test]
fn a_check_never_sees_half_a_bind() {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    let keys = keys(MwType::Type2);
    let (stop, hits) = (AtomicBool::new(false), AtomicU32::new(0));
    // Everything of bind `n` follows from its key byte.
    let range = |byte: u32| (ADDR + u64::from(byte) * 8, 8 + byte);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut byte = 0;
                while !stop.load(Ordering::Relaxed) {
                    byte = (byte + 1) % 256;
                    let (addr, len) = range(byte);
                    match keys.reach(byte, addr, len, READ) {
                        Ok(span) => {
                            assert_eq!((span.offset(), span.len()), (u64::from(byte) * 8, len));
                            hits.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(fault) => assert_eq!(fault, KeyFault::Unknown, "{byte}"),
                    }
                    let longer = keys.reach(byte, addr, len + 1, READ);
                    assert!(matches!(longer, Err(KeyFault::Unknown | KeyFault::Range)), "{longer:?}");
                }
            });
        }
        let begin = std::time::Instant::now();
        let mut turn = 0u32;
        while begin.elapsed().as_millis() < 300 || hits.load(Ordering::Relaxed) == 0 {
            assert!(begin.elapsed().as_secs() < 30, "no check ever met its bind");
            let byte = turn % 256;
            let (addr, len) = range(byte);
            keys.bind(byte, keys.to(addr, len.into(), READ)).unwrap();
            if turn.is_multiple_of(16) {
                std::thread::yield_now();
            }
            keys.invalidate(byte, US).unwrap();
            turn += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(keys.mr.windows(), 0);
}
