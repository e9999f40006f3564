//! Pools run dry with `None`, get every buffer back, and are taken over when dropped.

mod common;

use common::{eal, frame, packet, pool};
use dpdk::mempool::{HEADROOM, PoolError};
use dpdk::{MbufBurst, Mempool, PoolConfig, Reserve};

#[test]
fn pools_lose_no_buffer() {
    let eal = eal();
    let pool = pool(&eal, 63, 2048);
    assert_eq!((pool.available(), pool.in_use()), (63, 0));

    let all: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!((all.len(), pool.available(), pool.in_use()), (63, 0, 63));
    assert!(pool.alloc().is_none());
    drop(all);
    assert_eq!(pool.available(), 63);

    // In bulk: all or none, and not more than there is room for.
    let mut burst = MbufBurst::<48>::new();
    assert!(pool.alloc_bulk(&mut burst, 40));
    assert!(!pool.alloc_bulk(&mut burst, 9), "no room for 9 beside 40");
    let mut other = MbufBurst::<48>::new();
    assert!(!pool.alloc_bulk(&mut other, 24), "only 23 left");
    assert!(other.is_empty());
    assert!(pool.alloc_bulk(&mut other, 23));
    assert_eq!((burst.len(), other.len(), pool.available()), (40, 23, 0));
    assert!(
        burst.as_slice().iter().all(|mbuf| mbuf.headroom() == usize::from(HEADROOM) && mbuf.pkt_len() == 0)
    );
    // A full burst gives a packet back; one taken halfway frees the rest.
    while burst.room() > 0 {
        burst.push(other.pop().unwrap()).unwrap();
    }
    let refused = burst.push(other.pop().unwrap()).unwrap_err();
    drop(refused);
    assert_eq!(burst.drain().take(3).count(), 3);
    assert!(burst.is_empty());
    drop(other);
    assert_eq!(pool.available(), 63);

    // A chain goes home whole, also from another thread.
    let chain = packet(&pool, &frame(9000, 0));
    assert_eq!(pool.in_use(), 5);
    std::thread::spawn(move || drop(chain)).join().unwrap();
    assert_eq!(pool.in_use(), 0);

    a_reserve_gives_all_and_takes_none_along(&pool);
    a_burst_of_all_kinds_goes_home(&eal, &pool);
    a_registered_thread_has_a_cache(&eal);
    a_dropped_pool_is_taken_over(&eal);

    let too_large = PoolConfig { count: 1 << 20, ..PoolConfig::default() };
    let error = Mempool::new(&eal, too_large).unwrap_err();
    assert!(
        matches!(error, PoolError::Memory { .. }) && error.to_string().contains("fewer buffers"),
        "{error}"
    );
}

