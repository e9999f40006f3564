//! Receives that several queue pairs share: an SRQ, and XRC.

use super::end::{EVERYTHING, Pair, pattern};
use super::verify::{expect, expect_bytes, imm};
use crate::cli::failure::Failure;
use rockhopper::{EventKind, EventSource, QpOptions, QpType, RecvWr, SendWr, SrqOptions, WcOpcode};
use std::time::Duration;

/// Queue pairs of the far end that share its receives.
const SHARERS: usize = 3;
const ROOM: usize = 6000;
const MESSAGES: u64 = 30;
/// Receives of which fewer raise the event.
const LIMIT: u32 = 5;

/// Messages to queue pairs in turn land in the receives of one queue, in order; the limit is told once.
pub fn srq(pair: &Pair) -> Result<(u64, u64), Failure> {
    let options = SrqOptions { max_wr: MESSAGES as u32, limit: LIMIT, ..SrqOptions::default() };
    let srq = pair.far.pd.create_srq(&options)?;
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..SHARERS {
        let sender = pair.near.pd.create_qp(&QpOptions::new(QpType::Rc, &pair.near.cq))?;
        let with_srq = QpOptions { srq: Some(srq.clone()), ..QpOptions::new(QpType::Rc, &pair.far.cq) };
        let receiver = pair.far.pd.create_qp(&with_srq)?;
        pair.join(&sender, &receiver)?;
        senders.push(sender);
        receivers.push(receiver);
    }
    for id in 0..MESSAGES {
        let at = id as usize * ROOM;
        srq.post_recv(RecvWr::new(id).sge(pair.far.mr.sge(at..at + ROOM))).map_err(Failure::setup)?;
    }
    for id in 0..MESSAGES {
        let (turn, data) = (id as usize % SHARERS, pattern(id, ROOM));
        pair.near.mr.write(0, &data)?;
        senders[turn].post_send(SendWr::send(id).sge(pair.near.mr.sge(0..ROOM)))?;
        pair.done(&pair.near)?;
        let received = pair.done(&pair.far)?;
        expect("the receive", received.wr_id, id)?;
        expect("the queue pair", received.qpn, receivers[turn].qpn())?;
        expect_bytes(&pair.far.bytes(id as usize * ROOM, ROOM)?, &data)?;
    }
    let limit = |pair: &Pair| {
        let next = || pair.far.device.next_event(Duration::from_millis(20));
        let told = std::iter::from_fn(next).filter(|event| event.kind == EventKind::SrqLimitReached);
        told.filter(|event| event.source == EventSource::Srq(srq.id())).count()
    };
    expect("the number of limit events", limit(pair), 1)?;
    Ok((MESSAGES, MESSAGES * ROOM as u64))
}

/// One connection reaches two SRQs with every kind of operation.
pub fn xrc(pair: &Pair) -> Result<(u64, u64), Failure> {
    let domain = pair.far.device.open_xrcd()?;
    let srqs = [0, 1].map(|_| pair.far.pd.create_xrc_srq(&SrqOptions::default(), &domain, &pair.far.cq));
    let [first, second] = srqs;
    let srqs = [first?, second?];
    let target = domain.create_target()?;
    let initiator = pair.near.pd.create_qp(&QpOptions::new(QpType::XrcIni, &pair.near.cq))?;
    pair.join(&initiator, &target)?;
    let (near, far) = (&pair.near.mr, pair.far.pd.reg_mr(2 * ROOM, EVERYTHING)?);
    for id in 0..MESSAGES {
        let (srq, data) = (&srqs[id as usize % 2], pattern(id, ROOM));
        let srqn = srq.srqn().unwrap_or_default();
        let post = |wr: SendWr| initiator.post_send(wr.to_srq(srqn));
        near.write(0, &data)?;
        srq.post_recv(RecvWr::new(id).sge(pair.far.mr.sge(0..ROOM))).map_err(Failure::setup)?;
        srq.post_recv(RecvWr::new(id)).map_err(Failure::setup)?;
        post(SendWr::send(1).sge(near.sge(0..ROOM)))?;
        post(SendWr::write_imm(2, far.remote().at(0), imm(id)).sge(near.sge(0..ROOM)))?;
        post(SendWr::read(3, far.remote().at(0)).sge(near.sge(ROOM..2 * ROOM)))?;
        post(SendWr::fetch_add(4, far.remote().at(ROOM as u64), 1).sge(near.sge(2 * ROOM..2 * ROOM + 8)))?;
        for request in 1..=4 {
            expect("the request", pair.done(&pair.near)?.wr_id, request)?;
        }
        for opcode in [WcOpcode::Recv, WcOpcode::RecvRdmaWithImm] {
            let received = pair.done(&pair.far)?;
            expect("the kind of completion", received.opcode, opcode)?;
            expect("the SRQ and the target", (received.srqn, received.qpn), (srq.srqn(), target.qpn()))?;
        }
        expect_bytes(&pair.far.bytes(0, ROOM)?, &data)?;
        expect_bytes(&pair.near.bytes(ROOM, ROOM)?, &data)?;
        expect_bytes(&pair.near.bytes(2 * ROOM, 8)?, &id.to_ne_bytes())?;
    }
    Ok((4 * MESSAGES, MESSAGES * (3 * ROOM as u64 + 8)))
}
