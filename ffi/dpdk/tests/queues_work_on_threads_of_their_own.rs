//! Two threads with a queue pair each and caches of their own: every packet arrives once, in order, unharmed.

mod common;

use std::slice::from_ref;

use common::eal;
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::{Eal, MbufBurst, Mempool, PoolConfig, Port, PortConfig, RxQueue, TxQueue};

const PACKETS: u64 = 200_000;

#[test]
fn queues_work_on_threads_of_their_own() {
    let eal = eal();
    let config = PoolConfig { count: 2047, cache: 128, data_room: 256, ..PoolConfig::default() };
    let pool = Mempool::new(&eal, config).unwrap();
    let (a, b) = ring_pair(&eal, "t", &RingConfig { size: 256, ..RingConfig::default() }).unwrap();
    let [mut a, mut b] =
        [a, b].map(|id| Port::open(&eal, id, &PortConfig::default(), from_ref(&pool)).unwrap());
    let (queue_a, queue_b) = (a.take_queues().remove(0), b.take_queues().remove(0));
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&eal, &pool, queue_a, 1));
        scope.spawn(|| exchange(&eal, &pool, queue_b, 2));
    });
    drop((a, b));
    assert_eq!(pool.in_use(), 0);
}

/// Sends numbered packets marked `me` and checks those of the other thread, until all have come and gone.
fn exchange(eal: &Eal, pool: &Mempool, (mut rx, mut tx): (RxQueue, TxQueue), me: u8) {
    let _registered = eal.register_thread().unwrap();
    let (mut sent, mut received) = (0u64, 0u64);
    let mut outgoing = MbufBurst::<32>::new();
    let mut incoming = MbufBurst::<32>::new();
    while sent < PACKETS || received < PACKETS {
        while sent + (outgoing.len() as u64) < PACKETS {
            let Some(mut mbuf) = pool.alloc() else { break };
            let number = sent + outgoing.len() as u64;
            let len = 9 + (number % 200) as usize;
            let data = mbuf.append(len).unwrap();
            data.fill(me);
            data[..8].copy_from_slice(&number.to_be_bytes());
            if outgoing.push(mbuf).is_err() {
                break;
            }
        }
        sent += tx.burst(&mut outgoing) as u64;
        if rx.burst(&mut incoming) == 0 {
            std::thread::yield_now();
        }
        for mbuf in incoming.drain() {
            let data = mbuf.data();
            assert_eq!(data[..8], received.to_be_bytes());
            assert!(data.len() == 9 + (received % 200) as usize && data[8..].iter().all(|&b| b == 3 - me));
            received += 1;
        }
    }
}
