//! The ring: order, room, turns, and the bell; and all of them between threads.

use ring::{Ring, Taker};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn ring(depth: u32) -> (Arc<Ring<u64>>, Taker<u64>) {
    let ring = Arc::new(Ring::new(depth, || 0));
    let taker = Taker::new(&ring).expect("the first");
    (ring, taker)
}

fn post(ring: &Ring<u64>, value: u64) -> Option<bool> {
    let mut posting = ring.post();
    *posting.place()? = value;
    Some(posting.publish())
}

#[test]
fn items_come_in_order_and_occupy_places_until_released() {
    let (ring, mut taker) = ring(3);
    for round in 0..10 {
        for value in 0..3 {
            assert!(post(&ring, 3 * round + value).is_some());
        }
        assert_eq!(post(&ring, 99), None, "full");
        assert_eq!((ring.waiting(), ring.outstanding()), (3, 3));
        for value in 0..3 {
            assert_eq!(taker.take().copied(), Some(3 * round + value));
        }
        assert_eq!(taker.take(), None);
        assert_eq!(post(&ring, 99), None, "taken is not released");
        assert_eq!((ring.waiting(), ring.outstanding(), taker.held()), (0, 3, 3));
        taker.release(3);
        assert_eq!(ring.outstanding(), 0);
    }
}

#[test]
fn a_ring_has_room_for_at_least_one_and_no_more_than_its_depth() {
    assert_eq!(ring(0).0.depth(), 1);
    let (ring, _taker) = ring(5);
    assert_eq!((0..8).filter(|&value| post(&ring, value).is_some()).count(), 5);
}

#[test]
fn a_turn_publishes_all_or_nothing() {
    let (ring, mut taker) = ring(4);
    let mut posting = ring.post();
    for value in 1..=3 {
        *posting.place().expect("room") = value;
    }
    assert!(!taker.has_waiting(), "not yet");
    assert!(posting.publish());
    assert!(taker.has_waiting());
    assert_eq!([1, 2, 3].map(|_| taker.take().copied()), [Some(1), Some(2), Some(3)]);

    let mut posting = ring.post();
    *posting.place().expect("room") = 4;
    drop(posting);
    assert!(!taker.has_waiting(), "a turn that is dropped posts nothing");
    assert!(post(&ring, 5).is_some());
    assert_eq!(taker.take().copied(), Some(5));
}

#[test]
fn the_bell_rings_once_until_it_is_answered() {
    let (ring, _taker) = ring(8);
    assert_eq!(post(&ring, 1), Some(true));
    assert_eq!(post(&ring, 2), Some(false));
    assert!(!ring.ring());
    ring.answer();
    assert!(ring.ring());
    assert_eq!(post(&ring, 3), Some(false));
    ring.answer();
    let mut posting = ring.post();
    assert!(posting.place().is_some());
    drop(posting);
    assert_eq!(post(&ring, 4), Some(true), "a turn without items has rung nothing");
}

#[test]
fn there_is_one_taker_at_a_time_and_the_next_goes_on() {
    let (ring, mut taker) = ring(2);
    assert!(Taker::new(&ring).is_none());
    post(&ring, 1);
    post(&ring, 2);
    assert_eq!(taker.take().copied(), Some(1));
    drop(taker);
    let mut taker = Taker::new(&ring).expect("the first is gone");
    assert_eq!(ring.outstanding(), 1, "what it had taken is released");
    assert_eq!(taker.take().copied(), Some(2));
}

#[test]
#[should_panic(expected = "2 released of 1")]
fn no_more_is_released_than_was_taken() {
    let (ring, mut taker) = ring(4);
    post(&ring, 1);
    post(&ring, 2);
    taker.take();
    taker.release(2);
}

#[test]
fn what_is_looked_at_stays_until_it_is_passed() {
    let (ring, mut taker) = ring(2);
    assert_eq!(taker.peek(0), None);
    for round in 0..5 {
        post(&ring, 2 * round);
        post(&ring, 2 * round + 1);
        assert_eq!((taker.peek(0).copied(), taker.peek(0).copied()), (Some(2 * round), Some(2 * round)));
        assert_eq!((taker.peek(1).copied(), taker.peek(2)), (Some(2 * round + 1), None));
        assert_eq!((ring.waiting(), ring.outstanding(), taker.held()), (2, 2, 0));
        assert_eq!(post(&ring, 99), None, "its place is not free");
        taker.pass(1);
        assert_eq!((ring.waiting(), ring.outstanding(), taker.held()), (1, 1, 0));
        assert_eq!(taker.take().copied(), Some(2 * round + 1));
        taker.release(1);
        assert_eq!(taker.peek(0), None);
    }
}

#[test]
fn several_are_passed_together() {
    let (ring, mut taker) = ring(4);
    for round in 0..5 {
        // The last is posted when the others were looked at.
        (0..3).for_each(|n| assert!(post(&ring, 4 * round + n).is_some()));
        assert_eq!((0..3).filter_map(|ahead| taker.peek(ahead).copied()).count(), 3);
        post(&ring, 4 * round + 3);
        assert_eq!(taker.peek(3).copied(), Some(4 * round + 3));
        taker.pass(3);
        assert_eq!((ring.waiting(), ring.outstanding(), taker.held()), (1, 1, 0));
        assert_eq!(taker.peek(0).copied(), Some(4 * round + 3));
        taker.pass(0);
        taker.pass(1);
        assert_eq!(taker.peek(0), None);
    }
}

#[test]
#[should_panic(expected = "2 items cannot be passed")]
fn no_more_are_passed_than_were_seen() {
    let (ring, mut taker) = ring(4);
    post(&ring, 1);
    taker.peek(0);
    post(&ring, 2);
    taker.pass(2);
}

