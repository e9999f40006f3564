//! More queue pairs than the ring of doorbells has room for ring at once: all are heard, and can ring again.

mod common;

use common::qp::{poll_all, sges};
use common::{Endpoint, Shape, drive, sides};
use engine::{QpType, SendOp};
use wire::{Mtu, Qpn};
use worker::LinkConfig;

#[test]
fn all_are_heard_and_can_ring_again() {
    let shape = Shape { link: LinkConfig { bells: 1, ..LinkConfig::default() }, ..Shape::default() };
    let (a, b) = sides("bells", &shape);
    let (a, b) = (Endpoint::new(a, &shape).driven(), Endpoint::new(b, &shape).driven());
    let mr = a.end.register(1, 64);
    let qps: Vec<_> = (0..3).map(|n| a.end.create_qp(0, Qpn::new(0x600 + n), QpType::Uc)).collect();
    for qp in &qps {
        a.end.connect(qp, Qpn::new(0x700), Mtu::Mtu1024);
    }
    for wr_id in 0..2 {
        for qp in &qps {
            a.end.post(qp, wr_id, SendOp::Send, sges(&[mr.sge(0, 8)]));
        }
        // UC: complete when it has left, whoever takes it.
        drive(&[&a, &b], || qps.iter().all(|qp| qp.shared.sq().outstanding() == 0));
        for qp in &qps {
            assert_eq!(poll_all(&qp.sends).iter().map(|cqe| cqe.wr_id).collect::<Vec<_>>(), [wr_id]);
        }
    }
}
