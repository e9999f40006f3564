//! What the tests of virtual devices share. One test per file: DPDK starts once per process.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use dpdk::{
    Eal, EalConfig, Mbuf, MbufBurst, Memory, Mempool, PoolConfig, Port, PortConfig, RxQueue, TxQueue, Vdev,
};

/// DPDK on ordinary memory, without PCI, as on any laptop.
pub fn eal() -> Eal {
    let config = EalConfig { memory: Memory::NoHuge { mb: 512 }, ..EalConfig::default() };
    Eal::init(config).unwrap_or_else(|error| panic!("{error}"))
}

/// A pool of `count` buffers of `data_room` bytes, without caches so that counts are exact.
pub fn pool(eal: &Eal, count: u32, data_room: u16) -> Arc<Mempool> {
    let config = PoolConfig { name: "test".into(), count, cache: 0, data_room, socket: None };
    Mempool::new(eal, config).unwrap_or_else(|error| panic!("{error}"))
}

/// An experimental (EtherType 0x88b5) broadcast frame of `len` bytes whose content depends on `seed`.
pub fn frame(len: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([0x02, 0, 0, 0, 0, seed]);
    bytes.extend([0x88, 0xb5]);
    bytes.extend((bytes.len()..len).map(|at| (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ seed));
    bytes
}

/// Whether `bytes` is a frame made by [`frame`]: the kernel sends frames of its own on its interfaces.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.get(12..14) == Some(&[0x88, 0xb5])
}

/// A packet holding `bytes`, in as many buffers as it takes.
pub fn packet(pool: &Mempool, bytes: &[u8]) -> Mbuf {
    let mut segments = bytes.chunks(usize::from(pool.data_room())).map(|chunk| {
        let mut mbuf = pool.alloc().expect("the pool has buffers");
        assert!(mbuf.extend_from_slice(chunk));
        mbuf
    });
    let first = segments.next().expect("a frame is not empty");
    segments.fold(first, |head, tail| head.chain(tail).expect("a chain is shorter than 65535 segments"))
}

/// A packet's bytes, gathered.
pub fn bytes(mbuf: &Mbuf) -> Vec<u8> {
    let gathered: Vec<u8> = mbuf.segments().flatten().copied().collect();
    assert_eq!(gathered.len(), mbuf.pkt_len());
    assert_eq!(mbuf.segments().count(), usize::from(mbuf.nb_segs()));
    gathered
}

/// Asks for nothing, which must do nothing: drivers differ here.
pub fn burst_without_packets(rx: &mut RxQueue, tx: &mut TxQueue, pool: &Mempool) {
    let mut burst = MbufBurst::<8>::new();
    assert_eq!(tx.burst(&mut burst), 0);
    assert!(pool.alloc_bulk(&mut burst, 8));
    assert_eq!(rx.burst(&mut burst), 0);
    assert_eq!(burst.len(), 8);
}

/// Sends one packet, trying for five seconds.
pub fn send(tx: &mut TxQueue, mbuf: Mbuf) {
    let mut burst = MbufBurst::<32>::new();
    burst.push(mbuf).expect("an empty burst has room");
    let sent = within(Duration::from_secs(5), || (tx.burst(&mut burst) == 1).then_some(()));
    assert!(sent.is_some(), "the packet is not taken");
}

/// Receives the next of our frames, waiting for five seconds.
pub fn receive(rx: &mut RxQueue) -> Option<Mbuf> {
    let mut burst = MbufBurst::<32>::new();
    within(Duration::from_secs(5), || {
        rx.burst(&mut burst);
        let mut ours = None;
        for mbuf in burst.drain() {
            if is_ours(&bytes(&mbuf)) {
                assert!(ours.is_none(), "more frames than were sent");
                ours = Some(mbuf);
            }
        }
        ours
    })
}

/// Calls `attempt` until it gives something or the time is up.
pub fn within<T>(limit: Duration, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(result) = attempt() {
            return Some(result);
        }
        if Instant::now() > end {
            return None;
        }
        std::thread::yield_now();
    }
}

/// Moves this thread, and what it starts, into a network namespace of its own with a silent kernel: interfaces
/// made here collide with nobody's, send nothing by themselves, and vanish with the test.
pub fn own_network() {
    assert!(nix::unistd::geteuid().is_root(), "this test makes network interfaces: run it as root");
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
        .unwrap_or_else(|error| panic!("this test needs a network namespace (CAP_SYS_ADMIN): {error}"));
    // Neighbour discovery would mix its frames into ours. A kernel without IPv6 has no such file.
    let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/// Runs `ip` with the words of `arguments`.
pub fn ip(arguments: &str) {
    let output = std::process::Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("the package iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Opens the port of a new virtual device.
pub fn open(eal: &Eal, vdev: &Vdev, config: &PortConfig, pool: &Arc<Mempool>) -> Port {
    let id = eal.add_vdev(vdev).unwrap_or_else(|error| panic!("{error}"));
    let port =
        Port::open(eal, id, config, std::slice::from_ref(pool)).unwrap_or_else(|error| panic!("{error}"));
    println!("{} is {}", port.name(), port.negotiated());
    port
}

/// The port's only pair of queues.
pub fn queue(port: &mut Port) -> (RxQueue, TxQueue) {
    let mut queues = port.take_queues();
    assert_eq!(queues.len(), 1);
    queues.remove(0)
}
