//! ucmatose, in one connection: the server sends its messages, the client as many back, then the server disconnects. Both ends know
//! how many there are and how long; what they say means nothing. Without messages it is connecting and disconnecting.
//!
//! Receives are posted before the peer can send. One more Linux program connects and disconnects, and no more: cmtime, where the client
//! does both.

use super::ProgramError;
use crate::verbs::{Mr, Pd, Qp, RecvWr, SendWr};
use engine::{Access, Cqe, WcOpcode};

/// Port of RDMA_PS_TCP of ucmatose and of cmtime, unless told otherwise.
pub const PORT: u16 = 7471;

/// Most receives that are posted, and most messages that are under way.
const WINDOW: u32 = 64;

/// How many messages each end sends, and of how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// How many.
    pub count: u32,
    /// Bytes of each.
    pub size: usize,
}

impl Default for Messages {
    /// As the program has them unless told otherwise.
    fn default() -> Messages {
        Messages { count: 10, size: 100 }
    }
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More completions.
    GoOn,
    /// All is done here: the server disconnects, the client waits for that.
    Done,
}

/// One end of a connection: a queue pair and how far it has come.
pub struct Talk {
    qp: Qp,
    messages: Messages,
    memory: Mr,
    tag: u64,
    is_server: bool,
    is_connected: bool,
    posted: u32,
    sent: u32,
    received: u32,
}

impl Talk {
    /// Over a queue pair of `pd` in INIT or later, to which nothing is posted and which takes 64 requests of each kind. Requests are
    /// numbered `tag << 8` and on.
    pub fn new(
        pd: &Pd,
        qp: &Qp,
        messages: Messages,
        is_server: bool,
        tag: u64,
    ) -> Result<Talk, ProgramError> {
        let memory = pd.reg_mr(messages.size.max(1), Access::LOCAL_WRITE)?;
        let talk = Talk {
            qp: qp.clone(),
            messages,
            memory,
            tag: tag << 8,
            is_server,
            is_connected: false,
            posted: 0,
            sent: 0,
            received: 0,
        };
        (0..messages.count.min(WINDOW)).try_for_each(|_| talk.post_recv())?;
        Ok(talk)
    }

    /// Messages that came.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// What comes means nothing, so all of it goes to one place.
    fn post_recv(&self) -> Result<(), ProgramError> {
        let wr = RecvWr::new(self.tag).sge(self.memory.sge(0..self.messages.size));
        Ok(self.qp.post_recv(wr)?)
    }

    /// The connection is there.
    pub fn on_established(&mut self) -> Result<Next, ProgramError> {
        self.is_connected = true;
        self.go_on()
    }

    /// A request of ours has ended. It may be a receive before the connection is told of.
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<Next, ProgramError> {
        let is_receive = cqe.opcode == WcOpcode::Recv;
        if !cqe.is_success() {
            let what = if is_receive { "a receive" } else { "a SEND" };
            return Err(ProgramError::Completion { what, status: cqe.status });
        }
        if !is_receive {
            self.sent += 1;
        } else if self.received == self.messages.count {
            return Err(ProgramError::Garbled("it sends more messages than were agreed".into()));
        } else {
            self.received += 1;
            if self.messages.count - self.received >= WINDOW {
                self.post_recv()?;
            }
        }
        self.go_on()
    }

    fn go_on(&mut self) -> Result<Next, ProgramError> {
        let Messages { count, size } = self.messages;
        // The client answers when it has all.
        let may_send = self.is_connected && (self.is_server || self.received == count);
        while may_send && self.posted < count && self.posted - self.sent < WINDOW {
            self.qp.post_send(SendWr::send(self.tag | 1).sge(self.memory.sge(0..size)))?;
            self.posted += 1;
        }
        let is_done = self.is_connected && self.sent == count && self.received == count;
        Ok(if is_done { Next::Done } else { Next::GoOn })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{capture, pair};
    use super::*;
    use engine::QpType;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn in_linux_captures_the_server_sends_first() {
        let sends =
            capture("cm-ucmatose-v4.pcap").into_iter().filter(|packet| packet.opcode == "RC SEND Only");
        // Two connections, three messages each.
        let from: Vec<u8> = sends.map(|packet| packet.from).collect();
        assert_eq!(from, [[1; 6], [2; 6]].concat());
    }

    fn play(messages: Messages, client_has: Messages) -> Result<(Talk, Talk), ProgramError> {
        let (a, b, connect) = pair(QpType::Rc);
        let mut client = Talk::new(&a.pd, &a.qp, client_has, false, 1)?;
        let mut server = Talk::new(&b.pd, &b.qp, messages, true, 2)?;
        connect();
        let mut ends = [(&mut client, &a.cq, Next::GoOn), (&mut server, &b.cq, Next::GoOn)];
        for (talk, _, next) in &mut ends {
            *next = talk.on_established()?;
        }
        let end = std::time::Instant::now() + SOON;
        while ends.iter().any(|(.., next)| *next == Next::GoOn) {
            assert!(std::time::Instant::now() < end, "it comes to no end");
            for (talk, cq, next) in &mut ends {
                if let Some(cqe) = cq.wait(Duration::from_millis(1)) {
                    *next = talk.on_completion(&cqe)?;
                }
            }
        }
        Ok((client, server))
    }

    #[test]
    fn both_ends_come_to_the_end() {
        for (count, size) in [(0, 100), (1, 0), (10, 100), (200, 5000)] {
            let messages = Messages { count, size };
            let (client, server) = play(messages, messages).unwrap();
            assert_eq!((client.received(), server.received()), (count, count));
        }
    }

    #[test]
    fn messages_that_were_not_agreed_on_are_told_of() {
        let (ours, theirs) = (Messages { count: 3, size: 64 }, Messages { count: 3, size: 32 });
        assert!(matches!(play(ours, theirs), Err(ProgramError::Completion { .. })));
    }
}
