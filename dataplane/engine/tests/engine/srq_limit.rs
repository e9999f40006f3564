//! An SRQ between threads: posters, responders of several workers, and whoever arms its limit.

use engine::event::EventSource;
use engine::{AsyncEvent, EventKind, EventQueue, PdId, RecvQueue, RecvWr};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LIMIT: AsyncEvent = AsyncEvent { kind: EventKind::SrqLimitReached, source: EventSource::Srq(3) };

fn recv(wr_id: u64) -> RecvWr {
    RecvWr { wr_id, sges: Default::default() }
}

/// Two workers race for the receives around the limit, again and again: one event each time, none at the limit itself.
#[test]
fn of_two_workers_exactly_one_tells() {
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let (srq, events) = (RecvQueue::shared(3, PdId(1), 8, 1), EventQueue::new(64));
    let (start, end) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    srq.take(&events).expect("there are enough");
                    end.wait();
                }
            });
        }
        for round in 0..ROUNDS {
            // Two are taken. With three left over by the limit none tells, with one less one of them does.
            let limit = 4 + (round % 2) as u32;
            while srq.len() < 6 {
                srq.post(recv(round)).unwrap();
            }
            srq.arm_limit(limit);
            start.wait();
            end.wait();
            let told: Vec<_> = std::iter::from_fn(|| events.poll()).collect();
            assert_eq!(told, vec![LIMIT; (round % 2) as usize], "limit {limit}, {} left", srq.len());
            assert_eq!(srq.limit(), if round % 2 == 1 { 0 } else { limit });
        }
    });
    assert_eq!(events.lost(), 0);
}

/// Nothing is lost or doubled, the depth holds, and there are as many events as armings that were used up.
#[test]
fn posters_workers_and_an_arming_thread_at_once() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 30_000 };
    const DEPTH: u32 = 16;
    let (srq, events) = (RecvQueue::shared(3, PdId(1), DEPTH, 1), EventQueue::new(16));
    let (taken, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    let (mut armed, mut told) = (0, 0);
    std::thread::scope(|scope| {
        for poster in 0..2 {
            let srq = &srq;
            scope.spawn(move || {
                for n in 0..EACH {
                    while srq.post(recv(poster * EACH + n)).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while taken.load(Relaxed) < 2 * EACH {
                    match srq.take(&events) {
                        Some(wr) => {
                            taken.fetch_add(1, Relaxed);
                            sum.fetch_add(wr.wr_id, Relaxed);
                        }
                        None => std::thread::yield_now(),
                    }
                }
            });
        }
        while taken.load(Relaxed) < 2 * EACH {
            assert!(srq.len() <= DEPTH as usize);
            if srq.limit() == 0 {
                told += std::iter::from_fn(|| events.poll()).count();
                srq.arm_limit(DEPTH / 2);
                armed += 1;
            }
        }
    });
    told += std::iter::from_fn(|| events.poll()).count();
    assert_eq!((sum.into_inner(), srq.len(), events.lost()), ((0..2 * EACH).sum(), 0, 0));
    let left_armed = usize::from(srq.limit() != 0);
    assert_eq!(told, armed - left_armed, "{armed} armings");
}
