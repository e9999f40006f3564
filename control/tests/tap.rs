//! A port on a tap, with the kernel at the other end. Needs root, `ip` and `ping`: each test has a network namespace of its
//! own.

use nix::sched::{CloneFlags, unshare};
use rockhopper::config::{DeviceKind, PortSettings};
use rockhopper::{Config, Device, Endpoint, EventKind, EventSource, ResolveError};
use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(10);

/// A port at 10.5.0.1 and fd05::1; the kernel's side `rht0` has 10.5.0.254 and fd05::fe.
fn port() -> (Endpoint, Device) {
    unshare(CloneFlags::CLONE_NEWNET).expect("this test needs a network namespace: run it as root");
    ip("link set lo up");
    let device = DeviceKind::Tap { interface: "rht0".into() };
    let addresses = vec!["10.5.0.1/24".parse().unwrap(), "fd05::1/64".parse().unwrap()];
    let config = Config {
        ports: vec![PortSettings { mtu: 1500, ..PortSettings::new("tap", device, addresses) }],
        ..Config::default()
    };
    let endpoint = Endpoint::start(&config).unwrap();
    ip("address add 10.5.0.254/24 dev rht0");
    ip("address add fd05::fe/64 dev rht0 nodad");
    ip("link set rht0 up");
    let device = endpoint.device(0).unwrap();
    (endpoint, device)
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The kernel's address on the tap, while there is one. (/sys shows the interfaces of the namespace that it was mounted in.)
fn kernel_mac() -> Option<String> {
    let output = Command::new("ip").args(["-brief", "link", "show", "rht0"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().nth(2).map(str::to_owned)
}

fn ping(arguments: &str) -> bool {
    Command::new("ping").args(arguments.split(' ')).output().unwrap().status.success()
}

#[test]
fn the_kernel_pings_the_port() {
    let (_endpoint, device) = port();
    assert!(ping("-c 3 -i 0.2 -W 5 10.5.0.1"));
    assert!(ping("-6 -c 3 -i 0.2 -W 5 fd05::1"));
    assert!(ping("-c 1 -W 5 -s 1472 -M do 10.5.0.1"), "a full frame");
    assert!(!ping("-c 1 -W 1 10.5.0.2"), "not an address of the port");
    let network = device.stats().network;
    assert_eq!(network["echo_answered"], 7);
    assert!(network["arp_answered"] >= 1 && network["nd_answered"] >= 1, "{network:?}");
}

#[test]
fn the_port_finds_the_kernel() {
    let (_endpoint, device) = port();
    let theirs = kernel_mac().unwrap();
    for address in ["10.5.0.254", "fd05::fe"] {
        let path = device.resolve(address.parse().unwrap(), None).unwrap();
        assert_eq!(path.dmac.to_string(), theirs);
    }
    assert_ne!(device.query_port().unwrap().mac.to_string(), theirs, "two stations, two addresses");
    let nobody: IpAddr = "10.5.0.77".parse().unwrap();
    assert_eq!(device.resolve(nobody, None), Err(ResolveError::Unreachable(nobody)));
}

#[test]
fn a_link_that_goes_and_comes_is_told() {
    let (_endpoint, device) = port();
    let end = Instant::now() + SOON;
    while !device.query_port().unwrap().up {
        assert!(Instant::now() < end, "the link does not come up");
    }
    while device.next_event(Duration::from_millis(600)).is_some() {}
    for (command, kind) in
        [("link set rht0 down", EventKind::PortErr), ("link set rht0 up", EventKind::PortActive)]
    {
        ip(command);
        let event = device.next_event(SOON).unwrap();
        assert_eq!((event.kind, event.source), (kind, EventSource::Port(1)));
    }
    assert!(ping("-c 2 -i 0.2 -W 5 10.5.0.1"));
}

#[test]
fn the_interface_vanishes_with_the_endpoint() {
    let (endpoint, device) = port();
    assert!(kernel_mac().is_some());
    drop((endpoint, device));
    assert_eq!(kernel_mac(), None);
}
