//! One direction: everything that one QP sends to another. Two of them are a connection.

use crate::answers::Answers;
use crate::requests::Requests;
use wire::{Gid, Mtu, Qpn, Service};

/// What names a direction: RC packets do not tell the QP that they come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub src: Gid,
    pub dst: Gid,
    pub dest: Qpn,
}

/// A direction.
#[derive(Debug)]
pub struct Half {
    pub key: Key,
    pub service: Option<Service>,
    pub sport: u16,
    /// Path MTU, from packets that are full or from connection management.
    pub mtu: Option<Mtu>,
    /// The other direction of the connection.
    pub peer: Option<usize>,
    /// How often it was looked for in vain.
    pub tries: u8,
    /// The capture shows its frames as they were sent.
    pub sees_sending: bool,
    /// The capture shows its frames as they arrive.
    pub sees_arriving: bool,
    /// The requests of this direction's sender.
    pub requests: Requests,
    /// What this direction's sender answers to the requests of the other direction.
    pub answers: Answers,
}

impl Half {
    pub fn new(key: Key, sees_sending: bool, sees_arriving: bool) -> Half {
        Half {
            key,
            service: None,
            sport: 0,
            mtu: None,
            peer: None,
            tries: 0,
            sees_sending,
            sees_arriving,
            requests: Requests::default(),
            answers: Answers::default(),
        }
    }

    /// Forgets what was before: the QP numbers are used again.
    pub fn restart(&mut self) {
        self.requests = Requests::default();
        self.answers = Answers::default();
        self.mtu = None;
        self.service = None;
        self.peer = None;
        self.tries = 0;
    }
}
