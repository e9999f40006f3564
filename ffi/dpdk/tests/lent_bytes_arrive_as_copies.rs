//! Packets that point to bytes outside of pools: what a ring's other end gets, and when the bytes are free again.

mod common;

use std::ptr::NonNull;
use std::slice::from_ref;

use common::{bytes, eal, frame, pool, queue, send};
use dpdk::lend::{LEND_ROOM, LentParts, Returns};
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::{Eal, Mbuf, MbufBurst, Mempool, Port, PortConfig, RxQueue, TxQueue};

fn open(eal: &Eal, name: &str, pool: &std::sync::Arc<Mempool>) -> (Vec<Port>, TxQueue, RxQueue) {
    let (a, b) = ring_pair(eal, name, &RingConfig { queues: 1, size: 8, socket: None }).unwrap();
    let mut ports: Vec<Port> =
        [a, b].map(|id| Port::open(eal, id, &PortConfig::default(), from_ref(pool)).unwrap()).into();
    assert!(ports[0].negotiated().tx_lends);
    let (tx, rx) = (queue(&mut ports[0]).1, queue(&mut ports[1]).0);
    (ports, tx, rx)
}

/// A frame whose bytes from 14 to the last four are lent.
fn lent(pool: &Mempool, whole: &mut [u8], returns: &Returns) -> Mbuf {
    let [mut head, body, mut tail] = [(); 3].map(|()| pool.alloc().unwrap());
    let end = whole.len() - 4;
    assert!(head.extend_from_slice(&whole[..14]) && tail.extend_from_slice(&whole[end..]));
    let middle = &mut whole[14..end];
    // SAFETY: the test keeps `whole` and `returns` until the packet is freed, and nobody reads the bytes through it but the ring.
    let body = unsafe {
        body.lend(NonNull::new(middle.as_mut_ptr()).unwrap(), middle.len() as u16, returns).unwrap()
    };
    head.chain(body).unwrap().chain(tail).unwrap()
}

/// The same in one buffer.
fn in_one(pool: &Mempool, whole: &mut [u8], returns: &Returns) -> Mbuf {
    let mut packet = pool.alloc().unwrap();
    assert!(packet.begin_at(LEND_ROOM));
    let end = whole.len() - 4;
    assert!(packet.extend_from_slice(&whole[..14]) && packet.extend_from_slice(&whole[end..]));
    let middle = &mut whole[14..end];
    let start = NonNull::new(middle.as_mut_ptr()).unwrap();
    // SAFETY: as above.
    unsafe { packet.lend_around(14, start, middle.len() as u16, returns).unwrap() }
}

#[test]
fn a_packet_in_one_buffer_has_its_parts_and_arrives_as_a_copy() {
    let eal = eal();
    let (pool, small) = (pool(&eal, 63, 2048), pool(&eal, 31, 64));
    let (_ports, mut tx, mut rx) = open(&eal, "one", &pool);
    assert!(tx.passes_on());
    let returns = Returns::default();
    let mut whole = frame(1400, 7);
    let (sent, place) = (whole.clone(), whole[14..].as_ptr().addr());
    for as_sent in [true, false] {
        let mut packet = in_one(&small, &mut whole, &returns);
        assert_eq!((packet.pkt_len(), packet.nb_segs(), packet.is_lent()), (1400, 1, true));
        assert!(packet.data().is_empty(), "no slice lies over what others may write");
        assert_eq!(packet.plain_data(), None);
        assert!(packet.prepend(1).is_none(), "what describes the loan stays");
        send(&mut tx, packet);
        let mut burst = MbufBurst::<8>::new();
        if as_sent {
            assert_eq!(rx.burst_as_sent(&mut burst), 1);
            let LentParts { head, start, len, tail } = burst.as_slice()[0].lent_parts().unwrap();
            assert_eq!((head, start.as_ptr().addr(), len, tail), (&sent[..14], place, 1382, &sent[1396..]));
            assert_eq!((returns.count(), small.in_use()), (0, 1));
            burst.clear();
        } else {
            assert_eq!(rx.burst(&mut burst), 1);
            assert_eq!((bytes(&burst.as_slice()[0]), burst.as_slice()[0].is_lent()), (sent.clone(), false));
        }
        assert_eq!((returns.count(), small.in_use()), (if as_sent { 1 } else { 2 }, 0));
    }
    // What was lent is an ordinary buffer again.
    let mut again = small.alloc().unwrap();
    assert!(again.extend_from_slice(&[7; 64]) && again.data() == [7; 64]);
}

#[test]
fn packets_that_are_freed_together_come_back_to_who_lent_them() {
    let eal = eal();
    let small = pool(&eal, 31, 64);
    let lenders = [Returns::default(), Returns::default()];
    let mut frames: Vec<Vec<u8>> = (0..8).map(|seed| frame(100, seed)).collect();
    let mut burst = MbufBurst::<16>::new();
    for (whole, lender) in frames.iter_mut().zip([0, 0, 1, 0, 1, 1, 1, 1]) {
        burst.push(in_one(&small, whole, &lenders[lender])).unwrap();
        burst.push(small.alloc().unwrap()).unwrap();
    }
    let alone = burst.drain().next().unwrap();
    assert_eq!((lenders.each_ref().map(Returns::count), small.in_use()), ([2, 5], 1));
    drop(alone);
    assert_eq!((lenders.each_ref().map(Returns::count), small.in_use()), ([3, 5], 0));
    for (whole, lender) in frames.iter_mut().zip([1, 1, 0, 1, 0, 0]) {
        burst.push(in_one(&small, whole, &lenders[lender])).unwrap();
        burst.push(small.alloc().unwrap()).unwrap();
    }
    burst.clear();
    assert_eq!((lenders.each_ref().map(Returns::count), small.in_use()), ([6, 8], 0));
}

