//! `net_tap`: frames arrive without a signal for each, also after a signal came from elsewhere.

mod common;

use std::fs;
use std::time::Duration;

use common::{bytes, eal, frame, open, own_network, packet, pool, queue, receive, send, within};
use dpdk::vdev::AF_PACKET_JUMBO_DATA_ROOM;
use dpdk::{PortConfig, RxQueue, Vdev};
use nix::poll::{PollFd, PollFlags};

#[test]
fn tap_sends_no_signals() {
    own_network();
    let eal = eal();
    let buffers = pool(&eal, 2047, AF_PACKET_JUMBO_DATA_ROOM);
    let config = PortConfig::default();
    let mut tap = open(&eal, &Vdev::tap("t", "rh-tap", None).unwrap(), &config, &buffers);
    let (mut rx, _tx) = queue(&mut tap);
    let mut kernel = open(&eal, &Vdev::af_packet("k", "rh-tap", 1, true).unwrap(), &config, &buffers);
    let (_kernel_rx, mut kernel_tx) = queue(&mut kernel);

    let queues = queues("rh-tap");
    assert!(!queues.is_empty());
    let asynchronous: Vec<_> = queues.iter().filter(|(_, flags)| flags & O_ASYNC != 0).collect();
    assert!(asynchronous.is_empty(), "files and flags: {asynchronous:x?}");

    let mut give = |seed| {
        let sent = frame(100, seed);
        send(&mut kernel_tx, packet(&buffers, &sent));
        sent
    };
    let take = |rx: &mut RxQueue| bytes(&receive(rx).expect("a frame from the kernel"));
    for seed in 0..10 {
        let sent = give(seed);
        assert_eq!(take(&mut rx), sent);
    }
    // Readable while a frame waits: what an idle thread sleeps on.
    let readable = |rx: &RxQueue, limit: u16| {
        let file = rx.file().expect("a tap's queue has a file");
        nix::poll::poll(&mut [PollFd::new(file, PollFlags::POLLIN)], limit).unwrap() == 1
    };
    assert!(!readable(&rx, 50));
    let sent = give(10);
    assert!(readable(&rx, 5000));
    assert_eq!(take(&mut rx), sent);
    assert!(!readable(&rx, 50));
    // The driver takes one signal as the news that signals come, and would wait for the next.
    signal_the_driver();
    for seed in 11..20 {
        let sent = give(seed);
        assert_eq!(take(&mut rx), sent);
    }
}

const O_ASYNC: u32 = 0o20_000;

/// Numbers and flags of this process's files that are queues of a tap.
fn queues(interface: &str) -> Vec<(String, u32)> {
    let about = |file: std::io::Result<fs::DirEntry>| {
        let file = file.ok()?;
        let text = fs::read_to_string(file.path()).ok()?;
        let value = |key| Some(text.lines().find_map(|line| line.strip_prefix(key))?.trim());
        let flags = u32::from_str_radix(value("flags:")?, 8).ok()?;
        (value("iff:")? == interface).then(|| (file.file_name().to_string_lossy().into_owned(), flags))
    };
    fs::read_dir("/proc/self/fdinfo").unwrap().filter_map(about).collect()
}

/// Sends this process the signal that the driver has its handler for: the only real-time one that is caught beyond those of the C library.
fn signal_the_driver() {
    const FIRST: u32 = 34;
    let caught = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(mask, 16).unwrap()
    };
    let signal = (FIRST..=64).find(|signal| caught() & 1 << (signal - 1) != 0);
    let signal = signal.expect("the driver catches a real-time signal");
    let kill = format!("kill -{signal} {}", std::process::id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let pending = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap().trim().to_owned();
        u64::from_str_radix(&mask, 16).unwrap() != 0
    };
    assert!(
        within(Duration::from_secs(5), || (!pending()).then_some(())).is_some(),
        "nobody took the signal"
    );
}
