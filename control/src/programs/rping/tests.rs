//! rping's forms against what Linux' rping said to itself, and our two ends against each other.

use super::super::testkit::{capture, pair};
use super::*;
use crate::perf::Shared;
use crate::programs::ProgramError;
use crate::verbs::SendWr;
use engine::{QpType, WcStatus};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);
const CAPTURES: [&str; 2] = ["cm-rping-v4.pcap", "cm-rping-v6.pcap"];
/// The client of the captures, by its address.
const CLIENT: u8 = 2;

#[test]
fn linux_adverts_read_and_write_back() {
    for name in CAPTURES {
        let sends = capture(name).into_iter().filter(|packet| packet.opcode == "RC SEND Only");
        let words: Vec<_> =
            sends.filter(|packet| packet.from == CLIENT).map(|packet| packet.payload).collect();
        assert_eq!(words.len(), 4, "{name}: two rounds");
        for word in &words {
            let word = word.first_chunk::<MESSAGE>().unwrap();
            let advert = Advert::parse(word);
            assert_eq!(advert.len, 200, "{name}: -S 200");
            assert!(advert.addr > 0 && advert.rkey > 0);
            assert_eq!(advert.emit(), *word);
        }
        assert_eq!((&words[0], &words[1]), (&words[2], &words[3]), "the same memory in each round");
        assert_ne!(words[0], words[1]);
    }
}

#[test]
fn our_data_is_that_of_linux() {
    for name in CAPTURES {
        let packets = capture(name);
        let data = |opcode: &'static str| {
            packets.iter().filter(move |packet| packet.opcode == opcode).map(|packet| packet.payload.clone())
        };
        let read: Vec<_> = data("RC READ Response Only").collect();
        assert_eq!(read, [content(0, 200), content(1, 200)], "{name}");
        assert_eq!(data("RC WRITE Only").collect::<Vec<_>>(), read, "{name}");
    }
    assert!(content(7, 0).is_empty());
    assert_eq!(content(7, 1), [0]);
    assert_eq!(content(58, 15)[..14], *b"rdma-ping-58: ");
}

#[test]
fn rounds_between_our_ends_bring_every_byte_back() {
    for size in [0, 1, 64, 5000, MAX_SIZE as usize] {
        let (a, b, connect) = pair(QpType::Rc);
        let mut client = Client::new(&a.pd, &a.cq, &a.qp, size).unwrap();
        let mut server = Server::new(&b.pd, &b.qp, 5).unwrap();
        connect();
        let stop = Shared::default();
        std::thread::scope(|scope| {
            let rounds = scope.spawn(|| {
                let rounds: Vec<_> = (0..3).map(|_| client.round(SOON, &stop).unwrap()).collect();
                stop.stop();
                rounds
            });
            while !stop.is_stopped() {
                if let Some(cqe) = b.cq.wait(Duration::from_millis(1)) {
                    assert_eq!(cqe.wr_id >> 8, 5);
                    server.on_completion(&cqe).unwrap();
                }
            }
            for round in rounds.join().unwrap() {
                assert_eq!(round.wrong, 0, "{size} bytes");
                assert!(round.time > Duration::ZERO);
            }
        });
        assert_eq!(server.rounds, 3);
    }
}

/// A server that is sent these words, one after another, and what it says to the last.
fn told(words: &[&[u8]]) -> ProgramError {
    let (a, b, connect) = pair(QpType::Rc);
    let mut server = Server::new(&b.pd, &b.qp, 0).unwrap();
    connect();
    for word in words {
        a.qp.post_send(SendWr::send(0).inline(word)).unwrap();
    }
    loop {
        let cqe = b.cq.wait(SOON).unwrap();
        if let Err(why) = server.on_completion(&cqe) {
            return why;
        }
    }
}

fn advert(len: u32) -> [u8; MESSAGE] {
    Advert { addr: 0x1000, rkey: 0x1234, len }.emit()
}

#[test]
fn what_no_rping_says_is_refused() {
    for wrong in [&[0; 15][..], &[], &advert(MAX_SIZE + 1), &advert(u32::MAX)] {
        assert!(matches!(told(&[wrong]), ProgramError::Garbled(_)), "{wrong:?}");
    }
    // A second word while the READ is under way, or the READ's failure: which of them is seen first is open.
    let why = told(&[&advert(64), &advert(64)]);
    assert!(matches!(why, ProgramError::Garbled(_) | ProgramError::Completion { .. }), "{why}");
}

#[test]
fn memory_that_is_not_the_clients_ends_the_connection() {
    let why = told(&[&advert(64)]);
    assert!(
        matches!(why, ProgramError::Completion { what: "the READ", status: WcStatus::RemAccessErr }),
        "{why}"
    );
}

#[test]
fn a_server_that_says_nothing_is_told_of() {
    let (a, b, connect) = pair(QpType::Rc);
    let mut client = Client::new(&a.pd, &a.cq, &a.qp, 64).unwrap();
    let _server = Server::new(&b.pd, &b.qp, 0).unwrap();
    connect();
    let patience = Duration::from_millis(100);
    assert!(matches!(client.round(patience, &Shared::default()), Err(ProgramError::Silent(_))));
}
