//! Both ends on one endpoint, two ports of one endpoint, both ends asking at once, and the ways of a channel.

use crate::support::{End, SERVER, SOON, at, connected, pair};
use rockhopper::cm::{self, CmAddr, CmEventKind, ConnParam, EventChannel, PortSpace, State};
use rockhopper::config::{Config, DeviceKind, PortSettings, WorkerSettings};
use rockhopper::{Destination, Endpoint, QpOptions, QpType};
use std::net::SocketAddr;
use std::time::Duration;
use wire::Reach;

#[track_caller]
fn connect(client: &Endpoint, server: &Endpoint, to: SocketAddr) -> (End, End) {
    let listener = End::listening(server, PortSpace::Tcp, to);
    let active = End::resolved(client, PortSpace::Tcp, listener.id.local_addr().unwrap());
    let passive = active.establish_with(&listener);
    (active, passive)
}

/// Both ends on one port: its MADs are looped, as its packets are.
#[test]
fn an_endpoint_connects_to_itself() {
    let (own, _other) = pair();
    let (active, passive) = connect(&own, &own, at("10.82.72.1", 0));
    active.transfer_to(&passive, b"myself");
    assert!(own.stats().ports[0].management["mad_looped"] >= 3);
    assert_eq!(own.stats().ports[0].management["mad_sent"], 0, "the wire saw nothing");
    active.id.disconnect().unwrap();
    assert!(matches!(passive.next(), CmEventKind::Disconnected));
    assert!(matches!(active.next(), CmEventKind::Disconnected));
}

/// An endpoint with two ports, joined to each other.
fn two_ports() -> Endpoint {
    let port = |name: &str, address: &str| {
        let device = DeviceKind::Ring { pair: "loop".into() };
        PortSettings::new(name, device, vec![address.parse().unwrap()])
    };
    let config = Config {
        ports: vec![port("left", "10.9.0.1/24"), port("right", "10.9.0.2/24")],
        workers: WorkerSettings { cores: vec![0], ..WorkerSettings::default() },
        ..Config::default()
    };
    Endpoint::start(&config).unwrap()
}

fn device_name(end: &End) -> String {
    end.id.device().unwrap().name().to_owned()
}

/// Two ports of one endpoint, over the wire between them.
#[test]
fn two_ports_of_an_endpoint_connect() {
    let endpoint = two_ports();
    let listener = End::listening(&endpoint, PortSpace::Tcp, at("0.0.0.0", 7471));
    let from = "10.9.0.1".parse().unwrap();
    let active = End::towards(&endpoint, PortSpace::Tcp, Some(from), at("10.9.0.2", 7471));
    let passive = active.establish_with(&listener);
    assert_eq!((device_name(&active), device_name(&passive)), ("left".into(), "right".into()));
    active.transfer_to(&passive, b"neighbour");
}

/// A link-local address can be a peer's on any port: the scope says on which, by the name or the number of the port. The same
/// address is reached over the wire from the one port, and without it from the port that has it.
#[test]
fn the_scope_of_a_link_local_peer_chooses_the_port() {
    let endpoint = two_ports();
    let listener = End::listening(&endpoint, PortSpace::Tcp, at("::", 7471));
    let address = |name| endpoint.device_named(name).unwrap().gid(0).unwrap().address;
    for (scope, to, port, by_wire) in [
        ("left", "right", "left", true),
        ("right", "left", "right", true),
        ("2", "left", "right", true),
        ("right", "right", "right", false),
    ] {
        let destination = Destination { address: address(to), scope: Some(scope.into()) };
        let active = End::towards(&endpoint, PortSpace::Tcp, None, (destination, 7471));
        assert_eq!(active.id.local_addr().unwrap().ip(), address(port), "{to}%{scope}");
        let passive = active.establish_with(&listener);
        assert_eq!((device_name(&active), device_name(&passive)), (port.into(), to.into()), "{to}%{scope}");
        active.transfer_to(&passive, b"on this link");
        let reach = active.id.path().unwrap().addressing.reach();
        assert_eq!(reach, if by_wire { Reach::Wire } else { Reach::Own }, "{to}%{scope}");
    }
    let elsewhere = Destination { address: address("left"), scope: Some("middle".into()) };
    let lost = End::new(&endpoint, PortSpace::Tcp);
    lost.id.resolve_addr(None, (elsewhere, 7471), SOON).unwrap();
    let CmEventKind::AddrError(why) = lost.next() else { panic!("an error") };
    assert!(why.to_string().contains("left, right"), "{why}");
}

