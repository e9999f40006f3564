//! Lanes that could not send, or that are there twice.

mod common;

use common::{Shape, eal, sides};
use dpdk::tsc::Clock;
use engine::{EngineConfig, EventQueue};
use memory::Regions;
use std::sync::Arc;
use wire::Mtu;
use worker::{LaneConfig, LinkConfig, PortLink, SetupError, Worker, WorkerConfig};

#[test]
fn setups_that_cannot_work_are_refused() {
    let shape = Shape { queues: 4, data_room: 2048, ..Shape::default() };
    let (side, _) = sides("setups", &shape);
    let link = PortLink::new(LinkConfig { workers: 2, ..LinkConfig::default() }).unwrap();
    let mut queues = side.queues.into_iter();
    let mut setup = |index, max_mtu| {
        let (rx, tx) = queues.next().unwrap();
        let lane = LaneConfig {
            link: Arc::clone(&link),
            index,
            rx,
            tx,
            pool: Arc::clone(&side.pool),
            lending: None,
            memory: Regions::new(1).reader(),
            events: Arc::new(EventQueue::new(1)),
            engine: EngineConfig { max_qps: 1, max_mrs: 1, ..EngineConfig::default() },
            max_mtu,
            impair: None,
        };
        Worker::new(WorkerConfig::new("setup", Clock::new(eal())), vec![lane]).map(|(worker, _)| worker)
    };
    let small = setup(0, Mtu::Mtu2048).unwrap_err();
    assert!(
        matches!(small, SetupError::SmallBuffers { mtu: 2048, room: 2048, needed } if needed > 2048),
        "{small}"
    );
    let worker = setup(0, Mtu::Mtu1024).unwrap();
    assert_eq!(setup(0, Mtu::Mtu1024).unwrap_err(), SetupError::Taken(0));
    assert_eq!(setup(2, Mtu::Mtu1024).unwrap_err(), SetupError::Index { index: 2, workers: 2 });
    drop(worker);
}
