//! Shared receive queues: receives of several queue pairs, their limit, and their end.

use crate::support::{ALL, End, Pair, SOON, bytes, devices, end, family, two_workers};
use rockhopper::{
    AsyncEvent, CreateError, Device, EventKind, EventSource, InUse, Mr, PostError, Qp, QpCaps, QpOptions,
    QpState, QpType, RecvWr, RingPair, SendWr, Srq, SrqAttr, SrqAttrMask, SrqError, SrqOptions, WcStatus,
};
use std::time::Duration;

const ROOM: usize = 64;

/// One end with senders, the other with as many receivers on one SRQ; all complete to the ends' queues.
struct Shared {
    pair: Pair,
    senders: Vec<Qp>,
    receivers: Vec<Qp>,
    srq: Srq,
}

impl Shared {
    fn new(qp_type: QpType, qps: usize, options: &SrqOptions) -> Shared {
        let (a, b) = devices(&RingPair::default());
        Shared::between(&a, &b, qp_type, qps, options)
    }

    fn between(a: &Device, b: &Device, qp_type: QpType, qps: usize, options: &SrqOptions) -> Shared {
        let pair = Pair { a: end(a, qp_type), b: end(b, qp_type) };
        let srq = pair.b.pd.create_srq(options).unwrap();
        let ways = family(false);
        let mut shared = Shared { pair, senders: vec![], receivers: vec![], srq };
        for _ in 0..qps {
            let End { pd, cq, .. } = &shared.pair.b;
            let options = QpOptions { srq: Some(shared.srq.clone()), ..QpOptions::new(qp_type, cq) };
            let receiver = pd.create_qp(&options).unwrap();
            let sender = shared.pair.a.pd.create_qp(&QpOptions::new(qp_type, &shared.pair.a.cq)).unwrap();
            if qp_type == QpType::Ud {
                receiver.activate(&ways).unwrap();
                sender.activate(&ways).unwrap();
            } else {
                receiver.connect(&sender.info(&ways), &ways).unwrap();
                sender.connect(&receiver.info(&ways), &ways).unwrap();
            }
            shared.senders.push(sender);
            shared.receivers.push(receiver);
        }
        shared
    }

    fn receive(&self, id: u64) -> RecvWr {
        RecvWr::new(id).sge(place(&self.pair.b.mr, id))
    }

    fn send(&self, sender: usize, text: &str) -> WcStatus {
        self.senders[sender].post_send(SendWr::send(sender as u64).inline(text.as_bytes())).unwrap();
        self.pair.at_a().status
    }

    /// What arrived: by which receiver, in which receive, and the text there.
    fn arrived(&self) -> (usize, u64, String) {
        let cqe = self.pair.at_b();
        assert_eq!(cqe.status, WcStatus::Success);
        let receiver = self.receivers.iter().position(|qp| qp.qpn() == cqe.qpn).unwrap();
        let text = bytes(&self.pair.b.mr, cqe.wr_id as usize * ROOM, cqe.byte_len as usize);
        (receiver, cqe.wr_id, String::from_utf8(text).unwrap())
    }

    fn events(&self) -> Vec<AsyncEvent> {
        let next = || self.pair.b.device.next_event(Duration::from_millis(60));
        std::iter::from_fn(next).filter(|event| event.kind != EventKind::CommEst).collect()
    }
}

fn place(mr: &Mr, id: u64) -> rockhopper::Sge {
    let at = id as usize * ROOM;
    mr.sge(at..at + ROOM)
}

#[test]
fn receives_of_one_queue_serve_several_queue_pairs_in_their_order() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        let shared = Shared::new(qp_type, 3, &SrqOptions::default());
        assert_eq!(shared.srq.post_recv_batch((0..6).map(|id| shared.receive(id))), Ok(6));
        for (id, sender) in (0..).zip([2, 0, 1, 1, 0, 2]) {
            let text = format!("from {sender}");
            assert_eq!(shared.send(sender, &text), WcStatus::Success);
            assert_eq!(shared.arrived(), (sender, id, text), "{qp_type:?}");
        }
        assert_eq!((shared.srq.posted(), shared.srq.queue_pairs()), (0, 3));
        assert_eq!(shared.receivers[0].srq().map(Srq::id), Some(shared.srq.id()));
    }
}

#[test]
fn datagrams_take_from_a_shared_queue() {
    let shared = Shared::new(QpType::Ud, 2, &SrqOptions::default());
    (0..2).for_each(|id| shared.srq.post_recv(shared.receive(id)).unwrap());
    for (id, receiver) in (0..).zip([1, 0]) {
        let info = shared.receivers[receiver].info(&family(false));
        let ah = shared.pair.a.pd.create_ah(info.gid, Some(1)).unwrap();
        let send = SendWr::ud_send(1, &ah, info.qpn().unwrap(), rockhopper::QKey::new(info.qkey), None);
        shared.senders[0].post_send(send.inline(b"datagram")).unwrap();
        assert!(shared.pair.at_a().is_success());
        let cqe = shared.pair.at_b();
        assert_eq!((cqe.wr_id, cqe.qpn, cqe.byte_len), (id, shared.receivers[receiver].qpn(), 48));
        assert_eq!(bytes(&shared.pair.b.mr, id as usize * ROOM + 40, 8), b"datagram");
    }
}

