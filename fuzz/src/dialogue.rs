//! A live engine with one QP, and a peer that sends anything in any order, while the program posts and time passes.

use crate::bytes::Bytes;
use crate::packets;
use crate::setup::{Kind, Setup};
use engine::testkit::{Packet, QPN, attributes};
use engine::wr::{Bind, Remote};
use engine::{
    Access, Cqe, FlushLevel, Placement, QpAttr, QpAttrMask, QpState, QpType, SendFlags, SendOp, SendWr,
    WrData,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use wire::{Frame, Opcode, Operation, Position, Psn, RKey};

/// Any packets to QPs of any service in any state.
pub fn live_engine(data: &[u8]) {
    let mut bytes = Bytes(data);
    let kind = bytes.one_of(&[
        Kind::Own(QpType::Rc),
        Kind::Own(QpType::Uc),
        Kind::Own(QpType::Ud),
        Kind::Shared(QpType::Rc),
        Kind::Shared(QpType::Ud),
        Kind::XrcTarget,
        Kind::XrcInitiator,
    ]);
    let state = bytes.one_of(&[
        QpState::Rts,
        QpState::Rtr,
        QpState::Init,
        QpState::Sqd,
        QpState::Err,
        QpState::Reset,
    ]);
    Dialogue::new(kind, state).run(&mut bytes, Bias::Anything);
}

/// Requests in an order that gets somewhere: messages, duplicates, gaps.
pub fn responder(data: &[u8]) {
    let mut bytes = Bytes(data);
    let kind = bytes.one_of(&[
        Kind::Own(QpType::Rc),
        Kind::Own(QpType::Rc),
        Kind::Own(QpType::Uc),
        Kind::Shared(QpType::Rc),
        Kind::XrcTarget,
    ]);
    Dialogue::new(kind, QpState::Rts).run(&mut bytes, Bias::Requests);
}

/// Responses to a requester with work under way: ACKs, NAKs, READ data, lost and doubled.
pub fn requester(data: &[u8]) {
    let mut bytes = Bytes(data);
    let kind = bytes.one_of(&[Kind::Own(QpType::Rc), Kind::XrcInitiator]);
    Dialogue::new(kind, QpState::Rts).run(&mut bytes, Bias::Responses);
}

/// What a step is most likely to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bias {
    Anything,
    Requests,
    Responses,
}

struct Dialogue {
    setup: Setup,
    before: Vec<Option<Vec<u8>>>,
    /// PSN of the peer's next request, and of our last.
    next: Psn,
    last: Psn,
    posted: u64,
    received: u64,
    sends: BTreeSet<u64>,
    receives: BTreeSet<u64>,
}

const REQUESTS: [(Operation, Position); 16] = [
    (Operation::Send, Position::Only),
    (Operation::Send, Position::First),
    (Operation::Send, Position::Middle),
    (Operation::Send, Position::Last),
    (Operation::SendImm, Position::Only),
    (Operation::SendInv, Position::Last),
    (Operation::Write, Position::Only),
    (Operation::Write, Position::First),
    (Operation::Write, Position::Middle),
    (Operation::Write, Position::Last),
    (Operation::WriteImm, Position::Last),
    (Operation::ReadRequest, Position::Only),
    (Operation::FetchAdd, Position::Only),
    (Operation::CompareSwap, Position::Only),
    (Operation::Flush, Position::Only),
    (Operation::AtomicWrite, Position::Only),
];

const RESPONSES: [(Operation, Position); 6] = [
    (Operation::Acknowledge, Position::Only),
    (Operation::ReadResponse, Position::First),
    (Operation::ReadResponse, Position::Middle),
    (Operation::ReadResponse, Position::Last),
    (Operation::ReadResponse, Position::Only),
    (Operation::AtomicAcknowledge, Position::Only),
];

impl Dialogue {
    fn new(kind: Kind, state: QpState) -> Dialogue {
        let setup = Setup::new(kind, state);
        let before = setup.rig.memory.snapshot();
        Dialogue {
            setup,
            before,
            next: attributes().rq_psn,
            last: attributes().sq_psn,
            posted: 0,
            received: 0,
            sends: BTreeSet::new(),
            receives: BTreeSet::new(),
        }
    }

