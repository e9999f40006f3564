//! The middle packets of a long message leave in a run, lent where they can be: frame by frame what each would be by itself.

mod common;

use common::qp::{PSN, TestMr, TestQp, sges};
use common::raw::way;
use common::{Driven, Endpoint, Shape, Side, settle, sides};
use engine::wr::Remote;
use engine::{QpType, SendOp};
use wire::{
    Bth, ExtHeaders, Frame, HeaderTemplate, Mtu, Opcode, Operation, Position, Psn, Qpn, RKey, Reth, Service,
    build_frame,
};

const QPN: Qpn = Qpn::new(0x31);
const PEER: Qpn = Qpn::new(0x99);
const PACKET: usize = 1024;
/// More than a burst has room for, and more than one AckReq inside.
const COUNT: usize = 70;
/// The last packet has a pad.
const LEN: usize = PACKET * (COUNT - 1) + 5;
const FROM: usize = 3;
const REMOTE: Remote = Remote { addr: 0x7000_0000, rkey: RKey::new(0xABCD) };

fn rig(name: &str, shape: &Shape, qp_type: QpType) -> (Side, Driven, TestQp, TestMr) {
    let (peer, side) = sides(name, shape);
    let driven = Endpoint::new(side, shape).driven();
    let qp = driven.end.create_qp(0, QPN, qp_type);
    driven.end.connect_waiting(&way(driven.end.at, driven.end.peer), &qp, PEER, Mtu::Mtu1024, 0);
    let mr = driven.end.register(0x1, LEN + 100);
    let bytes: Vec<u8> = (0..LEN + 100).map(|at| (at * 7 % 253) as u8).collect();
    mr.buffer.write(0, &bytes).unwrap();
    (peer, driven, qp, mr)
}

fn post(driven: &Driven, qp: &TestQp, mr: &TestMr, write: bool) {
    let op = if write { SendOp::Write(REMOTE) } else { SendOp::Send };
    driven.end.post(qp, 1, op, sges(&[mr.sge(FROM, LEN as u32)]));
}

/// The `number`-th frame of the message, by the plain way; its IPv4 identification is that of the frame that came.
fn expected(
    driven: &Driven,
    mr: &TestMr,
    number: usize,
    (write, service): (bool, Service),
    came: &[u8],
) -> Vec<u8> {
    let template = HeaderTemplate::new(&way(driven.end.at, driven.end.peer)).unwrap();
    let operation = if write { Operation::Write } else { Operation::Send };
    let (begins, ends) = (number == 0, number + 1 == COUNT);
    let opcode = Opcode::of(service, operation, Position::of(begins, ends)).unwrap();
    let asks = ends || (number + 1).is_multiple_of(engine::limits::ACK_REQ_EVERY as usize);
    let ack_req = asks && service == Service::Rc;
    let bth = Bth { ack_req, ..Bth::new(opcode, PEER, Psn::new(PSN).add(number as u32)) };
    let Remote { addr: va, rkey } = REMOTE;
    let reth = ExtHeaders::EMPTY.with(Reth { va, rkey, dma_len: LEN as u32 });
    let ext = if write && begins { reth } else { ExtHeaders::EMPTY };
    let payload = mr.bytes(FROM + number * PACKET, PACKET.min(LEN - number * PACKET));
    let mut frame = Vec::new();
    build_frame(&template, &bth, &ext, u16::from_be_bytes([came[18], came[19]]), &payload, &mut frame);
    frame
}

fn assert_right(frames: &[Vec<u8>], driven: &Driven, mr: &TestMr, kind: (bool, Service)) {
    assert_eq!(frames.len(), COUNT);
    for (number, frame) in frames.iter().enumerate() {
        let parsed = Frame::parse(frame, frame.len()).unwrap();
        parsed.verify_icrc(frame, [&frame[..]]).unwrap();
        assert!(frame == &expected(driven, mr, number, kind, frame), "{number}: {:02x?}", &frame[..80]);
    }
    let traffic = driven.end.counters(0).traffic;
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
    assert_eq!((traffic.tx_frames, traffic.tx_bytes), (COUNT as u64, bytes));
}

fn receive_all(peer: &mut Side) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    loop {
        let burst = peer.receive(0);
        if burst.is_empty() {
            return frames;
        }
        frames.extend(burst);
    }
}

#[test]
fn each_frame_is_the_one_that_its_packet_is_by_itself() {
    for lending in [0, 255] {
        let types = [QpType::Rc, QpType::Uc];
        for (write, qp_type) in types.into_iter().flat_map(|it| [(true, it), (false, it)]) {
            let shape = Shape { lending, ..Shape::default() };
            let name = format!("long{lending}{write}{qp_type:?}");
            let (mut peer, driven, qp, mr) = rig(&name, &shape, qp_type);
            post(&driven, &qp, &mr, write);
            settle(&[&driven]);
            if let Some(pool) = &driven.end.lending {
                assert!(pool.in_use() >= COUNT as u32 - 1, "all but the last, which is short, are lent");
            }
            let frames = receive_all(&mut peer);
            let ids = frames.iter().map(|frame| u16::from_be_bytes([frame[18], frame[19]]));
            assert!(ids.clone().zip(ids.clone().skip(1)).all(|(one, next)| next == one || next == one + 1));
            assert_eq!(
                ids.clone().next_back() < Some(8),
                lending > 0,
                "those that are lent leave in runs, with one identification each"
            );
            assert_right(&frames, &driven, &mr, (write, qp_type.service()));
        }
    }
}

/// A run that finds no small buffer copies what it would have lent; one that finds none at all, or a full ring, goes on where it was.
#[test]
fn a_run_that_is_interrupted_goes_on() {
    let shape = Shape { ring: 7, buffers: 40, lending: 60, ..Shape::default() };
    let (mut peer, driven, qp, mr) = rig("longstop", &shape, QpType::Rc);
    let small = driven.end.lending.clone().unwrap();
    let mut hoards =
        [&driven.end.pool, &small].map(|pool| Vec::from_iter(std::iter::from_fn(|| pool.alloc())));
    hoards[0].truncate(38);
    hoards[1].truncate(55);
    post(&driven, &qp, &mr, true);
    let mut frames = Vec::new();
    for round in 0..300 {
        driven.poll();
        if round % 3 == 0 {
            frames.extend(peer.receive(0));
        }
    }
    assert_right(&frames, &driven, &mr, (true, Service::Rc));
    assert!(driven.end.counters(0).traffic.no_buffer > 5);
    drop(hoards);
}
