//! Requests that Linux sent, to our responder.

use crate::answers::{Answer, is_within};
use crate::capture::{self, Capture, Seen};
use crate::flows::{self, Flow};
use crate::messages::{Message, messages};
use crate::quirks;
use crate::side::{IN, Side, Spec, local};
use engine::{Access, QpType, RegionId, WcStatus};
use std::collections::BTreeMap;
use wire::{AtomicAckEth, AtomicEth, NakCode, Operation, QKey, Reth, Syndrome};

#[test]
fn our_responder_answers_as_linux_did() {
    let mut answers = 0;
    for capture in capture::all() {
        for flow in flows::connected(&capture) {
            answers += replay(&capture, &flow);
        }
    }
    assert_eq!(answers, 479, "all that the captures hold");
}

/// Room of one receive.
const ROOM: u32 = 0x4000;

/// Where requests of a flow lead: by key, an address and the bytes there.
struct Target {
    region: RegionId,
    addr: u64,
    shadow: Vec<u8>,
}

fn replay(capture: &Capture, flow: &Flow<'_>) -> usize {
    let messages = messages(flow, capture.mtu());
    let mut side = Side::new(&Spec {
        qp_type: flow.qp_type,
        own: flow.responder,
        peer: flow.requester,
        mtu: capture.mtu(),
        rq_psn: messages[0].psn(),
        sq_psn: messages[0].psn(),
        qkey: QKey::new(0),
    });
    let inbox = side.register(IN, 0, vec![0; 256 * ROOM as usize], Access::LOCAL_WRITE);
    let mut targets = register_targets(&mut side, capture, &messages);
    let mut pending = messages.iter().peekable();
    let (mut ours, mut receives) = (Vec::new(), Vec::new());
    for (place, &(_, seen)) in flow.frames.iter().enumerate().filter(|(_, (_, seen))| flow.is_request(seen)) {
        side.now = seen.at + 1;
        // The application on the other side of our memory has done its part just in time.
        if let Some(message) = pending.next_if(|message| message.psn() == seen.psn()) {
            prepare(&side, flow, message, &mut targets);
        }
        if let Some(message) =
            taking(&messages, receives.len(), seen).filter(|_| !is_refused_for_now(flow, place))
        {
            let room = if capture.name == quirks::SHORT_RECEIVE.0 { quirks::SHORT_RECEIVE.1 } else { ROOM };
            side.post_recv(receives.len() as u64, local(IN, receives.len() as u64 * u64::from(ROOM), room));
            receives.push(message);
        }
        side.deliver(seen);
        ours.extend(side.emitted().iter().map(Answer::from));
    }
    compare(capture, flow, ours);
    if quirks::final_status(&capture.name) == WcStatus::Success
        && !quirks::OTHER_ANSWERS.iter().any(|quirk| quirk.file == capture.name)
    {
        check_receives(&side, &side.memory.content(inbox), &receives);
    }
    for target in targets.values() {
        assert!(
            side.memory.content(target.region) == target.shadow,
            "{}: memory at {:#x}",
            capture.name,
            target.addr
        );
    }
    flow.responses().count()
}

/// The message for which this packet takes a receive, if it is the next that needs one.
fn taking<'m, 'a>(messages: &'m [Message<'a>], taken: usize, seen: &Seen) -> Option<&'m Message<'a>> {
    let next = messages.iter().filter(|message| message.takes_receive()).nth(taken)?;
    let takes = |packet: &&Seen| packet.frame.info.takes_receive_wqe() && packet.psn() == seen.psn();
    next.packets.iter().any(takes).then_some(next)
}

/// Linux had no receive for this packet: an RNR NAK of it came before an ACK that covers it.
fn is_refused_for_now(flow: &Flow<'_>, place: usize) -> bool {
    let psn = flow.frames[place].1.psn();
    let mut later =
        flow.frames[place + 1..].iter().map(|&(_, seen)| seen).filter(|seen| flow.is_response(seen));
    later.find_map(|seen| match seen.ext::<wire::Aeth>()?.syndrome {
        Syndrome::RnrNak { .. } if seen.psn() == psn => Some(true),
        Syndrome::Ack { .. } if !seen.psn().is_before(psn) => Some(false),
        _ => None,
    }) == Some(true)
}

