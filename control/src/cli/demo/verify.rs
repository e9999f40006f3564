//! Every operation of every service over every way between the ends, each byte compared.

use super::end::{EVERYTHING, MEMORY, Pair, pattern};
use super::keys;
use super::shared;
use super::way;
use crate::cli::failure::Failure;
use crate::cli::out::say;
use rockhopper::perf::Shared;
use rockhopper::{Cqe, Device, QKey, QpType, Qpn, RKey, RecvWr, SendWr, WcOpcode};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Message lengths: nothing, a byte, around one and several packets of 4096, and long.
const LENGTHS: [usize; 10] = [0, 1, 64, 1000, 4095, 4096, 4097, 16_384, 65_537, 1 << 20];
/// Bytes of a datagram fit one packet.
const DATAGRAMS: [usize; 6] = [0, 1, 64, 1000, 4095, 4096];
/// How often an atomic is done.
const ATOMICS: u64 = 100;
/// Groups of this machine's own choice, one of each family.
const GROUP_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 82, 72, 1));
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xFF0E, 0, 0, 0, 0, 0, 0x5248, 1));
/// Before the payload of a datagram.
const GRH: usize = 40;

/// One operation's check.
#[derive(Serialize)]
pub struct Check {
    operation: &'static str,
    transport: String,
    network: &'static str,
    pub messages: u64,
    bytes: u64,
    /// What was wrong; `None`: every byte arrived as it was sent.
    pub fault: Option<String>,
}

type Run = fn(&Pair) -> Result<(u64, u64), Failure>;

const RELIABLE: [(&str, Run); 15] = [
    ("SEND", send),
    ("SEND with immediate", send_imm),
    ("SEND with invalidate", send_inv),
    ("WRITE", write),
    ("WRITE with immediate", write_imm),
    ("READ", read),
    ("compare-and-swap", compare_swap),
    ("fetch-and-add", fetch_add),
    ("ATOMIC WRITE", keys::atomic_write),
    ("FLUSH", keys::flush),
    ("memory window, type 1", keys::window_type_1),
    ("memory window, type 2", keys::window_type_2),
    ("scatter/gather and inline", pieces),
    ("shared receive queue", shared::srq),
    ("all over XRC", shared::xrc),
];
const UNRELIABLE: [(&str, Run); 4] = [
    ("SEND", send),
    ("SEND with immediate", send_imm),
    ("WRITE", write_uc),
    ("WRITE with immediate", write_imm),
];
const DATAGRAM: [(&str, Run); 3] =
    [("SEND", datagram), ("SEND with immediate", datagram_imm), ("SEND to a group", datagram_to_group)];

