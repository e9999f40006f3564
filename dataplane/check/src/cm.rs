//! Connections that are made in the capture: REQ and REP of connection management name both QPs, their first PSNs and the path
//! MTU (rocev2 facts, CM 4 and 6).

use std::collections::VecDeque;
use wire::{Gid, Mtu, Psn, Qpn};

/// Requests that are remembered until their reply comes.
const PENDING: usize = 1024;

/// Where the message begins in a MAD, and a MAD's length.
const BODY: usize = 24;
const MAD: usize = 256;

struct Req {
    src: Gid,
    dst: Gid,
    id: [u8; 4],
    qpn: Qpn,
    psn: Psn,
    mtu: Option<Mtu>,
    /// Its reply was seen; it may come again.
    answered: bool,
}

/// Both ends of a connection.
pub struct Made {
    pub active: (Gid, Qpn, Psn),
    pub passive: (Gid, Qpn, Psn),
    pub mtu: Option<Mtu>,
}

/// What is under way.
#[derive(Default)]
pub struct Cm {
    pending: VecDeque<Req>,
}

impl Cm {
    /// Takes a datagram to QP 1. A reply that matches a request makes a connection.
    pub fn on_mad(&mut self, src: Gid, dst: Gid, mad: &[u8]) -> Option<Made> {
        let body: &[u8; MAD - BODY] = mad.get(BODY..)?.first_chunk()?;
        // Base version, class, class version, method: connection management, version 2, Send.
        if mad[..4] != [1, 7, 2, 3] {
            return None;
        }
        match u16::from_be_bytes([mad[16], mad[17]]) {
            0x10 => self.on_req(src, dst, body),
            0x13 => return self.on_rep(src, dst, body),
            _ => {}
        }
        None
    }

    fn on_req(&mut self, src: Gid, dst: Gid, body: &[u8; MAD - BODY]) {
        let id = four(body, 0);
        let qpn = Qpn::from_bytes(three(body, 32));
        if self.pending.iter().any(|req| (req.src, req.dst, req.id, req.qpn) == (src, dst, id, qpn)) {
            return;
        }
        if self.pending.len() == PENDING {
            self.pending.pop_front();
        }
        let (psn, mtu) = (Psn::from_bytes(three(body, 44)), Mtu::from_code(body[50] >> 4));
        self.pending.push_back(Req { src, dst, id, qpn, psn, mtu, answered: false });
    }

    fn on_rep(&mut self, src: Gid, dst: Gid, body: &[u8; MAD - BODY]) -> Option<Made> {
        let id = four(body, 4);
        let req = self.pending.iter_mut().rev().find(|req| (req.src, req.dst, req.id) == (dst, src, id))?;
        if std::mem::replace(&mut req.answered, true) {
            return None;
        }
        let (qpn, psn) = (Qpn::from_bytes(three(body, 12)), Psn::from_bytes(three(body, 20)));
        // Each names the PSN that the other shall begin with: so do all Linux captures, against the facts' words (CM 12).
        Some(Made { active: (req.src, req.qpn, psn), passive: (src, qpn, req.psn), mtu: req.mtu })
    }
}

fn four(body: &[u8; MAD - BODY], at: usize) -> [u8; 4] {
    [body[at], body[at + 1], body[at + 2], body[at + 3]]
}

fn three(body: &[u8; MAD - BODY], at: usize) -> [u8; 3] {
    [body[at], body[at + 1], body[at + 2]]
}
