//! Linux's work, given to our requester, and Linux's answers to it.

use crate::capture::{self, Capture, Seen};
use crate::flows::{self, Flow};
use crate::messages::{Message, messages};
use crate::quirks;
use crate::responder::{original, read_result};
use crate::side::{IN, OUT, Side, Spec, local};
use engine::wr::Remote;
use engine::{Access, QpState, QpType, SendFlags, SendOp, SendWr, Sge, WcStatus, WrData};
use std::collections::BTreeMap;
use std::fmt;
use wire::{AtomicEth, Ieth, ImmDt, Opcode, Operation, Psn, QKey, Qpn, Reth};

/// What one request packet says. Left out is what is free: IP identification, the M bit.
#[derive(Clone, PartialEq)]
pub struct Request {
    pub opcode: Opcode,
    pub dest: Qpn,
    pub psn: Psn,
    pub ack_req: bool,
    pub solicited: bool,
    pub reth: Option<Reth>,
    pub atomic: Option<AtomicEth>,
    pub imm: Option<ImmDt>,
    pub ieth: Option<Ieth>,
    pub payload: Vec<u8>,
}

impl Request {
    pub fn new(seen: &Seen, qp_type: QpType) -> Self {
        let bth = &seen.frame.bth();
        let ack_req_counts = qp_type == QpType::Rc || !quirks::ACK_REQ_ON_UNRELIABLE;
        Request {
            opcode: bth.opcode,
            dest: bth.dest_qpn,
            psn: bth.psn,
            ack_req: bth.ack_req && ack_req_counts,
            solicited: bth.solicited,
            reth: seen.ext(),
            atomic: seen.ext(),
            imm: seen.ext(),
            ieth: seen.ext(),
            payload: seen.payload().to_vec(),
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { opcode, psn, ack_req, reth, atomic, payload, .. } = self;
        write!(f, "{opcode} {psn} ack {ack_req} {reth:?} {atomic:?} +{}", payload.len())
    }
}

#[test]
fn our_requester_sends_what_linux_sent() {
    let mut requests = 0;
    for capture in capture::all() {
        for flow in flows::connected(&capture) {
            requests += replay(&capture, &flow);
        }
    }
    assert_eq!(requests, 836, "all that the captures hold");
}

/// Room for the results of one READ.
const ROOM: u32 = 0x4000;

fn replay(capture: &Capture, flow: &Flow<'_>) -> usize {
    let messages = messages(flow, capture.mtu());
    let mut side = Side::new(&Spec {
        qp_type: flow.qp_type,
        own: flow.requester,
        peer: flow.responder,
        mtu: capture.mtu(),
        rq_psn: messages[0].psn(),
        sq_psn: messages[0].psn(),
        qkey: QKey::new(0),
    });
    let out: Vec<u8> = messages.iter().flat_map(Message::payload).collect();
    side.register(OUT, 0, out, Access::empty());
    let results = side.register(IN, 0, vec![0; messages.len() * ROOM as usize], Access::LOCAL_WRITE);

    let (mut ours, mut posted, mut sent) = (Vec::new(), 0, 0);
    for &(number, seen) in &flow.frames {
        side.now = seen.at + 1;
        side.engine.on_timeout(side.now);
        // The application posts when its message was first seen.
        while messages.get(posted).is_some_and(|message| message.seen_at <= number) {
            let wr = work_request(posted, &messages[posted], sent);
            sent += messages[posted].payload().len() as u64;
            posted += 1;
            side.post_send(wr);
        }
        if flow.is_response(seen) {
            side.deliver(seen);
        }
        ours.extend(side.emitted().iter().map(|seen| Request::new(seen, flow.qp_type)));
    }
    let linux: Vec<Request> = flow.requests().map(|seen| Request::new(seen, flow.qp_type)).collect();
    if capture.is_lossy() {
        compare_by_psn(capture, &ours, &linux);
    } else {
        assert!(ours == linux, "{}: ours\n{ours:#?}\nLinux's\n{linux:#?}", capture.name);
    }
    let answered = if capture.name == quirks::GONE_BEFORE_THE_LAST_ANSWER {
        let last = flow.responses().last().expect("all but the end is answered").psn();
        messages.iter().filter(|message| !last.is_before(message.last().psn())).count()
    } else {
        messages.len()
    };
    check_completions(capture, &side, answered);
    if side.engine.qps().all(|qp| qp.state() == QpState::Rts) {
        check_results(flow, &messages, &side.memory.content(results));
    }
    linux.len()
}

fn work_request(number: usize, message: &Message<'_>, out: u64) -> SendWr {
    let remote = message
        .reth()
        .map(|reth| Remote { addr: reth.va, rkey: reth.rkey })
        .or_else(|| message.atomic().map(|atomic| Remote { addr: atomic.va, rkey: atomic.rkey }))
        .unwrap_or(Remote { addr: 0, rkey: wire::RKey::new(0) });
    let imm = message.last().ext::<ImmDt>().map_or([0; 4], |imm| imm.0);
    let AtomicEth { swap_or_add, compare, .. } =
        message.atomic().unwrap_or(AtomicEth { va: 0, rkey: wire::RKey::new(0), swap_or_add: 0, compare: 0 });
    let op = match message.operation() {
        Operation::SendImm => SendOp::SendImm(imm),
        Operation::SendInv => SendOp::SendInv(message.last().ext::<Ieth>().expect("a key").rkey),
        Operation::Write => SendOp::Write(remote),
        Operation::WriteImm => SendOp::WriteImm(remote, imm),
        Operation::ReadRequest => SendOp::Read(remote),
        Operation::CompareSwap => SendOp::CompareSwap { remote, compare, swap: swap_or_add },
        Operation::FetchAdd => SendOp::FetchAdd { remote, add: swap_or_add },
        _ => SendOp::Send,
    };
    let place = number as u64 * u64::from(ROOM);
    let sge: Sge = match message.operation() {
        Operation::ReadRequest => local(IN, place, message.reth().map_or(0, |reth| reth.dma_len)),
        Operation::CompareSwap | Operation::FetchAdd => local(IN, place, 8),
        _ => local(OUT, out, message.payload().len() as u32),
    };
    let mut flags = SendFlags::SIGNALED;
    flags.set(SendFlags::SOLICITED, message.last().frame.bth().solicited);
    SendWr { wr_id: number as u64, op, data: WrData::Sges([sge].into_iter().collect()), flags }
}

/// Where packets were lost or late on a way that the capture does not show, order and repetition depend on what cannot be
/// known. What each packet says does not, but for READs, which start again where each side happens to be.
fn compare_by_psn(capture: &Capture, ours: &[Request], linux: &[Request]) {
    let mut by_psn: BTreeMap<u32, &Request> = BTreeMap::new();
    for request in ours {
        by_psn.entry(request.psn.value()).or_insert(request);
    }
    for request in linux {
        let same = by_psn.get(&request.psn.value());
        let is_restart = same.is_none() && request.reth.is_some() && request.payload.is_empty();
        assert!(is_restart || same == Some(&request), "{}: {request:?}, ours {same:?}", capture.name);
    }
}

/// The first `answered` requests completed, as they did on Linux.
fn check_completions(capture: &Capture, side: &Side, answered: usize) {
    let expected = quirks::final_status(&capture.name);
    let cqes = side.completed();
    assert_eq!(cqes.len(), answered, "{}: completions", capture.name);
    for (number, cqe) in cqes.iter().enumerate() {
        // Those that fail, fail with their only request.
        assert_eq!((cqe.wr_id, cqe.status), (number as u64, expected), "{}", capture.name);
    }
    let state = if expected == WcStatus::Success { QpState::Rts } else { QpState::Err };
    assert_eq!(side.shared.state(), state, "{}", capture.name);
}

/// READs and atomics brought what Linux answered.
fn check_results(flow: &Flow<'_>, messages: &[Message<'_>], results: &[u8]) {
    for (number, message) in messages.iter().enumerate() {
        let expected = match message.operation() {
            Operation::ReadRequest => read_result(flow, message).expect("a completed READ was answered"),
            Operation::CompareSwap | Operation::FetchAdd => {
                original(flow, message).expect("a completed atomic was answered").to_ne_bytes().to_vec()
            }
            _ => continue,
        };
        assert!(results[number * ROOM as usize..].starts_with(&expected), "results of request {number}");
    }
}
