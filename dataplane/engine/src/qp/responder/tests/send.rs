//! SEND into receives: completions, scatter, immediates, solicited, zero length.

use super::help::*;

#[test]
fn a_send_fills_the_receive_completes_and_is_acknowledged() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(64, Access::LOCAL_WRITE);
    rig.post_recv(7, &[buffer.sge(4, 32)]);
    let data = bytes(13);
    let sent = rig.answer(&rig.packet(Send, Only, FIRST, &data).ack_req());
    assert_eq!(acks(&sent), [ack(FIRST, 1)]);
    let cqe = Cqe { byte_len: 13, ..Cqe::new(7, WcStatus::Success, WcOpcode::Recv, QPN) };
    assert_eq!(rig.recv_cqes(), [cqe]);
    let content = rig.memory.content(buffer.id);
    assert_eq!(content[4..17], data);
    assert_eq!((content[3], content[17]), (4, 18), "nothing beside the message was written");
    assert_eq!(rig.memory.published(), 1, "the data is there before its completion is");
}

#[test]
fn a_message_of_several_packets_is_scattered_over_the_sges_in_order() {
    let mut rig = Rig::new(QpType::Rc);
    let a = rig.region(300, Access::LOCAL_WRITE);
    let b = rig.region(300, Access::LOCAL_WRITE);
    // The empty SGE has a key that nobody knows: it touches nothing, so nobody asks.
    let nothing = crate::Sge { addr: 0, len: 0, lkey: wire::LKey::new(0xDEAD) };
    rig.post_recv(1, &[a.sge(0, 100), nothing, b.sge(10, 290), a.sge(200, 100)]);
    let data = bytes(MTU * 2 - 30);
    rig.deliver(&rig.packet(Send, First, FIRST, &data[..MTU]));
    assert_eq!(rig.recv_cqes(), [], "a message completes at its end");
    rig.deliver(&rig.packet(Send, Last, FIRST + 1, &data[MTU..]).ack_req());
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 1, 1)]);
    assert_eq!(rig.recv_cqes()[0].byte_len as usize, data.len());
    let (a, b) = (rig.memory.content(a.id), rig.memory.content(b.id));
    let placed: Vec<u8> = [&a[..100], &b[10..], &a[200..292]].concat();
    assert_eq!(placed, data);
    assert_eq!(a[292], 42, "nothing behind the message was written");
}

#[test]
fn a_payload_in_pieces_is_placed_like_one_in_one_piece() {
    let mut rig = Rig::new(QpType::Rc);
    let a = rig.region(10, Access::LOCAL_WRITE);
    let b = rig.region(100, Access::LOCAL_WRITE);
    rig.post_recv(1, &[a.sge(0, 10), b.sge(0, 100)]);
    let data = bytes(60);
    let packet = rig.packet(Send, Only, FIRST, &data);
    rig.deliver_cut(&packet, &[3, 20, 20]);
    let placed = [&rig.memory.content(a.id)[..], &rig.memory.content(b.id)[..50]].concat();
    assert_eq!(placed, data);
    assert_eq!(rig.recv_cqes()[0].byte_len, 60);
}

#[test]
fn immediate_and_solicited_reach_the_completion() {
    let mut rig = Rig::new(QpType::Rc);
    rig.post_recv(1, &[]);
    rig.post_recv(2, &[]);
    rig.deliver(&rig.packet(SendImm, Only, FIRST, &[]).with(ImmDt([1, 2, 3, 4])).solicited());
    rig.deliver(&rig.packet(Send, Only, FIRST + 1, &[]));
    let cqes = rig.recv_cqes();
    let first = Cqe {
        imm: Some([1, 2, 3, 4]),
        solicited: true,
        ..Cqe::new(1, WcStatus::Success, WcOpcode::Recv, QPN)
    };
    assert_eq!(cqes, [first, Cqe::new(2, WcStatus::Success, WcOpcode::Recv, QPN)]);
    assert!(rig.sent().is_empty(), "nobody asked for an ACK");
}

/// rocev2 facts, transport 21: an empty SEND takes a receive, too.
#[test]
fn an_empty_send_takes_a_receive_and_one_psn() {
    let mut rig = Rig::new(QpType::Rc);
    rig.post_recv(1, &[]);
    assert_eq!(acks(&rig.answer(&rig.packet(Send, Only, FIRST, &[]).ack_req())), [ack(FIRST, 1)]);
    let again = rig.answer(&rig.packet(Send, Only, FIRST + 1, &[]).ack_req());
    assert_eq!(acks(&again), [(FIRST + 1, Syndrome::RnrNak { timer: 12 }, 1)]);
}

#[test]
fn a_send_with_invalidate_takes_the_key_away_and_says_so() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(16, Access::LOCAL_WRITE);
    let target = rig.fast_region(16, ALL);
    rig.post_recv(1, &[buffer.sge(0, 16)]);
    let packet = rig.packet(SendInv, Only, FIRST, b"hello").with(Ieth { rkey: target.rkey() }).ack_req();
    assert_eq!(acks(&rig.answer(&packet)), [ack(FIRST, 1)]);
    let cqe = Cqe {
        byte_len: 5,
        invalidated: Some(target.rkey()),
        ..Cqe::new(1, WcStatus::Success, WcOpcode::Recv, QPN)
    };
    assert_eq!(rig.recv_cqes(), [cqe]);
    assert!(!target.mr.is_valid());
}

