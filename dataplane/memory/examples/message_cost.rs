//! What a message costs without any device: both engines, registered memory, frames built, sealed, parsed and checked.
//!
//! `message_cost CASE COUNT` does so many messages of a case and prints nothing: it is run under valgrind, which counts
//! instructions (`scripts/instructions.sh`). Without arguments it lists the cases.
#![forbid(unsafe_code)]

use engine::mr::MemoryRegion;
use engine::{
    Access, CompletionQueue, Engine, EngineConfig, EventQueue, Gather, Memory, PacketSink, Payload, PdId,
    QpAttr, QpAttrMask, QpInit, QpShared, QpState, QpType, RecvQueue, RecvWr, RxPacket, SendFlags, SendOp,
    SendQueue, SendWr, Sge, SinkError, TxPacket, WcStatus, WrData,
};
use memory::{Buffer, HostMemory, Regions};
use std::process::ExitCode;
use std::sync::Arc;
use wire::{
    Addressing, Flow, Frame, Gid, ICRC_LEN, LKey, Mac, Mtu, Psn, Qpn, RKey, RoceVersion, TxHeaders,
    write_headers,
};

/// Requests posted at a time; one in so many asks for a completion.
const BATCH: u64 = 32;
const KEY: u32 = 0x0010_015A;
const ROOM: usize = 4352;

/// A case: its name, its payload, how many QPs take turns, and what is done.
struct Case {
    name: &'static str,
    len: u32,
    qps: u32,
    op: fn(engine::wr::Remote) -> SendOp,
}

const CASES: [Case; 6] = [
    Case { name: "write-64", len: 64, qps: 1, op: SendOp::Write },
    Case { name: "write-64-1000-qps", len: 64, qps: 1000, op: SendOp::Write },
    Case { name: "write-4096", len: 4096, qps: 1, op: SendOp::Write },
    Case { name: "send-64", len: 64, qps: 1, op: |_| SendOp::Send },
    Case { name: "read-64", len: 64, qps: 1, op: SendOp::Read },
    Case { name: "fetch-add", len: 8, qps: 1, op: |remote| SendOp::FetchAdd { remote, add: 1 } },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, count] = arguments.as_slice() else {
        CASES.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    };
    let (Some(case), Ok(count)) = (CASES.iter().find(|case| case.name == name), count.parse::<u64>()) else {
        eprintln!("give a case (no argument lists them) and a number of messages");
        return ExitCode::from(2);
    };
    let mut pair = Pair::new(case);
    for batch in 0..count / BATCH {
        pair.batch(case, batch as usize % case.qps as usize);
    }
    ExitCode::SUCCESS
}

/// Frames on their way to the other end.
struct Line {
    memory: HostMemory,
    frames: Vec<([u8; ROOM], usize)>,
    used: usize,
}

impl PacketSink for Line {
    fn emit(&mut self, packet: &TxPacket<'_>) -> Result<(), SinkError> {
        let Some((bytes, len)) = self.frames.get_mut(self.used) else { return Err(SinkError::Full) };
        let (payload, pad) = (packet.payload.len(), packet.pad_len());
        let headers = packet.headers_len();
        *len = headers + payload + pad + ICRC_LEN;
        let TxHeaders { len: begin, bth_offset, mut icrc } =
            write_headers(packet.template, &packet.bth, &packet.ext, 1, payload, bytes);
        let (frame, seal) = bytes[..*len].split_at_mut(headers + payload + pad);
        let mut at = begin;
        match packet.payload {
            Gather::Bytes(bytes) => {
                frame[at..at + bytes.len()].copy_from_slice(bytes);
                at += bytes.len();
            }
            Gather::Piece(span) => {
                self.memory.read(*span, &mut frame[at..at + payload])?;
                at += payload;
            }
            Gather::Spans { .. } => {
                for span in packet.payload.spans() {
                    let end = at + span.len() as usize;
                    self.memory.read(span, &mut frame[at..end])?;
                    at = end;
                }
            }
        }
        if at < frame.len() {
            frame[at..].fill(0);
        }
        icrc.update(&frame[bth_offset..]);
        seal.copy_from_slice(&icrc.to_wire());
        self.used += 1;
        Ok(())
    }
}

/// One side: an engine with its QPs.
struct End {
    engine: Engine<HostMemory>,
    line: Line,
    /// Of what arrives.
    flow: Option<Flow>,
    qps: Vec<Arc<QpShared>>,
    sends: Arc<CompletionQueue>,
    receives: Arc<CompletionQueue>,
    addr: u64,
}

struct Pair {
    a: End,
    b: End,
}

impl Pair {
    fn new(case: &Case) -> Pair {
        Pair { a: End::new(case.qps, 1), b: End::new(case.qps, 2) }
    }

    /// Posts a batch on one of the QPs and has both ends work until it is done.
    fn batch(&mut self, case: &Case, qp: usize) {
        for wr_id in 1..=BATCH {
            let flags = if wr_id == BATCH { SendFlags::SIGNALED } else { SendFlags::empty() };
            let at = wr_id * 8192;
            let op = (case.op)(engine::wr::Remote { addr: self.b.addr + at, rkey: RKey::new(KEY) });
            if matches!(op, SendOp::Send) {
                self.b.qps[qp].post_recv(self.b.receive(wr_id, case.len)).expect("there is room");
            }
            self.a.qps[qp].post_send(self.a.request(wr_id, op, at, case.len, flags)).expect("there is room");
        }
        self.a.qps[qp].answer();
        self.a.engine.on_doorbell(0, self.a.qps[qp].qpn());
        let mut done = 0;
        while done == 0 {
            self.a.transmit_to(&mut self.b);
            self.b.transmit_to(&mut self.a);
            while let Some(cqe) = self.a.sends.poll() {
                assert_eq!((cqe.status, cqe.wr_id), (WcStatus::Success, BATCH));
                done += 1;
            }
        }
        while self.b.receives.poll().is_some() {}
    }
}

