//! What a device tells of itself, and its limits.

use crate::support::{ALL, devices};
use rockhopper::config::{DeviceKind, MemifRole, PortSettings};
use rockhopper::{Access, Config, CreateError, Endpoint, Mtu, NoLink, QpCaps, QpOptions, QpType, RingPair};
use std::time::{Duration, Instant};

#[test]
fn the_path_mtu_is_what_the_port_really_carries() {
    for (mtu, path) in
        [(1500, Mtu::Mtu1024), (4200, Mtu::Mtu4096), (2200, Mtu::Mtu2048), (1280, Mtu::Mtu1024)]
    {
        let (a, _b) = devices(&RingPair { mtu, ..RingPair::default() });
        let port = a.query_port().unwrap();
        assert_eq!((port.ip_mtu, port.path_mtu, a.path_mtu()), (mtu, path, path));
        assert!(port.up);
    }
}

#[test]
fn gids_are_the_link_local_one_and_the_addresses() {
    let (a, b) = devices(&RingPair::default());
    let gids: Vec<String> =
        a.query_port().unwrap().gids.iter().map(|(_, gid)| gid.address.to_string()).collect();
    assert_eq!(gids.len(), 3);
    assert!(gids[0].starts_with("fe80::"));
    assert_eq!(gids[1..], ["10.82.72.1", "fd52:48::1"]);
    assert_eq!((a.default_gid_index(), b.default_gid_index()), (1, 1));
    assert_eq!(a.gid_index("10.82.72.1".parse().unwrap()), Some(1));
    assert_eq!(a.gid(3), None);
    assert_ne!(a.query_port().unwrap().mac, b.query_port().unwrap().mac);
}

#[test]
fn more_than_the_device_has_is_refused_by_name() {
    let (a, b) = devices(&RingPair::default());
    let limits = a.attributes();
    let limited = |result: Result<(), CreateError>| match result {
        Err(CreateError::Limit { what, asked, most }) => (what, asked > most),
        other => panic!("{other:?}"),
    };
    assert_eq!(limited(a.create_cq(limits.max_cqe + 1).map(drop)), ("completions", true));
    assert!(a.create_cq(0).is_err());
    let (pd, cq) = (a.alloc_pd(), a.create_cq(16).unwrap());
    let with = |caps| pd.create_qp(&QpOptions { caps, ..QpOptions::new(QpType::Rc, &cq) }).map(drop);
    let base = QpCaps::default();
    let cases = [
        (QpCaps { max_send_wr: limits.max_qp_wr + 1, ..base }, "send requests"),
        (QpCaps { max_recv_wr: limits.max_qp_wr + 1, ..base }, "receives"),
        (QpCaps { max_recv_sge: limits.max_sge + 1, ..base }, "scatter/gather entries"),
        (QpCaps { max_inline_data: limits.max_inline_data + 1, ..base }, "bytes of inline data"),
    ];
    for (caps, what) in cases {
        assert_eq!(limited(with(caps)), (what, true));
    }
    assert!(with(QpCaps { max_send_wr: limits.max_qp_wr, max_send_sge: limits.max_sge, ..base }).is_ok());
    assert!(matches!(pd.reg_mr(64, Access::REMOTE_WRITE), Err(CreateError::Access)));
    assert!(matches!(pd.reg_mr(0, ALL), Err(CreateError::Buffer(_))));
    let foreign = b.create_cq(16).unwrap();
    let refused = pd.create_qp(&QpOptions::new(QpType::Rc, &foreign));
    assert!(matches!(refused, Err(CreateError::OtherDevice("completion queue"))));
}

#[test]
fn regions_run_out_and_come_back() {
    let (a, _b) = devices(&RingPair::default());
    let pd = a.alloc_pd();
    let most = a.attributes().max_mr;
    let mut regions: Vec<_> = (0..most).map(|_| pd.reg_mr(1, ALL).unwrap()).collect();
    assert!(matches!(pd.reg_mr(1, ALL), Err(CreateError::Limit { what: "memory regions", .. })));
    regions.truncate(most - 10);
    assert!((0..10).all(|_| pd.reg_mr(1, ALL).is_ok()));
}

/// Shared memory whose other end is not there.
#[test]
fn a_link_that_stays_down_is_waited_for_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("memif.sock");
    let device = DeviceKind::Memif { socket, id: 0, role: MemifRole::Server };
    let port = PortSettings::new("lonely", device, vec!["10.9.0.1/24".parse().unwrap()]);
    let endpoint = Endpoint::start(&Config { ports: vec![port], ..Config::default() }).unwrap();
    let device = endpoint.device(0).unwrap();
    let (patience, begin) = (Duration::from_millis(100), Instant::now());
    assert_eq!(device.wait_for_link(patience, || false), Err(NoLink::Down("lonely".into())));
    assert!(begin.elapsed() >= patience);
    assert_eq!(device.wait_for_link(Duration::from_secs(60), || true), Err(NoLink::Stopped));
    let (ring, _other) = devices(&RingPair::default());
    assert_eq!(ring.wait_for_link(Duration::ZERO, || true), Ok(()));
}
