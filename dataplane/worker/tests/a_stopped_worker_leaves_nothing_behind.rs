//! Stop: what was sealed is sent, the queues are let go, buffers are home, callers are told, memory is free.

mod common;

use common::qp::sges;
use common::{Endpoint, Shape, done, eal, sides};
use engine::{QpType, SendOp};
use std::sync::Arc;
use wire::{Mtu, Qpn};
use worker::{CallError, Command};

#[test]
fn a_stopped_worker_leaves_nothing_behind() {
    let shape = Shape::default();
    let (peer, side) = sides("stop", &shape);
    let (pool, peer_pool) = (Arc::clone(&side.pool), Arc::clone(&peer.pool));
    let mut end = Endpoint::new(side, &shape);
    let thread = end.workers.remove(0).spawn(eal(), None).unwrap();
    end.accept();
    let qp = end.create_qp(0, Qpn::new(0x51), QpType::Rc);
    let mr = end.register(1, 1 << 20);
    end.connect(&qp, Qpn::new(0x99), Mtu::Mtu1024);
    end.post(&qp, 1, SendOp::Write(mr.remote(0)), sges(&[mr.sge(0, 1 << 20)]));
    assert_eq!(dpdk::port::ports(eal()).len(), 2);

    assert!(!end.handles[0].is_stopped());
    done(end.handles[0].call(Command::Stop));
    assert!(thread.stop());
    assert_eq!(end.handles[0].call(Command::Ping).unwrap_err(), CallError::Stopped);
    assert_eq!(dpdk::port::ports(eal()).len(), 1, "the port was closed with its queues");

    // Its readers are gone: nothing keeps memory.
    assert!(end.regions.invalidate(mr.region.region()));
    assert_eq!((end.regions.reclaim(), Arc::strong_count(&mr.buffer)), (0, 1));

    drop(peer);
    assert_eq!((pool.in_use(), peer_pool.in_use()), (0, 0));
}

/// A worker that callers drive ends as well.
#[test]
fn a_driven_worker_stops() {
    let shape = Shape::default();
    let (_peer, side) = sides("driven", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    done(driven.end.handles[0].call(Command::Stop));
    assert!(driven.end.handles[0].is_stopped());
    assert_eq!(driven.end.handles[0].call(Command::Ping).unwrap_err(), CallError::Stopped);
    assert!(!driven.workers[0].poll_once());
    assert_eq!(driven.end.pool.in_use(), 0);
}

/// Deregistration while a worker runs: invalidate, have every worker forget the key, and the memory is free.
#[test]
fn a_running_worker_lets_go_of_withdrawn_memory() {
    let shape = Shape::default();
    let (_peer, side) = sides("withdrawn", &shape);
    let driven = Endpoint::new(side, &shape).driven();
    let mr = driven.end.register(1, 4096);
    let region = mr.region.region();
    assert!(driven.end.regions.invalidate(region));
    assert!(!driven.end.regions.is_released(region), "a copy could be under way");
    done(driven.end.handles[0].call(Command::RemoveMr { lane: 0, index: mr.region.index() }));
    driven.poll();
    assert!(driven.end.regions.is_released(region));
    assert_eq!((Arc::strong_count(&mr.buffer), Arc::strong_count(&mr.region)), (1, 1));
}