fn a_reserve_gives_all_and_takes_none_along(pool: &std::sync::Arc<Mempool>) {
    for offset in [HEADROOM, 24, 0] {
        let mut reserve = Reserve::beginning_at(pool.clone(), offset);
        let mut all = Vec::new();
        // How long a packet is going to be changes nothing but what is asked for ahead.
        while let Some(mut mbuf) = reserve.take([60, 400, 9000][all.len() % 3]) {
            assert_eq!((mbuf.headroom(), mbuf.pkt_len(), mbuf.data().len()), (usize::from(offset), 0, 0));
            assert_eq!((mbuf.nb_segs(), mbuf.stripped_vlan()), (1, None), "nothing is left of what it was");
            assert!(pool.in_use() as usize <= all.len() + 1 + Reserve::MOST);
            // As another may have it before it is free again.
            assert!(mbuf.extend_from_slice(b"used") && mbuf.trim_front(1));
            mbuf.set_stripped_vlan(7);
            all.push(mbuf);
        }
        assert_eq!((all.len(), pool.in_use()), (63, 63), "the last ones, too");
        drop(all);
        let mut all = Vec::new();
        let most = usize::from(pool.data_room()) + usize::from(HEADROOM - offset);
        assert_eq!(reserve.room(), most);
        assert!(reserve.take_whole(most + 1).is_none());
        while let Some(mut mbuf) = reserve.take_whole([0, 60, most][all.len() % 3]) {
            let len = [0, 60, most][all.len() % 3];
            assert_eq!((mbuf.headroom(), mbuf.pkt_len(), mbuf.data().len()), (usize::from(offset), len, len));
            assert_eq!((mbuf.nb_segs(), mbuf.stripped_vlan(), mbuf.tailroom()), (1, None, most - len));
            let bytes = mbuf.data_mut().as_ptr();
            let (of_it, all_of_it) = (mbuf.roomy_mut(100).len(), mbuf.roomy_mut(usize::MAX));
            assert_eq!((of_it, all_of_it.len(), all_of_it.as_ptr()), (100, most, bytes));
            mbuf.set_stripped_vlan(7);
            all.push(mbuf);
        }
        assert_eq!((all.len(), pool.in_use()), (63, 63), "the last ones, too");
        drop(all);
        assert!(reserve.take(0).is_some());
        assert!(pool.in_use() > 0);
        drop(reserve);
        assert_eq!(pool.in_use(), 0, "those that waited are home");
    }
}

fn a_burst_of_all_kinds_goes_home(eal: &dpdk::Eal, pool: &std::sync::Arc<Mempool>) {
    let other = common::pool(eal, 63, 256);
    let mut burst = MbufBurst::<32>::new();
    for number in 0..9 {
        burst.push(packet(pool, &frame(60, number))).unwrap();
        burst.push(packet(&other, &frame(600, number))).unwrap();
        burst.push(packet(&other, &frame(60, number))).unwrap();
    }
    assert_eq!((pool.in_use(), other.in_use()), (9, 9 * 4));
    burst.clear();
    assert_eq!((pool.in_use(), other.in_use()), (0, 0));
    assert!((0..63).all(|_| other.alloc().is_some_and(|mbuf| mbuf.nb_segs() == 1)));
}

fn a_registered_thread_has_a_cache(eal: &dpdk::Eal) {
    let config = PoolConfig { name: "cached".into(), count: 255, cache: 32, data_room: 256, socket: None };
    let pool = Mempool::new(eal, config).unwrap();
    let worker = |eal: dpdk::Eal, pool: std::sync::Arc<Mempool>| {
        let registered = eal.register_thread().unwrap();
        assert_eq!(eal.register_thread().unwrap_err(), dpdk::EalError::RegisteredTwice);
        for _ in 0..1000 {
            let taken: Vec<_> = (0..40).map(|_| pool.alloc().unwrap()).collect();
            drop(taken);
        }
        drop(registered);
        // Registrations are given back: there are fewer than this.
        for _ in 0..1000 {
            eal.register_thread().unwrap();
        }
    };
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (eal, pool) = (eal.clone(), pool.clone());
            std::thread::spawn(move || worker(eal, pool))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(pool.available(), 255);
}

fn a_dropped_pool_is_taken_over(eal: &dpdk::Eal) {
    // 100 times 16 MB would not fit into the 512 MB there are.
    for round in 0..100 {
        let config = PoolConfig { name: format!("round {round}"), ..PoolConfig::default() };
        let pool = Mempool::new(eal, config).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(pool.available(), 8191);
    }
    // One whose buffer is still out is not taken over, and the buffer stays good.
    let config = PoolConfig { name: "held".into(), count: 15, cache: 0, data_room: 128, socket: None };
    let first = Mempool::new(eal, config.clone()).unwrap();
    let mut held = first.alloc().unwrap();
    assert!(held.extend_from_slice(b"still here"));
    drop(first);
    let second = Mempool::new(eal, config).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| second.alloc()).collect();
    assert_eq!(all.len(), 15);
    assert_eq!(held.data(), b"still here");
}
