//! A SEND that goes the short way leaves what it would have left by the stages, whatever is odd about it.

use super::help::*;
use crate::{PdId, Sge};
use wire::LKey;

/// Posts a receive of one piece.
type Post = fn(&mut Rig, u64, Sge);

/// A dialogue leaves the same where a receive is one piece, as the short way has it, and where it has another piece of no bytes.
fn either_way(name: &str, talk: impl Fn(&mut Rig, Post)) {
    let plain: Post = |rig, wr_id, piece| rig.post_recv(wr_id, &[piece]);
    let by_stages: Post = |rig, wr_id, piece| {
        rig.post_recv(wr_id, &[piece, Sge { addr: 0, len: 0, lkey: LKey::new(0xDEAD) }]);
    };
    let [plain, by_stages] = [plain, by_stages].map(|post| {
        let mut rig = Rig::new(QpType::Rc);
        talk(&mut rig, post);
        left(&mut rig)
    });
    assert_eq!(plain, by_stages, "{name}");
}

/// All that can be seen afterwards.
fn left(rig: &mut Rig) -> String {
    let (sent, cqes, events) = (rig.sent(), rig.recv_cqes(), rig.raised());
    let seen = (rig.state(), rig.shared.rq().len(), rig.memory.published());
    let (counters, memory) = (rig.engine.counters(), rig.memory.snapshot());
    format!("{sent:?} {cqes:?} {events:?} {seen:?} {counters:?} {memory:?}")
}

#[test]
fn lengths() {
    for len in [0, 1, 63, 64, 65, MTU, MTU + 1, MTU + 4] {
        for room in [1, 64, 400] {
            either_way(&format!("{len} bytes into {room}"), |rig, post| {
                let buffer = rig.region(400, Access::LOCAL_WRITE);
                post(rig, 1, buffer.sge(0, room));
                rig.deliver(&rig.packet(Send, Only, FIRST, &bytes(len)).ack_req().solicited());
            });
        }
    }
}

#[test]
fn a_pad_that_is_not_what_the_length_asks_for() {
    either_way("pad", |rig, post| {
        let buffer = rig.region(64, Access::LOCAL_WRITE);
        post(rig, 1, buffer.sge(0, 64));
        let mut packet = rig.packet(Send, Only, FIRST, &bytes(13)).ack_req();
        packet.bth.pad_count = 2;
        rig.deliver(&packet);
    });
}

#[test]
fn keys() {
    let cases: [fn(&mut Rig) -> Sge; 5] = [
        |rig| rig.region(64, Access::REMOTE_WRITE | Access::REMOTE_READ).sge(0, 64),
        |rig| rig.region_of(PdId(9), 64, Access::LOCAL_WRITE).sge(0, 64),
        |rig| rig.region(64, Access::LOCAL_WRITE).sge(1, 64),
        |_| Sge { addr: 0, len: 64, lkey: LKey::new(0x7777_7700) },
        |rig| {
            let gone = rig.region(64, Access::LOCAL_WRITE);
            rig.memory.remove(gone.id);
            gone.sge(0, 64)
        },
    ];
    for (number, bad) in cases.into_iter().enumerate() {
        either_way(&format!("key {number}"), |rig, post| {
            let bad = bad(rig);
            post(rig, 1, bad);
            // Not even the byte that would fit.
            rig.deliver(&rig.packet(Send, Only, FIRST, b"x").ack_req());
            let cqe = rig.recv_cqes()[0];
            assert_eq!((cqe.wr_id, cqe.status), (1, WcStatus::LocProtErr));
        });
    }
}

#[test]
fn what_is_no_plain_send() {
    either_way("other operations", |rig, post| {
        let (buffer, target) = (rig.region(64, Access::LOCAL_WRITE), rig.fast_region(16, ALL));
        (1..=3).for_each(|wr_id| post(rig, wr_id, buffer.sge(0, 64)));
        rig.deliver(&rig.packet(SendImm, Only, FIRST, &bytes(9)).with(ImmDt([1, 2, 3, 4])));
        rig.deliver(&rig.packet(SendInv, Only, FIRST + 1, &bytes(8)).with(Ieth { rkey: target.rkey() }));
        assert!(!target.mr.is_valid());
        rig.deliver_cut(&rig.packet(Send, Only, FIRST + 2, &bytes(12)).ack_req(), &[3, 4]);
    });
}

#[test]
fn what_comes_at_the_wrong_time() {
    either_way("inside of a message", |rig, post| {
        let buffer = rig.region(512, Access::LOCAL_WRITE);
        (1..=2).for_each(|wr_id| post(rig, wr_id, buffer.sge(0, 512)));
        rig.deliver(&rig.packet(Send, First, FIRST, &bytes(MTU)));
        rig.deliver(&rig.packet(Send, Only, FIRST + 1, &bytes(8)));
        assert_eq!(rig.recv_cqes()[0].status, WcStatus::RemInvReqErr);
    });
    // A WRITE takes no receive.
    either_way("inside of a WRITE", |rig, post| {
        let buffer = rig.region(512, ALL);
        post(rig, 1, buffer.sge(0, 512));
        rig.deliver(&rig.packet(Write, First, FIRST, &bytes(MTU)).with(reth(&buffer, 0, 300)));
        rig.deliver(&rig.packet(Send, Only, FIRST + 1, &bytes(8)));
        assert_eq!(acks(&rig.sent()), [nak(NakCode::InvalidRequest, FIRST + 1, 0)]);
    });
    either_way("without a receive, and again", |rig, post| {
        let packet = rig.packet(Send, Only, FIRST, &bytes(8)).ack_req();
        rig.deliver(&packet);
        let buffer = rig.region(64, Access::LOCAL_WRITE);
        post(rig, 1, buffer.sge(0, 64));
        rig.deliver(&packet);
        rig.deliver(&packet);
        assert_eq!(acks(&rig.sent()), [ack(FIRST, 1)]);
    });
}

/// A receive that was taken for a packet which was spoilt waits for the packet that comes in its stead.
#[test]
fn a_receive_that_waits_for_its_message_comes_first() {
    either_way("spoilt", |rig, post| {
        let buffer = rig.region(128, Access::LOCAL_WRITE);
        post(rig, 1, buffer.sge(0, 64));
        post(rig, 2, buffer.sge(64, 64));
        let packet = rig.packet(Send, Only, FIRST, &bytes(8));
        rig.deliver_held(&packet, true);
        rig.deliver(&packet);
        rig.deliver(&rig.packet(Send, Only, FIRST + 1, &bytes(9)));
        let cqes: Vec<_> = rig.recv_cqes().iter().map(|cqe| (cqe.wr_id, cqe.byte_len)).collect();
        assert_eq!(cqes, [(1, 8), (2, 9)]);
    });
}
