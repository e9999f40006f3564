//! The way of a connection from end to end.

use crate::stranger::{Stranger, reply};
use crate::support::{End, SERVER, SOON, at, connected, pair};
use rockhopper::cm::{CmEventKind, CmOptions, ConnParam, PortSpace, State};
use rockhopper::{Access, QpState, RecvWr, SendWr, WcOpcode, WcStatus};

/// rocev2 facts, CM 11: REQ, REP, RTU; data both ways; DREQ, DREP, timewait.
#[test]
fn two_ends_connect_send_and_disconnect() {
    let (client, server) = pair();
    let all = connected(&client, &server);
    let (active, passive) = (&all.active, &all.passive);
    assert_eq!((active.id.state(), passive.id.state()), (State::Connected, State::Connected));
    assert_eq!(active.id.peer_addr(), passive.id.local_addr());
    assert_eq!(active.id.local_addr(), passive.id.peer_addr());

    for (from, to, text) in [(active, passive, b"there"), (passive, active, b"again")] {
        to.qp().post_recv(RecvWr::new(7).sge(to.mr().sge(0..64))).unwrap();
        from.qp().post_send(SendWr::send(8).inline(text)).unwrap();
        let sent = from.cq().wait(SOON).unwrap();
        assert!(sent.is_success(), "{sent:?}");
        let received = to.cq().wait(SOON).unwrap();
        assert_eq!((received.opcode, received.byte_len), (WcOpcode::Recv, 5), "{received:?}");
        let mut bytes = [0; 5];
        to.mr().read(0, &mut bytes).unwrap();
        assert_eq!(&bytes, text);
    }

    passive.qp().post_recv(RecvWr::new(9).sge(passive.mr().sge(0..64))).unwrap();
    active.id.disconnect().unwrap();
    for end in [active, passive] {
        assert!(matches!(end.next(), CmEventKind::Disconnected));
        assert_eq!(end.qp().state(), QpState::Err);
        assert!(matches!(end.next(), CmEventKind::TimewaitExit));
    }
    let flushed = passive.cq().wait(SOON).unwrap();
    assert_eq!((flushed.wr_id, flushed.status), (9, WcStatus::WrFlushErr));
}

/// rocev2 facts, CM 12.
#[test]
fn queue_pairs_get_what_request_and_reply_say() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    let request = ConnParam {
        responder_resources: 5,
        initiator_depth: 9,
        retry_count: 6,
        rnr_retry_count: 2,
        ..ConnParam::with_private_data(b"hello")
    };
    active.id.connect(&request).unwrap();
    let (passive, asked) = End::requested(&listener);
    assert_eq!((asked.responder_resources, asked.initiator_depth), (9, 5), "crossed over");
    assert_eq!((asked.retry_count, asked.rnr_retry_count), (6, 2));
    assert_eq!((&asked.private_data[..5], asked.private_data.len()), (&b"hello"[..], 56));
    let answer = ConnParam {
        responder_resources: 7,
        initiator_depth: 16,
        rnr_retry_count: 3,
        ..ConnParam::with_private_data(b"welcome")
    };
    passive.id.accept(&answer).unwrap();
    let answered = active.expect_established();
    assert_eq!((&answered.private_data[..7], answered.private_data.len()), (&b"welcome"[..], 196));
    passive.expect_established();

    let (ours, theirs) = (active.qp().query().unwrap().attr, passive.qp().query().unwrap().attr);
    assert_eq!((ours.state, theirs.state), (QpState::Rts, QpState::Rts));
    assert_eq!((ours.dest_qpn, theirs.dest_qpn), (passive.qp().qpn(), active.qp().qpn()));
    assert_eq!((ours.rq_psn, ours.sq_psn), (theirs.sq_psn, theirs.rq_psn));
    assert_ne!(ours.rq_psn, ours.sq_psn);
    assert_eq!((ours.max_rd_atomic, theirs.max_dest_rd_atomic), (7, 7));
    assert_eq!((ours.max_dest_rd_atomic, theirs.max_rd_atomic), (5, 5));
    assert_eq!((ours.retry_cnt, theirs.retry_cnt), (6, 6));
    assert_eq!((ours.rnr_retry, theirs.rnr_retry), (3, 2), "what the other side asked for");
    assert_eq!((ours.min_rnr_timer, theirs.min_rnr_timer), (12, 12), "not the code for 655 ms");
    assert_eq!(
        (ours.path_mtu, theirs.path_mtu, ours.timeout, theirs.timeout),
        (ours.path_mtu, ours.path_mtu, 16, 16)
    );
    let sports = [ours, theirs].map(|attr| attr.path.unwrap().udp_sport);
    assert_eq!(sports[0], sports[1]);
}

/// rocev2 facts, CM 12: who serves no READs gives no right to any.
#[test]
fn without_responder_resources_there_is_nothing_to_read() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.connect(&ConnParam { initiator_depth: 0, ..ConnParam::default() }).unwrap();
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    active.expect_established();
    let rights = |end: &End| end.qp().query().unwrap().attr.access;
    let reads = Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    assert!(!rights(&passive).intersects(reads), "{:?}", rights(&passive));
    assert!(rights(&passive).contains(Access::REMOTE_WRITE) && rights(&active).contains(reads));
}

/// rocev2 facts, CM 10 and 12: the passive end takes the REQ's ACK timeout, the active one reckons its own from what the REP says that
/// the peer needs.
#[test]
fn ack_timeouts_follow_from_the_way_and_the_peer() {
    let (client, server) = pair();
    let timeout = |end: &End| end.qp().query().unwrap().attr.timeout;
    // Without end, and for hours, waits only who asks for it himself.
    for (way, expected, asked) in [(15, 16, 16), (20, 20, 20), (31, 31, 20), (0, 0, 20)] {
        let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
        let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
        active.id.set_options(CmOptions { ack_timeout: way, ..CmOptions::default() }).unwrap();
        let passive = active.establish_with(&listener);
        assert_eq!((timeout(&active), timeout(&passive)), (expected, asked), "{way}");
    }
    let mut peer = Stranger::new();
    let active = peer.asked_by_us(&CmOptions::default());
    let req = peer.expect_req_of(&active, &ConnParam::default());
    assert_eq!(req.primary.ack_timeout, 16);
    let rep = reply(&req);
    assert_eq!(rep.target_ack_delay, 18);
    peer.say(rep);
    active.expect_established();
    assert_eq!(timeout(&active), 18);
}
