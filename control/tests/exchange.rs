//! The exchange over TCP: what two ends swap, and what strangers get.

use rockhopper::exchange::{Exchange, ExchangeError, Listener, MAX_MESSAGE};
use rockhopper::{QpInfo, RemoteMemory};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(5);

fn listener(host: &str) -> Listener {
    Listener::bind(format!("{host}:0").parse().unwrap()).unwrap()
}

fn info(qpn: u32) -> (QpInfo, RemoteMemory) {
    let qp = QpInfo {
        qpn,
        psn: 77,
        gid: "10.0.0.1".parse().unwrap(),
        gid_type: None,
        mtu: 4096,
        max_rd_atomic: 16,
        qkey: 0,
    };
    (qp, RemoteMemory { addr: u64::MAX, len: 4096, rkey: 0xABCD_EF01 })
}

#[test]
fn two_ends_swap_over_ipv4_and_ipv6() {
    for host in ["127.0.0.1", "[::1]"] {
        let listener = listener(host);
        let address = listener.address().unwrap();
        let client = std::thread::spawn(move || {
            let mut exchange = Exchange::connect(address, SOON).unwrap();
            exchange.swap(&info(1)).unwrap()
        });
        let mut server = listener.accept(SOON).unwrap();
        assert_eq!(server.swap(&info(2)).unwrap(), info(1));
        assert_eq!(client.join().unwrap(), info(2));
    }
}

/// What the server makes of a peer that sends these bytes and goes.
fn stranger(bytes: &[u8]) -> ExchangeError {
    let listener = listener("127.0.0.1");
    let mut stream = TcpStream::connect(listener.address().unwrap()).unwrap();
    stream.write_all(bytes).unwrap();
    let error = listener.accept(SOON).unwrap_err();
    drop(stream);
    error
}

fn framed(json: &str) -> Vec<u8> {
    [&(json.len() as u32).to_be_bytes()[..], json.as_bytes()].concat()
}

#[test]
fn strangers_are_told_apart() {
    assert!(matches!(stranger(b"GET / HTTP/1.1\r\n\r\n"), ExchangeError::TooLong(_)));
    assert!(matches!(stranger(&(MAX_MESSAGE + 1).to_be_bytes()), ExchangeError::TooLong(_)));
    assert!(matches!(stranger(&framed("{")), ExchangeError::Garbled(_)));
    assert!(matches!(stranger(&framed(r#"{"protocol":"other","version":1}"#)), ExchangeError::Garbled(_)));
    let newer = framed(r#"{"protocol":"rockhopper-exchange","version":1000}"#);
    assert!(matches!(stranger(&newer), ExchangeError::Version { theirs: 1000 }));
}

#[test]
fn a_peer_that_goes_away_is_noticed_at_once() {
    let listener = listener("127.0.0.1");
    let stream = TcpStream::connect(listener.address().unwrap()).unwrap();
    drop(stream);
    let begin = Instant::now();
    assert!(matches!(listener.accept(SOON), Err(ExchangeError::Closed)));
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[test]
fn waits_end_and_setup_errors_say_what_to_do() {
    let listener = listener("127.0.0.1");
    assert!(matches!(listener.accept(Duration::from_millis(20)), Err(ExchangeError::Silent(_))));
    let taken = Listener::bind(listener.address().unwrap()).unwrap_err().to_string();
    assert!(taken.contains("another program listens there"), "{taken}");
    let elsewhere = Listener::bind("192.0.2.77:4000".parse().unwrap()).unwrap_err().to_string();
    assert!(elsewhere.contains("no such address"), "{elsewhere}");
    let closed = listener.address().unwrap();
    drop(listener);
    let refused = Exchange::connect(closed, SOON).unwrap_err().to_string();
    assert!(refused.contains("check that the server runs"), "{refused}");
}
