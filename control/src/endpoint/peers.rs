//! The next hops of connected queue pairs and address handles: looked after while they are used, and followed when they move.
//!
//! A neighbour that no connection asks about would be forgotten; so the control thread asks about each now and then. When one
//! answers or announces itself from another MAC (by the rules of the neighbour cache), queue pairs that send to it are turned to the new one by a
//! command to each worker, some between two bursts, and address handles in place: their MAC is one word, which a worker reads for each
//! packet. Only what sends where the cache said is looked after: whoever names another MAC keeps it.

use super::port::PortCore;
use engine::{QpAttr, QpAttrMask, QpState};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::{Gid, Mac, Qpn};
use worker::{Command, Hop, Reply, Whom};

/// A peer: its VLAN and its address.
type Peer = (Option<u16>, IpAddr);

/// Queue pairs that a worker turns between two bursts.
const TURNED_PER_COMMAND: usize = 256;

/// Peers by queue pair, and neighbours that have moved.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    by_qpn: Mutex<BTreeMap<u32, Peer>>,
    moved: Mutex<Vec<Moved>>,
}

/// A neighbour is at another MAC now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub vlan: Option<u16>,
    pub hop: IpAddr,
    pub from: Mac,
    pub to: Mac,
}

impl Peers {
    fn by_qpn(&self) -> MutexGuard<'_, BTreeMap<u32, Peer>> {
        self.by_qpn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) -> MutexGuard<'_, Vec<Moved>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a move until [`PortCore::follow_moved`].
    pub fn note_moved(&self, moved: Moved) {
        self.moved().push(moved);
    }

    /// A queue pair is gone.
    pub fn forget(&self, qpn: Qpn) {
        self.by_qpn().remove(&qpn.value());
    }
}

impl PortCore {
    /// A queue pair was modified: its peer is looked after from now on, or no more.
    pub fn note_peer(&self, qpn: Qpn, attr: &QpAttr, mask: QpAttrMask) {
        if mask.contains(QpAttrMask::STATE) && attr.state == QpState::Reset {
            self.peers.forget(qpn);
        }
        let Some(path) = attr.path.filter(|_| mask.contains(QpAttrMask::AV)) else { return };
        let (vlan, peer) = (path.link_vlan(), path.dst.ip());
        let stack = self.network.lock();
        let known = stack.link(vlan).and_then(|link| link.known_mac(peer));
        drop(stack);
        if known == Some(path.dmac) {
            self.peers.by_qpn().insert(qpn.value(), (vlan, peer));
        } else {
            self.peers.forget(qpn);
        }
    }

    /// Asks about the next hops in use: the control thread's, each second.
    pub fn look_after_peers(&self) {
        let mut peers = self.peers_of_handles();
        peers.extend(self.peers.by_qpn().values());
        if peers.is_empty() {
            return;
        }
        let now = self.clock.now_ns();
        let mut stack = self.network.lock();
        for (vlan, peer) in peers {
            stack.look_after(now, vlan, peer);
        }
        self.send_waiting(&mut stack);
    }

    /// Turns queue pairs, address handles and connection management to where their next hops are now. Nothing is locked while workers are told.
    pub fn follow_moved(&self) {
        let moved = std::mem::take(&mut *self.peers.moved());
        for Moved { vlan, hop, from, to } in moved {
            for hop in self.hops(vlan, hop) {
                let whom = Whom { vid: vlan.unwrap_or(0), hop };
                self.cm_redirect(&whom, from, to);
                self.redirect_handles(&whom, from, to);
                for lane in &self.lanes {
                    let turn = || Command::Redirect {
                        lane: lane.lane,
                        whom: Box::new(whom.clone()),
                        from,
                        to,
                        most: TURNED_PER_COMMAND,
                    };
                    // A worker that does not answer has no packets to send.
                    while let Ok(Reply::Count(TURNED_PER_COMMAND)) = lane.worker.call(turn()) {}
                }
            }
        }
    }

    /// A neighbour as the next hop of its own packets and, if it is a gateway, of others'.
    fn hops(&self, vlan: Option<u16>, neighbour: IpAddr) -> Vec<Hop> {
        let mut hops = vec![Hop::Host(neighbour.into())];
        let stack = self.network.lock();
        if let Some(link) = stack.link(vlan).filter(|link| link.is_gateway(neighbour)) {
            let bits = |own: &crate::net::Prefix| own.bits() + if own.address().is_ipv4() { 96 } else { 0 };
            let except = link.addresses().iter().map(|own| (Gid::from(own.address()), bits(own))).collect();
            hops.push(Hop::Gateway { v4: neighbour.is_ipv4(), except });
        }
        hops
    }
}
