//! Wrong devices, ports, queues and pools are typed errors in sentences, and leave nothing half open.

mod common;

use std::slice::from_ref;

use common::{eal, open, pool};
use dpdk::port::{find, ports};
use dpdk::ring::{RingConfig, RingError, ring_pair};
use dpdk::{EalError, Port, PortConfig, PortError, PortId, Vdev};

#[test]
fn wrong_devices_and_ports_are_explained() {
    let eal = eal();
    let pool = pool(&eal, 1023, 2048);
    let config = PortConfig::default();

    let no_interface = Vdev::af_packet("x", "rh-nosuch", 1, false).unwrap();
    let error = eal.add_vdev(&no_interface).unwrap_err();
    assert!(matches!(error, EalError::Device { .. }));
    assert!(error.to_string().contains("rh-nosuch") && error.to_string().contains("check"), "{error}");
    let no_driver = Vdev::custom("net_nosuch0", "").unwrap();
    assert!(matches!(eal.add_vdev(&no_driver), Err(EalError::Device { .. })));
    let wrong_argument = Vdev::custom("net_null_w", "colour=red").unwrap();
    let error = eal.add_vdev(&wrong_argument).unwrap_err();
    assert!(error.to_string().contains("colour=red"), "{error}");

    let missing = Port::open(&eal, PortId(7), &config, from_ref(&pool)).unwrap_err();
    assert_eq!(missing, PortError::NoSuchPort("7".into()));
    assert_eq!(find(&eal, "net_null_9"), Err(PortError::NoSuchPort("net_null_9".into())));
    assert_eq!(ports(&eal), []);

    let null = Vdev::null("0").unwrap();
    let port = open(&eal, &null, &config, &pool);
    assert_eq!(find(&eal, "net_null_0"), Ok(port.id()));
    let twice = Port::open(&eal, port.id(), &config, from_ref(&pool)).unwrap_err();
    assert_eq!(twice, PortError::AlreadyOpen(port.id()));
    assert!(matches!(eal.add_vdev(&null), Err(EalError::Device { .. })), "the name is taken");
    assert!(!eal.remove_vdev(port.id()), "an open port is not removed");
    drop(port);

    let id = eal.add_vdev(&null).unwrap();
    let no_queue = PortConfig { queues: 0, ..config.clone() };
    let error = Port::open(&eal, id, &no_queue, from_ref(&pool)).unwrap_err();
    assert!(error.to_string().contains("at least one queue"), "{error}");
    let error =
        Port::open(&eal, id, &PortConfig { queues: 3, ..config.clone() }, &[pool.clone(), pool.clone()]);
    assert!(error.unwrap_err().to_string().contains("2 pools for 3 queues"));
    let error = Port::open(&eal, id, &config, &[]).unwrap_err();
    assert!(error.to_string().contains("0 pools for 1 queues"), "{error}");
    // After all that it still opens, with as many queues as there are.
    let port = Port::open(&eal, id, &PortConfig { queues: 2, ..config }, from_ref(&pool)).unwrap();
    assert!(port.negotiated().queues >= 1);
    drop(port);

    let long = ring_pair(&eal, &"x".repeat(21), &RingConfig::default()).unwrap_err();
    assert!(matches!(long, RingError::LongName(_)), "{long}");
    let one = RingConfig::default();
    for wrong in [
        RingConfig { queues: 0, ..one },
        RingConfig { queues: 17, ..one },
        RingConfig { size: 0, ..one },
        RingConfig { size: u32::MAX, ..one },
    ] {
        let error = ring_pair(&eal, "wrong", &wrong).unwrap_err();
        assert!(matches!(error, RingError::Shape { .. }), "{error}");
    }
    let error = ring_pair(&eal, "huge", &RingConfig { size: 1 << 24, queues: 16, socket: None }).unwrap_err();
    assert!(matches!(error, RingError::Ring { .. }), "512 MB cannot hold that: {error}");
    ring_pair(&eal, "fine", &RingConfig::default()).unwrap();
    let error = ring_pair(&eal, "fine", &RingConfig::default()).unwrap_err();
    assert!(error.to_string().contains("used once"), "{error}");
}
