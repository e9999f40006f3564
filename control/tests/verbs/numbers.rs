//! Numbers that peers must not guess.

use crate::support::{ALL, devices};
use rockhopper::{QpOptions, QpType, RingPair};
use std::collections::BTreeSet;

#[test]
fn queue_pair_numbers_keys_and_first_psns_do_not_count_up() {
    let (a, _b) = devices(&RingPair::default());
    let (pd, cq) = (a.alloc_pd(), a.create_cq(16).unwrap());
    let qps: Vec<_> = (0..64).map(|_| pd.create_qp(&QpOptions::new(QpType::Rc, &cq)).unwrap()).collect();
    let mrs: Vec<_> = (0..64).map(|_| pd.reg_mr(1, ALL).unwrap()).collect();
    let lists: [Vec<u32>; 3] = [
        qps.iter().map(|qp| qp.qpn().value()).collect(),
        qps.iter().map(|qp| qp.first_psn().value()).collect(),
        mrs.iter().map(|mr| mr.rkey().value()).collect(),
    ];
    for list in lists {
        let rising = list.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((12..52).contains(&rising), "{rising} of 63 rise: {list:?}");
        let steps: BTreeSet<u32> = list.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        assert!(steps.len() > 60, "{steps:?}");
    }
}
