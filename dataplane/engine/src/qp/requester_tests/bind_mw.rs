//! BIND_MW: in order, without a packet.

use super::*;
use crate::mw::{Binding, MwType};
use crate::status::WcOpcode;
use crate::wr::Bind;
use crate::{KeyUser, MemoryWindow, PdId};

const READ: Access = Access::REMOTE_READ;

/// A QP, a region that allows windows, and a window.
fn ready(qp_type: QpType, mw_type: MwType) -> (Rig, Region, Arc<MemoryWindow>) {
    let mut rig = Rig::new(qp_type);
    let region = rig.region(4096, Access::LOCAL_WRITE | Access::MW_BIND);
    let mw = rig.window(PD, mw_type);
    (rig, region, mw)
}

fn bind(id: u64, mw: &Arc<MemoryWindow>, byte: u32, to: Option<Binding>) -> SendWr {
    let key = RKey::new(mw.key() & !0xFF | byte);
    wr(id, SendOp::BindMw(Arc::new(Bind { mw: Arc::clone(mw), key, to })), &[])
}

#[test]
fn it_is_done_in_its_turn_and_completes_in_order() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type2);
    rig.post_send(wr(1, SendOp::Send, &[]));
    rig.post_send(bind(2, &mw, 7, Some(region.binding(0, 64, READ))));
    rig.post_send(wr(3, SendOp::Send, &[]));
    sends(&mut rig, &["100 SEND Only 0 A", "101 SEND Only 0 A"]);
    assert!(mw.is_bound());
    completes(&rig, &[]);
    ack(&mut rig, 0x100);
    let cqes = rig.send_cqes();
    let told: Vec<_> = cqes.iter().map(|cqe| (cqe.wr_id, cqe.status, cqe.opcode)).collect();
    let ok = WcStatus::Success;
    assert_eq!(told, [(1, ok, WcOpcode::Send), (2, ok, WcOpcode::BindMw)]);
    assert_eq!(mw.key() & 0xFF, 7);
    // The test's, and the engine's by key and among those of type 2: the request has let go of it.
    assert_eq!(Arc::strong_count(&mw), 3);
    assert_eq!(Arc::strong_count(&region.mr), 2);
}

#[test]
fn going_back_does_not_bind_again() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type2);
    passes_by_when_it_goes_back(&mut rig, bind(2, &mw, 7, Some(region.binding(0, 64, READ))));
}

#[test]
fn a_fence_holds_it_back() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type1);
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 8)]));
    rig.post_send(with_flags(bind(2, &mw, 1, Some(region.binding(0, 64, READ))), SendFlags::FENCE));
    rig.sent();
    assert!(!mw.is_bound());
    read_response(&mut rig, Position::Only, 0x100, &[1; 8]);
    sends(&mut rig, &[]);
    assert!(mw.is_bound());
    completes(&rig, &[(1, WcStatus::Success)]);
}

#[test]
fn type_1_is_bound_again_and_unbound_by_a_bind_to_nothing() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type1);
    for (byte, len) in [(1, 64), (2, 32), (3, 0)] {
        rig.post_send(bind(u64::from(byte), &mw, byte, Some(region.binding(8, len, READ))));
        sends(&mut rig, &[]);
        assert_eq!(mw.range(), (len > 0).then_some((region.addr + 8, len)));
        assert_eq!((mw.key() & 0xFF, region.mr.windows()), (byte, (len > 0).into()));
    }
    rig.post_send(bind(4, &mw, 4, Some(region.binding(8, 8, READ))));
    rig.post_send(bind(5, &mw, 5, None));
    sends(&mut rig, &[]);
    assert!(!mw.is_bound());
    completes(&rig, &[1, 2, 3, 4, 5].map(|id| (id, WcStatus::Success)));
}

#[test]
fn type_2_is_invalidated_and_bound_again() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type2);
    for byte in 1..4 {
        let key = RKey::new(mw.key() & !0xFF | byte);
        rig.post_send(bind(1, &mw, byte, Some(region.binding(0, 64, READ))));
        rig.post_send(wr(2, SendOp::LocalInv(key), &[]));
        sends(&mut rig, &[]);
        completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
        assert_eq!((mw.is_bound(), region.mr.windows()), (false, 0));
    }
}

