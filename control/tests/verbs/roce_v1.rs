//! RoCE v1 as a type of GID.

use crate::support::{ALL, Pair, bytes, devices, pattern};
use rockhopper::net::WrongGid;
use rockhopper::{
    AhAttr, Config, ConnectOptions, Endpoint, QKey, QpError, QpInfo, QpState, QpType, RecvWr, ResolveError,
    RingPair, RoceVersion, SendWr,
};

const BOTH: [RoceVersion; 2] = [RoceVersion::V1, RoceVersion::V2];
const QKEY: QKey = QKey::new(0x1111_1111);

fn both() -> RingPair {
    RingPair { gid_types: BOTH.to_vec(), ..RingPair::default() }
}

fn index(index: usize) -> ConnectOptions {
    ConnectOptions { sgid_index: Some(index), access: ALL, ..ConnectOptions::default() }
}

#[test]
fn every_gid_is_there_once_for_each_type() {
    let (a, _b) = devices(&both());
    let types: Vec<_> = a.query_port().unwrap().gids.iter().map(|(_, gid)| gid.gid_type).collect();
    assert_eq!(types, [BOTH, BOTH, BOTH].concat());
    assert_eq!(a.default_gid_index(), 3, "IPv4, v2");
    let (only_v1, _) = devices(&RingPair { gid_types: vec![RoceVersion::V1], ..RingPair::default() });
    assert_eq!((only_v1.default_gid_index(), only_v1.query_port().unwrap().gids.len()), (1, 3));
}

#[test]
fn connections_and_datagrams_go_over_v1() {
    let (a, b) = devices(&both());
    // Link-local, IPv4 and IPv6: the v1 entry of each.
    for gid in [0, 2, 4] {
        let pair = Pair::of(&a, &b, QpType::Rc, &index(gid));
        assert_eq!(pair.a.qp.query().unwrap().attr.path.unwrap().version, RoceVersion::V1);
        let data = pattern(gid as u8, 50_000);
        pair.a.mr.write(0, &data).unwrap();
        pair.a
            .qp
            .post_send(SendWr::write(1, pair.b.mr.remote().at(0)).sge(pair.a.mr.sge(0..50_000)))
            .unwrap();
        assert!(pair.at_a().is_success());
        assert_eq!(bytes(&pair.b.mr, 0, 50_000), data);
        pair.a
            .qp
            .post_send(SendWr::read(2, pair.b.mr.remote().at(0)).sge(pair.a.mr.sge(60_000..60_100)))
            .unwrap();
        assert!(pair.at_a().is_success());
        let pair = Pair::of(&a, &b, QpType::Ud, &index(gid));
        let ah = pair.a.pd.create_ah(pair.b.qp.info(&index(gid)).gid, Some(gid)).unwrap();
        pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
        pair.a.qp.post_send(SendWr::ud_send(1, &ah, pair.b.qp.qpn(), QKEY, None).inline(b"v1")).unwrap();
        assert!(pair.at_a().is_success() && pair.at_b().is_success());
        assert_eq!((bytes(&pair.b.mr, 40, 2), bytes(&pair.b.mr, 6, 1)), (b"v1".to_vec(), vec![0x1B]));
    }
}

#[test]
fn a_port_without_a_v1_gid_takes_no_v1_packet() {
    let (a, b) = devices(&both());
    let (plain, _) = devices(&RingPair::default());
    assert!(plain.gid_index_of_type("10.82.72.1".parse().unwrap(), RoceVersion::V1).is_none());
    // b gives its v1 entry up with the address; v2 of another address stays.
    let pair = Pair::of(&a, &b, QpType::Ud, &index(2));
    let ah = pair.a.pd.create_ah("10.82.72.2".parse().unwrap(), Some(2)).unwrap();
    b.remove_address("10.82.72.2".parse().unwrap()).unwrap();
    pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
    pair.a.qp.post_send(SendWr::ud_send(1, &ah, pair.b.qp.qpn(), QKEY, None).inline(b"v1")).unwrap();
    assert!(pair.at_a().is_success());
    for _ in 0..100 {
        b.drive();
    }
    assert!(pair.b.cq.is_empty());
    assert_eq!(b.stats().roce["drop_not_our_address"], 1);
}

