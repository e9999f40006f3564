//! `serve` in one process, a perf client in another, over shared memory: what needs no privileges.

use super::support::{Serving, Setup, text};
use rockhopper::config::{DeviceKind, MemifRole, PortSettings, WorkerSettings};
use rockhopper::perf::{Client, ClientOptions, Link, Op, Params, Shared, Transport, Until};
use rockhopper::{Config, Endpoint};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than a link takes to come up.
const SOON: Duration = Duration::from_secs(20);

const SERVER: &str = r#"
[[port]]
name = "memif"
driver = "memif"
socket = "{dir}/memif.sock"
role = "server"
addresses = ["10.2.0.1/24", "fd02::1/64"]

[control]
socket = "{dir}/admin.sock"
listen = "127.0.0.1:0"
"#;

#[test]
fn a_client_in_another_process_runs_every_test_verified() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let setup = Setup::new(&SERVER.replace("127.0.0.1:0", &address));
    let memif = DeviceKind::Memif { socket: setup.path("memif.sock"), role: MemifRole::Client, id: 0 };
    let addresses = vec!["10.2.0.2/24".parse().unwrap(), "fd02::2/64".parse().unwrap()];
    let config = Config {
        ports: vec![PortSettings::new("client", memif, addresses)],
        workers: WorkerSettings::default(),
        ..Config::default()
    };
    let early = Endpoint::start(&config).unwrap_err().to_string();
    assert!(early.contains("no server answers") && early.contains("start the other side first"), "{early}");
    let serving = Serving::start(&setup, &[]);
    let endpoint = Endpoint::start(&config).unwrap();
    let device = endpoint.device(0).unwrap();
    let end = Instant::now() + SOON;
    while !device.query_port().unwrap().up {
        assert!(Instant::now() < end, "the link does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
    for ipv6 in [false, true] {
        let link = Link::tcp(TcpStream::connect(&address).unwrap()).unwrap();
        let shared = Arc::new(Shared::default());
        let options = ClientOptions { ipv6, ..ClientOptions::default() };
        let mut client = Client::new(link, &device, options, &shared).unwrap();
        for op in Op::all() {
            let params = Params { until: Until::Iters(200), verify: true, ..Params::new(op) };
            let outcome = client.run(&params).unwrap();
            assert_eq!((outcome.messages(), outcome.faults()), (200, 0), "{op} {:?}", outcome.first_fault());
            assert!(outcome.is_verified());
        }
        let datagrams = Params {
            transport: Transport::Ud,
            size: 1000,
            until: Until::Iters(200),
            ..Params::new("send-lat".parse().unwrap())
        };
        assert!(client.run(&datagrams).unwrap().is_good());
        client.finish();
    }
    // The link's end is not looked at: the driver unmaps its memory under whoever is in a burst.
    drop((device, endpoint));
    let output = serving.interrupt();
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.contains("18 runs"), "{said}");
}
