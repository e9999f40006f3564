//! AckReq: at the end of each message, now and then inside it, and before the window closes.

use super::*;
use crate::limits::{ACK_REQ_EVERY, WINDOW_MIN, WINDOW_START};

fn asking(packets: &[Packet]) -> Vec<usize> {
    packets.iter().enumerate().filter(|(_, packet)| packet.bth.ack_req).map(|(i, _)| i).collect()
}

#[test]
fn a_long_message_asks_now_and_then() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 100)]));
    let every = ACK_REQ_EVERY as usize;
    assert_eq!(asking(&rig.sent()), [every - 1, 2 * every - 1, 3 * every - 1, 99]);
}

#[test]
fn the_last_packet_that_the_window_lets_out_asks() {
    let (mut rig, region) = rc();
    // An odd number of packets before shifts the counting.
    for id in 0..5 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    rig.post_send(wr(9, SendOp::Send, &[region.sge(0, 256 * 300)]));
    let sent = rig.sent();
    assert_eq!(sent.len(), WINDOW_START as usize);
    assert_eq!(asking(&sent).last(), Some(&(sent.len() - 1)));
}

#[test]
fn a_small_window_is_asked_about_halfway() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 300)]));
    rig.sent();
    for _ in 0..4 {
        rig.advance(100_000_000);
        rig.sent();
    }
    rig.advance(100_000_000);
    let sent = rig.sent();
    assert_eq!(sent.len(), WINDOW_MIN as usize);
    assert_eq!(asking(&sent), [7, 15]);
}
