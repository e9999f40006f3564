//! What client and server have in common: greeting, choice of address, and the run itself.

use super::bandwidth::Bandwidth;
use super::drive::Drive;
use super::error::RunError;
use super::latency::Latency;
use super::link::{Idle, Link};
use super::op::Verb;
use super::params::Params;
use super::pattern::Pattern;
use super::protocol::{Message, Received, Sent, VERSION};
use super::receiver::Receiver;
use super::sender::Sender;
use super::side::{Peer, Side};
use super::target;
use super::watch::{PeerResult, Shared, Watch};
use crate::endpoint::PathRequest;
use crate::error::QpError;
use crate::verbs::Device;
use hdrhistogram::Histogram;
use std::net::IpAddr;
use std::time::Duration;
use wire::Gid;

/// How long an end may take for its part of setting a run up.
pub(super) const SETUP: Duration = Duration::from_secs(20);

/// Our greeting.
pub(super) fn hello() -> Message {
    Message::Hello { version: VERSION, program: concat!("rockhopper ", env!("CARGO_PKG_VERSION")).into() }
}

/// Waits for the peer's word.
pub(super) fn hear(link: &mut Link, timeout: Duration, idle: &mut impl Idle) -> Result<Message, RunError> {
    loop {
        match link.recv(timeout, idle)?.ok_or(RunError::Stopped)? {
            Message::Alive => {}
            Message::Refuse { reason } => return Err(RunError::Refused(reason)),
            Message::Abort { reason } => return Err(RunError::Peer(reason)),
            message => return Ok(message),
        }
    }
}

/// The GID that leads to the peer's, or the one asked for, if it does.
pub(super) fn gid_towards(device: &Device, asked: Option<usize>, peer: IpAddr) -> Result<usize, RunError> {
    let request = PathRequest { sgid_index: asked, ..PathRequest::to(peer) };
    device.gid_index_for(&request).map_err(|why| QpError::from(why).into())
}

/// The GID to use while nothing is known of the peer: the one asked for, else the first of the wanted family, link-local ones last.
pub(super) fn choose_gid(
    device: &Device,
    asked: Option<usize>,
    v6: bool,
) -> Result<(usize, IpAddr), RunError> {
    if let Some(index) = asked {
        let entry = device.gid(index).ok_or(RunError::GidIndex(index))?;
        return Ok((index, entry.gid.ip()));
    }
    let stack = device.port.network.lock();
    let gid_type = stack.gids().default_type();
    let of_family = |(_, gid): &(usize, Gid)| gid.is_v4() != v6;
    let of_type = stack.gids().iter().filter(|(_, entry)| entry.gid_type == gid_type);
    let mut gids: Vec<(usize, Gid)> =
        of_type.map(|(index, entry)| (index, entry.gid)).filter(of_family).collect();
    gids.sort_by_key(|(index, gid)| (gid.is_link_local(), *index));
    let (index, gid) = gids.first().ok_or(RunError::NoGid(if v6 { "IPv6" } else { "IPv4" }))?;
    Ok((*index, gid.ip()))
}

/// A connected run, ready to go.
pub(super) struct Run<'a> {
    pub params: &'a Params,
    pub side: &'a Side,
    pub peers: Vec<Peer>,
    pub is_client: bool,
    /// A message to spoil, for those who want to see a check fail.
    pub tamper: Option<u64>,
}

/// What a run left.
pub(super) struct Ran {
    pub sent: Sent,
    pub received: Received,
    pub latency: Option<Histogram<u64>>,
    /// What the peer has sent.
    pub theirs: Sent,
    /// The server's account (seen by the client).
    pub peer: PeerResult,
}

impl Run<'_> {
    /// The receiving half, if messages take receives here; posts them.
    pub fn receiver(&self) -> Result<Option<Receiver>, RunError> {
        let params = self.params;
        let receives =
            params.uses_receives() && (!self.is_client || params.bidirectional || params.op.is_ping_pong());
        if !receives {
            return Ok(None);
        }
        let mut receiver = Receiver::new(params, &self.side.qps, self.side.target.clone(), !self.is_client);
        receiver.start()?;
        Ok(Some(receiver))
    }

    /// Runs to the end, and compares what the peer left in our memory.
    pub fn execute(
        self,
        receiver: Option<Receiver>,
        link: &mut Link,
        drive: &mut Drive<'_>,
        shared: &Shared,
    ) -> Result<Ran, RunError> {
        let (params, side, is_client) = (self.params, self.side, self.is_client);
        let mut watch = Watch::new(link, shared, drive.now());
        let mut latency = None;
        let local = side.local.clone();
        let sender = Sender::new(params, &side.qps, self.peers, local, is_client, self.tamper);
        let (sent, mut received) = if params.op.is_latency() {
            let end = Latency {
                params,
                cq: &side.cq,
                target: &side.target,
                sender,
                receiver,
                pattern: Pattern::new(params.seed, 0, !is_client),
                is_client,
                seen: 0,
                received: Received::default(),
            };
            watch.begin(is_client)?;
            if is_client {
                let mut record = super::latency::histogram();
                let accounts = end.measure(drive, &mut watch, &mut record)?;
                latency = Some(record);
                accounts
            } else {
                end.answer(drive, &mut watch)?
            }
        } else {
            let end = Bandwidth {
                cq: &side.cq,
                sender: (is_client || params.bidirectional).then_some(sender),
                receiver,
                duration: params.duration(),
                is_client,
                reliable: params.transport.is_reliable(),
                taken: Vec::with_capacity(Bandwidth::BATCH),
            };
            watch.begin(is_client)?;
            end.run(drive, &mut watch)?
        };
        let peer = watch.peer_result.take().unwrap_or_default();
        let theirs = watch.peer_sent.take().unwrap_or_else(|| peer.sent.clone());
        let wrote = !is_client || params.bidirectional;
        // In a ping-pong each message was compared when it was seen; the next one has overwritten it.
        if params.verify && wrote && !(params.op.is_latency() && params.op.verb == Verb::Write) {
            target::check(params, &side.target, !is_client, &theirs, &mut received);
        }
        let arrived = received.messages.as_ref().map(|messages| messages.iter().sum::<u64>());
        if params.transport.is_reliable() && arrived.is_some_and(|arrived| arrived != theirs.total()) {
            let count = theirs.total();
            received
                .faults
                .add(|| format!("{count} messages were sent and {} arrived", arrived.unwrap_or(0)));
        }
        Ok(Ran { sent, received, latency, theirs, peer })
    }
}

#[cfg(test)]
mod tests;
