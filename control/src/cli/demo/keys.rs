//! ATOMIC WRITE, FLUSH and memory windows: each does what it says, and no more.

use super::end::{Pair, pattern};
use super::verify::{expect, expect_bytes};
use crate::cli::failure::Failure;
use rockhopper::{Access, Mw, MwBind, MwType, Placement, RKey, RecvWr, SendWr, WcFlags};

/// How often each is done.
const TURNS: u64 = 20;
/// Bytes of a window.
const WINDOW: usize = 256;
/// Where the first one begins.
const BEGIN: usize = 4096;

/// Messages and bytes.
type Account = Result<(u64, u64), Failure>;

pub fn atomic_write(pair: &Pair) -> Account {
    for turn in 0..TURNS {
        let word = pattern(turn, 8);
        pair.near.mr.write(0, &word)?;
        let write = SendWr::atomic_write(turn, pair.far.mr.remote().at(8 * turn));
        pair.near.qp.post_send(write.sge(pair.near.mr.sge(0..8)))?;
        pair.done(&pair.near)?;
        expect_bytes(&pair.far.bytes(8 * turn as usize, 8)?, &word)?;
    }
    Ok((TURNS, 8 * TURNS))
}

/// What was written before a FLUSH is there when the FLUSH completes, which is all that one process can see of it.
pub fn flush(pair: &Pair) -> Account {
    for turn in 0..TURNS {
        let data = pattern(turn, 1000);
        pair.near.mr.write(0, &data)?;
        let to = pair.far.mr.remote().at(64);
        pair.near.qp.post_send(SendWr::write(1, to).sge(pair.near.mr.sge(0..1000)).unsignaled())?;
        let flush = match turn % 2 {
            0 => SendWr::flush(2, to, 1000, Placement::GLOBAL),
            _ => SendWr::flush_region(2, pair.far.mr.rkey(), Placement::GLOBAL),
        };
        pair.near.qp.post_send(flush)?;
        pair.done(&pair.near)?;
        expect_bytes(&pair.far.bytes(64, 1000)?, &data)?;
    }
    Ok((2 * TURNS, 1000 * TURNS))
}

pub fn window_type_1(pair: &Pair) -> Account {
    let mw = pair.far.pd.alloc_mw(MwType::Type1)?;
    let mut last: Option<RKey> = None;
    for turn in 0..TURNS {
        let key = pair.far.qp.bind_mw(1, &mw, Some(&piece(pair, turn))).map_err(failed)?;
        pair.done(&pair.far)?;
        expect("the same key as before", last == Some(key), false)?;
        through(pair, &mw, turn)?;
        last = Some(key);
    }
    pair.far.qp.bind_mw(2, &mw, None).map_err(failed)?;
    pair.done(&pair.far)?;
    expect("the window's being bound", mw.is_bound(), false)?;
    Ok((2 * TURNS + 1, TURNS * WINDOW as u64))
}

/// Bound, used, and taken away by the peer's SEND.
pub fn window_type_2(pair: &Pair) -> Account {
    let mw = pair.far.pd.alloc_mw(MwType::Type2)?;
    for turn in 0..TURNS {
        let bind = SendWr::bind_mw(1, &mw, turn as u8, &piece(pair, turn));
        pair.far.qp.post_send(bind)?;
        pair.done(&pair.far)?;
        through(pair, &mw, turn)?;
        pair.far.qp.post_recv(RecvWr::new(2))?;
        pair.near.qp.post_send(SendWr::send_inv(2, mw.rkey()))?;
        pair.done(&pair.near)?;
        let received = pair.done(&pair.far)?;
        expect("the invalidated key", received.invalidated, Some(mw.rkey()))?;
        expect("the flags", received.flags(), WcFlags::WITH_INV)?;
        expect("the window's being bound", mw.is_bound(), false)?;
    }
    Ok((3 * TURNS, TURNS * WINDOW as u64))
}

fn piece(pair: &Pair, turn: u64) -> MwBind {
    let begin = BEGIN + turn as usize * WINDOW;
    pair.far.mr.window(begin..begin + WINDOW, Access::REMOTE_WRITE)
}

/// A WRITE through the window fills it.
fn through(pair: &Pair, mw: &Mw, turn: u64) -> Result<(), Failure> {
    let remote = mw.remote().ok_or_else(|| Failure::Run("the window is not bound".into()))?;
    expect("the window's length", remote.len, WINDOW as u64)?;
    let data = pattern(turn, WINDOW);
    pair.near.mr.write(0, &data)?;
    pair.near.qp.post_send(SendWr::write(3, remote.at(0)).sge(pair.near.mr.sge(0..WINDOW)))?;
    pair.done(&pair.near)?;
    expect_bytes(&pair.far.bytes(BEGIN + turn as usize * WINDOW, WINDOW)?, &data)
}

fn failed(why: rockhopper::BindMwError) -> Failure {
    Failure::Run(why.to_string())
}
