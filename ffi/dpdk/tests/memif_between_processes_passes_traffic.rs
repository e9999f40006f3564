//! `net_memif` between two processes: this test starts itself again as the second one, which echoes.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use common::{burst_without_packets, bytes, eal, frame, open, packet, pool, queue, receive, send, within};
use dpdk::vdev::MemifRole;
use dpdk::{Eal, MbufBurst, Port, PortConfig, Vdev};

/// Tells the second process that it is one, and where the socket is.
const SOCKET: &str = "ROCKHOPPER_TEST_MEMIF_SOCKET";

#[test]
fn memif_between_processes_passes_traffic() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        return echo(Path::new(&socket));
    }
    let socket = PathBuf::from(format!("/tmp/rockhopper-memif-{}.sock", std::process::id()));
    let eal = eal();
    let pool = pool(&eal, 8191, 2048);
    let mut port = end(&eal, MemifRole::Server, &socket, &pool);
    assert_eq!(port.negotiated().driver, "net_memif");
    assert_eq!((port.negotiated().mtu, port.negotiated().scatter), (9000, true), "{}", port.negotiated());
    assert!(!port.link().unwrap().up, "there is no other side yet");

    let mut other = Other(
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memif_between_processes_passes_traffic", "--nocapture"])
            .env(SOCKET, &socket)
            .spawn()
            .unwrap(),
    );
    within(Duration::from_secs(10), || port.link().unwrap().up.then_some(())).expect("the link comes up");
    let (mut rx, mut tx) = queue(&mut port);
    burst_without_packets(&mut rx, &mut tx, &pool);
    for len in [64, 65, 1514, 2049, 4200, 9014] {
        let sent = frame(len, 9);
        send(&mut tx, packet(&pool, &sent));
        let got = receive(&mut rx).unwrap_or_else(|| panic!("{len} bytes there and back"));
        assert_eq!(bytes(&got), sent);
        assert!(len <= 2048 || got.nb_segs() > 1, "{len} bytes in {} segments", got.nb_segs());
    }
    assert!(port.stats().unwrap().rx_packets >= 6);
    send(&mut tx, packet(&pool, &frame(60, 0)));
    assert!(other.0.wait().unwrap().success());
    drop((port, rx, tx));
    assert_eq!(pool.in_use(), 0);
    let _ = std::fs::remove_file(&socket);
}

/// Ends the second process whatever happens here.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn end(eal: &Eal, role: MemifRole, socket: &Path, pool: &std::sync::Arc<dpdk::Mempool>) -> Port {
    let vdev = Vdev::memif("0", role, socket, 0, 2048, 10).unwrap();
    open(eal, &vdev, &PortConfig { mtu: 9000, ..PortConfig::default() }, pool)
}

/// The second process: sends back what it receives until a frame of 60 bytes comes.
fn echo(socket: &Path) {
    let eal = eal();
    let pool = pool(&eal, 8191, 2048);
    let mut port = end(&eal, MemifRole::Client, socket, &pool);
    let (mut rx, mut tx) = queue(&mut port);
    let mut burst = MbufBurst::<32>::new();
    let ended = within(Duration::from_secs(30), || {
        rx.burst(&mut burst);
        if burst.as_slice().iter().any(|mbuf| mbuf.pkt_len() == 60) {
            return Some(());
        }
        tx.burst(&mut burst);
        None
    });
    assert!(ended.is_some(), "the first process does not end");
}
