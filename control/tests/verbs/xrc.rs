//! XRC: domains, targets, initiators and SRQs by number.

use crate::support::{ALL, Pair, bytes, devices, end, family, pattern};
use rockhopper::{
    Cq, CreateError, InUse, PostError, Qp, QpOptions, QpType, RecvWr, RingPair, SendWr, Srq, SrqOptions,
    Srqn, WcOpcode, WcStatus, Xrcd,
};

struct Xrc {
    pair: Pair,
    domain: Xrcd,
    srqs: [Srq; 2],
    cqs: [Cq; 2],
    initiator: Qp,
    target: Qp,
}

fn connected() -> Xrc {
    let (a, b) = devices(&RingPair::default());
    let pair = Pair { a: end(&a, QpType::Rc), b: end(&b, QpType::Rc) };
    let domain = b.open_xrcd().unwrap();
    let cqs = [0; 2].map(|_| b.create_cq(64).unwrap());
    let srqs =
        cqs.each_ref().map(|cq| pair.b.pd.create_xrc_srq(&SrqOptions::default(), &domain, cq).unwrap());
    let target = domain.create_target().unwrap();
    let initiator = pair.a.pd.create_qp(&QpOptions::new(QpType::XrcIni, &pair.a.cq)).unwrap();
    let ways = family(false);
    target.connect(&initiator.info(&ways), &ways).unwrap();
    initiator.connect(&target.info(&ways), &ways).unwrap();
    Xrc { pair, domain, srqs, cqs, initiator, target }
}

#[test]
fn every_operation_goes_to_the_srq_that_its_request_names() {
    let Xrc { pair, srqs, cqs, initiator, target, .. } = connected();
    let (near, far) = (&pair.a.mr, &pair.b.mr);
    for turn in 0..6u64 {
        let which = turn as usize % 2;
        let (srq, srqn) = (&srqs[which], srqs[which].srqn().unwrap());
        let data = pattern(turn as u8, 10_000);
        near.write(0, &data).unwrap();
        srq.post_recv(RecvWr::new(turn).sge(far.sge(0..10_000))).unwrap();
        srq.post_recv(RecvWr::new(100 + turn)).unwrap();
        let post = |wr: SendWr| initiator.post_send(wr.to_srq(srqn)).unwrap();
        post(SendWr::send_imm(1, [7; 4]).sge(near.sge(0..10_000)));
        post(SendWr::write_imm(2, far.remote().at(20_000), [8; 4]).sge(near.sge(0..10_000)));
        post(SendWr::read(3, far.remote().at(20_000)).sge(near.sge(30_000..40_000)));
        post(SendWr::fetch_add(4, far.remote().at(64_000), 1).sge(near.sge(50_000..50_008)));
        post(SendWr::compare_swap(5, far.remote().at(64_008), turn, turn + 1).sge(near.sge(50_008..50_016)));
        for wr_id in 1..=5 {
            let cqe = pair.at_a();
            assert_eq!((cqe.wr_id, cqe.status), (wr_id, WcStatus::Success));
        }
        let received = [cqs[which].poll_one().unwrap(), cqs[which].poll_one().unwrap()];
        assert_eq!(received.map(|cqe| cqe.wr_id), [turn, 100 + turn]);
        assert_eq!(received.map(|cqe| cqe.opcode), [WcOpcode::Recv, WcOpcode::RecvRdmaWithImm]);
        assert_eq!(received.map(|cqe| (cqe.srqn, cqe.qpn)), [(Some(srqn), target.qpn()); 2]);
        assert!(cqs[1 - which].is_empty());
        assert_eq!((bytes(far, 0, 10_000), bytes(far, 20_000, 10_000)), (data.clone(), data.clone()));
        assert_eq!(bytes(near, 30_000, 10_000), data);
        assert_eq!(bytes(near, 50_000, 16), [turn.to_ne_bytes(), turn.to_ne_bytes()].concat());
    }
    let stats = pair.b.device.stats();
    assert!(stats.srqs.iter().any(|srq| srq.srqn == srqs[0].srqn().map(Srqn::value)), "{:?}", stats.srqs);
    assert!(stats.qps.iter().any(|qp| qp.qp_type == "XrcTgt"));
}