#[test]
fn the_way_of_v1_stays_on_the_link_and_asks_nobody_for_link_local_macs() {
    let (a, b) = devices(&both());
    let mac = b.query_port().unwrap().mac;
    let link_local = b.gid(0).unwrap().address;
    let asked = a.stats().network["neighbour_solicited"];
    let path = a.resolve(link_local, Some(0)).unwrap();
    assert_eq!((path.dmac, path.hop_limit, path.version), (mac, 1, RoceVersion::V1));
    assert_eq!(a.stats().network["neighbour_solicited"], asked);
    assert_eq!(a.resolve(link_local, Some(1)).unwrap().hop_limit, 64);
    let far = "10.99.0.1".parse().unwrap();
    assert!(matches!(a.resolve(far, Some(2)), Err(ResolveError::Gid(WrongGid::OtherLink { .. }))));
}

/// Beyond a gateway there is no RoCE v1, whatever the gateway's address; v2 goes there.
#[test]
fn v1_is_refused_beyond_a_gateway() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/ring.toml")).unwrap();
    let gateways = "gateway = \"10.77.0.2\"\ngateway6 = \"fd77::2\"\ngid_types = [\"v1\", \"v2\"]\n";
    let text = text.replacen("pair = \"loop\"\n", &format!("pair = \"loop\"\n{gateways}"), 1);
    let text = text.replace("[control]\nsocket = \"/tmp/rockhopper-ring.sock\"\n", "");
    let endpoint = Endpoint::start(&Config::parse(&text, "gateway.toml".as_ref()).unwrap()).unwrap();
    let device = endpoint.device(0).unwrap();
    let far = ["10.99.0.1".parse().unwrap(), "fd99::1".parse().unwrap()];
    for (far, v1) in far.into_iter().zip([2, 4]) {
        assert_eq!(device.resolve(far, Some(v1)), Err(ResolveError::NotRouted(far)));
        let path = device.resolve(far, Some(v1 + 1)).unwrap();
        assert_eq!(
            (path.version, path.dmac),
            (RoceVersion::V2, endpoint.device(1).unwrap().query_port().unwrap().mac)
        );
        let words = device.resolve(far, Some(v1)).unwrap_err().to_string();
        assert!(
            words.contains("beyond a gateway") && words.contains("choose a GID index of type v2"),
            "{words}"
        );
        // What is on the link is reached by either, the gateway itself too.
        let near = if far.is_ipv4() { "10.77.0.2" } else { "fd77::2" }.parse().unwrap();
        assert_eq!(device.resolve(near, Some(v1)).unwrap().version, RoceVersion::V1);
    }
}

