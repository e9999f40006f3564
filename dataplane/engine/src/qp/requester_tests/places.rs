//! Requests lie in the places of their queue from post to completion: what one leaves there is nothing to the next.

use super::*;
use crate::queue::Arm;
use crate::testkit::{HeapMemory, ListSink};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_place_serves_requests_of_every_kind_in_any_order() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 1, 8);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    type Kind = (Vec<Sge>, Vec<u8>);
    let sges = |pieces: &[(usize, usize)]| -> Kind {
        let sges = pieces.iter().map(|&(from, len)| region.sge(from as u64, len as u32)).collect();
        (sges, pieces.iter().flat_map(|&(from, len)| pattern(from, len)).collect())
    };
    let kinds: [Option<Kind>; 6] = [
        Some(sges(&[(0, 200), (1000, 100), (2000, 300)])),
        None,
        Some(sges(&[(500, 90)])),
        Some(sges(&[])),
        Some(sges(&[(7, 0)])),
        Some(sges(&[(40, 0), (60, 5)])),
    ];
    let mut psn = 0x100;
    for first in &kinds {
        for second in &kinds {
            for kind in [first, second] {
                let (request, bytes) = match kind {
                    Some((sges, bytes)) => (wr(u64::from(psn), SendOp::Send, sges), bytes.clone()),
                    None => (inline(u64::from(psn), SendOp::Send, b"in itself"), b"in itself".to_vec()),
                };
                rig.post_send(request);
                let sent = rig.sent();
                assert_eq!(sent.iter().flat_map(|packet| packet.payload.clone()).collect::<Vec<u8>>(), bytes);
                let last = psn + sent.len() as u32 - 1;
                ack(&mut rig, last);
                completes(&rig, &[(u64::from(psn), WcStatus::Success)]);
                psn = last + 1;
            }
        }
    }
}

#[test]
fn a_request_that_got_past_the_checks_into_a_queue_without_room_for_it_is_too_long() {
    for pieces in [1, 2] {
        let shared = QpShared::new(QPN, QpType::Rc, SendQueue::new(2, 1, 0), Arc::new(RecvQueue::new(1, 1)));
        let sge = Sge { addr: 0, len: 8, lkey: wire::LKey::new(0) };
        let mut request = wr(1, SendOp::Send, &vec![sge; pieces]);
        shared.sq().push(&mut request, wire::Srqn::default()).unwrap();
        let mut queue = shared.sq().taker().unwrap();
        let len = queue.take().unwrap().checked_len();
        assert_eq!(len, (pieces == 1).then_some(8), "{pieces} pieces");
    }
}

#[test]
fn places_are_free_before_the_completions_of_their_requests_can_be_seen() {
    let shared = Arc::new(OnceLock::<Arc<QpShared>>::new());
    let outstanding = Arc::new(AtomicU32::new(u32::MAX));
    let (queues, seen) = (Arc::clone(&shared), Arc::clone(&outstanding));
    let notify = move || seen.store(queues.get().unwrap().sq().outstanding(), Ordering::Relaxed);
    let cq = Arc::new(CompletionQueue::new(1, 16, notify));
    let memory = HeapMemory::default();
    let mut own = Own::with_cq(memory.clone(), false, Arc::new(RecvQueue::new(1, 1)), cq);
    shared.set(Arc::clone(&own.shared)).unwrap();
    own.connect(&attributes());
    // The last of those that are covered is not signaled; one is not covered.
    for id in 1..=5 {
        let flags = if id == 4 { SendFlags::empty() } else { SendFlags::SIGNALED };
        own.post(with_flags(wr(id, SendOp::Send, &[]), flags));
    }
    own.engine.poll_transmit(0, &mut ListSink::new(memory, 9));
    own.cq.arm(Arm::Any);
    let packet =
        Packet::new(QpType::Rc, Operation::Acknowledge, Position::Only, QPN, wire::Psn::new(0x103), &[]);
    own.deliver(&packet.with(Aeth { syndrome: Syndrome::ACK, msn: Msn::new(0) }));
    assert_eq!(outstanding.load(Ordering::Relaxed), 1, "as the program was told");
    let ids: Vec<u64> = std::iter::from_fn(|| own.cq.poll()).map(|cqe| cqe.wr_id).collect();
    assert_eq!(ids, [1, 2, 3]);
}
