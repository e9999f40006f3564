//! Frames of peers that do nothing but WRITE: each valid, with the next PSN of its queue pair and its iCRC.

use dpdk::{MbufBurst, Mempool, RxQueue, TxQueue};
use std::sync::Arc;
use wire::{
    Addressing, Bth, ExtHeaders, HeaderTemplate, Opcode, Operation, Position, Psn, Qpn, RKey, Reth, Service,
};

const BURST: usize = 32;
/// WRITEs of a queue pair one after the other; the last asks for an ACK.
const RUN: usize = 8;

/// A queue pair to write to.
pub(super) struct Target {
    pub qpn: Qpn,
    pub psn: Psn,
    /// Where, and by which key.
    pub at: u64,
    pub rkey: RKey,
    /// Which of all it is; every byte says so.
    pub index: usize,
    /// The UDP source port of its frames, by which a kernel tells flows apart.
    pub sport: u16,
}

struct Flow {
    index: usize,
    begun: bool,
    bth: Bth,
    psn: Psn,
    frame: Vec<u8>,
}

/// The sender towards one queue.
pub(super) struct Generator {
    rx: RxQueue,
    tx: TxQueue,
    pool: Arc<Mempool>,
    flows: Vec<Flow>,
    next: usize,
    /// Where the BTH begins.
    bth_at: usize,
    burst: MbufBurst<BURST>,
    /// Answers to what this one sends may come here too.
    other: Option<RxQueue>,
}

impl Generator {
    pub fn new(
        (rx, tx): (RxQueue, TxQueue),
        pool: Arc<Mempool>,
        way: &Addressing,
        targets: Vec<Target>,
        size: usize,
    ) -> Result<Generator, String> {
        let opcode = Opcode::of(Service::Rc, Operation::Write, Position::Only).ok_or("RC has no WRITE")?;
        let mut bth_at = 0;
        let mut flow = |target: Target| -> Result<Flow, String> {
            let way = Addressing { udp_sport: target.sport, ..*way };
            let template = HeaderTemplate::new(&way).map_err(|why| why.to_string())?;
            let reth = Reth { va: target.at, rkey: target.rkey, dma_len: size as u32 };
            let bth = Bth { pad_count: Bth::pad_for(size), ..Bth::new(opcode, target.qpn, target.psn) };
            let mut frame = Vec::new();
            let ext = ExtHeaders::EMPTY.with(reth);
            wire::build_frame(&template, &bth, &ext, 7, &vec![target.index as u8; size], &mut frame);
            let payload_and_icrc = size.next_multiple_of(4) + 4;
            bth_at = frame.len() - payload_and_icrc - Reth::LEN - Bth::LEN;
            Ok(Flow { index: target.index, begun: false, bth, psn: target.psn, frame })
        };
        let flows = targets.into_iter().map(&mut flow).collect::<Result<_, _>>()?;
        Ok(Generator { rx, tx, pool, flows, next: 0, bth_at, burst: MbufBurst::new(), other: None })
    }

    /// Sends where another one does from now on.
    pub fn arrive_like(&mut self, other: Generator) {
        let Generator { rx, tx, .. } = other;
        self.tx = tx;
        self.other = Some(rx);
    }

    /// Sends a frame that is nobody's business, of an experimental type.
    pub fn call(&mut self) -> Result<(), String> {
        let flow = self.flows.first().ok_or("there is no queue pair")?;
        let mut frame = flow.frame[..64.min(flow.frame.len())].to_vec();
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let mut mbuf = self.pool.alloc().ok_or("no buffer is left")?;
        if mbuf.extend_from_slice(&frame) && self.burst.push(mbuf).is_ok() {
            self.tx.burst(&mut self.burst);
        }
        Ok(())
    }

    /// Sends a burst; how many frames.
    pub fn send(&mut self) -> Result<u64, String> {
        for _ in 0..BURST / RUN {
            let index = self.next;
            self.next = (index + 1) % self.flows.len();
            let flow = &mut self.flows[index];
            flow.begun = true;
            for frame in 1..=RUN {
                let bth = Bth { psn: flow.psn, ack_req: frame == RUN, ..flow.bth };
                flow.psn = flow.psn.next();
                flow.frame[self.bth_at..self.bth_at + Bth::LEN].copy_from_slice(&bth.to_bytes());
                let icrc = wire::compute_icrc(&flow.frame).map_err(|why| why.to_string())?;
                let end = flow.frame.len();
                flow.frame[end - 4..].copy_from_slice(&icrc.to_le_bytes());
                let mut mbuf = self.pool.alloc().ok_or("no buffer is left")?;
                let fits = mbuf.extend_from_slice(&flow.frame) && self.burst.push(mbuf).is_ok();
                if !fits {
                    return Err("the frame does not fit a buffer".into());
                }
            }
        }
        match self.tx.burst(&mut self.burst) {
            BURST => Ok(BURST as u64),
            sent => Err(format!("the port took {sent} frames of {BURST}")),
        }
    }

    /// Which queue pairs were written to.
    pub fn written(&self) -> impl Iterator<Item = usize> {
        self.flows.iter().filter(|flow| flow.begun).map(|flow| flow.index)
    }

    /// Takes the ACKs away. What is wrong with them the receiver's counters tell.
    pub fn take_answers(&mut self) {
        for rx in std::iter::once(&mut self.rx).chain(&mut self.other) {
            let mut burst = MbufBurst::<BURST>::new();
            while rx.burst(&mut burst) != 0 {
                burst.clear();
            }
        }
    }
}
