//! Datagram services: asked for by SIDR, used with UD queue pairs; and groups.

use crate::support::{End, SERVER, SOON, at, counted, pair, until};
use rockhopper::cm::{
    CmEventKind, CmOptions, ConnParam, DEFAULT_UD_QKEY, PortSpace, SidrStatus, UdParam, Unreachable,
};
use rockhopper::{Ah, Cqe, QKey, RecvWr, SendWr};

fn ask(active: &End, private_data: &[u8]) {
    active.id.connect(&ConnParam::with_private_data(private_data)).unwrap();
}

#[track_caller]
fn expect_told(end: &End) -> (ConnParam, UdParam) {
    match end.next() {
        CmEventKind::Established { param, ud: Some(ud) } => (param, ud),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn receive(end: &End) -> (Cqe, Vec<u8>) {
    let received = end.cq().wait(SOON).unwrap();
    let mut bytes = vec![0; received.byte_len as usize];
    end.mr().read(0, &mut bytes).unwrap();
    (received, bytes)
}

fn send(from: &End, to: &UdParam, text: &[u8]) {
    let ah = Ah::new(from.pd.as_ref().unwrap(), to.addressing).unwrap();
    from.qp().post_send(SendWr::ud_send(1, &ah, to.qpn, to.qkey, None).inline(text)).unwrap();
    assert!(from.cq().wait(SOON).unwrap().is_success());
}

/// rocev2 facts, CM 7 and 9: question and answer, then datagrams by what the answer says.
#[test]
fn a_datagram_service_is_found_and_used() {
    for address in [SERVER, "fd52:48::2"] {
        let (client, server) = pair();
        let listener = End::listening(&server, PortSpace::Udp, at(address, 7174));
        let active = End::resolved(&client, PortSpace::Udp, at(address, 7174));
        ask(&active, b"who is there");
        let (passive, asked) = End::requested(&listener);
        assert_eq!((&asked.private_data[..12], asked.private_data.len()), (&b"who is there"[..], 180));
        passive.qp().post_recv(RecvWr::new(2).sge(passive.mr().sge(0..128))).unwrap();
        passive.id.accept(&ConnParam::with_private_data(b"me")).unwrap();
        let (answer, ud) = expect_told(&active);
        assert_eq!((&answer.private_data[..2], answer.private_data.len()), (&b"me"[..], 136));
        assert_eq!((ud.qpn, ud.qkey), (passive.qp().qpn(), DEFAULT_UD_QKEY));
        send(&active, &ud, b"hello");
        let (received, bytes) = receive(&passive);
        assert!(received.is_success(), "{received:?}");
        assert_eq!(&bytes[40..], b"hello");
        assert_eq!(received.src_qp, active.qp().qpn());
    }
}

/// rocev2 facts, CM 7: every status but success is told as it is.
#[test]
fn a_service_that_is_not_there_or_not_given_is_told() {
    let (client, server) = pair();
    let active = End::resolved(&client, PortSpace::Udp, at(SERVER, 7175));
    ask(&active, b"");
    let absent = Unreachable::Sidr(SidrStatus::UNSUPPORTED);
    assert!(matches!(active.next(), CmEventKind::Unreachable(why) if why == absent));

    let listener = End::listening(&server, PortSpace::Udp, at(SERVER, 7175));
    for drop_it in [false, true] {
        let active = End::resolved(&client, PortSpace::Udp, at(SERVER, 7175));
        ask(&active, b"");
        let request = listener.event();
        if !drop_it {
            request.id.reject(b"no").unwrap();
        }
        drop(request);
        let refused = Unreachable::Sidr(SidrStatus::REJECTED);
        assert!(matches!(active.next(), CmEventKind::Unreachable(why) if why == refused));
    }
    drop(listener);
    drop(server);
    let soon =
        CmOptions { retransmit: std::time::Duration::from_millis(20), retries: 1, ..CmOptions::default() };
    drop(active);
    let active = End::new(&client, PortSpace::Udp);
    active.id.set_options(soon).unwrap();
    // Its neighbour is still known.
    active.id.resolve_addr(None, at(SERVER, 7175), SOON).unwrap();
    assert!(matches!(active.next(), CmEventKind::AddrResolved));
    ask(&active, b"");
    assert!(matches!(active.next(), CmEventKind::Unreachable(Unreachable::Timeout)));
    until("an empty book", || counted(&client, "cm_ids") == 0);
}

/// The Q_Key is the one that the identifier was given.
#[test]
fn the_qkey_is_settable() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Udp, at(SERVER, 7176));
    let qkey = QKey::new(0x7777);
    listener.id.set_options(CmOptions { qkey, ..CmOptions::default() }).unwrap();
    let active = End::resolved(&client, PortSpace::Udp, at(SERVER, 7176));
    ask(&active, b"");
    let (passive, _) = End::requested(&listener);
    passive.id.accept(&ConnParam::default()).unwrap();
    assert_eq!(expect_told(&active).1.qkey, qkey);
    assert_eq!(passive.qp().query().unwrap().attr.qkey, qkey);
}

/// rocev2 facts, wire 12: members receive, the sender's own port among them; who left does not.
#[test]
fn a_group_is_joined_and_left() {
    let (client, server) = pair();
    for group in ["239.77.1.1", "ff12::77:1"] {
        let group: std::net::IpAddr = group.parse().unwrap();
        let member = |endpoint| End::resolved(endpoint, PortSpace::Udp, std::net::SocketAddr::new(group, 0));
        let (sender, receiver) = (member(&client), member(&server));
        let join = |end: &End| {
            end.id.join_multicast(group).unwrap();
            match end.next() {
                CmEventKind::MulticastJoin { group: joined, ud } if joined == group => ud,
                other => panic!("{other:?}"),
            }
        };
        let ud = join(&sender);
        join(&receiver);
        for end in [&sender, &receiver] {
            end.qp().post_recv(RecvWr::new(2).sge(end.mr().sge(0..128))).unwrap();
        }
        let ah = Ah::new(sender.pd.as_ref().unwrap(), ud.addressing).unwrap();
        sender.qp().post_send(SendWr::ud_send(1, &ah, ud.qpn, ud.qkey, None).inline(b"all")).unwrap();
        let (_, bytes) = receive(&receiver);
        assert_eq!(&bytes[40..], b"all");
        let done: Vec<_> = (0..2).map(|_| sender.cq().wait(SOON).unwrap().wr_id).collect();
        assert!(done.contains(&1) && done.contains(&2), "sent, and its own copy: {done:?}");

        receiver.id.leave_multicast(group).unwrap();
        assert!(receiver.id.leave_multicast(group).is_err());
        let dropped = || server.stats().ports[0].roce["drop_group_not_attached"];
        let before = dropped();
        sender.qp().post_send(SendWr::ud_send(3, &ah, ud.qpn, ud.qkey, None).inline(b"few")).unwrap();
        until("a packet for nobody", || dropped() > before);
    }
    let end = End::resolved(&client, PortSpace::Udp, at(SERVER, 1));
    assert!(end.id.join_multicast(SERVER.parse().unwrap()).is_err(), "no group");
}