#[test]
fn a_number_of_another_domain_or_of_nobody_is_refused() {
    for foreign in [true, false] {
        let Xrc { pair, initiator, cqs, target: _target, .. } = connected();
        let elsewhere = pair.b.device.open_xrcd().unwrap();
        let other = pair.b.pd.create_xrc_srq(&SrqOptions::default(), &elsewhere, &cqs[0]).unwrap();
        other.post_recv(RecvWr::new(1)).unwrap();
        let srqn = other.srqn().unwrap();
        if !foreign {
            assert!(other.destroy().is_ok());
        }
        initiator.post_send(SendWr::send(1).to_srq(srqn)).unwrap();
        assert_eq!(pair.at_a().status, WcStatus::RemInvReqErr);
        assert!(cqs[0].is_empty());
    }
}

#[test]
fn keys_belong_to_the_domain_of_the_srq() {
    let Xrc { pair, srqs, initiator, domain, cqs, target: _target } = connected();
    let other = pair.b.device.alloc_pd();
    let memory = other.reg_mr(64, ALL).unwrap();
    let there = other.create_xrc_srq(&SrqOptions::default(), &domain, &cqs[0]).unwrap();
    let write = |srq: &Srq| {
        let wr = SendWr::write(1, memory.remote().at(0)).inline(b"data").to_srq(srq.srqn().unwrap());
        initiator.post_send(wr).unwrap();
        pair.at_a().status
    };
    assert_eq!(write(&there), WcStatus::Success);
    assert_eq!(write(&srqs[0]), WcStatus::RemAccessErr);
}

#[test]
fn what_does_not_go_together_is_said() {
    let Xrc { pair, domain, srqs, initiator, target, cqs, .. } = connected();
    let srqn = srqs[0].srqn().unwrap();
    assert_eq!(initiator.post_send(SendWr::send(1)), Err(PostError::NoSrqn));
    assert_eq!(initiator.post_recv(RecvWr::new(1)), Err(PostError::NoReceives));
    assert_eq!(target.post_recv(RecvWr::new(1)), Err(PostError::Srq));
    assert_eq!(target.post_send(SendWr::send(1).to_srq(srqn)), Err(PostError::Operation(QpType::XrcTgt)));
    assert_eq!(pair.a.qp.post_send(SendWr::send(1).to_srq(srqn)), Err(PostError::Operation(QpType::Rc)));
    let make = |qp_type, srq: Option<Srq>| {
        pair.b.pd.create_qp(&QpOptions { srq, ..QpOptions::new(qp_type, &cqs[0]) }).map(drop)
    };
    assert!(matches!(make(QpType::XrcTgt, None), Err(CreateError::Target)));
    assert!(matches!(make(QpType::Rc, Some(srqs[0].clone())), Err(CreateError::XrcSrq)));
    let plain = pair.b.pd.create_srq(&SrqOptions::default()).unwrap();
    assert!(matches!(make(QpType::XrcIni, Some(plain.clone())), Err(CreateError::XrcSrq)));
    assert_eq!(plain.srqn(), None);
    let foreign = pair.a.device.open_xrcd().unwrap();
    let refused = pair.b.pd.create_xrc_srq(&SrqOptions::default(), &foreign, &cqs[0]);
    assert!(matches!(refused, Err(CreateError::OtherDevice("XRC domain"))));

    let (domain, why) = domain.close().unwrap_err();
    assert_eq!(why, InUse::Handles(3), "two SRQs and a target");
    drop(target);
    assert!(srqs.into_iter().all(|srq| srq.destroy().is_ok()));
    assert!(domain.close().is_ok());
}
