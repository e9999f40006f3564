//! An SRQ under QPs on two workers: every receive is used once, every message arrives whole, whatever links do.

use crate::support::*;
use engine::event::EventSource;
use engine::{Access, EventKind, QpState, QpType, RecvWr, WcStatus};
use sim::{EndpointId, Faults, Options, QpId, Rate, Region, SrqId, World, assert_silent, for_each_seed};
use std::collections::BTreeSet;

const QPS: u64 = 4;
const EACH: u64 = 30;
const ROOM: u64 = 64;

/// Senders at one end, at the other QPs on one SRQ, every second on the second worker.
fn shared(world: &mut World, a: EndpointId, b: EndpointId, srq: SrqId) -> Vec<(QpId, QpId)> {
    let options = Options { rnr_retry: 7, min_rnr_timer: 1, ..Options::default() };
    let pairs: Vec<_> = (0..QPS).map(|_| world.connect_to_srq(QpType::Rc, a, b, srq, &options)).collect();
    pairs.iter().skip(1).step_by(2).for_each(|&(_, receiver)| world.move_home(receiver));
    pairs
}

fn post_receives(world: &mut World, srq: SrqId, buffer: &Region, ids: std::ops::Range<u64>) {
    for wr_id in ids {
        let sges = std::iter::once(buffer.sge(wr_id * ROOM, ROOM as u32)).collect();
        world.post_srq_recv(srq, RecvWr { wr_id, sges }).unwrap();
    }
}

#[test]
fn every_message_of_every_qp_lands_in_a_receive_of_its_own() {
    for loss in [0, 5] {
        for_each_seed(6, |seed| {
            let (mut world, a, b) = two(seed);
            world.set_faults(Faults { loss: Rate::percent(loss), ..Faults::default() });
            let srq = world.create_srq(128);
            let buffer = world.register(b, vec![0; (128 * ROOM) as usize], Access::LOCAL_WRITE);
            let pairs = shared(&mut world, a, b, srq);
            // Some wait for receives, which come later.
            post_receives(&mut world, srq, &buffer, 0..40);
            world.arm_srq(srq, 10);
            for (number, &(sender, _)) in pairs.iter().enumerate() {
                for message in 0..EACH {
                    let text = format!("{number} {message}");
                    world.post_send(sender, send(message, text.as_bytes())).unwrap();
                }
            }
            assert!(world.run_for(3_000_000).is_err(), "they ask again and again");
            let limit: Vec<_> = world
                .events(b)
                .iter()
                .filter(|event| event.kind == EventKind::SrqLimitReached)
                .copied()
                .collect();
            assert_eq!(limit.len(), 1);
            assert_eq!((limit[0].source, world.srq_level(srq)), (EventSource::Srq(0), (0, 0)));
            post_receives(&mut world, srq, &buffer, 40..QPS * EACH);
            world.run().unwrap();

            let content = world.content(&buffer);
            let mut used = BTreeSet::new();
            for (number, &(sender, receiver)) in pairs.iter().enumerate() {
                let sent = statuses(&world.send_cqes(sender));
                assert_eq!(sent, (0..EACH).map(|id| (id, WcStatus::Success)).collect::<Vec<_>>());
                for (message, cqe) in world.recv_cqes(receiver).iter().enumerate() {
                    let text = format!("{number} {message}");
                    assert_eq!((cqe.status, cqe.byte_len as usize), (WcStatus::Success, text.len()));
                    let at = (cqe.wr_id * ROOM) as usize;
                    assert_eq!(content[at..at + text.len()], *text.as_bytes(), "in the order of its QP");
                    assert!(used.insert(cqe.wr_id), "receive {} twice", cqe.wr_id);
                }
            }
            assert_eq!(used.len() as u64, QPS * EACH);
            assert_silent(&mut world);
        });
    }
}

#[test]
fn a_qp_that_fails_takes_nothing_from_the_others() {
    for_each_seed(4, |seed| {
        let (mut world, a, b) = two(seed);
        let srq = world.create_srq(16);
        let buffer = world.register(b, vec![0; (16 * ROOM) as usize], Access::LOCAL_WRITE);
        let pairs = shared(&mut world, a, b, srq);
        post_receives(&mut world, srq, &buffer, 0..2);
        // Too long for its receive, which ends with it.
        world.post_send(pairs[0].0, send(1, &[7; 65])).unwrap();
        world.run().unwrap();
        world.post_send(pairs[1].0, send(1, b"fits")).unwrap();
        world.run().unwrap();
        assert_eq!(statuses(&world.recv_cqes(pairs[0].1)), [(0, WcStatus::LocLenErr)]);
        assert_eq!(statuses(&world.recv_cqes(pairs[1].1)), [(1, WcStatus::Success)]);
        assert_eq!((world.state(pairs[0].1), world.state(pairs[1].1)), (QpState::Err, QpState::Rts));
        let events = world.events(b);
        let last = events.iter().filter(|event| event.kind == EventKind::QpLastWqeReached);
        assert_eq!(
            last.map(|event| event.source).collect::<Vec<_>>(),
            [EventSource::Qp(world.qpn(pairs[0].1))]
        );
        assert_silent(&mut world);
    });
}
