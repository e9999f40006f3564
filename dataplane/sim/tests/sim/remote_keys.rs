//! Keys over the wire: fast registration, SEND with Invalidate, and accesses that are refused.

use crate::support::*;
use engine::wr::{FastReg, Remote};
use engine::{Access, QpState, QpType, SendFlags, SendOp, SendWr, WcOpcode, WcStatus, WrData};
use sim::{Options, World, assert_silent, for_each_seed};
use std::sync::Arc;
use wire::RKey;

fn wr(wr_id: u64, op: SendOp, bytes: &[u8]) -> SendWr {
    let data = WrData::Inline(bytes.iter().copied().collect());
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

#[test]
fn register_write_invalidate_and_write_in_vain() {
    for_each_seed(3, |seed| {
        let (mut world, a, b) = two(seed);
        let (qa, qb) = world.connect(QpType::Rc, a, b, &Options::default());
        let fast = world.allocate_fast(b, vec![0; 64]);
        let key = RKey::new(fast.mr.key() ^ 0x3C);
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let reg = FastReg { mr: fast.mr.clone(), key, addr: 0x4000, len: 64, access };
        world.post_send(qb, wr(1, SendOp::RegMr(Arc::new(reg)), b"")).unwrap();
        world.run().unwrap();
        let done = world.send_cqes(qb);
        assert_eq!((statuses(&done), done[0].opcode), (vec![(1, WcStatus::Success)], WcOpcode::RegMr));

        world.post_recv(qb, empty_recv(7)).unwrap();
        let remote = Remote { addr: 0x4008, rkey: key };
        world.post_send(qa, wr(2, SendOp::Write(remote), b"hello")).unwrap();
        world.post_send(qa, wr(3, SendOp::SendInv(key), b"")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(qa)), [(2, WcStatus::Success), (3, WcStatus::Success)]);
        assert_eq!(&world.content(&fast)[8..13], b"hello");
        let received = world.recv_cqes(qb);
        assert_eq!((statuses(&received), received[0].invalidated), (vec![(7, WcStatus::Success)], Some(key)));
        assert!(!fast.mr.is_valid());

        world.post_send(qa, wr(4, SendOp::Write(remote), b"late!")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.send_cqes(qa)), [(4, WcStatus::RemAccessErr)]);
        assert_eq!(&world.content(&fast)[8..13], b"hello");
        assert_silent(&mut world);
    });
}

/// What the peer refuses ends the request with the status that says so, and both QPs are in ERROR; memory is as before.
#[test]
fn accesses_that_are_refused() {
    let refused = |make: fn(&mut World, sim::EndpointId) -> SendOp, bytes: &[u8]| {
        let (mut world, a, b) = two(1);
        let (qa, qb) = world.connect(QpType::Rc, a, b, &Options::default());
        let op = make(&mut world, b);
        let write = wr(1, op, bytes);
        world.post_send(qa, write).unwrap();
        world.post_send(qa, send(2, b"")).unwrap();
        world.run().unwrap();
        assert_silent(&mut world);
        let cqes = statuses(&world.send_cqes(qa));
        assert_eq!(cqes[1..], [(2, WcStatus::WrFlushErr)]);
        assert_eq!((world.state(qa), world.state(qb)), (QpState::Err, QpState::Err));
        cqes[0].1
    };
    let unknown = |world: &mut World, b| {
        let region = world.register(b, vec![0; 64], Access::LOCAL_WRITE | Access::REMOTE_WRITE);
        SendOp::Write(Remote { rkey: RKey::new(region.mr.key() ^ 1), ..region.remote(0) })
    };
    let read_only =
        |world: &mut World, b| SendOp::Write(world.register(b, vec![0; 64], Access::REMOTE_READ).remote(0));
    let past_the_end = |world: &mut World, b| {
        let region = world.register(b, vec![0; 64], Access::LOCAL_WRITE | Access::REMOTE_WRITE);
        SendOp::Write(region.remote(60))
    };
    for make in [unknown, read_only, past_the_end] as [fn(&mut World, sim::EndpointId) -> SendOp; 3] {
        assert_eq!(refused(make, b"12345"), WcStatus::RemAccessErr);
    }
}
