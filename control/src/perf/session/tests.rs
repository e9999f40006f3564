//! How a run begins: an end that may be sent to is at work, and an end sends only to one that is.

use super::*;
use crate::RingPair;
use crate::endpoint::Endpoint;
use crate::perf::{ServerOptions, Until, serve};
use engine::WcOpcode;
use std::time::Instant;

/// Longer than any of this takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that goes its way by hand.
struct ByHand<'a> {
    link: Link,
    device: &'a Device,
    side: Side,
    sender: Sender,
    receiver: Option<Receiver>,
}

impl<'a> ByHand<'a> {
    /// As far as to where the server is ready.
    fn new(mut link: Link, device: &'a Device, params: &Params) -> ByHand<'a> {
        let (index, gid) = choose_gid(device, None, false).unwrap();
        let ask = |link: &mut Link, message: &Message| {
            link.send(message).unwrap();
            hear(link, SETUP, &mut Drive::new(device, &Shared::default())).unwrap()
        };
        ask(&mut link, &hello());
        let offer = ask(&mut link, &Message::Run { params: params.clone(), gid });
        let Message::Offer { end: theirs, .. } = offer else { panic!("{offer:?}") };
        let side = Side::new(device, params, index, false).unwrap();
        let run =
            Run { params, side: &side, peers: side.connect(&theirs).unwrap(), is_client: true, tamper: None };
        let receiver = run.receiver().unwrap();
        assert_eq!(ask(&mut link, &Message::Connect { end: side.end() }), Message::Ready);
        let sender = Sender::new(params, &side.qps, run.peers, side.local.clone(), true, None);
        ByHand { link, device, side, sender, receiver }
    }

    /// Does what there is to do until it is `done`; whether it ever is.
    fn work(&mut self, patience: Duration, done: impl Fn(&ByHand<'_>) -> bool) -> bool {
        let begin = Instant::now();
        while !done(self) {
            self.device.core.poll_once();
            while let Some(cqe) = self.side.cq.poll_one() {
                match &mut self.receiver {
                    Some(receiver) if cqe.opcode == WcOpcode::Recv => receiver.on_completion(&cqe).unwrap(),
                    _ => self.sender.on_completion(0, &cqe).unwrap(),
                }
            }
            self.receiver.iter_mut().for_each(|receiver| receiver.refill().unwrap());
            if begin.elapsed() > patience {
                return false;
            }
        }
        true
    }

    fn arrived(&self) -> u64 {
        self.receiver.as_ref().map_or(0, Receiver::arrived)
    }
}

/// A client by hand, and a server at the other end of a ring, which is left alone in the end.
fn with_a_server(change: impl FnOnce(&mut Params), client: impl FnOnce(ByHand<'_>)) {
    let mut params = Params { size: 64, depth: 16, mtu: 1024, ..Params::new("send-bw".parse().unwrap()) };
    change(&mut params);
    let (near, far) = Endpoint::ring_pair(&RingPair::default()).unwrap();
    let (near, far) = (near.device(0).unwrap(), far.device(0).unwrap());
    let (link, far_link) = Link::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || serve(far_link, &far, &ServerOptions::default(), &Shared::default(), |_| ()));
        client(ByHand::new(link, &near, &params));
    });
}

/// A client's first messages arrive before the word that they come: receives have to be posted again by then, or the run begins
/// with a receiver that is not ready.
#[test]
fn a_server_that_is_ready_posts_its_receives_again() {
    let messages = 16 * 20;
    with_a_server(
        |params| params.until = Until::Iters(messages),
        |mut client| {
            client.sender.start(0).unwrap();
            assert!(
                client.work(PATIENCE, |client| client.sender.is_done()),
                "not taken: {messages} messages"
            );
        },
    );
}

/// The client is at work when it says so, and not before.
#[test]
fn a_server_that_sends_begins_when_the_client_says_go() {
    with_a_server(
        |params| params.bidirectional = true,
        |mut client| {
            assert!(!client.work(Duration::from_millis(30), |client| client.arrived() > 0), "sent too early");
            client.link.send(&Message::Go).unwrap();
            assert!(client.work(PATIENCE, |client| client.arrived() > 1000), "it never began");
        },
    );
}
