//! Posting: what each state and type takes, how depth is counted, and when a doorbell is due.

use crate::support::*;
use arrayvec::ArrayVec;
use engine::queue::{PostError, QpShared, RecvQueue, SendQueue};
use engine::wr::{AddressHandle, FastReg, Remote};
use engine::{
    Access, MemoryRegion, PdId, QpState, QpType, RecvWr, RegionId, SendFlags, SendOp, SendWr, Sge, WrData,
};
use std::sync::Arc;
use wire::{HeaderTemplate, LKey, QKey, RKey};

const SGE: Sge = Sge { addr: 0x1000, len: 8, lkey: LKey::new(1) };
const REMOTE: Remote = Remote { addr: 0x2000, rkey: RKey::new(2) };

fn wr(op: SendOp) -> SendWr {
    SendWr { wr_id: 1, op, data: WrData::Sges([SGE].into_iter().collect()), flags: SendFlags::empty() }
}

/// Every operation with its name and the types that have it (rocev2 facts, transport section 12).
fn operations() -> Vec<(&'static str, SendOp, &'static [QpType])> {
    use QpType::{Rc, Uc, Ud};
    let template = HeaderTemplate::new(&path()).expect("one family");
    let ah = Arc::new(AddressHandle::new(PdId(1), path().dst, template));
    let mr = Arc::new(MemoryRegion::fast(PdId(1), RegionId { slot: 0, generation: 0 }, 0x100, 64));
    let reg = FastReg { mr, key: RKey::new(0x100), addr: 0, len: 64, access: Access::empty() };
    vec![
        ("SEND", SendOp::Send, &[Rc, Uc]),
        ("SEND with Imm", SendOp::SendImm([0; 4]), &[Rc, Uc]),
        ("SEND with Inv", SendOp::SendInv(RKey::new(2)), &[Rc]),
        ("WRITE", SendOp::Write(REMOTE), &[Rc, Uc]),
        ("WRITE with Imm", SendOp::WriteImm(REMOTE, [0; 4]), &[Rc, Uc]),
        ("READ", SendOp::Read(REMOTE), &[Rc]),
        ("compare and swap", SendOp::CompareSwap { remote: REMOTE, compare: 0, swap: 0 }, &[Rc]),
        ("fetch and add", SendOp::FetchAdd { remote: REMOTE, add: 0 }, &[Rc]),
        ("UD SEND", SendOp::UdSend { ah, remote_qpn: PEER, qkey: QKey::new(1), imm: None }, &[Ud]),
        ("local invalidate", SendOp::LocalInv(RKey::new(2)), &[Rc, Uc]),
        ("fast register", SendOp::RegMr(Arc::new(reg)), &[Rc, Uc]),
    ]
}

#[test]
fn each_type_takes_its_operations() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for (name, op, types) in operations() {
            let one = One::in_state(qp_type, QpState::Rts);
            let expected =
                if types.contains(&qp_type) { Ok(true) } else { Err(PostError::Operation(qp_type)) };
            assert_eq!(one.shared.post_send(wr(op)), expected, "{name} on {qp_type:?}");
        }
    }
}

#[test]
fn each_state_takes_its_posts() {
    use QpState::*;
    for (state, sends, receives) in
        [(Reset, false, false), (Init, false, true), (Rtr, false, true), (Rts, true, true), (Sqd, true, true)]
    {
        let one = One::in_state(QpType::Rc, state);
        let sent = one.shared.post_send(send(1));
        assert_eq!(sent, if sends { Ok(true) } else { Result::Err(PostError::State(state)) }, "{state:?}");
        // Nobody need be told of a receive.
        let received = one.shared.post_recv(recv(1));
        assert_eq!(
            received,
            if receives { Ok(false) } else { Result::Err(PostError::State(state)) },
            "{state:?}"
        );
    }
}

#[test]
fn in_error_posts_are_taken_and_the_engine_is_told() {
    let one = One::in_state(QpType::Rc, QpState::Err);
    assert_eq!(one.shared.post_recv(recv(1)), Ok(true));
    assert_eq!(one.shared.post_recv(recv(2)), Ok(false), "a doorbell is under way");
    one.shared.answer();
    assert_eq!(one.shared.post_send(send(3)), Ok(true));
}

