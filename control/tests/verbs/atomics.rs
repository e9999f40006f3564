//! Compare-and-swap and fetch-and-add.

use crate::support::Pair;
use rockhopper::{QpType, SendWr, WcOpcode, WcStatus};

#[test]
fn atomics_return_what_was_there_and_change_it_once() {
    let pair = Pair::new(QpType::Rc);
    let at = pair.b.mr.remote().at(64);
    pair.b.mr.buffer().store_u64(64, 40).unwrap();
    let result = |slot: usize| pair.a.mr.sge(slot * 8..slot * 8 + 8);
    pair.a.qp.post_send(SendWr::fetch_add(1, at, 2).sge(result(0))).unwrap();
    pair.a.qp.post_send(SendWr::compare_swap(2, at, 42, 7).sge(result(1))).unwrap();
    pair.a.qp.post_send(SendWr::compare_swap(3, at, 42, 8).sge(result(2))).unwrap();
    pair.a.qp.post_send(SendWr::fetch_add(4, at, u64::MAX).sge(result(3))).unwrap();
    let opcodes = [WcOpcode::FetchAdd, WcOpcode::CompSwap, WcOpcode::CompSwap, WcOpcode::FetchAdd];
    for (id, opcode) in (1..).zip(opcodes) {
        let done = pair.at_a();
        assert_eq!((done.wr_id, done.status, done.opcode, done.byte_len), (id, WcStatus::Success, opcode, 8));
    }
    let returned: Vec<u64> = (0..4).map(|slot| pair.a.mr.buffer().load_u64(slot * 8).unwrap()).collect();
    assert_eq!(returned, [40, 42, 7, 7]);
    assert_eq!(pair.b.mr.buffer().load_u64(64).unwrap(), 6);
}

#[test]
fn two_hundred_adds_add_up() {
    let pair = Pair::new(QpType::Rc);
    let at = pair.b.mr.remote().at(0);
    let (mut posted, mut done) = (0, 0);
    while done < 200 {
        let next = SendWr::fetch_add(posted, at, 3).sge(pair.a.mr.sge(0..8));
        if posted < 200 && pair.a.qp.post_send(next).is_ok() {
            posted += 1;
        } else {
            assert!(pair.at_a().is_success());
            done += 1;
        }
    }
    assert_eq!(pair.b.mr.buffer().load_u64(0).unwrap(), 600);
}
