//! Where held frames wait.

use impair::{Hold, QUIET_NS, Shelf};

fn due(shelf: &mut Shelf<u32>, now: u64) -> Vec<u32> {
    std::iter::from_fn(|| shelf.pop(now)).collect()
}

#[test]
fn a_frame_waits_for_exactly_so_many_others() {
    let mut shelf = Shelf::with_capacity(4);
    shelf.hold(0, Hold::Frames(2), 7).unwrap();
    shelf.frame_passed(1);
    assert_eq!(due(&mut shelf, 1), []);
    shelf.frame_passed(2);
    assert_eq!(due(&mut shelf, 2), [7]);
    assert!(shelf.is_empty());
}

#[test]
fn a_frame_waits_for_its_time_and_leaves_in_order() {
    let mut shelf = Shelf::with_capacity(4);
    for (time, frame) in [(50, 1), (30, 2), (50, 3), (10, 4)] {
        shelf.hold(0, Hold::Until(time), frame).unwrap();
    }
    assert_eq!(shelf.next_due(), Some(10));
    assert_eq!(due(&mut shelf, 9), []);
    assert_eq!(due(&mut shelf, 30), [4, 2]);
    assert_eq!(shelf.next_due(), Some(50));
    assert_eq!(due(&mut shelf, 50), [1, 3]);
    assert_eq!(shelf.next_due(), None);
}

#[test]
fn when_no_more_frames_come_those_that_wait_for_them_are_let_go() {
    let mut shelf = Shelf::with_capacity(4);
    shelf.hold(100, Hold::Frames(2), 1).unwrap();
    shelf.frame_passed(200);
    assert_eq!(shelf.next_due(), Some(200 + QUIET_NS));
    assert_eq!(due(&mut shelf, 199 + QUIET_NS), []);
    assert_eq!(due(&mut shelf, 200 + QUIET_NS), [1]);
}

#[test]
fn a_full_shelf_gives_frames_back() {
    let mut shelf = Shelf::with_capacity(2);
    shelf.hold(0, Hold::Until(5), 1).unwrap();
    shelf.hold(0, Hold::Frames(5), 2).unwrap();
    assert_eq!(shelf.hold(0, Hold::Until(5), 3), Err(3));
    assert_eq!(shelf.len(), 2);
    let mut left: Vec<_> = shelf.drain().collect();
    left.sort_unstable();
    assert_eq!(left, [1, 2]);
}
