//! UD: one packet, the GRH area before it (rocev2 facts, transport section 20, wire section 11).

use super::help::*;

const SENDER: Qpn = Qpn::new(0x4567);

fn datagram(rig: &Rig, payload: &[u8]) -> Packet {
    rig.packet(Send, Only, 0x9_9999, payload).with(Deth { qkey: QKey::new(0x1234), src_qpn: SENDER })
}

#[test]
fn a_datagram_lies_behind_the_network_header_of_its_packet() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(128, ALL);
    rig.post_recv(1, &[buffer.sge(0, 30), buffer.sge(64, 64)]);
    let packet = datagram(&rig, b"hello");
    let frame = packet.frame(&rig.from_peer);
    assert!(rig.answer(&packet.solicited()).is_empty());
    let cqe = Cqe {
        byte_len: 45,
        src_qp: SENDER,
        has_grh: true,
        solicited: true,
        ..Cqe::new(1, WcStatus::Success, WcOpcode::Recv, QPN)
    };
    assert_eq!(rig.recv_cqes(), [cqe]);
    assert_eq!(rig.memory.published(), 1, "the data is there before its completion is");
    let content = rig.memory.content(buffer.id);
    let placed = [&content[..30], &content[64..]].concat();
    assert_eq!(placed[..20], [0; 20]);
    assert_eq!(placed[20..40], frame[14..34], "the IPv4 header as received");
    assert_eq!(placed[40..45], *b"hello");
}

#[test]
fn an_empty_datagram_is_forty_bytes() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(128, ALL);
    rig.post_recv(1, &[buffer.sge(0, 40)]);
    let packet = rig.packet(SendImm, Only, 0, &[]);
    let packet = packet.with(Deth { qkey: QKey::new(0x1234), src_qpn: SENDER }).with(ImmDt([7; 4]));
    rig.deliver(&packet);
    let cqe = rig.recv_cqes()[0];
    assert_eq!((cqe.byte_len, cqe.imm), (40, Some([7; 4])));
}

#[test]
fn a_datagram_that_does_not_fit_is_dropped_and_its_receive_waits() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(128, ALL);
    rig.post_recv(1, &[buffer.sge(0, 44)]);
    let before = rig.memory.snapshot();
    rig.deliver(&datagram(&rig, b"hello"));
    assert_eq!(rig.memory.snapshot(), before);
    assert_eq!(rig.dropped(DropReason::ReceiveUnusable), 1);
    assert_untouched(&mut rig, QpState::Rts);
    rig.deliver(&datagram(&rig, b"hell"));
    assert_eq!(rig.recv_cqes()[0].byte_len, 44);
}

#[test]
fn without_a_receive_a_datagram_is_dropped() {
    let mut rig = Rig::new(QpType::Ud);
    rig.deliver(&datagram(&rig, b"hello"));
    assert_eq!(rig.dropped(DropReason::NoReceive), 1);
    assert_eq!(rig.count(Counter::OutOfBuffer), 1);
    assert_untouched(&mut rig, QpState::Rts);
}

/// A packet longer than the port's MTU did not come over this port.
#[test]
fn a_datagram_is_no_longer_than_the_port_mtu() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(8192, ALL);
    for wr_id in 0..2 {
        rig.post_recv(wr_id, &[buffer.sge(0, 8192)]);
    }
    rig.deliver(&datagram(&rig, &bytes(4100)));
    assert_eq!(rig.dropped(DropReason::InvalidRequest), 1);
    rig.deliver(&datagram(&rig, &bytes(4096)));
    assert_eq!(rig.recv_cqes()[0].byte_len, 4136);
}

#[test]
fn psns_are_not_looked_at() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(128, ALL);
    for psn in [5, 5, 0x80_0000, 4] {
        rig.post_recv(u64::from(psn), &[buffer.sge(0, 64)]);
        let mut packet = datagram(&rig, b"x");
        packet.bth.psn = Psn::new(psn);
        rig.deliver(&packet);
        assert_eq!(rig.recv_cqes()[0].wr_id, u64::from(psn));
    }
}

#[test]
fn a_receive_that_cannot_be_written_ends_the_qp() {
    let mut rig = Rig::new(QpType::Ud);
    let buffer = rig.region(128, Access::REMOTE_READ);
    rig.post_recv(1, &[buffer.sge(0, 128)]);
    rig.deliver(&datagram(&rig, b"x"));
    assert_eq!(rig.recv_cqes()[0].status, WcStatus::LocProtErr);
    assert_eq!(rig.state(), QpState::Err);
}
