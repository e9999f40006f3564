//! Questions for datagram services (rocev2 facts, CM 7 and 11).

use crate::support::*;
use cm::*;
use wire::mad::{CmMad, CmMessage, SidrStatus};
use wire::{QKey, Qpn};

fn question(end: &End) -> SidrReqParams {
    SidrReqParams { path: end.path, service_id: SERVICE, private_data: b"who?".to_vec(), timing: None }
}

fn yes() -> SidrRepParams {
    SidrRepParams {
        status: SidrStatus::SUCCESS,
        qpn: Qpn::new(0x77),
        qkey: QKey::new(0x0123_4567),
        info: b"info".to_vec(),
        private_data: b"me".to_vec(),
    }
}

/// The active end has asked.
fn ask(pair: &mut Pair) -> SidrId {
    let params = question(&pair.a);
    pair.a.cm.send_sidr_req(0, &params).unwrap()
}

/// The application of an end hears of a question.
#[track_caller]
fn hear(end: &mut End) -> SidrId {
    match end.event() {
        Event::SidrReqReceived { sidr, .. } => sidr,
        other => panic!("{other:?}"),
    }
}

/// The active end has asked, and the passive end's application heard of it.
#[track_caller]
fn asked(pair: &mut Pair) -> (SidrId, SidrId) {
    let a = ask(pair);
    pair.settle();
    (a, hear(&mut pair.b))
}

/// The same, with the question in between, to be told again.
#[track_caller]
fn asked_by(pair: &mut Pair) -> (SidrId, CmMad, SidrId) {
    let a = ask(pair);
    let req = pair.a.sent_one();
    pair.b.take(&req);
    (a, req, hear(&mut pair.b))
}

fn no_question_is_left(end: &End) {
    assert_eq!((end.cm.usage().sidr, end.cm.next_timeout()), (0, None));
}

#[test]
fn a_question_is_answered() {
    let mut pair = Pair::new();
    let a = ask(&mut pair);
    pair.settle();
    let Event::SidrReqReceived { sidr: b, req, .. } = pair.b.event() else { panic!() };
    assert_eq!(&req.private_data.bytes()[..5], b"who?\0");
    pair.b.cm.send_sidr_rep(0, b, &yes()).unwrap();
    assert_eq!(pair.b.cm.send_sidr_rep(0, b, &yes()), Err(CmError::UnknownId), "answered once");
    pair.settle();
    let Event::SidrRepReceived { sidr, rep, .. } = pair.a.event() else { panic!() };
    assert_eq!(
        (sidr, rep.status, rep.qpn, rep.qkey),
        (a, SidrStatus::SUCCESS, Qpn::new(0x77), QKey::new(0x0123_4567))
    );
    assert_eq!(
        (rep.info_len, &rep.info_area.bytes()[..4], &rep.private_data.bytes()[..2]),
        (4, &b"info"[..], &b"me"[..])
    );
    no_question_is_left(&pair.a);
    // The answer is kept for a while.
    pair.b.pass(5_000 * MS);
    no_question_is_left(&pair.b);
}

#[test]
fn a_question_is_asked_again_until_it_counts_as_lost() {
    let mut end = End::active();
    let params = SidrReqParams { timing: Some(Timing { interval_ns: 10 * MS, tries: 3 }), ..question(&end) };
    let a = end.cm.send_sidr_req(0, &params).unwrap();
    end.pass(29 * MS);
    let sent = end.sent();
    assert_eq!((sent.len(), end.events()), (3, vec![]));
    assert!(sent.iter().all(|mad| mad == &sent[0]), "the same each time");
    end.pass(MS);
    assert_eq!(end.event(), Event::SidrUnreachable { sidr: a });
    no_question_is_left(&end);
}

