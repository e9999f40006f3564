//! What a peer does to our memory without our doing: its content before a run, and the comparison after it.

use super::layout::Layout;
use super::op::Verb;
use super::params::Params;
use super::pattern::{Pattern, inside};
use super::protocol::{Received, Sent};
use crate::verbs::Mr;

/// Fills the target area: with what READs are to find, else with zeros (which also takes its pages from the
/// system before the clock runs).
pub(super) fn prepare(params: &Params, target: &Mr, is_server: bool) {
    let layout = Layout::of(params);
    if params.op.verb != Verb::Read {
        return inside(target.buffer().fill(0, target.len(), 0));
    }
    for qp in 0..params.qps as usize {
        let pattern = Pattern::new(params.seed, qp, !is_server);
        for slot in 0..u64::from(layout.target_slots) {
            pattern.write(slot, target.buffer(), layout.target_offset(qp, slot), params.size);
        }
    }
}

/// Compares the target area with what the peer says it has sent. SENDs were compared when they arrived.
pub(super) fn check(params: &Params, target: &Mr, is_server: bool, sent: &Sent, received: &mut Received) {
    match params.op.verb {
        Verb::Send | Verb::Read => {}
        // Where messages may be lost, each was compared when its immediate data told of it.
        Verb::Write if !params.transport.is_reliable() => {}
        Verb::Write => check_writes(params, target, is_server, sent, received),
        Verb::Atomic => {
            let (count, sum) = (sent.total(), target.buffer().load_u64(0).unwrap_or_default());
            if count != sum {
                received.faults.add(|| format!("{count} additions of 1 left the counter at {sum}"));
            }
            received.compared += 1;
        }
    }
}

/// Every slot holds the last message that was written to it; one that never was is still zero.
fn check_writes(params: &Params, target: &Mr, is_server: bool, sent: &Sent, received: &mut Received) {
    let layout = Layout::of(params);
    let slots = u64::from(layout.target_slots);
    for (qp, &count) in sent.messages.iter().enumerate().take(params.qps as usize) {
        let pattern = Pattern::new(params.seed, qp, is_server);
        for slot in 0..slots {
            let offset = layout.target_offset(qp, slot);
            if slot >= count {
                if !is_zero(target, offset, params.size) {
                    received.faults.add(|| format!("QP {qp}: slot {slot} was written, and nobody sent it"));
                }
                continue;
            }
            let last = slot + (count - 1 - slot) / slots * slots;
            received.faults.expect(qp, pattern.check(last, target.buffer(), offset, params.size));
            received.compared += 1;
        }
    }
}

fn is_zero(target: &Mr, offset: u64, len: u32) -> bool {
    let mut bytes = vec![0; len as usize];
    inside(target.read(offset as usize, &mut bytes));
    bytes.iter().all(|&byte| byte == 0)
}