#[test]
fn the_limit_raises_one_event_and_is_armed_again_by_modify() {
    let shared = Shared::new(QpType::Rc, 2, &SrqOptions { limit: 3, ..SrqOptions::default() });
    let limit = AsyncEvent { kind: EventKind::SrqLimitReached, source: EventSource::Srq(shared.srq.id()) };
    (0..5).for_each(|id| shared.srq.post_recv(shared.receive(id)).unwrap());
    let take = |sender| {
        shared.send(sender, "x");
        shared.arrived();
    };
    take(0);
    take(1);
    assert_eq!((shared.events(), shared.srq.query().limit), (vec![], 3), "three are left");
    take(1);
    take(0);
    assert_eq!((shared.events(), shared.srq.query().limit), (vec![limit], 0), "once");
    shared.srq.post_recv(shared.receive(5)).unwrap();
    shared.srq.arm_limit(2).unwrap();
    take(0);
    assert_eq!(shared.events(), [limit]);
}

#[test]
fn what_a_shared_queue_cannot_do_is_said() {
    let shared = Shared::new(QpType::Rc, 1, &SrqOptions { max_wr: 3, max_sge: 2, limit: 0 });
    let srq = &shared.srq;
    assert_eq!(srq.query(), SrqAttr { max_wr: 3, max_sge: 2, limit: 0 });
    let attr = |max_wr, limit| SrqAttr { max_wr, limit, ..SrqAttr::default() };
    let both = SrqAttrMask::MAX_WR | SrqAttrMask::LIMIT;
    assert_eq!(srq.modify(&attr(8, 1), both), Err(SrqError::Resize { asked: 8, has: 3 }));
    assert_eq!(srq.modify(&attr(3, 4), both), Err(SrqError::Limit { asked: 4, most: 3 }));
    assert_eq!(srq.query().limit, 0, "nothing changed");
    assert_eq!(srq.modify(&attr(3, 3), both), Ok(()));
    assert_eq!(srq.modify(&attr(9, 9), SrqAttrMask::empty()), Ok(()));
    assert_eq!(srq.query().limit, 3);

    let sge = shared.pair.b.mr.sge(0..1);
    let many = |count| (0..count).fold(RecvWr::new(1), |wr, _| wr.sge(sge));
    assert_eq!(srq.post_recv(many(3)), Err(PostError::TooManySges { got: 3, max: 2 }));
    assert_eq!(srq.post_recv(many(9)), Err(PostError::TooManySges { got: 9, max: 8 }));
    let refused = srq.post_recv_batch((0..5).map(|_| many(1))).unwrap_err();
    assert_eq!((refused.posted, refused.why, srq.posted()), (3, PostError::Full, 3));
    assert_eq!(shared.receivers[0].post_recv(RecvWr::new(1)), Err(PostError::Srq));
    assert!(PostError::Srq.to_string().contains("post them there"));

    let pd = &shared.pair.b.pd;
    let most = shared.pair.b.device.attributes();
    for (max_wr, max_sge) in [(0, 1), (most.max_srq_wr + 1, 1), (1, most.max_srq_sge + 1)] {
        let refused = pd.create_srq(&SrqOptions { max_wr, max_sge, limit: 0 });
        assert!(matches!(refused, Err(CreateError::Limit { .. })), "{refused:?}");
    }
    let over = pd.create_srq(&SrqOptions { max_wr: 4, max_sge: 1, limit: 5 });
    assert!(matches!(over, Err(CreateError::Srq(SrqError::Limit { asked: 5, most: 4 }))));
    let elsewhere = &shared.pair.a;
    let options = QpOptions { srq: Some(srq.clone()), ..QpOptions::new(QpType::Rc, &elsewhere.cq) };
    let refused = elsewhere.pd.create_qp(&options);
    assert!(matches!(refused, Err(CreateError::OtherDevice("shared receive queue"))));
}

#[test]
fn a_queue_in_use_is_not_destroyed() {
    let Shared { pair, senders, mut receivers, srq } = Shared::new(QpType::Rc, 2, &SrqOptions::default());
    srq.post_recv(RecvWr::new(1)).unwrap();
    let stats = |pair: &Pair| pair.b.device.stats().srqs;
    assert_eq!((stats(&pair).len(), stats(&pair)[0].posted, stats(&pair)[0].qps), (1, 1, 2));
    let (srq, why) = srq.destroy().unwrap_err();
    assert_eq!(why, InUse::QueuePairs(2));
    receivers.pop();
    let (srq, why) = srq.destroy().unwrap_err();
    assert_eq!((why, srq.posted()), (InUse::QueuePairs(1), 1));
    receivers.pop();
    let other = srq.clone();
    let (srq, why) = srq.destroy().unwrap_err();
    assert_eq!(why, InUse::Handles(1));
    drop(other);
    assert!(srq.destroy().is_ok());
    assert_eq!(stats(&pair), []);
    drop(senders);
}

