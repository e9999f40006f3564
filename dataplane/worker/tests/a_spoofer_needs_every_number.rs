//! A stranger on the wire who forges the peer's addresses and tries queue pair numbers, PSNs and keys: memory, completions and
//! the connection stay as they are until all of them are right.

mod common;

use common::qp::{PSN, TestMr, TestQp, poll_all, sges};
use common::raw::{ACKNOWLEDGE, PEER_QPN, WRITE_ONLY, roce, way};
use common::{Driven, Endpoint, Place, Shape, Side, settle, sides};
use engine::{Counter, QpState, QpType, SendOp};
use wire::{Addressing, Aeth, Bth, ExtHeaders, Gid, Msn, Mtu, Psn, Qpn, RKey, Reth, Syndrome};

const QPN: Qpn = Qpn::new(0x4321);

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 32) as u32
    }

    /// Right every other time, else near it, a bit off, or anything; of so many bits.
    fn guess(&mut self, right: u32, bits: u32) -> u32 {
        let guess = match self.roll() % 6 {
            0..3 => right,
            3 => right.wrapping_add(self.roll() % 8).wrapping_sub(4),
            4 => right ^ 1 << (self.roll() % bits),
            _ => self.roll(),
        };
        guess & (u32::MAX >> (32 - bits))
    }
}

fn rig(name: &str) -> (Side, Driven, TestQp, TestMr) {
    let shape = Shape::default();
    let (peer, side) = sides(name, &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Rc);
    // No timer: a WRITE that is not acknowledged is to wait, and not to be sent again.
    driven.end.connect_waiting(&way(peer.peer, peer.at), &qp, PEER_QPN, Mtu::Mtu1024, 0);
    let mr = driven.end.register(0x1234, 4096);
    (peer, driven, qp, mr)
}

fn write(way: &Addressing, mr: &TestMr, (qpn, psn, rkey): (u32, u32, u32), byte: u8) -> Vec<u8> {
    let reth = Reth { va: mr.remote(0).addr, rkey: RKey::new(rkey), dma_len: 64 };
    let bth = Bth { ack_req: true, ..Bth::new(WRITE_ONLY, Qpn::new(qpn), Psn::new(psn)) };
    roce(way, &bth, &ExtHeaders::EMPTY.with(reth), &[byte; 64])
}

#[test]
fn a_forged_write_changes_nothing_unless_every_number_is_right() {
    let (mut peer, driven, qp, mr) = rig("spoofer");
    let usual = way(peer.at, peer.peer);
    let stranger = Place { gid: Gid::from_v4([10, 0, 0, 66]), ..peer.at };
    let (mut dice, mut next, mut executed) = (Dice(3), PSN, 0);
    for round in 0..2000u32 {
        let address = if dice.roll() % 4 == 0 { way(stranger, peer.peer) } else { usual };
        let right = (QPN.value(), next, mr.remote(0).rkey.value());
        let tried = (dice.guess(right.0, 24), dice.guess(right.1, 24), dice.guess(right.2, 32));
        if (tried.0, tried.1, address.src) == (right.0, right.1, usual.src) && tried.2 != right.2 {
            // Everything but the key: as far as anybody can tell the peer's own fault. The next test is of this.
            continue;
        }
        let before = mr.bytes(0, 4096);
        let frame = write(&address, &mr, tried, round as u8 | 0x80);
        peer.send(0, &[frame]);
        settle(&[&driven]);
        let all_right = tried == right && address.src == usual.src;
        assert_eq!(
            mr.bytes(0, 4096) != before,
            all_right && before[0] != round as u8 | 0x80,
            "round {round}: {tried:x?}"
        );
        let now = driven.end.query(0, QPN);
        assert_eq!(now.attr.state, QpState::Rts, "round {round}: {tried:x?}");
        assert!(poll_all(&qp.sends).is_empty() && poll_all(&qp.receives).is_empty());
        if all_right {
            executed += 1;
            next = (next + 1) & 0xFF_FFFF;
        }
        assert_eq!(now.counters.get(Counter::RxWriteRequests), executed, "round {round}: {tried:x?}");
        while !peer.receive(0).is_empty() {}
    }
    assert!(executed > 100, "all right happens too: {executed}");
    // And the peer itself is heard.
    let good = write(&usual, &mr, (QPN.value(), next, mr.remote(0).rkey.value()), 1);
    peer.send(0, &[good]);
    settle(&[&driven]);
    assert_eq!(mr.bytes(0, 64), [1; 64]);
}

/// The connection ends, the memory stays.
#[test]
fn a_wrong_key_in_its_right_place_writes_nothing() {
    for bit in 0..32 {
        let (mut peer, driven, _qp, mr) = rig(&format!("key{bit}"));
        let tried = (QPN.value(), PSN, mr.remote(0).rkey.value() ^ 1 << bit);
        let frame = write(&way(peer.at, peer.peer), &mr, tried, 9);
        peer.send(0, &[frame]);
        settle(&[&driven]);
        assert_eq!(driven.end.query(0, QPN).attr.state, QpState::Err, "bit {bit}");
        assert_eq!(mr.bytes(0, 4096), [0; 4096], "bit {bit}");
        if bit % 8 != 7 {
            continue;
        }
        // Nor does the right key help any more.
        let late = write(&way(peer.at, peer.peer), &mr, (QPN.value(), PSN, mr.remote(0).rkey.value()), 9);
        peer.send(0, &[late]);
        settle(&[&driven]);
        assert_eq!(mr.bytes(0, 4096), [0; 4096], "bit {bit}");
    }
}

#[test]
fn a_forged_ack_completes_nothing_unless_its_numbers_are_right() {
    let (mut peer, driven, qp, mr) = rig("acks");
    let (usual, mut dice) = (way(peer.at, peer.peer), Dice(5));
    let stranger = way(Place { gid: Gid::from_v4([10, 0, 0, 66]), ..peer.at }, peer.peer);
    let (mut posted, mut completed) = (0u32, 0);
    for round in 0..2000 {
        if posted == completed {
            driven.end.post(&qp, u64::from(posted), SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 64)]));
            settle(&[&driven]);
            posted += 1;
        }
        let address = if dice.roll() % 4 == 0 { stranger } else { usual };
        let outstanding = (PSN + posted - 1) & 0xFF_FFFF;
        let (qpn, psn) = (dice.guess(QPN.value(), 24), dice.guess(outstanding, 24));
        let aeth = Aeth { syndrome: Syndrome::ACK, msn: Msn::new(dice.roll()) };
        let bth = Bth::new(ACKNOWLEDGE, Qpn::new(qpn), Psn::new(psn));
        peer.send(0, &[roce(&address, &bth, &ExtHeaders::EMPTY.with(aeth), &[])]);
        settle(&[&driven]);
        let right = qpn == QPN.value() && psn == outstanding && address.src == usual.src;
        let done = poll_all(&qp.sends);
        assert_eq!(done.len(), usize::from(right), "round {round}: QP {qpn:#x}, PSN {psn:#x}: {done:?}");
        assert!(done.iter().all(engine::Cqe::is_success));
        assert_eq!(driven.end.query(0, QPN).attr.state, QpState::Rts);
        completed += u32::from(right);
        while !peer.receive(0).is_empty() {}
    }
    assert!(completed > 100, "{completed}");
}
