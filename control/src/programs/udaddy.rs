//! udaddy: datagrams over RDMA_PS_UDP. SIDR tells the client the server's queue pair; every datagram carries its sender's number as
//! immediate data, so that the server, which knows of no connections, can answer.
//!
//! The client sends its messages, and the server as many back, each to the queue pair that the immediate data names. Linux' server waits
//! for all before it answers; ours answers each at once, with the bytes that came. The client counts answers, so that it sees no
//! difference. mckey does as the client does, to a multicast group, and waits for nothing.

use super::ProgramError;
use super::wait::completion;
use crate::perf::Shared;
use crate::verbs::{Ah, Cq, Mr, Pd, Qp, RecvWr, SendWr};
use engine::limits::UD_GRH_BYTES;
use engine::{Access, Cqe, WcOpcode};
use std::collections::VecDeque;
use std::time::Duration;
use wire::{QKey, Qpn};

/// Port of RDMA_PS_UDP; the program knows no other.
pub const PORT: u16 = 7174;

/// Bytes in front of a datagram in its receive.
const GRH: usize = UD_GRH_BYTES as usize;

/// Receives, or sends, and where their bytes are: a slot each.
struct Slots {
    memory: Mr,
    stride: usize,
    count: u32,
}

impl Slots {
    fn new(pd: &Pd, count: u32, size: usize) -> Result<Slots, ProgramError> {
        let stride = (GRH + size).next_multiple_of(64);
        Ok(Slots { memory: pd.reg_mr(stride * count as usize, Access::LOCAL_WRITE)?, stride, count })
    }

    /// The whole slot but for what makes it even.
    fn receive(&self, slot: u32, size: usize) -> engine::Sge {
        let at = slot as usize * self.stride;
        self.memory.sge(at..at + GRH + size)
    }

    /// The datagram in it.
    fn datagram(&self, slot: u32, size: usize) -> engine::Sge {
        let at = slot as usize * self.stride + GRH;
        self.memory.sge(at..at + size)
    }
}

/// The number of a queue pair as immediate data.
fn imm_of(qpn: Qpn) -> [u8; 4] {
    qpn.value().to_be_bytes()
}

fn failed(cqe: &Cqe) -> ProgramError {
    let what = if cqe.opcode == WcOpcode::Recv { "a receive" } else { "a SEND" };
    ProgramError::Completion { what, status: cqe.status }
}

/// The server: one queue pair for all clients.
pub struct Server {
    pd: Pd,
    qp: Qp,
    qkey: QKey,
    slots: Slots,
    size: usize,
    tag: u64,
    /// Datagrams that were answered.
    pub answered: u64,
    /// Datagrams that nobody can answer: without immediate data, or from where no way back is known.
    pub unanswered: u64,
}

impl Server {
    /// Over a queue pair of `pd` in RTS, which takes `depth` requests of each kind and to which nothing is posted. `size`: longest
    /// datagram, bytes. Requests are numbered `tag << 16` and on.
    pub fn new(
        pd: &Pd,
        qp: &Qp,
        qkey: QKey,
        depth: u32,
        size: usize,
        tag: u64,
    ) -> Result<Server, ProgramError> {
        let slots = Slots::new(pd, depth, size)?;
        let (pd, qp) = (pd.clone(), qp.clone());
        let server = Server { pd, qp, qkey, slots, size, tag: tag << 16, answered: 0, unanswered: 0 };
        (0..server.slots.count).try_for_each(|slot| server.post_recv(slot))?;
        Ok(server)
    }

    fn post_recv(&self, slot: u32) -> Result<(), ProgramError> {
        let wr = RecvWr::new(self.tag | u64::from(slot)).sge(self.slots.receive(slot, self.size));
        Ok(self.qp.post_recv(wr)?)
    }

    /// A request of ours has ended. A datagram's slot is sent from, and then receives again.
    pub fn on_completion(&mut self, cqe: &Cqe) -> Result<(), ProgramError> {
        let slot = (cqe.wr_id & 0xFFFF) as u32;
        if !cqe.is_success() {
            return Err(failed(cqe));
        }
        if cqe.opcode != WcOpcode::Recv {
            return self.post_recv(slot);
        }
        match self.answer(slot, cqe) {
            Some(wr) => {
                self.answered += 1;
                Ok(self.qp.post_send(wr)?)
            }
            None => {
                self.unanswered += 1;
                self.post_recv(slot)
            }
        }
    }

    fn answer(&self, slot: u32, cqe: &Cqe) -> Option<SendWr> {
        let peer = Qpn::try_from(u32::from_be_bytes(cqe.imm?)).ok()?;
        let size = (cqe.byte_len as usize).checked_sub(GRH)?;
        let mut grh = [0; GRH];
        self.slots.memory.read(slot as usize * self.slots.stride, &mut grh).ok()?;
        let ah = self.pd.create_ah_from_wc(cqe, &grh).ok()?;
        let wr = SendWr::ud_send(cqe.wr_id, &ah, peer, self.qkey, Some(imm_of(self.qp.qpn())));
        Some(wr.sge(self.slots.datagram(slot, size)))
    }
}

/// Where a client's datagrams go.
#[derive(Clone, Debug)]
pub struct Target {
    /// The way.
    pub ah: Ah,
    /// The queue pair, or all of a group.
    pub qpn: Qpn,
    /// What both sides know.
    pub qkey: QKey,
}

/// The client's end.
pub struct Client {
    qp: Qp,
    cq: Cq,
    target: Target,
    out: Mr,
    slots: Slots,
    size: usize,
    /// Receives that ended while a send was waited for.
    arrived: VecDeque<Cqe>,
}