impl End {
    fn new(qps: u32, place: u8) -> End {
        let regions = Regions::new(4);
        let buffer = Arc::new(Buffer::new(1 << 20).expect("there is memory"));
        let addr = buffer.addr();
        let region = regions.register(Arc::clone(&buffer)).expect("there is room");
        let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let region = MemoryRegion::user(PdId(1), region, KEY, addr, 1 << 20, rights);
        let config = EngineConfig { max_qps: qps as usize, max_mrs: 4, ..EngineConfig::default() };
        let mut engine = Engine::new(config, regions.reader(), Arc::new(EventQueue::new(16)));
        engine.add_mr(Arc::new(region));
        let sends = Arc::new(CompletionQueue::new(1, 1024, || {}));
        let receives = Arc::new(CompletionQueue::new(2, 1024, || {}));
        let line = Line { memory: regions.reader(), frames: vec![([0; ROOM], 0); 32], used: 0 };
        let mut end = End { engine, line, flow: None, qps: Vec::new(), sends, receives, addr };
        (0..qps).for_each(|number| end.add_qp(number, place));
        end
    }

    fn add_qp(&mut self, number: u32, place: u8) {
        let receives = Arc::new(RecvQueue::new(64, 4));
        let queue = SendQueue::new(64, 4, 64);
        let shared = Arc::new(QpShared::new(Qpn::new(0x100 + number), QpType::Rc, queue, receives));
        let init = QpInit {
            shared: Arc::clone(&shared),
            pd: PdId(1),
            send_cq: Arc::clone(&self.sends),
            recv_cq: Arc::clone(&self.receives),
            sq_sig_all: false,
            port_mtu: Mtu::Mtu4096,
        };
        self.engine.create_qp(init).expect("there is room");
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            let from = shared.state();
            let rule = engine::qp::rule(QpType::Rc, from, state).expect("the way up");
            let mask = rule.required | QpAttrMask::STATE;
            let attr = attributes(state, shared.qpn(), place);
            self.engine.modify_qp(0, shared.qpn(), &attr, mask).expect("the attributes are good");
        }
        self.qps.push(shared);
    }

    fn request(&self, wr_id: u64, op: SendOp, at: u64, len: u32, flags: SendFlags) -> SendWr {
        let data = WrData::Sges([self.sge(at, len)].into_iter().collect());
        SendWr { wr_id, op, data, flags }
    }

    fn receive(&self, wr_id: u64, len: u32) -> RecvWr {
        RecvWr { wr_id, sges: [self.sge(wr_id * 8192, len)].into_iter().collect() }
    }

    fn sge(&self, at: u64, len: u32) -> Sge {
        Sge { addr: self.addr + at, len, lkey: LKey::new(KEY) }
    }

    /// Sends what there is to send, and has the other end take it as a worker does: what was parsed of the first frame below its
    /// BTH is known of the others.
    fn transmit_to(&mut self, other: &mut End) {
        self.engine.poll_transmit(0, &mut self.line);
        let mut place = None;
        for (bytes, len) in &self.line.frames[..self.line.used] {
            let bytes = &bytes[..*len];
            let flow = other.flow.get_or_insert_with(|| flow_of(bytes));
            let mut icrc = flow.parse(bytes, *len, &mut place).expect("they are of one flow");
            let frame = place.as_ref().expect("it was parsed");
            icrc.update(&bytes[frame.l3_offset()..]);
            assert!(icrc.is_right());
            let begin = frame.payload_offset();
            let payload = Payload::contiguous(&bytes[begin..begin + frame.payload_len()]);
            let qpn = frame.bth().dest_qpn;
            let place = other.engine.place_of(qpn, frame.info).expect("it lives there");
            other.engine.deliver_at(0, place, qpn, &RxPacket { frame, head: bytes, payload });
        }
        other.engine.end_burst(0);
        self.line.used = 0;
    }
}

fn flow_of(bytes: &[u8]) -> Flow {
    let frame = Frame::parse(bytes, bytes.len()).expect("we built it");
    Flow::of(&frame, bytes).expect("it is RoCEv2 over IPv4")
}

fn attributes(state: QpState, peer: Qpn, place: u8) -> QpAttr {
    let (mac, gid) = (|n| Mac([2, 0, 0, 0, 0, n]), |n| Gid::from_v4([10, 0, 0, n]));
    let other = 3 - place;
    QpAttr {
        state,
        access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
        path: Some(Addressing {
            version: RoceVersion::V2,
            smac: mac(place),
            dmac: mac(other),
            vlan: None,
            src: gid(place),
            dst: gid(other),
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            udp_sport: 0xC000,
        }),
        path_mtu: Mtu::Mtu4096,
        dest_qpn: peer,
        rq_psn: Psn::new(1),
        sq_psn: Psn::new(1),
        max_rd_atomic: 16,
        max_dest_rd_atomic: 16,
        min_rnr_timer: 12,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        ..QpAttr::default()
    }
}