#[test]
fn depth_counts_from_post_to_completion() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let depth = one.shared.sq().depth();
    for wr_id in 0..u64::from(depth) {
        assert!(one.shared.post_send(send(wr_id)).is_ok());
    }
    assert_eq!(one.shared.post_send(send(99)), Err(PostError::Full));
    assert_eq!((one.shared.sq().outstanding(), one.shared.sq().waiting()), (depth, depth as usize));

    for wr_id in 0..16 {
        assert!(one.shared.post_recv(recv(wr_id)).is_ok());
    }
    assert_eq!(one.shared.post_recv(recv(99)), Err(PostError::Full));
    assert_eq!(one.shared.rq().len(), 16);
}

/// What the engine has taken still counts: its own ring has no more places than the queue.
#[test]
fn requests_in_flight_occupy_their_places() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    for wr_id in 0..u64::from(one.shared.sq().depth()) {
        assert!(one.shared.post_send(send(wr_id)).is_ok());
    }
    one.engine.on_doorbell(0, QPN);
    one.engine.poll_transmit(0, &mut Swallow);
    assert_eq!(one.shared.sq().waiting(), 0, "all are on their way");
    assert_eq!(one.shared.post_send(send(99)), Err(PostError::Full));
}

/// A QP that has found its queue empty does not look again before it hears the bell, and whoever posts then rings.
#[test]
fn a_queue_that_was_found_empty_is_looked_at_when_its_bell_was_heard() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    for wr_id in 0..3 {
        one.engine.on_doorbell(0, QPN);
        one.engine.poll_transmit(0, &mut Swallow);
        assert_eq!(one.shared.post_send(send(wr_id)), Ok(true), "somebody has to tell");
        one.engine.on_doorbell(0, QPN);
        // Between the answer and the look.
        assert_eq!(one.shared.post_send(send(10 + wr_id)), Ok(true));
        one.engine.poll_transmit(0, &mut Swallow);
        assert_eq!(one.shared.sq().waiting(), 0, "round {wr_id}");
    }
}

#[test]
fn a_queue_has_room_for_at_least_one() {
    let (sq, rq) = (SendQueue::new(0, 1, 0), RecvQueue::new(0, 1));
    assert_eq!(sq.depth(), 1);
    assert!(rq.post(recv(1)).is_ok());
    assert_eq!(rq.post(recv(2)), Err(PostError::Full));
    let mut taker = rq.taker().expect("nobody takes yet");
    assert_eq!(taker.take().map(|wr| wr.wr_id), Some(1));
    assert!(rq.is_empty());
}

#[test]
fn lists_and_inline_data_have_the_lengths_that_the_queue_was_made_for() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let sges = |count| WrData::Sges(std::iter::repeat_n(SGE, count).collect());
    let inline = |count| WrData::Inline(std::iter::repeat_n(0u8, count).collect());
    let post = |op, data| one.shared.post_send(SendWr { data, ..wr(op) });

    assert_eq!(post(SendOp::Send, sges(4)), Ok(true));
    assert_eq!(post(SendOp::Send, sges(5)), Err(PostError::TooManySges { got: 5, max: 4 }));
    assert_eq!(post(SendOp::Send, inline(64)), Ok(false));
    assert_eq!(post(SendOp::Write(REMOTE), inline(65)), Err(PostError::Inline));
    assert_eq!(post(SendOp::Read(REMOTE), inline(0)), Err(PostError::Inline), "a READ brings data back");
    assert_eq!(one.shared.sq().waiting(), 2, "what was refused is not in the queue");

    let sges: ArrayVec<Sge, 8> = std::iter::repeat_n(SGE, 5).collect();
    assert_eq!(
        one.shared.post_recv(RecvWr { wr_id: 1, sges }),
        Err(PostError::TooManySges { got: 5, max: 4 })
    );
}

#[test]
fn a_message_has_at_most_two_gigabytes() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let post = |lens: &[u32]| {
        let sges = lens.iter().map(|&len| Sge { len, ..SGE }).collect();
        one.shared.post_send(SendWr { data: WrData::Sges(sges), ..wr(SendOp::Write(REMOTE)) })
    };
    assert_eq!(post(&[1 << 31]), Ok(true));
    assert_eq!(post(&[1 << 31, 1]), Err(PostError::TooLong));
    // The sum of these wraps a u32 to 0.
    assert_eq!(post(&[1 << 31, 1 << 31]), Err(PostError::TooLong));
}

