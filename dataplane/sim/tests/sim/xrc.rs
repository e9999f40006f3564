//! XRC: one initiator reaches every SRQ of the peer's domain; every operation, on lossy links, with a target on either worker.

use crate::support::*;
use engine::{Access, RecvWr, SendFlags, SendOp, SendWr, WcStatus, WrData};
use sim::{Faults, Options, Rate, Region, SrqId, World, assert_silent, for_each_seed};

const EACH: u64 = 20;
const LEN: u32 = 2_504;
const RIGHTS: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_WRITE).union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC);

fn sges(region: &Region, offset: u64, len: u32) -> WrData {
    WrData::Sges([region.sge(offset, len)].into_iter().collect())
}

fn request(wr_id: u64, op: SendOp, data: WrData) -> SendWr {
    SendWr { wr_id, op, data, flags: SendFlags::SIGNALED }
}

/// A SEND to one SRQ, a WRITE with Immediate to the other, a READ back and an atomic, over and over.
fn post_all(world: &mut World, qp: sim::QpId, local: &Region, remote: &Region, srqs: [SrqId; 2]) {
    for turn in 0..EACH {
        let (id, at) = (turn * 4, turn * u64::from(LEN));
        let srq = srqs[(turn % 2) as usize];
        world.post_send_xrc(qp, request(id, SendOp::Send, sges(local, at, LEN)), srq).unwrap();
        let imm = SendOp::WriteImm(remote.remote(at), (turn as u32).to_be_bytes());
        world.post_send_xrc(qp, request(id + 1, imm, sges(local, at, LEN)), srqs[1]).unwrap();
        let back = EACH * u64::from(LEN) + at;
        let read = SendOp::Read(remote.remote(at));
        world.post_send_xrc(qp, request(id + 2, read, sges(local, back, LEN)), srq).unwrap();
        let add = SendOp::FetchAdd { remote: remote.remote(2 * EACH * u64::from(LEN)), add: 1 };
        let result = 2 * EACH * u64::from(LEN) + 8 * turn;
        world.post_send_xrc(qp, request(id + 3, add, sges(local, result, 8)), srq).unwrap();
    }
}

#[test]
fn every_operation_arrives_at_the_srq_that_it_names() {
    for loss in [0, 4] {
        for_each_seed(6, |seed| {
            let (mut world, a, b) = two(seed);
            let faults =
                Faults { loss: Rate::percent(loss), duplication: Rate::percent(loss), ..Faults::default() };
            world.set_faults(faults);
            let len = 3 * EACH as usize * LEN as usize;
            let data = world.random_bytes(len);
            let local = world.register(a, data.clone(), RIGHTS);
            let remote = world.register(b, vec![0; len], RIGHTS);
            let inbox = world.register(b, vec![0; 2 * EACH as usize * LEN as usize], RIGHTS);
            let srqs = [world.create_xrc_srq(b, 64), world.create_xrc_srq(b, 64)];
            let options = Options { mtu: wire::Mtu::Mtu512, depth: 128, ..Options::default() };
            let (initiator, target) = world.connect_xrc(a, b, &options);
            if seed % 2 == 1 {
                world.move_home(target);
            }
            for place in 0..2 * EACH {
                // Ten for the SENDs of every second turn; the rest for the others and for every immediate.
                let srq = srqs[usize::from(place % 4 != 0)];
                let sges = [inbox.sge(place * u64::from(LEN), LEN)].into_iter().collect();
                world.post_srq_recv(srq, RecvWr { wr_id: place, sges }).unwrap();
            }
            post_all(&mut world, initiator, &local, &remote, srqs);
            world.run().unwrap();

            let done: Vec<_> = (0..4 * EACH).map(|id| (id, WcStatus::Success)).collect();
            assert_eq!(statuses(&world.send_cqes(initiator)), done);
            let block = EACH as usize * LEN as usize;
            assert_eq!(world.content(&remote)[..block], data[..block]);
            assert_eq!(world.content(&local)[block..2 * block], data[..block], "read back");
            let counted = u64::from_ne_bytes(world.content(&remote)[2 * block..][..8].try_into().unwrap());
            assert_eq!(counted, EACH, "each addition once");

            let arrived = srqs.map(|srq| world.srq_cqes(srq));
            // Half of the SENDs each, and every WRITE with Immediate to the second.
            assert_eq!(arrived.each_ref().map(Vec::len), [EACH as usize / 2, EACH as usize * 3 / 2]);
            for (srq, cqes) in srqs.iter().zip(&arrived) {
                let named = cqes.iter().all(|cqe| {
                    cqe.is_success() && cqe.qpn == world.qpn(target) && cqe.srqn == world.srqn(*srq)
                });
                assert!(named, "{cqes:?}");
                let received = cqes.iter().filter(|cqe| cqe.imm.is_none());
                for (message, cqe) in received.enumerate() {
                    let turn = 2 * message + (cqe.srqn == world.srqn(srqs[1])) as usize;
                    let (from, to) = (turn * LEN as usize, cqe.wr_id as usize * LEN as usize);
                    assert!(world.content(&inbox)[to..][..LEN as usize] == data[from..][..LEN as usize]);
                }
            }
            assert_eq!(world.recv_cqes(target), []);
            assert_silent(&mut world);
        });
    }
}