#[test]
#[should_panic(expected = "items cannot be passed")]
fn nothing_is_passed_while_something_is_held() {
    let (ring, mut taker) = ring(2);
    post(&ring, 1);
    post(&ring, 2);
    taker.take();
    taker.pass(1);
}

#[test]
#[should_panic(expected = "items cannot be passed")]
fn nothing_is_passed_where_nothing_is() {
    ring(2).1.pass(1);
}

#[test]
fn a_held_item_is_found_by_its_number_where_it_lies() {
    let (ring, mut taker) = ring(2);
    for round in 0..3 {
        post(&ring, 2 * round);
        post(&ring, 2 * round + 1);
        taker.take();
        taker.take();
        let (first, second) = (taker.released(), taker.released() + 1);
        assert_eq!(
            (*taker.get(first), *taker.get(second), taker.taken()),
            (2 * round, 2 * round + 1, second + 1)
        );
        *taker.get_mut(second) += 10;
        taker.release(1);
        assert_eq!(*taker.get(second), 2 * round + 11);
        taker.release(1);
    }
}

#[test]
#[should_panic(expected = "item 1 is not held")]
fn an_item_that_was_not_taken_is_not_reached() {
    let (ring, mut taker) = ring(4);
    post(&ring, 1);
    post(&ring, 2);
    taker.take();
    taker.get(1);
}

#[test]
#[should_panic(expected = "item 0 is not held")]
fn an_item_that_was_released_is_not_reached() {
    let (ring, mut taker) = ring(4);
    post(&ring, 1);
    taker.take();
    taker.release(1);
    taker.get_mut(0);
}

/// Items on the heap: whatever is reached twice at once, or freed twice, Miri sees.
#[test]
fn posters_and_a_taker_on_threads_of_their_own() {
    const POSTERS: u64 = 3;
    const EACH: u64 = if cfg!(miri) { 60 } else { 50_000 };
    let ring = Arc::new(Ring::new(5, Vec::<u64>::new));
    let mut taker = Taker::new(&ring).expect("the first");
    let woken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for poster in 0..POSTERS {
            let (ring, woken) = (&ring, &woken);
            scope.spawn(move || {
                let mut next = 0;
                while next < EACH {
                    let mut posting = ring.post();
                    let mut posted = 0;
                    // Lists of one to three, as far as there is room.
                    while posted <= next % 3 && next + posted < EACH {
                        let Some(place) = posting.place() else { break };
                        place.clear();
                        place.extend([poster, next + posted]);
                        posted += 1;
                    }
                    if posted > 0 {
                        if posting.publish() {
                            woken.store(true, Ordering::Release);
                        }
                        next += posted;
                    } else {
                        drop(posting);
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut seen = [0; POSTERS as usize];
        while seen.iter().sum::<u64>() < POSTERS * EACH {
            // Only who was woken may look: a bell that is lost hangs the test.
            if !woken.swap(false, Ordering::Acquire) {
                std::thread::yield_now();
                continue;
            }
            ring.answer();
            while let Some(item) = taker.take() {
                let (poster, number) = (item[0] as usize, item[1]);
                assert_eq!(number, seen[poster], "of poster {poster}");
                seen[poster] += 1;
                if taker.held() == 3 {
                    taker.release(3);
                }
            }
            taker.release(taker.held());
        }
    });
    assert_eq!((ring.waiting(), ring.outstanding()), (0, 0));
}

#[test]
fn what_was_posted_since_the_last_look_has_not_been_seen() {
    let (ring, mut taker) = ring(4);
    post(&ring, 1);
    assert!(!taker.has_seen() && taker.has_waiting());
    post(&ring, 2);
    assert_eq!(taker.take().copied(), Some(1));
    assert!(taker.has_seen(), "the second, by the same look");
    post(&ring, 3);
    assert_eq!(taker.take().copied(), Some(2));
    assert!(!taker.has_seen() && taker.has_waiting());
}

#[test]
fn asking_ahead_changes_nothing() {
    let (ring, mut taker) = ring(3);
    for round in 0..10 {
        // More than there are, wherever they lie.
        ring.fetch_posting(9);
        post(&ring, round);
        taker.fetch_posted();
        taker.fetch_next(9);
        taker.fetch_take(2);
        assert_eq!(taker.take().copied(), Some(round));
        taker.fetch_held(taker.released(), 9);
        assert_eq!((ring.waiting(), ring.outstanding(), *taker.get(round as u32)), (0, 1, round));
        taker.release(1);
    }
}

/// What was seen can be taken under a condition; what came since is not looked for.
#[test]
fn an_item_that_was_seen_is_taken_if_it_is_as_wanted() {
    let (ring, mut taker) = ring(4);
    let post = |items: &[u64]| items.iter().for_each(|&item| assert!(post(&ring, item).is_some()));
    post(&[1, 2, 3]);
    assert_eq!(taker.take_seen(|_| true), None, "nobody has looked");
    assert_eq!(taker.take().copied(), Some(1));
    post(&[4]);
    assert_eq!(taker.take_seen(|&item| item != 2), None);
    assert_eq!((taker.taken(), ring.waiting()), (1, 3), "it stays where it is");
    assert_eq!(taker.take_seen(|&item| item == 2).copied(), Some(2));
    assert_eq!(taker.take_seen(|_| true).copied(), Some(3));
    assert_eq!(taker.take_seen(|_| true), None, "the fourth came since");
    assert_eq!((taker.held(), ring.waiting()), (3, 1));
    assert_eq!(taker.take().copied(), Some(4));
}