#[test]
fn ipv6_global_and_link_local() {
    let (client, server) = pair();
    let (active, passive) = connect(&client, &server, at("fd52:48::2", 0));
    active.transfer_to(&passive, b"global");

    let link_local = server.device(0).unwrap().gid(0).unwrap().gid.ip();
    let listener = End::listening(&server, PortSpace::Tcp, SocketAddr::new(link_local, 0));
    let port = listener.id.local_addr().unwrap().port();
    let scope = Some(client.device(0).unwrap().name().to_owned());
    let to = CmAddr::from((Destination { address: link_local, scope }, port));
    let active = End::towards(&client, PortSpace::Tcp, None, to);
    let passive = active.establish_with(&listener);
    passive.transfer_to(&active, b"link");

    let nowhere = Destination { address: link_local, scope: Some("no such port".into()) };
    let lost = End::new(&client, PortSpace::Tcp);
    lost.id.resolve_addr(None, (nowhere, port), SOON).unwrap();
    assert!(matches!(lost.next(), CmEventKind::AddrError(_)));
}

/// Both listen, and both ask at the same moment: two connections.
#[test]
fn both_sides_connect_at_once() {
    let (one, other) = pair();
    let listeners = [
        End::listening(&one, PortSpace::Tcp, at("10.82.72.1", 7471)),
        End::listening(&other, PortSpace::Tcp, at(SERVER, 7471)),
    ];
    let actives = [
        End::resolved(&one, PortSpace::Tcp, at(SERVER, 7471)),
        End::resolved(&other, PortSpace::Tcp, at("10.82.72.1", 7471)),
    ];
    actives.iter().for_each(|active| active.id.connect(&ConnParam::default()).unwrap());
    let passives: Vec<End> = listeners.iter().map(|listener| End::requested(listener).0).collect();
    passives.iter().for_each(|passive| passive.id.accept(&ConnParam::default()).unwrap());
    for end in actives.iter().chain(&passives) {
        end.expect_established();
    }
    actives[0].transfer_to(&passives[1], b"there");
    actives[1].transfer_to(&passives[0], b"and back");
}

/// A queue pair that the program moves itself: the answer is reported, and the program says when it is ready.
#[test]
fn a_program_may_keep_its_queue_pair_to_itself() {
    let (client, server) = pair();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    let qp = active.qp();
    active.id.destroy_qp();
    active.id.connect(&ConnParam { qp_num: Some(qp.qpn()), ..ConnParam::default() }).unwrap();
    let (passive, asked) = End::requested(&listener);
    assert_eq!(asked.qp_num, Some(qp.qpn()));
    passive.id.accept(&ConnParam::default()).unwrap();
    let CmEventKind::ConnectResponse { param } = active.next() else { panic!("a response") };
    assert_eq!(param.qp_num, Some(passive.qp().qpn()));
    assert_eq!((active.id.state(), passive.id.state()), (State::Responded, State::Accepted));
    active.id.establish().unwrap();
    passive.expect_established();
    assert_eq!(active.id.state(), State::Connected);
}

/// What waits to be read goes with its identifier to another channel, and an identifier's end takes it away.
#[test]
fn events_follow_their_identifier() {
    let (client, server) = pair();
    let all = connected(&client, &server);
    all.active.id.disconnect().unwrap();
    assert!(matches!(all.active.next(), CmEventKind::Disconnected));
    crate::support::until("the passive side's event", || {
        all.passive.qp().state() == rockhopper::QpState::Err
    });
    let other = EventChannel::new().unwrap();
    all.passive.id.migrate(&other);
    assert!(matches!(other.wait(SOON).unwrap().kind, CmEventKind::Disconnected));
    assert!(matches!(other.wait(SOON).unwrap().kind, CmEventKind::TimewaitExit));
    assert!(all.passive.channel.poll().is_none());

    let all = connected(&client, &server);
    all.active.id.disconnect().unwrap();
    crate::support::until("the passive side's event", || {
        all.passive.qp().state() == rockhopper::QpState::Err
    });
    let End { channel, id, .. } = all.passive;
    drop(id);
    assert!(channel.wait(Duration::from_millis(20)).is_none(), "nobody's event");
}

