//! PSNs count modulo 2^24 (rocev2 facts, transport 1).

use proptest::prelude::*;
use wire::{Msn, Psn};

const HALF: i32 = 1 << 23;

proptest! {
    #[test]
    fn distance_undoes_add(start: u32, count in 0..HALF as u32) {
        let start = Psn::new(start);
        prop_assert_eq!(start.add(count).distance_from(start), count as i32);
        prop_assert_eq!(start.distance_from(start.add(count)), -(count as i32));
        prop_assert_eq!(start.is_before(start.add(count)), count != 0);
        prop_assert!(!start.add(count).is_before(start));
    }

    #[test]
    fn distance_stays_in_half_the_space(a: u32, b: u32) {
        let (a, b) = (Psn::new(a), Psn::new(b));
        let distance = a.distance_from(b);
        prop_assert!((-HALF..HALF).contains(&distance));
        prop_assert_eq!(b.add(distance as u32), a);
    }

    #[test]
    fn values_stay_in_24_bits(start: u32, count: u32) {
        let psn = Psn::new(start).add(count);
        prop_assert!(psn.value() < 1 << 24);
        prop_assert_eq!(psn.value(), start.wrapping_add(count) & 0xFF_FFFF);
        prop_assert_eq!(psn.next().prev(), psn);
        prop_assert_eq!(Psn::from_bytes(psn.to_bytes()), psn);
    }
}

#[test]
fn numbers_wrap() {
    assert_eq!(Psn::new(0xFF_FFFF).next(), Psn::new(0));
    assert_eq!(Psn::new(0).prev(), Psn::new(0xFF_FFFF));
    assert_eq!(Psn::new(2).distance_from(Psn::new(0xFF_FFFE)), 4);
    assert!(Psn::new(0xFF_FFFE).is_before(Psn::new(2)));
    assert_eq!(Msn::new(0xFF_FFFF).next(), Msn::new(0));
}

/// Exactly half the space apart there is no direction: each is before the other.
#[test]
fn half_the_space_away_is_behind() {
    let (near, far) = (Psn::new(5), Psn::new(5 + HALF as u32));
    assert_eq!((far.distance_from(near), near.distance_from(far)), (-HALF, -HALF));
    assert!(near.is_before(far) && far.is_before(near));
}
