//! A port has several links, and each may have peers of the same addresses: a scope tells them apart. Behind one address may be
//! several nodes, one after the other: GUIDs tell these apart (rocev2 facts, CM 4 and 11).

use crate::support::*;
use cm::*;
use wire::Qpn;
use wire::mad::{CmMad, CommId, PrimaryPath, Req, SidrReq};

fn on_link(scope: u32) -> Path {
    Path { scope, ..path(B, A) }
}

/// The same request from a node on a link, whichever.
fn ask(end: &mut End, scope: u32, guid: u64) -> Vec<Event> {
    let req = Req {
        local_id: CommId(0x77),
        service_id: SERVICE,
        local_ca_guid: guid,
        local_qpn: Qpn::new(0xA1),
        path_mtu: 3,
        remote_cm_timeout: 20,
        local_cm_timeout: 20,
        max_cm_retries: 15,
        primary: PrimaryPath { local_gid: A, remote_gid: B, ..PrimaryPath::default() },
        ..Req::default()
    };
    end.cm.on_mad(end.now, &on_link(scope), &CmMad::new(1, req).to_bytes());
    end.events()
}

/// Neither is a repetition of the other, nor does one make the other stale; and each is answered on its link.
#[test]
fn the_same_request_on_two_links_is_two_requests() {
    let mut end = End::passive();
    for scope in [0, 5, 6] {
        let [Event::ReqReceived { conn, path, .. }] = ask(&mut end, scope, A_GUID)[..] else {
            panic!("{scope}")
        };
        assert_eq!(path, on_link(scope));
        end.cm.send_rep(0, conn, &RepParams { qpn: Qpn::new(0xB0 + scope), ..rep() }).unwrap();
        assert_eq!(end.cm.poll_transmit().unwrap().path, on_link(scope));
        end.cm.establish(0, conn).unwrap();
        end.events();
    }
    assert_eq!((end.sent(), end.cm.usage().connections), (vec![], 3));
}

#[test]
fn two_nodes_at_one_address_are_told_apart() {
    let mut end = End::passive();
    assert_eq!(ask(&mut end, 0, A_GUID).len(), 1);
    assert_eq!(ask(&mut end, 0, A_GUID + 1).len(), 1, "the same ID and QP, of another node");
    assert_eq!((end.sent(), end.cm.usage().connections), (vec![], 2));
}

#[test]
fn a_listener_for_an_address_of_a_link_hears_nothing_of_others() {
    let mut end = End::with(Config::new(B_GUID, [2; 32]), B, A);
    let here = end.cm.listen(SERVICE, Some((B, 5)), 4).unwrap();
    assert_eq!(ask(&mut end, 6, A_GUID), []);
    assert_eq!(end.sent().len(), 1, "it is refused: nobody listens there");
    let all = end.cm.listen(SERVICE, None, 4).unwrap();
    for (scope, heard_by) in [(5, here), (6, all), (0, all)] {
        let [Event::ReqReceived { listener, .. }] = ask(&mut end, scope, A_GUID)[..] else {
            panic!("{scope}")
        };
        assert_eq!(listener, heard_by, "{scope}");
    }
}

#[test]
fn the_same_question_on_two_links_is_two_questions() {
    let mut end = End::passive();
    for scope in [0, 5] {
        let question = SidrReq { request_id: 9, service_id: SERVICE, ..SidrReq::default() };
        end.cm.on_mad(0, &on_link(scope), &CmMad::new(1, question).to_bytes());
        assert!(matches!(end.event(), Event::SidrReqReceived { path, .. } if path == on_link(scope)));
    }
    assert_eq!((end.cm.usage().sidr, end.cm.counters().dropped(DropReason::Duplicate)), (2, 0));
}
