//! FLUSH and ATOMIC WRITE over bad links: a completed FLUSH has made everything before it persistent, an ATOMIC WRITE happens
//! once.

use crate::support::*;
use engine::wr::Remote;
use engine::{
    Access, FlushLevel, Placement, QpState, QpType, SendFlags, SendOp, SendWr, WcOpcode, WcStatus, WrData,
};
use sim::{Faults, Options, Rate, assert_silent, for_each_seed};

fn wr(wr_id: u64, op: SendOp, bytes: &[u8]) -> SendWr {
    let data = WrData::Inline(bytes.iter().copied().collect());
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

fn flush(remote: Remote, len: u32, placement: Placement, level: FlushLevel) -> SendOp {
    SendOp::Flush { remote, len, placement, level }
}

const RIGHTS: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_WRITE)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::FLUSH_PERSISTENT);

fn bad() -> Faults {
    let some = Rate::percent(4);
    Faults { loss: some, duplication: some, reordering: some, ..Faults::default() }
}

#[test]
fn what_was_written_before_a_completed_flush_survives() {
    for_each_seed(8, |seed| {
        let (mut world, a, b) = two(seed);
        world.set_faults(bad());
        let (qa, _) = world.connect(QpType::Rc, a, b, &Options::default());
        let log = world.register_durable(b, vec![0; 4096], RIGHTS);
        for turn in 0..50u64 {
            // A record, then the FLUSH of it, then the mark that it is there: as a log does it.
            let (at, record) = (8 * turn, (turn + 1).to_ne_bytes());
            world.post_send(qa, wr(3 * turn, SendOp::Write(log.remote(at)), &record)).unwrap();
            let level = if turn % 5 == 4 { FlushLevel::Region } else { FlushLevel::Range };
            let flushed = flush(log.remote(at), 8, Placement::PERSISTENT, level);
            world.post_send(qa, wr(3 * turn + 1, flushed, &[])).unwrap();
            world.post_send(qa, wr(3 * turn + 2, SendOp::AtomicWrite(log.remote(4088)), &record)).unwrap();
            world.run().unwrap();
            let done: Vec<_> = world.send_cqes(qa).iter().map(|cqe| (cqe.status, cqe.opcode)).collect();
            let opcodes = [WcOpcode::RdmaWrite, WcOpcode::Flush, WcOpcode::AtomicWrite];
            assert_eq!(done, opcodes.map(|opcode| (WcStatus::Success, opcode)));
            let left = world.memory(b).after_power_loss(log.id).unwrap();
            assert_eq!(left[at as usize..][..8], record);
            assert_eq!(world.content(&log)[4088..], record);
            // A mark is flushed only with the whole region, once in five turns: then it is that of the turn before.
            let marked = ((turn + 1) / 5 * 5).saturating_sub(1);
            assert_eq!(left[4088..], marked.to_ne_bytes(), "turn {turn}");
        }
        assert_silent(&mut world);
    });
}

/// A late duplicate of an ATOMIC WRITE would put an old value back, and someone would see the values go down.
#[test]
fn atomic_writes_happen_once_and_in_order() {
    for_each_seed(8, |seed| {
        let (mut world, a, b) = two(seed);
        world.set_faults(bad());
        let (qa, qb) = world.connect(QpType::Rc, a, b, &Options::default());
        let target = world.register(b, vec![0; 8], RIGHTS);
        for value in 1..=100u64 {
            let write = SendOp::AtomicWrite(target.remote(0));
            world.post_send(qa, wr(value, write, &value.to_ne_bytes())).unwrap();
        }
        let mut last = 0;
        while world.run_for(20_000).is_err() {
            let content = world.content(&target);
            let now = u64::from_ne_bytes(content.try_into().unwrap());
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        assert_eq!(world.content(&target), 100u64.to_ne_bytes());
        assert!(world.send_cqes(qa).iter().all(|cqe| cqe.status == WcStatus::Success));
        let executed = world.qp_counters(qb).get(engine::Counter::RxAtomicWriteRequests);
        assert_eq!(executed, 100, "each once, however often it came");
        assert_silent(&mut world);
    });
}

#[test]
fn flushes_that_are_refused_end_both_queue_pairs() {
    for (durable, access, placement, status) in [
        (true, RIGHTS - Access::FLUSH_PERSISTENT, Placement::PERSISTENT, WcStatus::RemAccessErr),
        (true, RIGHTS - Access::FLUSH_GLOBAL, Placement::all(), WcStatus::RemAccessErr),
        (false, RIGHTS, Placement::PERSISTENT, WcStatus::RemAccessErr),
        (false, RIGHTS, Placement::empty(), WcStatus::RemInvReqErr),
    ] {
        let (mut world, a, b) = two(1);
        let (qa, qb) = world.connect(QpType::Rc, a, b, &Options::default());
        let target = match durable {
            true => world.register_durable(b, vec![0; 64], access),
            false => world.register(b, vec![0; 64], access),
        };
        world.post_send(qa, wr(1, flush(target.remote(0), 64, placement, FlushLevel::Range), &[])).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(qa)), [(1, status)]);
        assert_eq!((world.state(qa), world.state(qb)), (QpState::Err, QpState::Err));
        assert_silent(&mut world);
    }
}