/// Runs every check, in their order, until stopped.
pub fn all(
    near: &Device,
    far: &Device,
    spoiled: bool,
    stop: &Shared,
    json: bool,
) -> Result<Vec<Check>, Failure> {
    let services: [(QpType, &[(&'static str, Run)]); 3] =
        [(QpType::Rc, &RELIABLE), (QpType::Uc, &UNRELIABLE), (QpType::Ud, &DATAGRAM)];
    let mut checks = Vec::new();
    for way in way::all(near, far)? {
        for (qp_type, operations) in services {
            for &(operation, run) in operations {
                if stop.is_stopped() {
                    return Ok(checks);
                }
                // A queue pair of its own: one fault does not hide the next.
                let outcome = Pair::connect(near, far, qp_type, &way, spoiled).and_then(|pair| run(&pair));
                let (messages, bytes) = *outcome.as_ref().unwrap_or(&(0, 0));
                let fault = outcome.err().map(|why| why.text().unwrap_or("unknown").to_owned());
                let transport = format!("{qp_type:?}").to_uppercase();
                let check = Check { operation, transport, network: way.network, messages, bytes, fault };
                if !json {
                    say(check.line());
                }
                checks.push(check);
            }
        }
    }
    Ok(checks)
}

impl Check {
    fn line(&self) -> String {
        let Check { operation, transport, network, messages, bytes, fault } = self;
        match fault {
            None => {
                format!(
                    "✓ {transport} {network:<13}  {operation:<26} {messages:>4} messages {bytes:>9} bytes"
                )
            }
            Some(why) => format!("✗ {transport} {network:<13}  {operation:<26} {why}"),
        }
    }
}

/// Messages and bytes of a list of lengths.
fn account(lengths: &[usize]) -> (u64, u64) {
    (lengths.len() as u64, lengths.iter().sum::<usize>() as u64)
}

pub fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), Failure> {
    if found == wanted {
        return Ok(());
    }
    Err(Failure::Run(format!("{what} is {found:?}, not {wanted:?}")))
}

pub fn expect_bytes(found: &[u8], wanted: &[u8]) -> Result<(), Failure> {
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        None if found.len() == wanted.len() => Ok(()),
        at => Err(Failure::Run(format!("byte {at:?} of {} is wrong", wanted.len()))),
    }
}

/// Sends each length to a posted receive; `make` builds the request and `arrived` looks at the completion.
fn messages(
    pair: &Pair,
    make: impl Fn(u64) -> SendWr,
    arrived: impl Fn(u64, &Cqe) -> Result<(), Failure>,
) -> Result<(u64, u64), Failure> {
    let lengths = pair.lengths(&LENGTHS);
    for (id, &len) in (0..).zip(lengths) {
        let data = pattern(id, len);
        pair.near.mr.write(0, &data)?;
        pair.until_whole(|| {
            pair.expect(RecvWr::new(id).sge(pair.far.mr.sge(0..len)))?;
            pair.near.qp.post_send(make(id).sge(pair.near.mr.sge(0..len)))?;
            pair.done(&pair.near)?;
            let received = pair.received()?;
            expect("the length", received.byte_len as usize, len)?;
            arrived(id, &received)?;
            expect_bytes(&pair.far.bytes(0, len)?, &data)
        })?;
    }
    Ok(account(lengths))
}

pub(super) fn imm(id: u64) -> [u8; 4] {
    (id as u32 ^ 0xC0DE_0000).to_be_bytes()
}

fn send(pair: &Pair) -> Result<(u64, u64), Failure> {
    messages(pair, SendWr::send, |_, received| expect("the immediate", received.imm, None))
}

fn send_imm(pair: &Pair) -> Result<(u64, u64), Failure> {
    messages(
        pair,
        |id| SendWr::send_imm(id, imm(id)),
        |id, received| expect("the immediate", received.imm, Some(imm(id))),
    )
}

fn write_imm(pair: &Pair) -> Result<(u64, u64), Failure> {
    messages(
        pair,
        |id| SendWr::write_imm(id, pair.far.mr.remote().at(0), imm(id)),
        |id, received| {
            expect("the kind of completion", received.opcode, WcOpcode::RecvRdmaWithImm)?;
            expect("the immediate", received.imm, Some(imm(id)))
        },
    )
}

/// A fast-registered region is made valid, used by a WRITE, and taken back by the SEND.
fn send_inv(pair: &Pair) -> Result<(u64, u64), Failure> {
    let region = pair.far.pd.alloc_fast_mr(4096)?;
    let mut expected = [0; 64];
    for turn in 0..10u8 {
        pair.far.qp.post_send(SendWr::reg_mr(1, &region, turn, EVERYTHING))?;
        pair.done(&pair.far)?;
        let key = region.key();
        expected.copy_from_slice(&pattern(turn.into(), 64));
        pair.near.qp.post_send(SendWr::write(2, region.remote().at(0)).inline(&expected).unsignaled())?;
        pair.far.qp.post_recv(RecvWr::new(3).sge(pair.far.mr.sge(0..8)))?;
        pair.near.qp.post_send(SendWr::send_inv(4, key).inline(&[turn; 8]))?;
        pair.done(&pair.near)?;
        let received = pair.done(&pair.far)?;
        expect("the invalidated key", received.invalidated.map(RKey::value), Some(key.value()))?;
        expect("the region's validity", region.is_valid(), false)?;
        let mut written = [0; 64];
        region.buffer().read(0, &mut written)?;
        expect_bytes(&written, &expected)?;
        expect_bytes(&pair.far.bytes(0, 8)?, &[turn; 8])?;
    }
    Ok((20, 720))
}

fn write(pair: &Pair) -> Result<(u64, u64), Failure> {
    for (id, len) in (0..).zip(LENGTHS) {
        let data = pattern(id, len);
        pair.near.mr.write(0, &data)?;
        let to = pair.far.mr.remote().at(64);
        pair.near.qp.post_send(SendWr::write(id, to).sge(pair.near.mr.sge(0..len)))?;
        pair.done(&pair.near)?;
        expect_bytes(&pair.far.bytes(64, len)?, &data)?;
    }
    Ok(account(&LENGTHS))
}

/// The sender of an unreliable WRITE learns nothing of its arrival: a SEND behind it tells.
fn write_uc(pair: &Pair) -> Result<(u64, u64), Failure> {
    let lengths = pair.lengths(&LENGTHS);
    for (id, &len) in (0..).zip(lengths) {
        let data = pattern(id, len);
        pair.near.mr.write(0, &data)?;
        let to = pair.far.mr.remote().at(64);
        pair.until_whole(|| {
            pair.expect(RecvWr::new(id))?;
            pair.near.qp.post_send(SendWr::write(id, to).sge(pair.near.mr.sge(0..len)).unsignaled())?;
            pair.near.qp.post_send(SendWr::send(id))?;
            pair.done(&pair.near)?;
            pair.received()?;
            expect_bytes(&pair.far.bytes(64, len)?, &data)
        })?;
    }
    Ok(account(lengths))
}

fn read(pair: &Pair) -> Result<(u64, u64), Failure> {
    for (id, len) in (0..).zip(LENGTHS) {
        let data = pattern(id, len);
        pair.far.mr.write(MEMORY / 2, &data)?;
        let from = pair.far.mr.remote().at(MEMORY as u64 / 2);
        pair.near.qp.post_send(SendWr::read(id, from).sge(pair.near.mr.sge(0..len)))?;
        let done = pair.done(&pair.near)?;
        expect("the length", done.byte_len as usize, len)?;
        expect_bytes(&pair.near.bytes(0, len)?, &data)?;
    }
    Ok(account(&LENGTHS))
}

fn fetch_add(pair: &Pair) -> Result<(u64, u64), Failure> {
    pair.far.mr.buffer().store_u64(8, 5)?;
    for turn in 0..ATOMICS {
        let add = SendWr::fetch_add(turn, pair.far.mr.remote().at(8), 3).sge(pair.near.mr.sge(0..8));
        pair.near.qp.post_send(add)?;
        pair.done(&pair.near)?;
        expect("the value fetched", pair.near.mr.buffer().load_u64(0)?, 5 + 3 * turn)?;
    }
    expect("the sum", pair.far.mr.buffer().load_u64(8)?, 5 + 3 * ATOMICS)?;
    Ok((ATOMICS, 8 * ATOMICS))
}

fn compare_swap(pair: &Pair) -> Result<(u64, u64), Failure> {
    for turn in 0..ATOMICS {
        // Every other one finds what it compares with.
        let (there, fits) = (turn * 7 + 1, turn % 2 == 0);
        pair.far.mr.buffer().store_u64(8, there)?;
        let compare = if fits { there } else { !there };
        let swap = SendWr::compare_swap(turn, pair.far.mr.remote().at(8), compare, turn);
        pair.near.qp.post_send(swap.sge(pair.near.mr.sge(0..8)))?;
        pair.done(&pair.near)?;
        expect("the value found", pair.near.mr.buffer().load_u64(0)?, there)?;
        expect("the value left", pair.far.mr.buffer().load_u64(8)?, if fits { turn } else { there })?;
    }
    Ok((ATOMICS, 8 * ATOMICS))
}

/// One message from three pieces into two, and one from the request itself.
fn pieces(pair: &Pair) -> Result<(u64, u64), Failure> {
    let data = pattern(1, 10_000);
    pair.near.mr.write(0, &data)?;
    let (from, to) = (&pair.near.mr, &pair.far.mr);
    pair.far.qp.post_recv(RecvWr::new(1).sge(to.sge(0..5001)).sge(to.sge(8000..12_999)))?;
    let gathered = SendWr::send(1).sge(from.sge(0..17)).sge(from.sge(17..9000)).sge(from.sge(9000..10_000));
    pair.near.qp.post_send(gathered)?;
    pair.done(&pair.near)?;
    pair.done(&pair.far)?;
    expect_bytes(&[pair.far.bytes(0, 5001)?, pair.far.bytes(8000, 4999)?].concat(), &data)?;
    pair.near.qp.post_send(SendWr::write(2, to.remote().at(0)).inline(&data[..100]))?;
    pair.done(&pair.near)?;
    expect_bytes(&pair.far.bytes(0, 100)?, &data[..100])?;
    Ok((2, 10_100))
}

fn datagram(pair: &Pair) -> Result<(u64, u64), Failure> {
    let peer = pair.far.qp.info(&pair.far.options);
    datagrams(pair, (peer.gid, peer.qpn()?), |_| None)
}

fn datagram_imm(pair: &Pair) -> Result<(u64, u64), Failure> {
    let peer = pair.far.qp.info(&pair.far.options);
    datagrams(pair, (peer.gid, peer.qpn()?), |id| Some(imm(id)))
}

fn datagram_to_group(pair: &Pair) -> Result<(u64, u64), Failure> {
    let own = pair.near.qp.info(&pair.near.options).gid;
    let group = if own.is_ipv4() { GROUP_V4 } else { GROUP_V6 };
    pair.far.qp.attach_mcast(group, 0)?;
    datagrams(pair, (group, Qpn::MULTICAST), |id| Some(imm(id)))
}

fn datagrams(
    pair: &Pair,
    (address, qpn): (IpAddr, Qpn),
    imm: impl Fn(u64) -> Option<[u8; 4]>,
) -> Result<(u64, u64), Failure> {
    let qkey = QKey::new(pair.far.qp.info(&pair.far.options).qkey);
    let ah = pair.near.pd.create_ah(address, pair.near.options.sgid_index)?;
    let lengths = DATAGRAMS.partition_point(|&len| len <= pair.longest_datagram());
    for (id, &len) in (0..).zip(&DATAGRAMS[..lengths]) {
        let data = pattern(id, len);
        pair.near.mr.write(0, &data)?;
        pair.until_whole(|| {
            pair.expect(RecvWr::new(id).sge(pair.far.mr.sge(0..GRH + len)))?;
            let send = SendWr::ud_send(id, &ah, qpn, qkey, imm(id));
            pair.near.qp.post_send(send.sge(pair.near.mr.sge(0..len)))?;
            pair.done(&pair.near)?;
            let received = pair.received()?;
            expect("the length", received.byte_len as usize, GRH + len)?;
            expect("the sender", received.src_qp, pair.near.qp.qpn())?;
            expect("the immediate", received.imm, imm(id))?;
            expect_bytes(&pair.far.bytes(GRH, len)?, &data)
        })?;
    }
    Ok(account(&DATAGRAMS[..lengths]))
}