#[test]
fn one_doorbell_is_under_way_at_a_time() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    assert_eq!(one.shared.post_send(send(1)), Ok(true));
    assert_eq!(one.shared.post_send(send(2)), Ok(false));
    one.shared.answer();
    assert_eq!(one.shared.post_send(send(3)), Ok(true), "after the answer the next post rings");
}

#[test]
fn a_list_is_posted_at_once_and_rings_once() {
    let mut one = One::in_state(QpType::Rc, QpState::Rts);
    let mut list = one.shared.send_list().expect("RTS takes sends");
    for wr_id in 1..=3 {
        list.push(send(wr_id)).expect("room");
    }
    let too_long = SendWr { data: WrData::Inline([0; 65].into_iter().collect()), ..wr(SendOp::Send) };
    assert_eq!(list.push(too_long), Err(PostError::Inline), "checked as any request");
    assert_eq!(one.shared.sq().waiting(), 0, "not yet");
    assert!(list.post());
    assert_eq!(one.shared.sq().waiting(), 3, "without the one that was refused");
    assert_eq!(one.shared.post_send(send(4)), Ok(false), "a doorbell is under way");

    let mut list = one.shared.send_list().expect("RTS takes sends");
    let room = (5..100).take_while(|&wr_id| list.push(send(wr_id)).is_ok()).count();
    assert_eq!(list.push(send(99)), Err(PostError::Full));
    assert_eq!((4 + room as u32, list.post()), (one.shared.sq().depth(), false));
    one.engine.on_doorbell(0, QPN);
    one.engine.poll_transmit(0, &mut Swallow);
    assert_eq!(one.shared.sq().waiting(), 0);
}

#[test]
fn a_piece_is_checked_as_any_request() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let piece = |len| Sge { addr: 0, len, lkey: LKey::new(0) };
    let mut list = one.shared.send_list().expect("RTS takes sends");
    let mut push = |op, len| list.push_piece(1, op, piece(len), SendFlags::empty());
    assert_eq!(push(SendOp::Send, 1 << 31), Ok(()));
    assert_eq!(push(SendOp::Send, (1 << 31) + 1), Err(PostError::TooLong));
    let to_nobody = SendOp::Read(Remote { addr: 0, rkey: RKey::new(0) });
    assert_eq!(push(to_nobody.clone(), 8), Ok(()));
    while push(SendOp::Send, 8).is_ok() {}
    assert_eq!(push(SendOp::Send, 8), Err(PostError::Full));
    let uc = One::in_state(QpType::Uc, QpState::Rts);
    let mut list = uc.shared.send_list().expect("RTS takes sends");
    let refused = list.push_piece(1, to_nobody, piece(8), SendFlags::empty());
    assert_eq!(refused, Err(PostError::Operation(QpType::Uc)));
    assert!(!list.post(), "what was refused is not posted");
}

#[test]
fn a_piece_of_a_kind_is_checked_as_any_request() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let remote = Remote { addr: 0, rkey: RKey::new(0) };
    let piece = |len| Sge { addr: 0, len, lkey: LKey::new(0) };
    let mut list = one.shared.send_list().expect("RTS takes sends");
    assert_eq!(list.push_send(1, piece(1 << 31), SendFlags::empty()), Ok(()));
    assert_eq!(list.push_send(2, piece((1 << 31) + 1), SendFlags::empty()), Err(PostError::TooLong));
    assert_eq!(list.push_write(3, remote, piece(1 << 31), SendFlags::empty()), Ok(()));
    assert_eq!(list.push_write(4, remote, piece((1 << 31) + 1), SendFlags::empty()), Err(PostError::TooLong));
    while list.push_send(5, piece(8), SendFlags::empty()).is_ok() {}
    assert_eq!(list.push_send(6, piece(8), SendFlags::empty()), Err(PostError::Full));
    assert_eq!(list.push_write(7, remote, piece(8), SendFlags::empty()), Err(PostError::Full));

    let ud = One::in_state(QpType::Ud, QpState::Rts);
    let mut list = ud.shared.send_list().expect("RTS takes sends");
    let refused = Err(PostError::Operation(QpType::Ud));
    assert_eq!(list.push_send(1, piece(8), SendFlags::empty()), refused);
    assert_eq!(list.push_write(1, remote, piece(8), SendFlags::empty()), refused);
    assert!(!list.post(), "what was refused is not posted");
}