/// Memory that grants what Linux granted: for each key all that requests under it reach, or what the probe printed.
fn register_targets(side: &mut Side, capture: &Capture, messages: &[Message<'_>]) -> BTreeMap<u32, Target> {
    let all = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let mut ranges: BTreeMap<u32, (u64, u64, Access)> = BTreeMap::new();
    if let Some(probe) = quirks::PROBE_REGIONS.iter().find(|regions| regions.file == capture.name) {
        let end = quirks::PROBE_ADDR + quirks::PROBE_LEN as u64;
        ranges.insert(probe.key, (quirks::PROBE_ADDR, end, all));
        let read_only = (quirks::PROBE_READ_ONLY_ADDR, quirks::PROBE_ADDR, Access::REMOTE_READ);
        ranges.insert(probe.read_only, read_only);
    } else {
        for message in messages {
            let Some((key, addr, len)) = reach(message) else { continue };
            let range = ranges.entry(key).or_insert((addr, addr + len, all));
            (range.0, range.1) = (range.0.min(addr), range.1.max(addr + len));
        }
    }
    ranges
        .into_iter()
        .map(|(key, (addr, end, access))| {
            let shadow = vec![0x55; (end - addr) as usize];
            let region = side.register(key, addr, shadow.clone(), access);
            (key, Target { region, addr, shadow })
        })
        .collect()
}

/// Key, address and length of what a message reaches; none when that is nothing.
fn reach(message: &Message<'_>) -> Option<(u32, u64, u64)> {
    if let Some(AtomicEth { va, rkey, .. }) = message.atomic() {
        return Some((rkey.value(), va, 8));
    }
    let Reth { va, rkey, dma_len } = message.reth()?;
    (dma_len > 0).then_some((rkey.value(), va, u64::from(dma_len)))
}

/// Puts into memory what Linux found there for a READ or atomic, and notes what a WRITE or atomic leaves there.
fn prepare(side: &Side, flow: &Flow<'_>, message: &Message<'_>, targets: &mut BTreeMap<u32, Target>) {
    let Some((key, addr, _)) = reach(message) else { return };
    let Some(target) = targets.get_mut(&key) else { return };
    let at = (addr - target.addr) as usize;
    let mut set = |bytes: &[u8]| {
        side.memory.set(target.region, at, bytes);
        target.shadow[at..at + bytes.len()].copy_from_slice(bytes);
    };
    match message.operation() {
        Operation::ReadRequest => {
            let Some(bytes) = read_result(flow, message) else { return };
            set(&bytes);
        }
        Operation::CompareSwap | Operation::FetchAdd => {
            let Some(original) = original(flow, message) else { return };
            set(&original.to_ne_bytes());
            let AtomicEth { swap_or_add, compare, .. } = message.atomic().expect("an atomic");
            let after = match message.operation() {
                Operation::FetchAdd => original.wrapping_add(swap_or_add),
                _ if original == compare => swap_or_add,
                _ => original,
            };
            target.shadow[at..at + 8].copy_from_slice(&after.to_ne_bytes());
        }
        _ if is_granted(flow, message) => {
            let bytes = message.payload();
            target.shadow[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        _ => {}
    }
}

/// Linux did not refuse it.
fn is_granted(flow: &Flow<'_>, message: &Message<'_>) -> bool {
    !flow.responses().any(|seen| {
        let refusal = seen.ext::<wire::Aeth>().map(|aeth| aeth.syndrome);
        seen.psn() == message.psn() && refusal == Some(Syndrome::Nak(NakCode::RemoteAccess))
    })
}

/// The bytes of all responses to a READ, whichever copy of each was captured.
pub fn read_result(flow: &Flow<'_>, message: &Message<'_>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for step in 0..message.psns {
        let psn = message.psn().add(step);
        let is_it = |seen: &&Seen| seen.psn() == psn && seen.frame.info.operation == Operation::ReadResponse;
        bytes.extend_from_slice(flow.responses().find(is_it)?.payload());
    }
    Some(bytes)
}

/// What an atomic found.
pub fn original(flow: &Flow<'_>, message: &Message<'_>) -> Option<u64> {
    let mut answers = flow.responses().filter(|seen| seen.psn() == message.psn());
    answers.find_map(|seen| seen.ext::<AtomicAckEth>()).map(|header| header.original)
}

fn compare(capture: &Capture, flow: &Flow<'_>, mut ours: Vec<Answer>) {
    let mut linux: Vec<Answer> = flow.responses().map(Answer::from).collect();
    for answer in &mut linux {
        answer.aeth = answer.aeth.map(|aeth| quirks::expected_aeth(&capture.name, aeth));
    }
    if capture.name == quirks::SEQUENCE_NAK_AFTER_RNR {
        let is_sequence_nak = |answer: &Answer| {
            answer.aeth.is_some_and(|aeth| aeth.syndrome == Syndrome::Nak(NakCode::PsnSequence))
        };
        linux.retain(|answer| !is_sequence_nak(answer));
        ours.retain(|answer| !is_sequence_nak(answer));
    }
    if capture.name == quirks::GONE_BEFORE_THE_LAST_ANSWER {
        ours.truncate(linux.len());
    }
    if flow.responses_are_complete(capture) {
        assert!(ours == linux, "{}: ours\n{ours:#?}\nLinux's\n{linux:#?}", capture.name);
    } else {
        assert!(is_within(&linux, &ours), "{}: ours\n{ours:#?}\nLinux's\n{linux:#?}", capture.name);
    }
    if flow.qp_type == QpType::Uc {
        assert!(ours.is_empty());
    }
}

/// Each message that took a receive completed it, with its bytes and its immediate.
fn check_receives(side: &Side, inbox: &[u8], receives: &[&Message<'_>]) {
    let cqes = side.received();
    assert_eq!(cqes.len(), receives.len());
    for (place, (cqe, message)) in cqes.iter().zip(receives).enumerate() {
        let payload = message.payload();
        assert_eq!((cqe.wr_id, cqe.status), (place as u64, WcStatus::Success));
        assert_eq!(cqe.byte_len as usize, payload.len());
        assert_eq!(cqe.imm, message.last().ext::<wire::ImmDt>().map(|imm| imm.0));
        if message.reth().is_none() {
            assert!(inbox[place * ROOM as usize..].starts_with(&payload), "the bytes of receive {place}");
        }
    }
}