#[test]
fn a_send_that_cannot_invalidate_its_key_is_refused_and_places_nothing() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(16, ALL);
    rig.post_recv(1, &[buffer.sge(0, 16)]);
    let before = rig.memory.snapshot();
    // An ordinary region cannot be invalidated.
    let packet = rig.packet(SendInv, Only, FIRST, b"hello").with(Ieth { rkey: buffer.rkey() });
    assert_eq!(acks(&rig.answer(&packet)), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    let cqe = rig.recv_cqes()[0];
    assert_eq!((cqe.wr_id, cqe.status, cqe.vendor_err), (1, WcStatus::RemInvReqErr, 14));
    assert_eq!(rig.memory.snapshot(), before);
    assert_failed(&mut rig);
}

#[test]
fn a_receive_whose_memory_goes_away_under_way_ends_with_a_protection_error() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(1024, Access::LOCAL_WRITE);
    rig.post_recv(1, &[buffer.sge(0, 1024)]);
    rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
    rig.memory.remove(buffer.id);
    let sent = rig.answer(&rig.packet(Send, Last, FIRST + 1, &[9]).ack_req());
    assert_eq!(acks(&sent), [nak(NakCode::RemoteOperational, FIRST + 1, 0)]);
    assert_eq!(rig.recv_cqes()[0].status, WcStatus::LocProtErr);
    assert_failed(&mut rig);
}

#[test]
fn a_send_may_end_exactly_with_its_receive_and_not_one_byte_later() {
    for (capacity, refused) in [(300, false), (299, true)] {
        let mut rig = Rig::new(QpType::Rc);
        let buffer = rig.region(512, Access::LOCAL_WRITE);
        rig.post_recv(1, &[buffer.sge(0, capacity)]);
        rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
        let sent = rig.answer(&rig.packet(Send, Last, FIRST + 1, &bytes(300 - MTU)).ack_req());
        let cqe = rig.recv_cqes()[0];
        if refused {
            assert_eq!(acks(&sent), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
            assert_eq!((cqe.status, cqe.vendor_err), (WcStatus::LocLenErr, Fault::ReceiveTooShort as u32));
            assert_failed(&mut rig);
        } else {
            assert_eq!(acks(&sent), [ack(FIRST + 1, 1)]);
            assert_eq!((cqe.status, cqe.byte_len), (WcStatus::Success, 300));
        }
    }
}

#[test]
fn the_keys_of_a_receive_are_checked_for_local_write_pd_and_range() {
    let no_right = |rig: &mut Rig| rig.region(64, Access::REMOTE_READ).sge(0, 64);
    let other_pd = |rig: &mut Rig| rig.region_of(crate::PdId(9), 64, Access::LOCAL_WRITE).sge(0, 64);
    let too_far = |rig: &mut Rig| rig.region(64, Access::LOCAL_WRITE).sge(1, 64);
    let unknown = |_: &mut Rig| crate::Sge { addr: 0, len: 1, lkey: wire::LKey::new(0x7777_7700) };
    let cases: [fn(&mut Rig) -> crate::Sge; 4] = [no_right, other_pd, too_far, unknown];
    for sge in cases {
        let mut rig = Rig::new(QpType::Rc);
        let good = rig.region(64, Access::LOCAL_WRITE).sge(0, 64);
        let bad = sge(&mut rig);
        rig.post_recv(1, &[good, bad]);
        let sent = rig.answer(&rig.packet(Send, Only, FIRST, b"x"));
        assert_eq!(acks(&sent), [nak(NakCode::RemoteOperational, FIRST, 0)]);
        let cqe = rig.recv_cqes()[0];
        assert_eq!((cqe.status, cqe.vendor_err), (WcStatus::LocProtErr, Fault::ReceiveUnusable as u32));
        assert_failed(&mut rig);
    }
}

/// rocev2 facts, transport 4 and 6: the timer of the RNR NAK is the QP's, and ePSN stays.
#[test]
fn without_a_receive_the_peer_is_told_to_come_again() {
    let mut rig = Rig::with(QpType::Rc, QpState::Rtr, QpAttr { min_rnr_timer: 0, ..attributes() });
    let packet = rig.packet(Send, First, FIRST, &bytes(MTU));
    for _ in 0..2 {
        assert_eq!(acks(&rig.answer(&packet)), [(FIRST, Syndrome::RnrNak { timer: 0 }, 0)]);
    }
    // What follows it is out of sequence, but the peer waits and knows where to go on: not another word.
    assert!(rig.answer(&rig.packet(Send, Last, FIRST + 1, &[1]).ack_req()).is_empty());
    let buffer = rig.region(512, Access::LOCAL_WRITE);
    rig.post_recv(1, &[buffer.sge(0, 512)]);
    assert!(rig.answer(&packet).is_empty());
    assert_eq!(acks(&rig.answer(&rig.packet(Send, Last, FIRST + 1, &[1]).ack_req())), [ack(FIRST + 1, 1)]);
    assert_eq!((rig.count(Counter::OutOfBuffer), rig.count(Counter::RnrNakSent)), (2, 2));
    assert_eq!(rig.dropped(DropReason::ReceiverNotReady), 2);
}

/// The network doubled it, and in between a receive was posted: there is nothing to come again for.
#[test]
fn a_send_that_is_taken_after_all_is_not_refused() {
    let mut rig = Rig::new(QpType::Rc);
    let packet = rig.packet(Send, Only, FIRST, &[]).ack_req();
    rig.deliver(&packet);
    rig.post_recv(1, &[]);
    rig.deliver(&packet);
    assert_eq!(acks(&rig.sent()), [ack(FIRST, 1)]);
    assert_eq!(rig.recv_cqes().len(), 1);
}