    fn run(mut self, bytes: &mut Bytes<'_>, bias: Bias) {
        while !bytes.is_empty() {
            match bytes.byte() % 16 {
                0 => self.post_recv(),
                1 | 2 => self.post_send(bytes),
                3 => self.setup.rig.advance(1_000),
                4 => self.setup.rig.advance(u64::from(bytes.word())),
                5..8 => self.transmit(bytes.byte().into()),
                8 => self.bent_frame(bytes),
                9 if bias == Bias::Responses => self.request(bytes, Bias::Requests),
                10 if bias == Bias::Requests => self.request(bytes, Bias::Responses),
                _ => self.request(bytes, bias),
            }
            self.collect();
        }
        self.finish();
    }

    fn post_recv(&mut self) {
        if let Some(rang) = self.setup.post_recv(self.received) {
            self.receives.insert(self.received);
            self.received += 1;
            if rang {
                self.doorbell();
            }
        }
    }

    fn post_send(&mut self, bytes: &mut Bytes<'_>) {
        let op = self.operation(bytes);
        let len = match op {
            SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } | SendOp::AtomicWrite(_) => 8,
            _ => bytes.one_of(&[0, 1, 8, 256, 257, 1000]),
        };
        let sge = self.setup.regions[bytes.one_of(&[0, 0, 0, 2])].sge(1024, len);
        let bare = op.stays_local() || matches!(op, SendOp::Flush { .. });
        let data = WrData::Sges(if bare { Default::default() } else { [sge].into_iter().collect() });
        let flags = SendFlags::from_bits_truncate(bytes.byte().into()) | SendFlags::SIGNALED;
        if let Some(rang) = self.setup.post_send(SendWr { wr_id: self.posted, op, data, flags }) {
            self.sends.insert(self.posted);
            self.posted += 1;
            if rang {
                self.doorbell();
            }
        }
    }

    fn operation(&self, bytes: &mut Bytes<'_>) -> SendOp {
        // What the peer would name; nobody looks at it here.
        let remote = Remote { addr: 0x1000, rkey: self.setup.regions[0].rkey() };
        match bytes.byte() % 14 {
            0 => SendOp::Send,
            1 => SendOp::SendImm([1; 4]),
            2 => SendOp::Write(remote),
            3 => SendOp::WriteImm(remote, [2; 4]),
            4 | 5 => SendOp::Read(remote),
            6 => SendOp::CompareSwap { remote, compare: 1, swap: 2 },
            7 => SendOp::FetchAdd { remote, add: 1 },
            8 => SendOp::SendInv(remote.rkey),
            9 => SendOp::Flush { remote, len: 64, placement: Placement::GLOBAL, level: FlushLevel::Range },
            10 => SendOp::LocalInv(self.setup.target(bytes.byte()).1),
            11 | 12 => SendOp::BindMw(Arc::new(self.bind(bytes))),
            _ => SendOp::AtomicWrite(remote),
        }
    }

    /// A bind, mostly one that the regions allow.
    fn bind(&self, bytes: &mut Bytes<'_>) -> Bind {
        let mw = Arc::clone(&self.setup.windows[usize::from(bytes.byte()) % 2]);
        let key = RKey::new((mw.key() & !0xFF) | u32::from(bytes.byte()));
        let region = &self.setup.regions[bytes.one_of(&[0, 0, 0, 0, 1, 3])];
        let rights = bytes.one_of(&[
            Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            Access::REMOTE_READ | Access::ZERO_BASED,
            Access::REMOTE_WRITE | Access::FLUSH_GLOBAL,
            Access::LOCAL_WRITE,
        ]);
        let len = bytes.one_of(&[64, 1024, 8, 0, 4096]);
        let to = (bytes.byte() < 240).then(|| region.binding(u64::from(bytes.byte()), len, rights));
        Bind { mw, key, to }
    }

    fn doorbell(&mut self) {
        let rig = &mut self.setup.rig;
        rig.engine.on_doorbell(rig.now, QPN);
    }

    fn transmit(&mut self, room: usize) {
        let sent: Vec<Packet> = self.setup.rig.sent_into(room);
        assert!(sent.len() <= room, "the sink says how much fits");
        for packet in sent {
            if packet.info().is_request() {
                self.last = packet.bth.psn;
            } else {
                assert!(self.setup.kind.answers(), "unreliable services do not answer: {packet:?}");
            }
        }
    }

    fn request(&mut self, bytes: &mut Bytes<'_>, bias: Bias) {
        let service = self.setup.kind.qp_type().service();
        let named = match bias {
            Bias::Anything => None,
            Bias::Requests => Some(bytes.one_of(&REQUESTS)),
            Bias::Responses => Some(bytes.one_of(&RESPONSES)),
        };
        let opcode = named.and_then(|(operation, position)| Opcode::of(service, operation, position));
        let opcode = opcode.unwrap_or_else(|| Opcode(bytes.byte()));
        let around = if bias == Bias::Responses { self.last } else { self.next };
        let psn = match bytes.byte() {
            0..200 => around,
            byte @ 200..250 => Psn::new(around.value().wrapping_add(u32::from(byte)).wrapping_sub(225)),
            _ => Psn::new(bytes.word()),
        };
        let frame = packets::frame(&self.setup, opcode, psn, bytes);
        self.deliver(&frame);
        if bias != Bias::Responses && psn == around {
            self.next = around.next();
        }
    }

    /// A right frame with some of its bytes changed: what the parser takes, the engine must bear.
    fn bent_frame(&mut self, bytes: &mut Bytes<'_>) {
        let opcode = Opcode(bytes.byte());
        let mut frame = packets::frame(&self.setup, opcode, self.next, bytes);
        for _ in 0..bytes.byte() % 4 {
            let at = bytes.word() as usize % frame.len();
            frame[at] ^= bytes.byte();
        }
        self.deliver(&frame);
    }

    fn deliver(&mut self, frame: &[u8]) {
        if Frame::parse(frame, frame.len()).is_ok() {
            self.setup.rig.deliver_frame(frame);
        }
    }

    /// Each request completes at most once, and sends in their order.
    fn collect(&mut self) {
        for cqe in self.setup.rig.send_cqes() {
            let first = self.sends.pop_first();
            assert_eq!(first, Some(cqe.wr_id), "in order, each once: {cqe:?}");
        }
        for cqe in self.setup.received() {
            assert!(self.receives.remove(&cqe.wr_id), "a receive that was posted, once: {cqe:?}");
            self.check_length(&cqe);
        }
        let _ = self.setup.rig.raised();
    }

    fn check_length(&self, cqe: &Cqe) {
        // What a receive can hold; a WRITE with immediate tells the length of the WRITE.
        let write = cqe.opcode == engine::WcOpcode::RecvRdmaWithImm;
        assert!(!cqe.is_success() || write || cqe.byte_len <= 800, "{cqe:?}");
    }

    /// ERROR ends everything: each request has then completed exactly once but for the receives that an SRQ still holds, and
    /// nothing was written that was not granted.
    fn finish(mut self) {
        let attr = QpAttr { state: QpState::Err, ..QpAttr::default() };
        let rig = &mut self.setup.rig;
        let moved = rig.engine.modify_qp(rig.now, QPN, &attr, QpAttrMask::STATE);
        // From RESET there is no way to ERROR, and nothing was posted there.
        assert!(moved.is_ok() || rig.state() == QpState::Reset, "{moved:?}");
        self.transmit(usize::MAX);
        self.collect();
        assert_eq!(self.sends.len(), 0, "all are flushed");
        assert_eq!(self.receives.len(), self.setup.receives_left(), "all are flushed");
        let (regions, after) = (&self.setup.regions, self.setup.rig.memory.snapshot());
        for region in &regions[2..] {
            let slot = region.id.slot as usize;
            assert_eq!(after[slot], self.before[slot], "nobody granted this memory");
        }
        let slot = regions[1].id.slot as usize;
        if let (Some(after), Some(before)) = (&after[slot], &self.before[slot]) {
            for gap in [0..8, 108..200, 900..2048] {
                assert_eq!(after[gap.clone()], before[gap], "a receive is written inside of its SGEs only");
            }
        }
    }
}
