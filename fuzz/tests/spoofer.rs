//! A stranger who can forge every address and sends right frames, but has to guess QP number, PSN and key: memory and
//! completions never change unless all of them are right, and the connection goes on unless QP number and PSN are.

use engine::testkit::{PEER_QPN, Packet, QPN, Region, Rig, attributes};
use engine::{Access, QpState, QpType, SendFlags, SendOp, SendWr, WrData};
use wire::{Aeth, AtomicEth, Bth, Msn, Operation, Position, Psn, QKey, Qpn, RKey, Reth, Syndrome};

/// Numbers that look random, the same ones each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 32) as u32
    }

    /// Right one time in three: all right is to happen too, or the test would show nothing.
    fn guess(&mut self, right: u32) -> u32 {
        match self.roll() % 6 {
            0 | 1 => right,
            2 => right.wrapping_add(self.roll() % 8).wrapping_sub(4),
            3 => right ^ 1 << (self.roll() % 32),
            _ => self.roll(),
        }
    }
}

fn forged(rig: &Rig, target: &Region, dice: &mut Dice, next: Psn) -> (Packet, [bool; 3]) {
    let qpn = Qpn::new(dice.guess(QPN.value()));
    let psn = Psn::new(dice.guess(next.value()));
    let rkey = RKey::new(dice.guess(target.rkey().value()));
    let (operation, payload): (_, &[u8]) = match dice.roll() % 3 {
        0 => (Operation::Write, &[0xEE; 8]),
        1 => (Operation::FetchAdd, &[]),
        _ => (Operation::CompareSwap, &[]),
    };
    let mut packet = rig.packet(operation, Position::Only, psn.value(), payload);
    packet.bth = Bth { dest_qpn: qpn, ..packet.bth };
    let packet = match operation {
        Operation::Write => packet.with(Reth { va: target.addr, rkey, dma_len: 8 }),
        _ => packet.with(AtomicEth { va: target.addr, rkey, swap_or_add: 1, compare: 0 }),
    };
    (packet, [qpn == QPN, psn == next, rkey == target.rkey()])
}

#[test]
fn a_forged_request_changes_nothing_unless_every_number_is_right() {
    let mut dice = Dice(7);
    let mut executed = 0;
    for round in 0..3000 {
        let mut rig = Rig::new(QpType::Rc);
        let target = rig.region(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let next = attributes().rq_psn;
        let before = rig.memory.snapshot();
        let mut hit = false;
        for _ in 0..8 {
            let (packet, right) = forged(&rig, &target, &mut dice, next);
            rig.deliver(&packet);
            rig.sent();
            assert!(rig.recv_cqes().is_empty() && rig.send_cqes().is_empty());
            if right == [true; 3] {
                (hit, executed) = (true, executed + 1);
                break;
            }
            assert_eq!(rig.memory.snapshot(), before, "round {round}: {packet:?}");
            if let [true, true, _] = right {
                // A wrong key in its right place is a fault of the peer, as far as anybody can tell.
                assert_eq!(rig.state(), QpState::Err);
                break;
            }
            assert_eq!(rig.state(), QpState::Rts, "round {round}: {packet:?}");
        }
        if rig.state() == QpState::Rts && !hit {
            // The peer itself is heard as if nobody had tried.
            let good = rig.packet(Operation::Write, Position::Only, next.value(), &[7; 8]);
            rig.deliver(&good.with(Reth { va: target.addr, rkey: target.rkey(), dma_len: 8 }));
            assert_eq!(rig.memory.content(target.id)[..8], [7; 8], "round {round}");
        }
    }
    assert!(executed > 100, "all right happens too: {executed}");
}

#[test]
fn a_forged_answer_completes_nothing_unless_its_numbers_are_right() {
    let mut dice = Dice(11);
    let mut completed = 0;
    for round in 0..3000 {
        let mut rig = Rig::new(QpType::Rc);
        let data = WrData::Inline(Default::default());
        rig.post_send(SendWr { wr_id: 1, op: SendOp::Send, data, flags: SendFlags::SIGNALED });
        let sent = rig.sent()[0].bth.psn;
        for _ in 0..8 {
            let (qpn, psn) = (Qpn::new(dice.guess(QPN.value())), Psn::new(dice.guess(sent.value())));
            let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(dice.roll()) };
            let mut packet = rig.packet(Operation::Acknowledge, Position::Only, psn.value(), &[]).with(aeth);
            packet.bth.dest_qpn = qpn;
            rig.deliver(&packet);
            let done = rig.send_cqes();
            assert_eq!(done.len(), usize::from(qpn == QPN && psn == sent), "round {round}: {packet:?}");
            assert_eq!(rig.state(), QpState::Rts);
            if !done.is_empty() {
                completed += 1;
                break;
            }
        }
    }
    assert!(completed > 100, "{completed}");
}

#[test]
fn a_forged_datagram_needs_the_right_q_key() {
    let mut dice = Dice(13);
    let mut received = 0;
    for _ in 0..3000 {
        let mut rig = Rig::new(QpType::Ud);
        let buffer = rig.region(64, Access::LOCAL_WRITE);
        rig.post_recv(1, &[buffer.sge(0, 64)]);
        let before = rig.memory.snapshot();
        let right = attributes().qkey.value();
        let (qpn, qkey) = (Qpn::new(dice.guess(QPN.value())), dice.guess(right));
        let deth = wire::Deth { qkey: QKey::new(qkey), src_qpn: PEER_QPN };
        let mut packet = rig.packet(Operation::Send, Position::Only, dice.roll(), &[1; 8]).with(deth);
        packet.bth.dest_qpn = qpn;
        rig.deliver(&packet);
        let taken = qpn == QPN && qkey == right;
        assert_eq!(rig.recv_cqes().len(), usize::from(taken));
        assert_eq!(rig.memory.snapshot() != before, taken);
        received += u32::from(taken);
    }
    assert!(received > 100, "{received}");
}
