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