/// Each reason ends the request with MW_BIND_ERR, and what is behind it is flushed.
#[test]
fn a_bind_that_is_refused_fails() {
    type Wrong = fn(&mut Rig, &Region, &Arc<MemoryWindow>) -> SendWr;
    let outside: Wrong = |_, region, mw| bind(2, mw, 1, Some(region.binding(4000, 97, READ)));
    let rights: Wrong = |rig, _, mw| {
        let constant = rig.region(64, Access::MW_BIND);
        bind(2, mw, 1, Some(constant.binding(0, 8, Access::REMOTE_WRITE)))
    };
    let no_windows: Wrong = |rig, _, mw| {
        let plain = rig.region(64, Access::LOCAL_WRITE);
        bind(2, mw, 1, Some(plain.binding(0, 8, READ)))
    };
    let foreign_region: Wrong = |rig, _, mw| {
        let foreign = rig.region_of(PdId(9), 64, Access::MW_BIND);
        bind(2, mw, 1, Some(foreign.binding(0, 8, READ)))
    };
    let foreign_window: Wrong = |rig, region, _| {
        let foreign = rig.window(PdId(9), MwType::Type2);
        bind(2, &foreign, 1, Some(region.binding(0, 8, READ)))
    };
    let nothing: Wrong = |_, _, mw| bind(2, mw, 1, None);
    let zero_based_1: Wrong = |rig, region, _| {
        let one = rig.window(PD, MwType::Type1);
        bind(2, &one, 1, Some(region.binding(0, 8, READ | Access::ZERO_BASED)))
    };
    let gone: Wrong = |rig, region, mw| {
        rig.engine.remove_mw(mw.index());
        bind(2, mw, 1, Some(region.binding(0, 8, READ)))
    };
    for wrong in [outside, rights, no_windows, foreign_region, foreign_window, nothing, zero_based_1, gone] {
        let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type2);
        let request = wrong(&mut rig, &region, &mw);
        rig.post_send(wr(1, SendOp::Send, &[]));
        rig.post_send(request);
        rig.post_send(wr(3, SendOp::Send, &[]));
        sends(&mut rig, &["100 SEND Only 0 A"]);
        ack(&mut rig, 0x100);
        completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::MwBindErr), (3, WcStatus::WrFlushErr)]);
        assert_eq!((rig.state(), region.mr.windows(), mw.is_bound()), (QpState::Err, 0, false));
    }
}

#[test]
fn a_window_of_type_2_is_not_bound_over() {
    let (mut rig, region, mw) = ready(QpType::Rc, MwType::Type2);
    rig.post_send(bind(1, &mw, 1, Some(region.binding(0, 8, READ))));
    rig.post_send(bind(2, &mw, 2, Some(region.binding(8, 8, READ))));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::MwBindErr)]);
    assert_eq!((mw.range(), region.mr.windows()), (Some((region.addr, 8)), 1));
}

#[test]
fn a_key_with_windows_is_not_invalidated() {
    let (mut rig, _, mw) = ready(QpType::Rc, MwType::Type2);
    let fast = rig.fast_region(64, Access::LOCAL_WRITE | Access::MW_BIND);
    rig.post_send(bind(1, &mw, 1, Some(fast.binding(0, 8, READ))));
    rig.post_send(wr(2, SendOp::LocalInv(fast.rkey()), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocQpOpErr)]);
    assert!(fast.mr.is_valid() && mw.is_bound());
}

#[test]
fn local_invalidate_refuses_windows_of_type_1_and_of_other_queue_pairs() {
    let (mut rig, region, one) = ready(QpType::Rc, MwType::Type1);
    rig.post_send(bind(1, &one, 1, Some(region.binding(0, 8, READ))));
    rig.post_send(wr(2, SendOp::LocalInv(RKey::new(one.key() & !0xFF | 1)), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::LocQpOpErr)]);
    assert!(one.is_bound());

    let (mut rig, region, two) = ready(QpType::Rc, MwType::Type2);
    let other = KeyUser { pd: PD, qpn: crate::testkit::PEER_QPN };
    let mut keys = crate::MrTable::new(2);
    keys.insert(Arc::clone(&region.mr));
    keys.insert_window(Arc::clone(&two));
    let key = RKey::new(two.key());
    keys.bind(&Bind { mw: Arc::clone(&two), key, to: Some(region.binding(0, 8, READ)) }, other).unwrap();
    rig.post_send(wr(1, SendOp::LocalInv(key), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr)]);
    assert!(two.is_bound());
}

#[test]
fn a_queue_pair_that_is_destroyed_leaves_its_windows_free() {
    let (mut rig, region, mine) = ready(QpType::Rc, MwType::Type2);
    let one = rig.window(PD, MwType::Type1);
    rig.post_send(bind(1, &mine, 1, Some(region.binding(0, 8, READ))));
    rig.post_send(bind(2, &one, 1, Some(region.binding(0, 8, READ))));
    sends(&mut rig, &[]);
    assert_eq!(region.mr.windows(), 2);
    rig.engine.destroy_qp(QPN);
    assert!(!mine.is_bound(), "nobody could use or invalidate it");
    assert!(one.is_bound(), "others may use it");
    assert_eq!(region.mr.windows(), 1);
}

#[test]
fn uc_binds_and_fails_with_its_send_queue_and_ud_has_no_windows() {
    let (mut rig, region, mw) = ready(QpType::Uc, MwType::Type2);
    rig.post_send(bind(1, &mw, 1, Some(region.binding(0, 8, Access::REMOTE_WRITE))));
    rig.post_send(bind(2, &mw, 2, Some(region.binding(0, 8, READ))));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::MwBindErr)]);
    assert_eq!(rig.state(), QpState::Sqe);
    let (rig, region, mw) = ready(QpType::Ud, MwType::Type2);
    let request = bind(1, &mw, 1, Some(region.binding(0, 8, READ)));
    assert!(matches!(rig.shared.post_send(request), Err(crate::queue::PostError::Operation(QpType::Ud))));
}