#[test]
fn a_buffer_without_room_before_its_data_lends_nothing() {
    let eal = eal();
    let small = pool(&eal, 31, 64);
    let returns = Returns::default();
    let mut byte = 0u8;
    let start = NonNull::from(&mut byte);
    for (begin, head) in [(LEND_ROOM - 1, 1), (LEND_ROOM, 3)] {
        let mut packet = small.alloc().unwrap();
        assert!(packet.begin_at(begin) && packet.extend_from_slice(b"xy"));
        assert!(!packet.begin_at(LEND_ROOM), "it has data");
        // SAFETY: nothing is lent, which is what this test sees.
        assert!(unsafe { packet.lend_around(head, start, 1, &returns) }.is_none());
    }
    assert_eq!((returns.count(), small.in_use()), (0, 0));
    let mut empty = small.alloc().unwrap();
    assert!(empty.begin_at(LEND_ROOM));
    // SAFETY: no byte is lent.
    let mut empty = unsafe { empty.lend_around(0, start, 0, &returns) }.unwrap();
    assert!(!empty.begin_at(0), "what describes the loan stays, however short");
    drop(empty);
    assert_eq!((returns.count(), small.in_use()), (1, 0));
}

#[test]
fn lent_bytes_arrive_as_copies() {
    let eal = eal();
    let (pool, small) = (pool(&eal, 63, 2048), pool(&eal, 31, 64));
    let (_ports, mut tx, mut rx) = open(&eal, "lent", &pool);
    let returns = Returns::default();
    let mut whole = frame(1400, 7);
    let sent = whole.clone();
    let packet = lent(&small, &mut whole, &returns);
    assert_eq!((packet.pkt_len(), packet.nb_segs(), packet.is_lent()), (1400, 3, true));
    // No slice lies over what others may write.
    assert_eq!(packet.segments().map(<[u8]>::len).collect::<Vec<_>>(), [14, 0, 4]);
    assert_eq!(
        packet.lent_parts().map(|parts| (parts.head.len(), parts.len, parts.tail.len())),
        Some((14, 1382, 4))
    );
    send(&mut tx, packet);
    assert_eq!(returns.count(), 0);

    let mut burst = MbufBurst::<8>::new();
    assert_eq!(rx.burst(&mut burst), 1);
    assert_eq!((returns.count(), small.in_use()), (1, 0), "what was lent is free again");
    let got = burst.pop().unwrap();
    whole.fill(0);
    assert_eq!((bytes(&got), got.is_lent()), (sent, false));
    assert_eq!(rx.take_lost(), 0);
}

#[test]
fn they_are_left_where_they_are_for_who_asks() {
    let eal = eal();
    let (pool, small) = (pool(&eal, 63, 2048), pool(&eal, 31, 64));
    let (_ports, mut tx, mut rx) = open(&eal, "as_sent", &pool);
    let returns = Returns::default();
    let mut whole = frame(1400, 9);
    send(&mut tx, lent(&small, &mut whole, &returns));
    let mut burst = MbufBurst::<8>::new();
    assert_eq!(rx.burst_as_sent(&mut burst), 1);
    let LentParts { head, start, len, tail } = burst.as_slice()[0].lent_parts().unwrap();
    assert_eq!((head, start.as_ptr().addr(), len), (&whole[..14], whole[14..].as_ptr().addr(), 1382));
    assert_eq!(tail, &whole[1396..]);
    assert!(burst.as_mut_slice()[0].byte_mut(20).is_none(), "they are not ours to change");
    assert_eq!(returns.count(), 0);
    burst.clear();
    assert_eq!((returns.count(), small.in_use()), (1, 0));
}

#[test]
fn without_a_buffer_to_copy_into_a_packet_is_lost_and_counted() {
    let eal = eal();
    let (pool, small) = (pool(&eal, 2, 2048), pool(&eal, 31, 64));
    let (_ports, mut tx, mut rx) = open(&eal, "lost", &pool);
    let returns = Returns::default();
    let mut frames: Vec<Vec<u8>> = (0..4).map(|seed| frame(1000, seed)).collect();
    let sent = frames.clone();
    for whole in &mut frames {
        send(&mut tx, lent(&small, whole, &returns));
    }
    let mut burst = MbufBurst::<8>::new();
    assert_eq!(rx.burst(&mut burst), 4);
    let got: Vec<Vec<u8>> = burst.as_slice().iter().map(bytes).collect();
    assert_eq!(got, sent[..2], "those that came first, in order");
    assert_eq!((rx.take_lost(), rx.take_lost(), returns.count(), small.in_use()), (2, 0, 4, 0));
}

#[test]
fn a_buffer_that_is_in_use_or_too_small_lends_nothing() {
    let eal = eal();
    let small = pool(&eal, 31, 64);
    let returns = Returns::default();
    let mut byte = 0u8;
    let start = NonNull::from(&mut byte);
    let mut used = small.alloc().unwrap();
    assert!(used.extend_from_slice(b"x"));
    // SAFETY: nothing is lent, which is what this test sees.
    assert!(unsafe { used.lend(start, 1, &returns) }.is_none());
    assert_eq!((returns.count(), small.in_use()), (0, 0));
}