#[test]
fn a_question_that_comes_again_gets_the_same_answer() {
    let mut pair = Pair::new();
    let (_, req, sidr) = asked_by(&mut pair);
    pair.b.take(&req);
    assert_eq!(pair.b.sent(), [], "the application is thinking");
    pair.b.cm.send_sidr_rep(0, sidr, &yes()).unwrap();
    let rep = pair.b.sent_one();
    pair.b.take(&req);
    assert_eq!(pair.b.sent_one(), rep);
    assert_eq!(pair.b.events(), []);
    assert_eq!(pair.b.cm.counters().dropped(DropReason::Duplicate), 2);
    pair.a.take(&rep);
    pair.a.take(&rep);
    assert_eq!((pair.a.events().len(), pair.a.cm.counters().dropped(DropReason::UnknownId)), (1, 1));
}

#[test]
fn nobody_listens() {
    let mut pair = Pair::new();
    let params = SidrReqParams { service_id: wire::mad::ServiceId(1), ..question(&pair.a) };
    pair.a.cm.send_sidr_req(0, &params).unwrap();
    pair.settle();
    let Event::SidrRepReceived { rep, .. } = pair.a.event() else { panic!() };
    assert_eq!((rep.status, pair.b.cm.usage().sidr), (SidrStatus::UNSUPPORTED, 0));
}

#[test]
fn an_application_that_does_not_answer_refuses() {
    let mut pair = Pair::new();
    let (_, sidr) = asked(&mut pair);
    pair.b.pass(30_000 * MS);
    assert_eq!(pair.b.event(), Event::SidrExpired { sidr });
    let CmMad { message: CmMessage::SidrRep(rep), .. } = pair.b.sent_one() else { panic!() };
    assert_eq!(rep.status, SidrStatus::REJECTED);
}

#[test]
fn questions_can_be_given_up() {
    let mut pair = Pair::new();
    let (a, _, sidr) = asked_by(&mut pair);
    pair.a.cm.destroy_sidr(0, a);
    no_question_is_left(&pair.a);
    pair.b.cm.destroy_sidr(0, sidr);
    let rep = pair.b.sent_one();
    pair.a.take(&rep);
    assert_eq!(pair.a.events(), []);
    let CmMessage::SidrRep(rep) = rep.message else { panic!() };
    assert_eq!(rep.status, SidrStatus::REJECTED);
}

#[test]
fn an_answer_from_elsewhere_is_not_taken() {
    let mut pair = Pair::new();
    let (_, sidr) = asked(&mut pair);
    pair.b.cm.send_sidr_rep(0, sidr, &yes()).unwrap();
    let rep = pair.b.sent_one();
    let elsewhere = path(A, wire::Gid::from_v4([192, 0, 2, 9]));
    pair.a.cm.on_mad(0, &elsewhere, &rep.to_bytes());
    assert_eq!((pair.a.events(), pair.a.cm.counters().dropped(DropReason::WrongPeer)), (vec![], 1));
}

/// However many ask, the table stays; answers are forgotten first, and what waits for the application is kept.
#[test]
fn a_flood_of_questions_is_bounded() {
    let mut config = Config::new(B_GUID, [2; 32]);
    config.limits.sidr = 8;
    let mut end = End::with(config, B, A);
    end.cm.listen(SERVICE, None, 100).unwrap();
    let ask = |end: &mut End, request_id| {
        let req = wire::mad::SidrReq { request_id, service_id: SERVICE, ..Default::default() };
        end.take(&CmMad::new(1, req));
        end.events()
    };
    for request_id in 1..=100 {
        let [Event::SidrReqReceived { sidr, .. }] = ask(&mut end, request_id)[..] else { panic!() };
        end.cm.send_sidr_rep(0, sidr, &yes()).unwrap();
        assert!(end.cm.usage().sidr <= 8);
    }
    for request_id in 101..=108 {
        assert_eq!(ask(&mut end, request_id).len(), 1);
    }
    assert_eq!(ask(&mut end, 109), []);
    assert_eq!((end.cm.usage().sidr, end.cm.counters().dropped(DropReason::SidrFull)), (8, 1));
}
