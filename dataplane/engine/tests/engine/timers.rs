//! The timer wheel in crowds and after long pauses; its model test lies beside it.

use engine::timer::TimerWheel;

fn drain(wheel: &mut TimerWheel, now: u64) -> Vec<u32> {
    let mut fired: Vec<u32> = std::iter::from_fn(|| wheel.pop_expired(now)).collect();
    fired.sort_unstable();
    fired
}

#[test]
fn a_crowd_in_one_bucket_fires_each_once() {
    let mut wheel = TimerWheel::new(1000);
    for slot in 0..1000 {
        wheel.arm(slot, 50_000 + u64::from(slot % 10));
    }
    assert_eq!(drain(&mut wheel, 50_004), (0..1000).filter(|slot| slot % 10 <= 4).collect::<Vec<_>>());
    assert_eq!(drain(&mut wheel, 60_000).len(), 500);
    assert_eq!(drain(&mut wheel, u64::MAX / 2), []);
}

#[test]
fn a_long_pause_misses_nothing() {
    let mut wheel = TimerWheel::new(3);
    wheel.arm(0, 10_000);
    wheel.arm(1, 5_000_000_000);
    wheel.arm(2, 3_600_000_000_000);
    assert_eq!(wheel.next_deadline(), Some(10_000));
    assert_eq!(drain(&mut wheel, 3_599_999_999_999), [0, 1]);
    assert_eq!(wheel.next_deadline(), Some(3_600_000_000_000));
    assert_eq!(drain(&mut wheel, 3_600_000_000_000), [2]);
}

#[test]
fn after_a_pause_every_bucket_is_looked_at() {
    let mut wheel = TimerWheel::new(3_000);
    // Two timers in each bucket and more, and a pause of many turns.
    for slot in 0..3_000 {
        wheel.arm(slot, u64::from(slot) * 8_192);
    }
    assert_eq!(drain(&mut wheel, 1_000_000_000), (0..3_000).collect::<Vec<_>>());
}

#[test]
fn a_deadline_in_the_past_fires_at_the_next_look() {
    let mut wheel = TimerWheel::new(2);
    wheel.arm(1, 900_000_000);
    assert_eq!(drain(&mut wheel, 800_000_000), []);
    wheel.arm(0, 5);
    assert!(wheel.next_deadline().unwrap() <= 800_000_000);
    assert_eq!(drain(&mut wheel, 800_000_000), [0]);
}

#[test]
fn a_disarmed_timer_is_silent_and_can_be_armed_again() {
    let mut wheel = TimerWheel::new(1);
    wheel.arm(0, 1_000);
    wheel.disarm(0);
    wheel.disarm(0);
    assert_eq!((drain(&mut wheel, 10_000), wheel.next_deadline()), (vec![], None));
    wheel.arm(0, 20_000);
    assert_eq!(drain(&mut wheel, 20_000), [0]);
}
