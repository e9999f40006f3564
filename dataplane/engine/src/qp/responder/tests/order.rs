//! Order and number of responses: READ responses, then one ACK or NAK for all that came after.

use super::help::*;

fn kinds(sent: &[Packet]) -> Vec<(u32, Operation)> {
    sent.iter().map(|packet| (packet.bth.psn.value(), packet.info().operation)).collect()
}

#[test]
fn one_ack_covers_a_burst() {
    let mut rig = Rig::new(QpType::Rc);
    for i in 0..10 {
        rig.post_recv(u64::from(i), &[]);
        let packet = rig.packet(Send, Only, FIRST + i, &[]);
        // The last one that asks is not the last one that came.
        rig.deliver(&if i == 3 || i == 7 { packet.ack_req() } else { packet });
    }
    assert_eq!(acks(&rig.sent()), [ack(FIRST + 9, 10)]);
    assert_eq!(rig.count(Counter::AckSent), 1);
    assert!(rig.sent().is_empty(), "once");
}

/// rocev2 facts, transport 6: an ACK for a later SEND must not overtake the responses of an earlier READ.
#[test]
fn an_ack_waits_for_the_read_before_it() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&source, 0, 600)));
    rig.deliver(&rig.packet(Send, Only, FIRST + 3, &[]).ack_req());
    let sent: Vec<_> = [1, 1, 5].into_iter().flat_map(|room| rig.sent_into(room)).collect();
    let expected = [
        (FIRST, ReadResponse),
        (FIRST + 1, ReadResponse),
        (FIRST + 2, ReadResponse),
        (FIRST + 3, Acknowledge),
    ];
    assert_eq!(kinds(&sent), expected);
}

/// A READ response acknowledges all SENDs and WRITEs before it (rocev2 facts, transport 5), so their ACK is
/// spared.
#[test]
fn a_read_behind_a_send_acknowledges_it() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(Send, Only, FIRST, &[]).ack_req());
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST + 1, &[]).with(reth(&source, 0, 4)));
    assert_eq!(kinds(&rig.sent()), [(FIRST + 1, ReadResponse)]);
}

#[test]
fn a_nak_comes_behind_the_responses_before_it_and_nothing_behind_the_nak() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&source, 0, 512)));
    rig.deliver(&rig.packet(Send, Middle, FIRST + 2, &bytes(MTU)));
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST + 2, &[]).with(reth(&source, 0, 4)));
    assert_eq!(rig.state(), QpState::Rts, "the READ before is still to be answered");
    assert_eq!(rig.sent_into(2).len(), 2);
    assert_eq!(rig.state(), QpState::Rts);
    assert_eq!(acks(&rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 2, 1)]);
    assert_eq!(rig.dropped(DropReason::Refused), 2);
    assert_failed(&mut rig);
}

#[test]
fn a_sequence_nak_waits_for_the_read_before_it_and_takes_the_place_of_the_ack() {
    let mut rig = Rig::new(QpType::Rc);
    let source = rig.region(1024, ALL);
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&source, 0, 4)));
    rig.deliver(&rig.packet(Send, Only, FIRST + 1, &[]).ack_req());
    rig.deliver(&rig.packet(Send, Only, FIRST + 3, &[]).ack_req());
    let sent = rig.sent();
    assert_eq!(kinds(&sent), [(FIRST, ReadResponse), (FIRST + 2, Acknowledge)]);
    assert_eq!(acks(&sent[1..]), [nak(NakCode::PsnSequence, FIRST + 2, 2)]);
}

#[test]
fn an_ack_and_a_nak_keep_their_place_when_the_sink_is_full() {
    let mut rig = Rig::new(QpType::Rc);
    rig.post_recv(1, &[]);
    rig.deliver(&rig.packet(Send, Only, FIRST, &[]).ack_req());
    assert!(rig.sent_into(0).is_empty());
    assert_eq!(acks(&rig.sent()), [ack(FIRST, 1)]);
    rig.deliver(&rig.packet(Send, Last, FIRST + 1, &[1]));
    assert!(rig.sent_into(0).is_empty());
    assert_eq!(rig.state(), QpState::Rts);
    assert_eq!(acks(&rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 1, 1)]);
    assert_failed(&mut rig);
}

#[test]
fn what_waits_to_be_sent_is_dropped_when_the_qp_leaves() {
    for to in [QpState::Err, QpState::Reset] {
        let mut rig = Rig::new(QpType::Rc);
        let source = rig.region(1024, ALL);
        rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth(&source, 0, 1024)));
        assert_eq!(rig.sent_into(1).len(), 1);
        rig.modify(to);
        assert!(rig.sent().is_empty());
        assert!(rig.engine.is_idle());
    }
}

#[test]
fn a_receive_under_way_is_flushed_first() {
    let mut rig = Rig::new(QpType::Rc);
    let buffer = rig.region(1024, ALL);
    for wr_id in 1..4 {
        rig.post_recv(wr_id, &[buffer.sge(0, 1024)]);
    }
    rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
    rig.modify(QpState::Err);
    let flushed: Vec<_> = rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.status)).collect();
    assert_eq!(flushed, [1, 2, 3].map(|wr_id| (wr_id, WcStatus::WrFlushErr)));
}

/// A CQ without room: the QP goes to ERROR, and the peer hears nothing more.
#[test]
fn a_full_cq_silences_the_qp() {
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attributes(), 8, 1);
    for wr_id in 0..3 {
        rig.post_recv(wr_id, &[]);
    }
    assert_eq!(acks(&rig.answer(&rig.packet(Send, Only, FIRST, &[]).ack_req())), [ack(FIRST, 1)]);
    assert!(rig.answer(&rig.packet(Send, Only, FIRST + 1, &[]).ack_req()).is_empty());
    assert_failed(&mut rig);
}
