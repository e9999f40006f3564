//! The programs over rdma_cm between two endpoints of this process: our servers, our clients.

use rockhopper::perf::{Client, ClientOptions, CmWay, Link, Params, ServerOptions, Shared, Until, serve};
use rockhopper::programs::{
    Hears, Messages, PingOptions, Pinged, Program, Served, ServiceOptions, Services, VisitOptions, ping,
    visit,
};
use rockhopper::{Device, Endpoint, PathRequest, RingPair};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is heard of a server.
#[derive(Default)]
struct Heard {
    served: Mutex<Vec<Served>>,
}

impl Hears for Heard {
    fn served(&self, served: &Served) {
        self.served.lock().unwrap().push(served.clone());
    }

    fn session(&self, link: Link, device: Device, _: SocketAddr) {
        std::thread::spawn(move || {
            serve(link, &device, &ServerOptions::default(), &Shared::default(), |_| ()).unwrap();
        });
    }
}

/// Stops the servers.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a client beside servers of everything; what was served.
fn beside_servers(client: impl FnOnce(&Endpoint, [IpAddr; 2])) -> Vec<Served> {
    let (near, far) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    let device = far.device(0).unwrap();
    let address = |v6: bool| {
        let gids = device.query_port().unwrap().gids;
        let mut of_family = gids.iter().map(|(_, entry)| entry.gid).filter(|gid| gid.is_v4() != v6);
        of_family.find(|gid| !gid.is_link_local()).unwrap().ip()
    };
    let options = ServiceOptions { messages: Messages { count: 3, size: 64 }, ..ServiceOptions::default() };
    let mut services = Services::open(&far, &options).unwrap();
    let (heard, stop) = (Heard::default(), Shared::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| services.run(&stop, &heard));
        // Also when the client fails.
        let _ended = Ended(&stop);
        client(&near, [address(false), address(true)]);
        stop.stop();
        server.join().unwrap();
    });
    heard.served.into_inner().unwrap()
}

fn options(program: Program, to: IpAddr, size: usize) -> PingOptions {
    PingOptions {
        program,
        to: (to, program.port()).into(),
        from: None,
        count: Some(3),
        size,
        interval: Duration::ZERO,
        patience: Duration::from_secs(10),
    }
}

#[test]
fn a_ping_over_a_connection_comes_back_whole() {
    let served = beside_servers(|near, addresses| {
        for to in addresses {
            for size in [0, 64, 100_000] {
                let mut told = Vec::new();
                let outcome = ping(near, &options(Program::Rping, to, size), &Shared::default(), |pinged| {
                    told.push(pinged.clone());
                });
                let outcome = outcome.unwrap();
                assert!(outcome.is_good(), "{outcome:?}");
                assert_eq!((outcome.sent, outcome.times.len()), (3, 3));
                assert!(matches!(told[0], Pinged::Connected { path_mtu: Some(_), .. }), "{told:?}");
                assert!(matches!(told[3], Pinged::Answered { number: 2, wrong: 0, .. }), "{told:?}");
            }
        }
    });
    let rounds: Vec<_> = served.iter().map(|served| (served.program, served.count, &served.broken)).collect();
    assert_eq!(rounds, vec![(Program::Rping, 3, &None); 6]);
}

#[test]
fn a_ping_by_datagrams_comes_back_whole() {
    beside_servers(|near, addresses| {
        for to in addresses {
            for size in [0, 64, 1024] {
                let outcome = ping(near, &options(Program::Udaddy, to, size), &Shared::default(), |_| ());
                let outcome = outcome.unwrap();
                assert!(outcome.is_good(), "{outcome:?}");
            }
        }
    });
}

/// From the GID that leads to the server, whichever comes first in the table.
#[test]
fn a_perf_session_goes_over_rdma_cm_alone() {
    beside_servers(|near, addresses| {
        for to in addresses {
            let shared = Arc::new(Shared::default());
            let way = CmWay::new(near, (to, Program::Perf.port()).into(), None, &shared).unwrap();
            let (device, link) = (near.device(0).unwrap(), way.line().unwrap());
            let gid_index = way.gid_index();
            let request = PathRequest::to(to);
            assert_eq!(gid_index, Some(device.gid_index_for(&request).unwrap()));
            let options = ClientOptions { gid_index, ..ClientOptions::default() };
            let mut client = Client::new(link, &device, options, &shared).unwrap();
            for op in ["write-bw", "send-lat", "read-bw"] {
                let params = Params {
                    size: 5000,
                    until: Until::Iters(50),
                    verify: true,
                    ..Params::new(op.parse().unwrap())
                };
                let outcome = client.run(&params).unwrap();
                assert!(outcome.is_verified() && outcome.is_good(), "{op}: {:?}", outcome.first_fault());
                assert_eq!(outcome.messages(), 50);
            }
            client.finish();
        }
    });
}

#[test]
fn a_port_where_nobody_listens_is_told_at_once() {
    beside_servers(|near, [to, _]| {
        let nobody = PingOptions { to: (to, 9).into(), ..options(Program::Rping, to, 64) };
        let begin = std::time::Instant::now();
        let why = ping(near, &nobody, &Shared::default(), |_| ()).unwrap_err().to_string();
        assert!(why.contains("the peer refuses") && why.contains("start the program there"), "{why}");
        assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
    });
}

#[test]
fn clients_of_every_program_come_to_their_end() {
    let served = beside_servers(|near, [to, _]| {
        for (program, connections, received) in
            [(Program::Ucmatose, 4, 12), (Program::Udaddy, 4, 12), (Program::Cmtime, 20, 0)]
        {
            let options = VisitOptions {
                program,
                to: (to, program.port()).into(),
                from: None,
                connections,
                receives: false,
                messages: Messages { count: 3, size: 64 },
                patience: Duration::from_secs(10),
            };
            let outcome = visit(near, &options, &Shared::default()).unwrap();
            assert_eq!(
                (outcome.received, outcome.connects.len()),
                (received, connections.into()),
                "{program}"
            );
        }
    });
    let of =
        |program| served.iter().filter(|served| served.program == program && served.broken.is_none()).count();
    assert_eq!((of(Program::Ucmatose), of(Program::Cmtime)), (4, 20), "{served:?}");
}

#[test]
fn what_is_sent_to_a_group_reaches_its_members() {
    let (near, far) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    for group in ["239.77.1.1", "ff15::7701"] {
        let options = |receives| VisitOptions {
            program: Program::Mckey,
            to: (group.parse::<IpAddr>().unwrap(), Program::Mckey.port()).into(),
            from: None,
            connections: 1,
            receives,
            messages: Messages { count: 5, size: 300 },
            patience: Duration::from_secs(10),
        };
        std::thread::scope(|scope| {
            // The sender waits a while before it sends.
            let receiver = scope.spawn(|| visit(&far, &options(true), &Shared::default()).unwrap());
            visit(&near, &options(false), &Shared::default()).unwrap();
            assert_eq!(receiver.join().unwrap().received, 5, "{group}");
        });
    }
}
