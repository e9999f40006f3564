//! FLUSH and ATOMIC WRITE.

use crate::support::{ALL, Pair, bytes};
use rockhopper::{Access, Placement, QpType, SendWr, WcOpcode, WcStatus};
use std::os::unix::fs::FileExt;

const FLUSHES: Access = ALL.union(Access::FLUSH_GLOBAL).union(Access::FLUSH_PERSISTENT);

#[test]
fn a_log_is_written_flushed_and_marked() {
    let pair = Pair::new(QpType::Rc);
    let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let log = pair.b.pd.reg_file_mr(&file, 1 << 16, FLUSHES).unwrap();
    let remote = log.remote();
    for turn in 0..20u64 {
        let record = [turn as u8; 100];
        let both = Placement::GLOBAL | Placement::PERSISTENT;
        pair.a.qp.post_send(SendWr::write(1, remote.at(64 + turn * 128)).inline(&record)).unwrap();
        pair.a.qp.post_send(SendWr::flush(2, remote.at(64 + turn * 128), 100, both)).unwrap();
        pair.a.qp.post_send(SendWr::atomic_write(3, remote.at(0)).inline(&turn.to_ne_bytes())).unwrap();
        pair.a.qp.post_send(SendWr::flush_region(4, log.rkey(), Placement::PERSISTENT)).unwrap();
        let done: Vec<_> =
            (0..4).map(|_| pair.at_a()).map(|cqe| (cqe.wr_id, cqe.status, cqe.opcode)).collect();
        let opcodes = [WcOpcode::RdmaWrite, WcOpcode::Flush, WcOpcode::AtomicWrite, WcOpcode::Flush];
        let expected: Vec<_> =
            (1..).zip(opcodes).map(|(id, opcode)| (id, WcStatus::Success, opcode)).collect();
        assert_eq!(done, expected);
        let mut read = [0; 100];
        file.read_exact_at(&mut read, 64 + turn * 128).unwrap();
        assert_eq!(read, record);
        assert_eq!(log.buffer().load_u64(0).unwrap(), turn);
    }
    let counters = pair.b.qp.counters().unwrap();
    let count = |name| counters.iter().find(|&(other, _)| other == name).unwrap().1;
    assert_eq!((count("rx_flush_requests"), count("rx_atomic_write_requests")), (40, 20));
}

#[test]
fn an_atomic_write_takes_its_bytes_from_memory_too() {
    let pair = Pair::new(QpType::Rc);
    pair.a.mr.write(100, b"by pieces").unwrap();
    let write = SendWr::atomic_write(1, pair.b.mr.remote().at(8));
    pair.a.qp.post_send(write.sge(pair.a.mr.sge(100..103)).sge(pair.a.mr.sge(103..108))).unwrap();
    assert!(pair.at_a().is_success());
    assert_eq!(bytes(&pair.b.mr, 8, 8), b"by piece");
}

#[test]
fn memory_that_cannot_persist_is_not_registered_for_it() {
    let pair = Pair::new(QpType::Rc);
    let refused = pair.b.pd.reg_mr(4096, FLUSHES).unwrap_err().to_string();
    assert!(refused.contains("reg_file_mr"), "{refused}");
    let in_memory = tempfile::tempfile_in("/dev/shm").unwrap();
    let refused = pair.b.pd.reg_file_mr(&in_memory, 4096, FLUSHES).unwrap_err().to_string();
    assert!(refused.contains("a file on a disk"), "{refused}");
    // Visibility is for any memory; a fast registration cannot promise more than its memory keeps.
    let plain = pair.b.pd.reg_mr(4096, ALL | Access::FLUSH_GLOBAL).unwrap();
    pair.a.qp.post_send(SendWr::flush(1, plain.remote().at(0), 4096, Placement::GLOBAL)).unwrap();
    assert!(pair.at_a().is_success());
    let fast = pair.b.pd.alloc_fast_mr(4096).unwrap();
    pair.b.qp.post_send(SendWr::reg_mr(2, &fast, 1, FLUSHES)).unwrap();
    assert!(pair.at_b().is_success());
    pair.a.qp.post_send(SendWr::flush_region(3, fast.key(), Placement::PERSISTENT)).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}

#[test]
fn a_flush_needs_the_right_of_the_region() {
    let pair = Pair::new(QpType::Rc);
    pair.a.qp.post_send(SendWr::flush(1, pair.b.mr.remote().at(0), 64, Placement::GLOBAL)).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}