/// The blocking ways: one queue pair type, one listener, many threads.
#[test]
fn blocking_calls_connect() {
    let (client, server) = pair();
    let listener = cm::Listener::bind(&server, at("0.0.0.0", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::scope(|threads| {
        let servers: Vec<_> = (0..2).map(|_| threads.spawn(|| listener.accept(SOON).unwrap())).collect();
        let clients: Vec<_> =
            (0..2).map(|_| threads.spawn(|| cm::connect(&client, at(SERVER, port), SOON).unwrap())).collect();
        let servers: Vec<_> = servers.into_iter().map(|one| one.join().unwrap()).collect();
        let clients: Vec<_> = clients.into_iter().map(|one| one.join().unwrap()).collect();
        let peers: Vec<_> = clients.iter().map(|one| one.qp().query().unwrap().attr.dest_qpn).collect();
        assert!(servers.iter().all(|one| peers.contains(&one.qp().qpn())));
        clients[0].disconnect(SOON).unwrap();
    });
    let refused = cm::connect(&client, at(SERVER, port + 1), SOON);
    assert!(matches!(refused, Err(cm::CmError::Ended(_))), "{refused:?}");
    assert!(matches!(listener.accept(Duration::from_millis(10)), Err(cm::CmError::Timeout)));
}

/// A queue pair of another port, or another type, is not for this identifier.
#[test]
fn queue_pairs_that_do_not_fit_are_refused() {
    let (client, server) = pair();
    let active = End::resolved(&client, PortSpace::Tcp, at(SERVER, 7471));
    active.id.destroy_qp();
    let device = server.device(0).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq(4).unwrap());
    let elsewhere = pd.create_qp(&QpOptions::new(QpType::Rc, &cq)).unwrap();
    assert!(matches!(active.id.attach_qp(&elsewhere), Err(cm::CmError::OtherDevice)));
    let (pd, cq) = (active.pd.as_ref().unwrap(), active.cq());
    let wrong = active.id.create_qp(pd, &QpOptions::new(QpType::Ud, cq));
    assert!(matches!(wrong, Err(cm::CmError::QpType { .. })));
    active.id.create_qp(pd, &QpOptions::new(QpType::Rc, cq)).unwrap();
    assert!(matches!(active.id.create_qp(pd, &QpOptions::new(QpType::Rc, cq)), Err(cm::CmError::HasQp)));
}

/// An address that is taken from a port takes what was bound to it along: identifiers are told, and connections end.
#[test]
fn an_address_that_goes_is_told_to_those_who_have_it() {
    let (client, server) = pair();
    let device = client.device(0).unwrap();
    let extra: std::net::IpAddr = "10.82.72.11".parse().unwrap();
    device.add_address("10.82.72.11/24".parse().unwrap()).unwrap();
    let listener = End::listening(&server, PortSpace::Tcp, at(SERVER, 7471));
    let active = End::towards(&client, PortSpace::Tcp, Some(extra), at(SERVER, 7471));
    let passive = active.establish_with(&listener);
    assert_eq!(passive.id.peer_addr().unwrap().ip(), extra);
    let bystander = End::new(&client, PortSpace::Tcp);
    bystander.id.bind(at("10.82.72.1", 0)).unwrap();

    assert!(device.remove_address(extra).unwrap());
    assert!(matches!(active.next(), CmEventKind::AddrChange));
    assert!(matches!(active.next(), CmEventKind::Disconnected));
    assert_eq!(active.qp().state(), rockhopper::QpState::Err);
    assert!(bystander.channel.wait(Duration::from_millis(50)).is_none(), "its address is still there");
}
