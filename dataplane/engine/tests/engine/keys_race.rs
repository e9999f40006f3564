//! Fast registration on one core while others check keys: a check sees one registration or the other, never a mixture.

use engine::{Access, KeyFault, KeyUser, MemoryRegion, MrTable, PdId, RegionId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::{Qpn, RKey};

const PD: PdId = PdId(1);

fn by(pd: PdId) -> KeyUser {
    KeyUser { pd, qpn: Qpn::new(3) }
}
const INDEX: u32 = 0x0055_AA00;
const CAPACITY: u64 = 1 << 20;

/// Registration number `n`: everything in it follows from the number, so a mixture shows.
fn registration(n: u64) -> (RKey, u64, u64, Access) {
    let key = RKey::new(INDEX | (n as u8 as u32));
    let addr = (n % 251) * CAPACITY;
    let len = 64 + (n % 256) * 64;
    let extra = if n.is_multiple_of(2) { Access::REMOTE_READ } else { Access::REMOTE_ATOMIC };
    (key, addr, len, Access::LOCAL_WRITE | extra)
}

#[test]
fn a_check_never_sees_half_a_registration() {
    let region = Arc::new(MemoryRegion::fast(PD, RegionId { slot: 0, generation: 0 }, INDEX, CAPACITY));
    let mut table = MrTable::new(1);
    table.insert(region.clone());
    let stop = AtomicBool::new(false);
    let current = AtomicU64::new(0);
    let hits = AtomicU64::new(0);

    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let n = current.load(Ordering::Acquire);
                    let (key, addr, len, access) = registration(n);
                    // The whole of registration n; one that came 256 later has the same key, another range and the
                    // same rights, so an answer other than these two shapes mixes two registrations.
                    match table.remote(key, by(PD), addr, len as u32, access) {
                        Ok(span) => {
                            assert_eq!((span.offset(), u64::from(span.len())), (0, len));
                            hits.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(KeyFault::Unknown) => {}
                        Err(fault) => {
                            let moved_on = current.load(Ordering::Acquire) - n;
                            assert!(moved_on >= 255, "{fault} for registration {n}, {moved_on} later");
                        }
                    }
                    // The opposite right is never granted under this key.
                    let opposite = (Access::REMOTE_READ | Access::REMOTE_ATOMIC).difference(access);
                    let result = table.remote(key, by(PD), addr, 1, opposite);
                    assert!(result.is_err(), "{opposite:?} under {key}");
                }
            });
        }
        let begin = Instant::now();
        let mut n = 0;
        // Both bounds: a slow machine stops by time, a fast one has had enough.
        while n < 2_000_000
            && (begin.elapsed() < Duration::from_millis(600) || hits.load(Ordering::Relaxed) == 0)
        {
            assert!(begin.elapsed() < Duration::from_secs(30), "no check ever met its registration");
            let (key, addr, len, access) = registration(n);
            region.register(PD, key, addr, len, access).expect("free");
            current.store(n, Ordering::Release);
            if n % 64 == 0 {
                std::thread::yield_now();
            }
            region.invalidate(PD, key).expect("valid");
            n += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(hits.load(Ordering::Relaxed) > 0);
}
