//! The device under test in this process: an endpoint of ours at the other end of a pair of rings. Its time and the peer's is one that
//! goes by hand, and only when nothing is left to do: a busy machine makes nothing late.

use super::agent::Agent;
use super::run::{Place, Target};
use crate::cli::failure::Failure;
use conform::{CallError, DeviceCall, DeviceInfo, Reply};
use rockhopper::{Endpoint, Hand, RawPort, RingPair};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wire::Gid;

/// How much time passes at once when nothing happens: less than any time that a rule is about.
const STEP: Duration = Duration::from_micros(20);

/// An endpoint of ours and its agent.
pub struct Loopback {
    endpoint: Endpoint,
    agent: Agent,
    hand: Hand,
    pub info: DeviceInfo,
}

impl Target for Loopback {
    fn call(&mut self, call: &DeviceCall, _: &mut dyn FnMut()) -> Result<Reply, CallError> {
        self.agent.call(call)
    }

    fn drive(&mut self) -> bool {
        self.endpoint.poll_in_turn()
    }

    fn rest(&mut self, most: Duration) {
        self.hand.advance(STEP.min(most).as_nanos() as u64);
    }

    fn offers(&self) -> &[String] {
        &self.info.offers
    }
}

/// The peer's port and the device, which know each other's addresses.
pub fn open() -> Result<(RawPort, Loopback, Place), Failure> {
    let (mut port, endpoint, hand) = RawPort::beside_by_hand(&RingPair::default())?;
    let device = endpoint.device(0).ok_or_else(|| Failure::setup("the loopback has no device"))?;
    let mac = device.query_port().map_err(Failure::setup)?.mac;
    let mut agent = Agent::new(device);
    let told = match agent.call(&DeviceCall::Hello) {
        Ok(Reply::Device(info)) => info,
        other => return Err(Failure::setup(format!("the device does not say what it is: {other:?}"))),
    };
    let ours = port.addresses();
    let pair = |v4: bool| {
        let fits = |address: &&IpAddr| address.is_ipv4() == v4 && !Gid::from(**address).is_link_local();
        let (ours, theirs) = (ours.iter().find(fits)?, told.addresses.iter().find(fits)?);
        Some((Gid::from(*ours), Gid::from(*theirs)))
    };
    let place = Place { device_mac: mac, v4: pair(true), v6: pair(false) };
    // The device asks for the peer's MAC, and the peer has to answer meanwhile.
    let peers = [place.v4, place.v6];
    let found = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let finding = scope.spawn(|| {
            let result = peers.iter().flatten().try_for_each(|(peer, _)| agent.find(peer.ip()));
            found.store(true, Ordering::Release);
            result
        });
        while !found.load(Ordering::Acquire) {
            port.receive(&mut Vec::new());
            std::thread::sleep(Duration::from_micros(50));
        }
        finding.join()
    })
    .map_err(|_| Failure::setup("the device's thread panicked"))?
    .map_err(|why| Failure::setup(format!("the device does not find the peer: {why:?}")))?;
    Ok((port, Loopback { endpoint, agent, hand, info: told }, place))
}
