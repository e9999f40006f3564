//! Many QPs add to one cell over bad links: every addition happens exactly once.

use crate::support::*;
use engine::wr::Remote;
use engine::{Access, QpType, SendFlags, SendOp, SendWr, WcStatus, WrData};
use sim::{Faults, Options, QpId, Rate, Region, assert_silent, for_each_seed};
use std::collections::BTreeSet;

const QPS: usize = 4;
const EACH: usize = 50;

fn fetch_add(wr_id: u64, result: &Region, remote: Remote) -> SendWr {
    SendWr {
        wr_id,
        op: SendOp::FetchAdd { remote, add: 1 },
        data: WrData::Sges([result.sge(8 * wr_id, 8)].into_iter().collect()),
        flags: SendFlags::SIGNALED,
    }
}

#[test]
fn each_addition_happens_once_and_sees_a_value_of_its_own() {
    for_each_seed(8, |seed| {
        let (mut world, a, b) = two(seed);
        let some = Rate::percent(4);
        world.set_faults(Faults { loss: some, duplication: some, reordering: some, ..Faults::default() });
        let cell = world.register(b, vec![0; 8], Access::LOCAL_WRITE | Access::REMOTE_ATOMIC);
        let adders: Vec<(QpId, Region)> = (0..QPS)
            .map(|_| {
                let (qp, _) = world.connect(QpType::Rc, a, b, &Options::default());
                (qp, world.register(a, vec![0; 8 * EACH], Access::LOCAL_WRITE))
            })
            .collect();
        for wr_id in 0..EACH as u64 {
            for (qp, results) in &adders {
                world.post_send(*qp, fetch_add(wr_id, results, cell.remote(0))).unwrap();
            }
        }
        world.run().unwrap();
        let mut seen = BTreeSet::new();
        for (qp, results) in &adders {
            let cqes = world.send_cqes(*qp);
            assert!(cqes.len() == EACH && cqes.iter().all(|cqe| cqe.status == WcStatus::Success));
            let values = world.content(results);
            seen.extend(values.chunks(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())));
        }
        let total = (QPS * EACH) as u64;
        assert_eq!(seen, (0..total).collect(), "each value was somebody's original");
        assert_eq!(world.content(&cell), total.to_ne_bytes());
        assert_silent(&mut world);
    });
}
