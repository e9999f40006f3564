//! Requests at line rate, new ones and replayed ones, from somebody who never answers: a peer that means it connects all the same, and
//! what the flood takes is bounded.

use crate::stranger::{Around, OWN, Stranger, request};
use crate::support::{End, SOON, at, counted, until};
use rockhopper::cm::{CmEventKind, ConnParam, PortSpace};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::mad::{Answered, Area, CmMad, CmMessage, CommId, Rej, RejectReason, Rtu};

const PORT: u16 = 7471;
const FLOODER: &str = "10.82.72.66";

/// Accepts those who come from the good peer, and drops the others.
fn serve(listener: &End, stop: &AtomicBool) -> usize {
    let own: IpAddr = OWN.parse().unwrap();
    let mut served = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let Some(event) = listener.channel.wait(Duration::from_millis(5)) else { continue };
        match event.kind {
            CmEventKind::ConnectRequest { .. } if event.id.peer_addr().unwrap().ip() == own => {
                let device = event.id.device().unwrap();
                let (pd, cq) = (device.alloc_pd(), device.create_cq(4).unwrap());
                event.id.create_qp(&pd, &rockhopper::QpOptions::new(rockhopper::QpType::Rc, &cq)).unwrap();
                event.id.accept(&ConnParam::default()).unwrap();
                served.push(event.id);
            }
            _ => {}
        }
    }
    served.len()
}

#[test]
fn a_peer_connects_during_a_flood_of_requests() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at("0.0.0.0", PORT));
    let stop = AtomicBool::new(false);
    let flooder: IpAddr = FLOODER.parse().unwrap();
    let around = Around { source: flooder, ..Around::default() };
    // Of these each is sent again and again: replayed, and in between as new ones.
    let frames: Vec<Vec<u8>> = (0..4096_u32)
        .map(|n| {
            peer.frame(&CmMad::new(n.into(), request(1 + n, 0x1000 + n, PORT, flooder)).to_bytes(), &around)
        })
        .collect();
    std::thread::scope(|threads| {
        let server = threads.spawn(|| serve(&listener, &stop));
        let (mut sent, mut established) = (0_u64, 0);
        for n in 0..5_u32 {
            let (id, begin) = (CommId(0x10_0000 + n), Instant::now());
            let asked = request(id.0, 0x20_0000 + n, PORT, OWN.parse().unwrap());
            let mut again = begin;
            let rep = loop {
                assert!(begin.elapsed() < SOON, "connection {n}: {:?}", peer.endpoint.stats().ports[0]);
                for frame in frames.iter().cycle().skip((sent % 4096) as usize).take(200) {
                    sent += u64::from(peer.port.send(frame));
                }
                // In the middle of it, however fast the answer.
                if sent > 2_500 * u64::from(n + 1) && Instant::now() >= again {
                    // As a peer that gets no answer does.
                    peer.say_if_there_is_room(asked.clone());
                    again += Duration::from_millis(200);
                }
                let rep = peer.hear().iter().find_map(|payload| match CmMad::parse(payload).ok()?.message {
                    CmMessage::Rep(rep) if rep.remote_id == id => Some(rep),
                    _ => None,
                });
                if let Some(rep) = rep {
                    break rep;
                }
            };
            let rtu = Rtu { local_id: id, remote_id: rep.local_id, private_data: wire::mad::Area::EMPTY };
            peer.say_if_there_is_room(rtu);
            established += 1;
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!((established, server.join().unwrap()), (5, 5));
        assert!(sent > 10_000, "{sent} frames are no flood");
    });
    let stats = peer.endpoint.stats().ports[0].clone();
    assert!(counted(&peer.endpoint, "cm_ids") <= 1024 + 16, "{:?}", stats.management);
    drop(listener);
    until("an empty book", || counted(&peer.endpoint, "cm_ids") <= 5);
}

/// Who asks and says at once that it does not want to any more leaves nothing behind, however often, and though nobody reads.
#[test]
fn requests_that_are_withdrawn_leave_nothing() {
    let mut peer = Stranger::new();
    let listener = End::listening(&peer.endpoint, PortSpace::Tcp, at("0.0.0.0", PORT));
    for n in 0..200_u32 {
        peer.say_if_there_is_room(request(1 + n, 0x1000 + n, PORT, OWN.parse().unwrap()));
        let rej = Rej {
            local_id: CommId(1 + n),
            remote_id: CommId(0),
            message: Answered::Other,
            ari_len: 8,
            reason: RejectReason::TIMEOUT,
            // rocev2 facts, CM 7: matched by GUID and sender's ID.
            ari_area: Area::new(&0x1234_u64.to_be_bytes()).unwrap(),
            private_data: Area::EMPTY,
        };
        peer.say_if_there_is_room(rej);
        // The backlog is sixteen.
        if n % 16 == 15 || n == 199 {
            until("the last one's end", || counted(&peer.endpoint, "cm_rx_rej") == u64::from(n) + 1);
        }
    }
    until("an empty book", || counted(&peer.endpoint, "cm_ids") == 0);
    assert_eq!(counted(&peer.endpoint, "cm_rx_req"), 200);
    assert!(listener.channel.poll().is_none(), "nothing is there to be read");
}
