//! Fast registration, local invalidate, SEND with Invalidate.

use crate::support::{ALL, Pair, bytes};
use rockhopper::{QpType, RecvWr, SendWr, WcOpcode, WcStatus};

#[test]
fn a_fast_region_lives_from_registration_to_invalidation() {
    let pair = Pair::new(QpType::Rc);
    let fast = pair.b.pd.alloc_fast_mr(8192).unwrap();
    assert!(!fast.is_valid());
    pair.b.qp.post_send(SendWr::reg_mr(1, &fast, 0x5A, ALL)).unwrap();
    let done = pair.at_b();
    assert_eq!((done.status, done.opcode), (WcStatus::Success, WcOpcode::RegMr));
    assert!(fast.is_valid());
    assert_eq!(fast.key().value() & 0xFF, 0x5A);

    pair.a.qp.post_send(SendWr::write(2, fast.remote().at(8)).inline(b"through")).unwrap();
    assert!(pair.at_a().is_success());
    let mut arrived = [0; 7];
    fast.buffer().read(8, &mut arrived).unwrap();
    assert_eq!(&arrived, b"through");

    pair.b.qp.post_recv(RecvWr::new(3).sge(pair.b.mr.sge(0..10))).unwrap();
    pair.a.qp.post_send(SendWr::send_inv(3, fast.key()).inline(b"done")).unwrap();
    assert!(pair.at_a().is_success());
    let received = pair.at_b();
    assert_eq!((received.byte_len, received.invalidated), (4, Some(fast.key())));
    assert_eq!(bytes(&pair.b.mr, 0, 4), b"done");
    assert!(!fast.is_valid(), "the peer's SEND took the key");

    pair.b.qp.post_send(SendWr::reg_mr(4, &fast, 0x5B, ALL)).unwrap();
    pair.b
        .qp
        .post_send(SendWr::local_inv(5, rockhopper::RKey::new(fast.key().value() & !0xFF | 0x5B)))
        .unwrap();
    assert_eq!((pair.at_b().opcode, pair.at_b().opcode), (WcOpcode::RegMr, WcOpcode::LocalInv));
    assert!(!fast.is_valid());
    pair.a.qp.post_send(SendWr::write(6, fast.remote().at(0)).inline(b"late")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}