/// A message that waits for a receive is told to come again, and arrives when there is one.
#[test]
fn an_empty_queue_lets_senders_wait() {
    let shared = Shared::new(QpType::Rc, 2, &SrqOptions::default());
    shared.senders.iter().for_each(|qp| qp.post_send(SendWr::send(1).inline(b"wait")).unwrap());
    let end = std::time::Instant::now() + SOON;
    while shared.pair.b.device.stats().roce["rnr_nak_sent"] < 2 {
        assert!(std::time::Instant::now() < end);
        shared.pair.a.device.drive();
        shared.pair.b.device.drive();
    }
    (0..2).for_each(|id| shared.srq.post_recv(shared.receive(id)).unwrap());
    for _ in 0..2 {
        assert!(shared.pair.at_a().is_success());
        assert_eq!(shared.arrived().2, "wait");
    }
}

#[test]
fn a_queue_pair_in_error_leaves_the_receives_to_the_others() {
    let shared = Shared::new(QpType::Rc, 2, &SrqOptions::default());
    (0..2).for_each(|id| shared.srq.post_recv(shared.receive(id)).unwrap());
    let err = rockhopper::QpAttr { state: QpState::Err, ..Default::default() };
    shared.receivers[0].modify(&err, rockhopper::QpAttrMask::STATE).unwrap();
    let last = EventSource::Qp(shared.receivers[0].qpn());
    assert_eq!(shared.events(), [AsyncEvent { kind: EventKind::QpLastWqeReached, source: last }]);
    assert_eq!((shared.srq.posted(), shared.pair.b.cq.len()), (2, 0));
    shared.send(1, "goes on");
    assert_eq!(shared.arrived(), (1, 0, "goes on".into()));
}

/// Also receives that are registered in another domain than the queue pair's.
#[test]
fn the_memory_of_receives_belongs_to_the_domain_of_the_queue() {
    let (a, b) = devices(&RingPair::default());
    let pair = Pair { a: end(&a, QpType::Rc), b: end(&b, QpType::Rc) };
    let other = b.alloc_pd();
    let srq = other.create_srq(&SrqOptions::default()).unwrap();
    let buffer = other.reg_mr(64, ALL).unwrap();
    let caps = QpCaps { max_recv_wr: 0, max_recv_sge: 0, ..QpCaps::default() };
    let options = QpOptions { srq: Some(srq.clone()), caps, ..QpOptions::new(QpType::Rc, &pair.b.cq) };
    let receiver = pair.b.pd.create_qp(&options).unwrap();
    let ways = family(false);
    receiver.connect(&pair.a.qp.info(&ways), &ways).unwrap();
    pair.a.qp.connect(&receiver.info(&ways), &ways).unwrap();
    srq.post_recv(RecvWr::new(1).sge(buffer.sge(0..64))).unwrap();
    srq.post_recv(RecvWr::new(2).sge(pair.b.mr.sge(0..64))).unwrap();
    pair.a.qp.post_send(SendWr::send(1).inline(b"there")).unwrap();
    assert!(pair.at_a().is_success() && pair.at_b().is_success());
    assert_eq!(bytes(&buffer, 0, 5), b"there");
    pair.a.qp.post_send(SendWr::send(2).inline(b"not here")).unwrap();
    assert_eq!((pair.at_a().status, pair.at_b().status), (WcStatus::RemOpErr, WcStatus::LocProtErr));
}

/// Four queue pairs on two workers: each message finds a receive of its own, and of the two workers one tells the limit.
#[test]
fn queue_pairs_on_two_workers_share_receives_and_one_limit() {
    const EACH: usize = 40;
    let (_endpoint, left, right) = two_workers();
    let options = SrqOptions { max_wr: 256, limit: 50, ..SrqOptions::default() };
    let shared = Shared::between(&left, &right, QpType::Rc, 4, &options);
    (0..4 * EACH as u64).for_each(|id| shared.srq.post_recv(shared.receive(id)).unwrap());
    for turn in 0..EACH {
        for (sender, qp) in shared.senders.iter().enumerate() {
            let text = format!("{sender} {turn}");
            qp.post_send(SendWr::send(1).inline(text.as_bytes()).unsignaled()).unwrap();
        }
    }
    let mut arrived: Vec<_> = (0..4 * EACH).map(|_| shared.arrived()).collect();
    let mut turns = [0; 4];
    for (receiver, _, text) in &arrived {
        assert_eq!(*text, format!("{receiver} {}", turns[*receiver]), "in order");
        turns[*receiver] += 1;
    }
    arrived.sort_by_key(|&(_, receive, _)| receive);
    assert!(arrived.iter().map(|&(_, receive, _)| receive).eq(0..4 * EACH as u64), "each receive once");
    let limit = AsyncEvent { kind: EventKind::SrqLimitReached, source: EventSource::Srq(shared.srq.id()) };
    assert_eq!(shared.events(), [limit]);
}
