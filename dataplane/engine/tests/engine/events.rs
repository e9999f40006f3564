//! The event queue: in order, bounded, and honest about what it lost.

use crate::support::QPN;
use engine::event::EventSource;
use engine::{AsyncEvent, EventKind, EventQueue};

#[test]
fn events_come_in_order_and_what_does_not_fit_is_counted() {
    let queue = EventQueue::new(2);
    queue.raise(EventKind::CommEst, EventSource::Qp(QPN));
    queue.raise(EventKind::CqErr, EventSource::Cq(4));
    queue.raise(EventKind::PortErr, EventSource::Port(0));
    assert_eq!(queue.lost(), 1);
    let first = AsyncEvent { kind: EventKind::CommEst, source: EventSource::Qp(QPN) };
    assert_eq!(queue.poll(), Some(first));
    queue.raise(EventKind::SrqErr, EventSource::Srq(1));
    let rest: Vec<_> = std::iter::from_fn(|| queue.poll()).map(|event| event.kind).collect();
    assert_eq!(rest, [EventKind::CqErr, EventKind::SrqErr]);
    assert_eq!(queue.lost(), 1);
}

#[test]
fn a_queue_has_room_for_at_least_one() {
    let queue = EventQueue::new(0);
    queue.raise(EventKind::PortActive, EventSource::Port(0));
    assert_eq!((queue.poll().is_some(), queue.lost()), (true, 0));
}
