//! The window: in packets, expected READ responses among them; it grows with what arrives, and carefully after a loss.

use super::*;
use crate::limits::{WINDOW_MAX, WINDOW_MIN, WINDOW_START};

const START: usize = WINDOW_START as usize;

#[test]
fn a_long_message_stops_at_the_window_and_goes_on_with_acks() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 1000)]));
    assert_eq!(rig.sent().len(), START);
    assert!(rig.engine.is_idle());
    ack(&mut rig, 0x100 + 9);
    // Ten places are free, and the window grew by ten.
    let sent = rig.sent();
    assert_eq!(sent.len(), 20);
    assert_eq!(sent[0].bth.psn.value(), 0x100 + WINDOW_START);
}

#[test]
fn small_messages_count_too_and_stay_in_the_send_queue() {
    let (mut rig, _) = rc();
    for id in 0..200 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    assert_eq!(rig.sent().len(), START);
    assert_eq!(rig.shared.sq().waiting(), 200 - START);
    ack(&mut rig, 0x100);
    assert_eq!(rig.sent().len(), 2);
}

#[test]
fn expected_responses_fill_the_window() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 256 * 200)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["100 READ Request 0 A @7f000000+51200"]);
    read_response(&mut rig, Position::First, 0x100, &[1; 256]);
    // 199 responses are due, and the window is one larger than at the start.
    for psn in 0x101..0x100 + 36 {
        read_response(&mut rig, Position::Middle, psn, &[1; 256]);
    }
    sends(&mut rig, &[]);
    read_response(&mut rig, Position::Middle, 0x100 + 36, &[1; 256]);
    sends(&mut rig, &["1c8 SEND Only 0 A"]);
}

#[test]
fn the_window_grows_to_its_limit_and_not_beyond() {
    let attr = attributes();
    let mut rig = Rig::with_capacities(QpType::Rc, QpState::Rts, attr, 20_000, 20_000);
    for id in 0..20_000 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    let mut next = 0x100;
    let mut largest = 0;
    loop {
        let sent = rig.sent().len() as u32;
        if sent == 0 {
            break;
        }
        largest = largest.max(sent);
        next += sent;
        ack(&mut rig, next - 1);
    }
    assert_eq!((next, largest), (0x100 + 20_000, WINDOW_MAX));
}

/// What goes out at a time on a wire that holds `most` packets, where all of it is acknowledged. With `loss` the first of all is lost.
fn bursts(most: u32, loss: bool) -> Vec<usize> {
    let config = EngineConfig { max_window: most, ..EngineConfig::default() };
    let receives = Arc::new(RecvQueue::new(1, 1));
    let mut rig =
        Rig::configured(config, (QPN, QpType::Rc), QpState::Rts, attributes(), receives, (2000, 2000));
    for id in 0..2000 {
        rig.post_send(wr(id, SendOp::Send, &[]));
    }
    let (mut next, mut sizes) = (0x100, Vec::new());
    while next < 0x100 + 2000 {
        let sent = rig.sent();
        assert_eq!(sent[0].bth.psn.value(), next);
        sizes.push(sent.len());
        if loss && sizes.len() == 1 {
            nak(&mut rig, next, NakCode::PsnSequence);
        } else {
            next += sent.len() as u32;
            ack(&mut rig, next - 1);
        }
    }
    sizes
}

#[test]
fn the_window_grows_to_what_the_wire_holds_and_not_beyond() {
    assert_eq!(bursts(300, false)[..5], [START, 2 * START, 300, 300, 300]);
    assert_eq!(bursts(50, false)[..2], [50, 50], "less than at the start elsewhere");
    assert_eq!(bursts(34, true)[..5], [34, 17, 18, 19, 20]);
    let after_a_loss = bursts(34, true);
    assert_eq!(after_a_loss[after_a_loss.len() - 4..after_a_loss.len() - 1], [34; 3]);
}

#[test]
fn a_loss_halves_the_window_down_to_its_least() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 1000)]));
    let mut sizes = vec![rig.sent().len()];
    for _ in 0..5 {
        rig.advance(100_000_000);
        sizes.push(rig.sent().len());
    }
    let least = WINDOW_MIN as usize;
    assert_eq!(sizes, [128, 64, 32, 16, least, least]);
}

/// What a loss has taught is kept: one packet more for each window that arrives, where before it would double.
#[test]
fn after_a_loss_the_window_grows_by_one_a_round_trip() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 256 * 1000)]));
    assert_eq!(rig.sent().len(), START);
    nak(&mut rig, 0x100, NakCode::PsnSequence);
    let half = START as u32 / 2;
    let mut next = 0x100;
    for more in 0..4 {
        let sent = rig.sent();
        assert_eq!((sent[0].bth.psn.value(), sent.len() as u32), (next, half + more));
        next += half + more;
        ack(&mut rig, next - 1);
    }
}