#[test]
fn a_receive_of_one_piece_is_checked_as_any_receive() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let mut list = one.shared.recv_list().expect("RTS takes receives");
    while list.push_piece(1, SGE).is_ok() {}
    assert_eq!(list.push_piece(1, SGE), Err(PostError::Full));
    assert!(!list.post(), "nobody need be told of receives");
    assert_eq!(one.shared.rq().len(), one.shared.rq().depth() as usize);

    let mut bare = One::with_rq(QpType::Rc, Arc::new(RecvQueue::new(4, 0)));
    bare.raise_to(QpState::Init);
    let mut list = bare.shared.recv_list().expect("INIT takes receives");
    assert_eq!(list.push_piece(1, SGE), Err(PostError::TooManySges { got: 1, max: 0 }));
    assert!(list.push(&RecvWr { wr_id: 2, sges: ArrayVec::new() }).is_ok(), "it has none");
    list.post();
    assert_eq!(bare.shared.rq().len(), 1);
}

#[test]
fn a_list_that_is_dropped_or_empty_posts_nothing() {
    let one = One::in_state(QpType::Rc, QpState::Rts);
    let mut list = one.shared.send_list().expect("RTS takes sends");
    list.push(send(1)).expect("room");
    drop(list);
    assert!(!one.shared.send_list().expect("RTS takes sends").post(), "nobody has to be told of nothing");
    assert_eq!((one.shared.sq().waiting(), one.shared.sq().outstanding()), (0, 0));
    assert_eq!(one.shared.post_send(send(2)), Ok(true), "no bell was rung");
    let early = One::in_state(QpType::Rc, QpState::Rtr);
    assert_eq!(early.shared.send_list().err(), Some(PostError::State(QpState::Rtr)));
}

/// Posters and a worker at once: whenever the worker sleeps with the bell answered, nothing waits in the queue.
#[test]
fn no_doorbell_is_lost_between_threads() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let rq = Arc::new(RecvQueue::new(2 * EACH as u32, 1));
    let shared = QpShared::new(QPN, QpType::Rc, SendQueue::new(1, 1, 0), rq.clone());
    let bell = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (ring, shared, rq) = (bell.0.clone(), &shared, &rq);
            scope.spawn(move || {
                for wr_id in 0..EACH {
                    rq.post(recv(wr_id)).expect("room");
                    if shared.ring() {
                        ring.send(()).expect("the worker waits");
                    }
                }
            });
        }
        let mut taker = rq.taker().expect("nobody takes yet");
        let mut taken = 0;
        while taken < 2 * EACH {
            let timeout = std::time::Duration::from_secs(20);
            bell.1
                .recv_timeout(timeout)
                .unwrap_or_else(|_| panic!("{taken} taken, {} wait, no bell", rq.len()));
            shared.answer();
            while taker.take().is_some() {
                taken += 1;
            }
        }
    });
}

/// Receives that are posted while the QP goes to ERROR are all flushed: by the move itself, or because their poster is told to ring.
#[test]
fn no_receive_is_lost_between_its_poster_and_a_flush() {
    const ROUNDS: u64 = if cfg!(miri) { 3 } else { 300 };
    const EACH: u64 = 8;
    for round in 0..ROUNDS {
        let mut one = One::in_state(QpType::Rc, QpState::Rts);
        let (shared, cq) = (Arc::clone(&one.shared), Arc::clone(&one.cq));
        let mut flushed = 0;
        std::thread::scope(|scope| {
            let (ring, bell) = std::sync::mpsc::channel();
            for _ in 0..2 {
                let (ring, shared) = (ring.clone(), &shared);
                scope.spawn(move || {
                    for wr_id in 0..EACH {
                        if shared.post_recv(recv(wr_id)).expect("there is room") {
                            ring.send(()).expect("the worker waits");
                        }
                    }
                });
            }
            drop(ring);
            (0..round % 8).for_each(|_| std::thread::yield_now());
            one.go(QpState::Err).expect("legal");
            flushed += std::iter::from_fn(|| cq.poll()).count();
            // Ends when the posters are gone and all bells were heard.
            while bell.recv().is_ok() {
                one.engine.on_doorbell(0, QPN);
                flushed += std::iter::from_fn(|| cq.poll()).count();
            }
        });
        assert_eq!((flushed as u64, shared.rq().len()), (2 * EACH, 0), "round {round}");
    }
}