#[test]
fn ends_of_two_types_are_not_connected() {
    let (a, b) = devices(&both());
    let (a, b) = (crate::support::end(&a, QpType::Rc), crate::support::end(&b, QpType::Rc));
    for (ours, theirs, words) in [
        (
            2,
            3,
            "GID index 2 is of type RoCE v1, but the peer's is of type RoCE v2: use index 3 here, or another at the peer",
        ),
        (
            3,
            2,
            "GID index 3 is of type RoCE v2, but the peer's is of type RoCE v1: use index 2 here, or another at the peer",
        ),
    ] {
        let refused = a.qp.connect(&b.qp.info(&index(theirs)), &index(ours)).unwrap_err();
        assert!(matches!(refused, QpError::GidType { .. }));
        assert_eq!((refused.to_string().as_str(), a.qp.state()), (words, QpState::Init));
    }
    let (only_v2, _) = devices(&RingPair::default());
    let refused =
        crate::support::end(&only_v2, QpType::Rc).qp.connect(&b.qp.info(&index(2)), &index(1)).unwrap_err();
    assert!(refused.to_string().ends_with("or give the port here both gid_types"), "{refused}");
    // Who does not say is believed.
    for (ours, theirs) in [(2, 3), (3, 2)] {
        let (a, b) = devices(&both());
        let (a, b) = (crate::support::end(&a, QpType::Rc), crate::support::end(&b, QpType::Rc));
        let silent = QpInfo { gid_type: None, ..b.qp.info(&index(theirs)) };
        a.qp.connect(&silent, &index(ours)).unwrap();
    }
    let json = serde_json::to_string(&b.qp.info(&index(2))).unwrap();
    assert!(json.contains(r#""gid_type":"v1""#), "{json}");
    assert_eq!(serde_json::from_str::<QpInfo>(&json).unwrap(), b.qp.info(&index(2)));
}

#[test]
fn answers_go_back_the_way_a_datagram_came() {
    let (a, b) = devices(&both());
    for gid in [2, 3, 4, 5] {
        let pair = Pair::of(&a, &b, QpType::Ud, &index(gid));
        let v6 = gid >= 4;
        let attr = AhAttr {
            sgid_index: Some(gid),
            traffic_class: Some(0x68),
            hop_limit: Some(9),
            flow_label: if v6 { 0x12345 } else { 0 },
            static_rate: 3,
            ..AhAttr::default()
        };
        let ah = pair.a.pd.create_ah_with(pair.b.qp.info(&index(gid)).gid, &attr).unwrap();
        pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
        pair.a.qp.post_send(SendWr::ud_send(1, &ah, pair.b.qp.qpn(), QKEY, None).inline(b"ask")).unwrap();
        assert!(pair.at_a().is_success());
        let question = pair.at_b();
        let grh: [u8; 40] = bytes(&pair.b.mr, 0, 40).try_into().unwrap();
        let (class, hops) =
            if v6 || gid % 2 == 0 { ((grh[0] & 15) << 4 | grh[1] >> 4, grh[7]) } else { (grh[21], grh[28]) };
        assert_eq!((class, hops), (0x68, 9));
        let back = pair.b.pd.create_ah_from_wc(&question, &grh).unwrap();
        assert_eq!(back.dgid(), a.gid(gid).unwrap().gid);
        pair.a.qp.post_recv(RecvWr::new(2).sge(pair.a.mr.sge(0..100))).unwrap();
        pair.b
            .qp
            .post_send(SendWr::ud_send(2, &back, question.src_qp, QKEY, None).inline(b"answer"))
            .unwrap();
        assert!(pair.at_b().is_success() && pair.at_a().is_success());
        assert_eq!(bytes(&pair.a.mr, 40, 6), b"answer");
        let answer: [u8; 40] = bytes(&pair.a.mr, 0, 40).try_into().unwrap();
        if v6 {
            assert_eq!(answer[..4], grh[..4], "class and flow label of the question");
        }
        assert_eq!(
            (answer[0] >> 4 == 6, answer[6] == 0x1B),
            (v6 || gid % 2 == 0, gid % 2 == 0),
            "and its type"
        );
    }
    let pair = Pair::of(&a, &b, QpType::Ud, &index(3));
    let failed = rockhopper::Cqe { has_grh: false, ..pair_completion(&pair) };
    assert!(pair.b.pd.create_ah_from_wc(&failed, &[0; 40]).is_err());
    assert!(pair.b.pd.create_ah_from_wc(&pair_completion(&pair), &[0; 40]).is_err());
}

fn pair_completion(pair: &Pair) -> rockhopper::Cqe {
    let ah = pair.a.pd.create_ah("10.82.72.2".parse().unwrap(), None).unwrap();
    pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
    pair.a.qp.post_send(SendWr::ud_send(1, &ah, pair.b.qp.qpn(), QKEY, None).inline(b"x")).unwrap();
    pair.at_a();
    pair.at_b()
}