impl Client {
    /// Over a queue pair of `pd` in RTS, which completes to `cq`, takes `depth` requests of each kind, and to which nothing is posted.
    /// `size`: bytes of the longest datagram.
    pub fn new(
        pd: &Pd,
        cq: &Cq,
        qp: &Qp,
        target: Target,
        depth: u32,
        size: usize,
    ) -> Result<Client, ProgramError> {
        let out = pd.reg_mr(size.max(1), Access::LOCAL_WRITE)?;
        let slots = Slots::new(pd, depth, size)?;
        let (qp, cq, arrived) = (qp.clone(), cq.clone(), VecDeque::with_capacity(depth as usize));
        let client = Client { qp, cq, target, out, slots, size, arrived };
        (0..depth).try_for_each(|slot| client.post_recv(slot))?;
        Ok(client)
    }

    fn post_recv(&self, slot: u32) -> Result<(), ProgramError> {
        Ok(self.qp.post_recv(RecvWr::new(slot.into()).sge(self.slots.receive(slot, self.size)))?)
    }

    /// Sends a datagram, and waits until it has left.
    pub fn send(&mut self, bytes: &[u8], patience: Duration, stop: &Shared) -> Result<(), ProgramError> {
        self.out.write(0, bytes)?;
        let Target { ah, qpn, qkey } = &self.target;
        let wr = SendWr::ud_send(0, ah, *qpn, *qkey, Some(imm_of(self.qp.qpn())));
        self.qp.post_send(wr.sge(self.out.sge(0..bytes.len())))?;
        loop {
            let cqe = completion(&self.cq, patience, stop)?;
            if !cqe.is_success() {
                return Err(failed(&cqe));
            }
            if cqe.opcode != WcOpcode::Recv {
                return Ok(());
            }
            self.arrived.push_back(cqe);
        }
    }

    /// The next datagram that comes. None for `patience`: it, or what it answers, was lost.
    pub fn answer(&mut self, patience: Duration, stop: &Shared) -> Result<Vec<u8>, ProgramError> {
        let cqe = match self.arrived.pop_front() {
            Some(cqe) => cqe,
            None => completion(&self.cq, patience, stop)?,
        };
        if !cqe.is_success() || cqe.opcode != WcOpcode::Recv {
            return Err(failed(&cqe));
        }
        let slot = cqe.wr_id as u32;
        let mut bytes = vec![0; (cqe.byte_len as usize).saturating_sub(GRH)];
        self.slots.memory.read(slot as usize * self.slots.stride + GRH, &mut bytes)?;
        self.post_recv(slot)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{End, capture, pair};
    use super::*;
    use engine::QpType;

    const SOON: Duration = Duration::from_secs(10);
    const QKEY: QKey = QKey::new(0x0123_4567);

    #[test]
    fn linux_names_the_sender_in_immediate_data() {
        let datagrams =
            capture("cm-udaddy-v4.pcap").into_iter().filter(|packet| packet.opcode == "UD SEND Only w/ Imm");
        let named: Vec<_> =
            datagrams.map(|packet| (packet.from, packet.imm, packet.src_qp.map(imm_of))).collect();
        assert_eq!(named.len(), 12, "two clients, three messages each, and as many answers");
        assert!(named.iter().all(|(_, imm, sender)| imm.is_some() && imm == sender));
        assert_eq!(named.iter().filter(|(from, ..)| *from == 2).count(), 6);
    }

    fn ends(depth: u32, size: usize) -> (End, End, Client, Server) {
        let (a, b, connect) = pair(QpType::Ud);
        connect();
        let dgid = b.pd.device().gid(b.pd.device().default_gid_index()).unwrap().gid.ip();
        let target = Target { ah: a.pd.create_ah(dgid, None).unwrap(), qpn: b.qp.qpn(), qkey: QKEY };
        let client = Client::new(&a.pd, &a.cq, &a.qp, target, depth, size).unwrap();
        let server = Server::new(&b.pd, &b.qp, QKEY, depth, size, 3).unwrap();
        (a, b, client, server)
    }

    /// What the server has to do.
    fn serve(server: &mut Server, cq: &Cq, completions: usize) {
        for _ in 0..completions {
            let cqe = cq.wait(SOON).unwrap();
            assert_eq!(cqe.wr_id >> 16, 3);
            server.on_completion(&cqe).unwrap();
        }
    }

    #[test]
    fn every_datagram_comes_back() {
        let (_a, b, mut client, mut server) = ends(4, 1000);
        let stop = Shared::default();
        for round in 0..10_u8 {
            let data = vec![round; usize::from(round) * 100];
            client.send(&data, SOON, &stop).unwrap();
            // A receive and the send that answers.
            serve(&mut server, &b.cq, 2);
            assert_eq!(client.answer(SOON, &stop).unwrap(), data);
        }
        assert_eq!((server.answered, server.unanswered), (10, 0));
        let patience = Duration::from_millis(50);
        assert!(matches!(client.answer(patience, &stop), Err(ProgramError::Silent(_))));
    }

    #[test]
    fn who_does_not_say_who_it_is_gets_no_answer_and_costs_no_receive() {
        let (a, b, client, mut server) = ends(4, 100);
        for _ in 0..10 {
            let Target { ah, qpn, qkey } = &client.target;
            a.qp.post_send(SendWr::ud_send(0, ah, *qpn, *qkey, None)).unwrap();
            serve(&mut server, &b.cq, 1);
        }
        assert_eq!((server.answered, server.unanswered), (0, 10));
    }
}
