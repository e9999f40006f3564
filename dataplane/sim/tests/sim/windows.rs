//! Memory windows over bad links: a peer writes through a window as long as it is bound, and never after its own SEND took it
//! away, while the window moves between regions, and its queue pair between cores.

use crate::support::*;
use engine::wr::{Bind, Remote};
use engine::{Access, MemoryWindow, MwType, QpState, QpType, SendFlags, SendOp, SendWr, WcStatus, WrData};
use sim::{Faults, Options, Rate, Region, assert_silent, for_each_seed};
use std::sync::Arc;
use wire::RKey;

fn wr(wr_id: u64, op: SendOp, bytes: &[u8]) -> SendWr {
    let data = WrData::Inline(bytes.iter().copied().collect());
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

fn bind(
    wr_id: u64,
    mw: &Arc<MemoryWindow>,
    byte: u32,
    to: &Region,
    offset: u64,
    access: Access,
) -> (SendWr, Remote) {
    let key = RKey::new(mw.key() & !0xFF | byte);
    let zero_based = access.contains(Access::ZERO_BASED);
    let addr = if zero_based { 0 } else { to.addr + offset };
    let bind = Bind { mw: mw.clone(), key, to: Some(to.binding(offset, 64, access)) };
    (wr(wr_id, SendOp::BindMw(Arc::new(bind)), b""), Remote { addr, rkey: key })
}

const WRITE: Access = Access::REMOTE_WRITE;
const WINDOWS: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);

#[test]
fn a_window_of_type_2_lives_from_bind_to_send_with_invalidate() {
    for_each_seed(6, |seed| {
        let (mut world, a, b) = two(seed);
        let some = Rate::percent(4);
        world.set_faults(Faults { loss: some, duplication: some, reordering: some, ..Faults::default() });
        let (qa, qb) = world.connect(QpType::Rc, a, b, &Options::default());
        let regions = [0, 1].map(|_| world.register(b, vec![0; 1024], WINDOWS));
        let mw = world.allocate_window(b, MwType::Type2);
        let mut last = None;
        for turn in 0..30u32 {
            let region = &regions[turn as usize % 2];
            let (offset, extra) =
                (u64::from(turn) * 32, if turn % 3 == 0 { Access::ZERO_BASED } else { WRITE });
            let (request, remote) = bind(1, &mw, turn, region, offset, WRITE | extra);
            world.post_send(qb, request).unwrap();
            world.run().unwrap();
            assert_eq!(statuses(&world.send_cqes(qb)), [(1, WcStatus::Success)]);
            let record = turn.to_ne_bytes();
            world.post_recv(qb, empty_recv(2)).unwrap();
            world.post_send(qa, wr(3, SendOp::Write(remote), &record)).unwrap();
            world.post_send(qa, wr(4, SendOp::SendInv(remote.rkey), b"")).unwrap();
            world.run().unwrap();
            assert_eq!(statuses(&world.send_cqes(qa)), [(3, WcStatus::Success), (4, WcStatus::Success)]);
            assert_eq!(world.content(region)[offset as usize..][..4], record);
            assert_eq!(world.recv_cqes(qb)[0].invalidated, Some(remote.rkey));
            assert_eq!((mw.is_bound(), region.mr.windows()), (false, 0));
            // The other core has the same keys.
            world.move_home(qb);
            last = Some(remote);
        }
        let before = regions.each_ref().map(|region| world.content(region));
        world.post_send(qa, wr(5, SendOp::Write(last.unwrap()), b"late")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(qa)), [(5, WcStatus::RemAccessErr)]);
        assert_eq!(regions.each_ref().map(|region| world.content(region)), before);
        assert_silent(&mut world);
    });
}

#[test]
fn a_window_of_type_1_is_bound_by_one_queue_pair_and_used_by_another_on_another_core() {
    for_each_seed(3, |seed| {
        let (mut world, a, b) = two(seed);
        let (_, binder) = world.connect(QpType::Rc, a, b, &Options::default());
        let (qa, user) = world.connect(QpType::Rc, a, b, &Options::default());
        world.move_home(user);
        let region = world.register(b, vec![0; 1024], WINDOWS);
        let mw = world.allocate_window(b, MwType::Type1);
        let mut last = None;
        for turn in 0..10 {
            let (request, remote) = bind(1, &mw, turn, &region, u64::from(turn) * 64, WRITE);
            world.post_send(binder, request).unwrap();
            world.run().unwrap();
            world.post_send(qa, wr(2, SendOp::Write(remote), &[turn as u8; 64])).unwrap();
            world.run().unwrap();
            assert_eq!(statuses(&world.send_cqes(qa)), [(2, WcStatus::Success)]);
            assert_eq!(world.content(&region)[turn as usize * 64..][..64], [turn as u8; 64]);
            last = Some(remote);
        }
        assert_eq!(region.mr.windows(), 1);
        world.free_window(b, &mw);
        assert_eq!(region.mr.windows(), 0);
        world.post_send(qa, wr(3, SendOp::Write(last.unwrap()), b"late")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(qa)), [(3, WcStatus::RemAccessErr)]);
        assert_eq!((world.state(qa), world.state(user)), (QpState::Err, QpState::Err));
        assert_eq!(world.state(binder), QpState::Rts);
        assert_silent(&mut world);
    });
}

/// A window of type 2 belongs to the queue pair that bound it, wherever that lives.
#[test]
fn another_queue_pair_neither_uses_nor_invalidates_a_window_of_type_2() {
    for invalidate in [false, true] {
        let (mut world, a, b) = two(7);
        let (mine, binder) = world.connect(QpType::Rc, a, b, &Options::default());
        let (other, theirs) = world.connect(QpType::Rc, a, b, &Options::default());
        let region = world.register(b, vec![0; 1024], WINDOWS);
        let mw = world.allocate_window(b, MwType::Type2);
        let (request, remote) = bind(1, &mw, 9, &region, 0, WRITE);
        world.post_send(binder, request).unwrap();
        world.run().unwrap();
        world.move_home(binder);
        world.post_recv(theirs, empty_recv(2)).unwrap();
        let op = if invalidate { SendOp::SendInv(remote.rkey) } else { SendOp::Write(remote) };
        world.post_send(other, wr(3, op, b"")).unwrap();
        // A WRITE of no bytes needs no key: one byte does.
        if !invalidate {
            world.post_send(other, wr(4, SendOp::Write(remote), b"x")).unwrap();
        }
        world.run().unwrap();
        let last = *world.send_cqes(other).last().unwrap();
        assert_eq!(last.status, WcStatus::RemAccessErr);
        assert!(mw.is_bound());
        world.post_send(mine, wr(5, SendOp::Write(remote), b"mine")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(mine)), [(5, WcStatus::Success)]);
        assert_eq!(&world.content(&region)[..4], b"mine");
        assert_silent(&mut world);
    }
}
