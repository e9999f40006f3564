//! Short messages that are alike leave in runs: frame by frame what each would be by itself.

mod common;

use common::qp::{PSN, TestMr, TestQp, sges};
use common::raw::way;
use common::{Driven, Endpoint, Shape, Side, settle, sides};
use engine::wr::Remote;
use engine::{QpType, SendFlags, SendOp, SendWr};
use wire::{
    Bth, ExtHeaders, Frame, HeaderTemplate, Mtu, Opcode, Operation, Position, Psn, Qpn, RKey, Reth, Service,
    build_frame,
};

const QPN: Qpn = Qpn::new(0x31);
const PEER: Qpn = Qpn::new(0x99);
/// More than a burst has room for.
const COUNT: usize = 50;

fn rig(name: &str, shape: &Shape) -> (Side, Driven, TestQp, TestMr) {
    let (peer, side) = sides(name, shape);
    let driven = Endpoint::new(side, shape).driven();
    let qp = driven.end.create_qp(0, QPN, QpType::Rc);
    driven.end.connect_waiting(&way(driven.end.at, driven.end.peer), &qp, PEER, Mtu::Mtu4096, 0);
    let mr = driven.end.register(0x1, 64 * 1024);
    for at in 0..64 * 1024 {
        mr.buffer.write(at, &[(at * 7 % 253) as u8]).unwrap();
    }
    (peer, driven, qp, mr)
}

fn remote(number: usize) -> Remote {
    Remote { addr: 0x7000_0000 + 1000 * number as u64, rkey: RKey::new(0xABCD) }
}

/// Where the bytes of a message lie.
fn place(number: usize) -> usize {
    1024 * number + number
}

fn post(driven: &Driven, qp: &TestQp, mr: &TestMr, write: bool, len: u32) {
    let mut list = qp.shared.send_list().unwrap();
    for number in 0..COUNT {
        let op = if write { SendOp::Write(remote(number)) } else { SendOp::Send };
        let data = sges(&[mr.sge(place(number), len)]);
        list.push(SendWr { wr_id: number as u64, op, data, flags: SendFlags::empty() }).unwrap();
    }
    if list.post() {
        driven.end.link.ring(QPN);
    }
}

/// The frame that a message is, by the plain way; its IPv4 identification is that of the frame that came.
fn expected(driven: &Driven, mr: &TestMr, number: usize, write: bool, len: u32, came: &[u8]) -> Vec<u8> {
    let template = HeaderTemplate::new(&way(driven.end.at, driven.end.peer)).unwrap();
    let operation = if write { Operation::Write } else { Operation::Send };
    let opcode = Opcode::of(Service::Rc, operation, Position::Only).unwrap();
    let bth = Bth { ack_req: true, ..Bth::new(opcode, PEER, Psn::new(PSN).add(number as u32)) };
    let Remote { addr: va, rkey } = remote(number);
    let reth = ExtHeaders::EMPTY.with(Reth { va, rkey, dma_len: len });
    let ext = if write { reth } else { ExtHeaders::EMPTY };
    let mut frame = Vec::new();
    let ip_id = u16::from_be_bytes([came[18], came[19]]);
    build_frame(&template, &bth, &ext, ip_id, &mr.bytes(place(number), len as usize), &mut frame);
    frame
}

#[test]
fn each_frame_is_the_one_that_its_message_is_by_itself() {
    // Without pad and with one; the longest frame that is sealed with its burst's next one; and longer ones, which are lent, or would be.
    let lengths = [0, 1, 2, 3, 4, 8, 12, 16, 20, 60, 64, 67, 128, 144, 256, 436, 454, 455, 1024, 1027];
    for (index, len) in lengths.into_iter().enumerate() {
        for (write, lending) in [(true, 0), (false, 0), (true, 255), (false, 255)] {
            if lending > 0 && len < 1024 {
                continue;
            }
            let shape = Shape { lending, ..Shape::default() };
            let (mut peer, driven, qp, mr) = rig(&format!("run{index}{write}{lending}"), &shape);
            post(&driven, &qp, &mr, write, len);
            settle(&[&driven]);
            let mut frames = peer.receive(0);
            // A burst at a time.
            frames.extend(peer.receive(0));
            assert_eq!(frames.len(), COUNT);
            // A run has one identification, what comes next has the next one.
            let ids = frames.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]]));
            assert!(ids.clone().zip(ids.clone().skip(1)).all(|(one, next)| next == one || next == one + 1));
            assert!(ids.clone().next() < ids.clone().next_back());
            if len < 440 || lending > 0 {
                assert!(ids.clone().next_back() < Some(8), "these leave in runs");
            }
            for (number, frame) in frames.iter().enumerate() {
                let parsed = Frame::parse(frame, frame.len()).unwrap();
                parsed.verify_icrc(frame, [&frame[..]]).unwrap();
                assert_eq!(
                    hex(frame),
                    hex(&expected(&driven, &mr, number, write, len, frame)),
                    "{len} {number}"
                );
            }
            let traffic = driven.end.counters(0).traffic;
            let bytes = frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
            assert_eq!((traffic.tx_frames, traffic.tx_bytes), (COUNT as u64, bytes));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A run that finds no buffer, or a ring that is full, goes on where it was.
#[test]
fn a_run_that_is_interrupted_goes_on() {
    let shape = Shape { ring: 7, buffers: 40, ..Shape::default() };
    let (mut peer, driven, qp, mr) = rig("interrupted", &shape);
    let mut hoard: Vec<_> = std::iter::from_fn(|| driven.end.pool.alloc()).collect();
    hoard.truncate(35);
    post(&driven, &qp, &mr, true, 64);
    let mut frames = Vec::new();
    for round in 0..300 {
        driven.poll();
        if round % 3 == 0 {
            frames.extend(peer.receive(0));
        }
    }
    assert_eq!(frames.len(), COUNT);
    for (number, frame) in frames.iter().enumerate() {
        assert_eq!(hex(frame), hex(&expected(&driven, &mr, number, true, 64, frame)), "{number}");
    }
    assert!(driven.end.counters(0).traffic.no_buffer > 5);
    drop(hoard);
}
