//! The queue of many: order, room, several at once; and all of it between threads.

use ring::Exchange;
use std::sync::atomic::{AtomicU64, Ordering};

fn take_all<T: Copy>(queue: &Exchange<T>, most: usize) -> Vec<T> {
    let mut taken = Vec::new();
    let count = queue.take(most, |item| taken.push(item));
    assert_eq!(count, taken.len());
    taken
}

#[test]
fn items_come_in_order_round_and_round() {
    let queue = Exchange::new(4);
    for round in 0..10u64 {
        assert_eq!(queue.add(&[4 * round, 4 * round + 1]), 2);
        assert_eq!(queue.add(&[4 * round + 2]), 1);
        assert_eq!(queue.len(), 3);
        assert_eq!(take_all(&queue, 1), [4 * round]);
        assert_eq!(queue.add(&[4 * round + 3]), 1);
        assert_eq!(take_all(&queue, 9), [1, 2, 3].map(|n| 4 * round + n));
        assert_eq!((queue.is_empty(), queue.len()), (true, 0));
        assert!(take_all(&queue, 9).is_empty());
    }
}

#[test]
fn no_more_fit_than_it_is_for() {
    for capacity in [1, 2, 3, 5, 8] {
        let queue = Exchange::new(capacity);
        assert_eq!(queue.capacity(), capacity);
        for _ in 0..3 {
            let items: Vec<usize> = (0..capacity + 3).collect();
            assert_eq!(queue.add(&items), capacity, "as many as fit, and those the first");
            assert_eq!((queue.add(&[99]), queue.len()), (0, capacity));
            assert_eq!(take_all(&queue, 1), [0]);
            assert_eq!((queue.add(&[98]), queue.add(&[99])), (1, 0));
            assert_eq!(take_all(&queue, 100).last(), Some(&98));
        }
    }
    assert_eq!(Exchange::<u8>::new(0).capacity(), 1);
}

#[test]
fn nothing_is_added_or_taken_where_nothing_is_asked_for() {
    let queue = Exchange::new(2);
    assert_eq!(queue.add(&[]), 0);
    assert_eq!(queue.add(&[1]), 1);
    assert!(take_all(&queue, 0).is_empty());
    assert_eq!(take_all(&queue, 2), [1]);
}

/// Every item arrives once, those of one thread in order, though all of them are in the way of all.
#[test]
fn several_threads_add_and_several_take() {
    const EACH: u64 = if cfg!(miri) { 100 } else { 2000 };
    const ADDERS: u64 = 2;
    for capacity in [3, 7, 64] {
        let queue = Exchange::new(capacity);
        let (left, sum) = (AtomicU64::new(ADDERS * EACH), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for adder in 0..ADDERS {
                let queue = &queue;
                scope.spawn(move || {
                    let items: Vec<u64> = (0..EACH).map(|n| adder * EACH + n).collect();
                    for some in items.chunks(1 + 4 * adder as usize) {
                        let mut rest = some;
                        while !rest.is_empty() {
                            match queue.add(rest) {
                                0 => std::thread::yield_now(),
                                count => rest = &rest[count..],
                            }
                        }
                    }
                });
            }
            for most in [1, 5] {
                let (queue, left, sum) = (&queue, &left, &sum);
                scope.spawn(move || {
                    let mut next = [0; ADDERS as usize];
                    while left.load(Ordering::Relaxed) > 0 {
                        let count = queue.take(most, |item| {
                            let (adder, number) = ((item / EACH) as usize, item % EACH);
                            assert!(number >= next[adder], "in order");
                            next[adder] = number + 1;
                            sum.fetch_add(item, Ordering::Relaxed);
                        });
                        left.fetch_sub(count as u64, Ordering::Relaxed);
                        if count == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        let all = ADDERS * EACH;
        assert_eq!(sum.into_inner(), all * (all - 1) / 2, "each once");
        assert!(queue.is_empty());
    }
}
