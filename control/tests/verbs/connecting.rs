//! From RESET to RTS: what is checked, and what a peer may say.

use crate::support::{devices, end, family};
use rockhopper::net::WrongGid;
use rockhopper::{
    ConnectOptions, Mtu, QpAttr, QpAttrMask, QpError, QpState, QpType, ResolveError, RingPair, SendWr,
};

#[test]
fn the_state_follows_the_moves_and_a_query_tells_the_attributes() {
    let (a, b) = devices(&RingPair::default());
    let (a, b) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
    let options = ConnectOptions { path_mtu: Some(Mtu::Mtu1024), ..family(true) };
    assert_eq!(a.qp.state(), QpState::Reset);
    assert!(a.qp.post_send(SendWr::send(1)).is_err());
    a.qp.to_init(&options).unwrap();
    assert_eq!(a.qp.state(), QpState::Init);
    let peer = b.qp.info(&options);
    a.qp.connect(&peer, &options).unwrap();
    let query = a.qp.query().unwrap();
    assert_eq!((query.attr.state, query.attr.path_mtu), (QpState::Rts, Mtu::Mtu1024));
    assert_eq!((query.attr.dest_qpn, query.attr.rq_psn), (b.qp.qpn(), b.qp.first_psn()));
    assert_eq!(query.attr.sq_psn, a.qp.first_psn());
    assert_eq!(query.attr.path.unwrap().dst.ip(), peer.gid);
    let to_err = QpAttr { state: QpState::Err, ..QpAttr::default() };
    assert_eq!(a.qp.modify(&to_err, QpAttrMask::STATE).unwrap(), QpState::Err);
    let to_rts = QpAttr { state: QpState::Rts, ..QpAttr::default() };
    assert!(matches!(a.qp.modify(&to_rts, QpAttrMask::STATE), Err(QpError::Worker(_))));
    assert_eq!(a.qp.state(), QpState::Err);
}

#[test]
fn a_peer_that_cannot_be_is_refused_with_a_sentence() {
    let (a, b) = devices(&RingPair::default());
    let (a, b) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
    let options = ConnectOptions::default();
    let good = b.qp.info(&options);
    let refused = |peer| {
        let options = ConnectOptions::default();
        a.qp.connect(&peer, &options).unwrap_err()
    };
    let mut peer = good.clone();
    peer.qpn = 1 << 24;
    assert!(refused(peer).to_string().contains("queue pair number"));
    let mut peer = good.clone();
    peer.mtu = 1000;
    assert!(refused(peer).to_string().contains("path MTU"));
    let mut peer = good.clone();
    peer.gid = "192.0.2.1".parse().unwrap();
    assert!(matches!(refused(peer), QpError::Resolve(ResolveError::Gid(WrongGid::OtherLink { .. }))));
    let mut peer = good.clone();
    peer.gid = "fd52:48::2".parse().unwrap();
    assert!(matches!(refused(peer), QpError::Resolve(ResolveError::Gid(WrongGid::Family { .. }))));
    assert_eq!(a.qp.state(), QpState::Init, "it was moved to INIT, and no further");
    a.qp.connect(&good, &options).unwrap();
    let wrong_index = ConnectOptions { sgid_index: Some(9), ..ConnectOptions::default() };
    let other = end(&b.device, QpType::Rc);
    let error = other.qp.connect(&a.qp.info(&options), &wrong_index).unwrap_err();
    assert!(matches!(error, QpError::Resolve(ResolveError::Gid(WrongGid::NoIndex { index: 9, .. }))));
    let ud = end(&a.device, QpType::Ud);
    assert!(matches!(ud.qp.connect(&good, &options), Err(QpError::Type(QpType::Ud))));
}

#[test]
fn path_mtus_are_agreed_on_or_refused_with_a_sentence() {
    let (a, b) = devices(&RingPair::default());
    let small = ConnectOptions { path_mtu: Some(Mtu::Mtu1024), ..ConnectOptions::default() };
    let any = ConnectOptions::default();
    let mtu = |qp: &rockhopper::Qp| qp.query().unwrap().attr.path_mtu;
    // One end asks for less: both use it, whoever is connected first.
    let (one, other) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
    other.qp.connect(&one.qp.info(&small), &any).unwrap();
    one.qp.connect(&other.qp.info(&any), &small).unwrap();
    assert_eq!((mtu(&one.qp), mtu(&other.qp)), (Mtu::Mtu1024, Mtu::Mtu1024));
    // One end insists on more than the other takes.
    let large = ConnectOptions { path_mtu: Some(Mtu::Mtu4096), ..ConnectOptions::default() };
    let (one, other) = (end(&a, QpType::Rc), end(&b, QpType::Rc));
    let refused = one.qp.connect(&other.qp.info(&small), &large).unwrap_err();
    assert!(matches!(refused, QpError::PathMtu { asked: Mtu::Mtu4096, most: Mtu::Mtu1024, .. }));
    assert!(refused.to_string().contains("the peer takes 1024 at most"), "{refused}");
    let (thin, _peer) = devices(&RingPair { mtu: 1500, ..RingPair::default() });
    let peer = other.qp.info(&large);
    let refused = end(&thin, QpType::Rc).qp.connect(&peer, &large).unwrap_err();
    assert!(refused.to_string().contains("this port takes 1024 at most"), "{refused}");
}
