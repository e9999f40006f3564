//! Choosing work requests.

use super::layout::{Layout, Pieces};
use super::{Kind, Mix};
use crate::world::World;
use engine::QpType;
use engine::limits::{MAX_INLINE, UD_GRH_BYTES};
use wire::Mtu;

/// Cells that atomics share.
pub(super) const CELLS: u32 = 4;

/// One work request, and where its bytes lie.
pub(super) struct Op {
    pub kind: Kind,
    pub len: u32,
    /// In `out`, or in `back` when data returns.
    pub local: Pieces,
    /// In `target` or `source`, or the cell.
    pub remote: u64,
    /// In `inbox`, when it takes a receive.
    pub receive: Option<Pieces>,
    pub imm: [u8; 4],
    pub signaled: bool,
    pub solicited: bool,
    pub fenced: bool,
    pub inline: bool,
    /// Atomics: what is added, or compared and swapped.
    pub operands: (u64, u64),
}

/// How much of each region the requests need.
#[derive(Default)]
pub(super) struct Layouts {
    pub out: Layout,
    pub back: Layout,
    pub inbox: Layout,
    pub target: Layout,
    pub source: Layout,
}

pub(super) fn plan(world: &mut World, qp_type: QpType, mtu: Mtu, mix: &Mix) -> (Vec<Op>, Layouts) {
    let mut layouts = Layouts::default();
    let ops = (0..mix.requests)
        .map(|number| {
            let kind = mix.kinds[world.random_below(mix.kinds.len() as u32) as usize];
            let len = length(world, kind, mtu, mix.max_len);
            let mut op = request(world, &mut layouts, kind, len);
            // Numbered, so that a message is known by it.
            op.imm[..2].copy_from_slice(&(number as u16).to_be_bytes());
            // The end must be heard of.
            op.signaled |= number + 1 == mix.requests;
            if kind.takes_receive() {
                op.receive =
                    Some(receive(world, &mut layouts, qp_type, if kind.is_send() { op.len } else { 0 }));
            }
            op
        })
        .collect();
    (ops, layouts)
}

fn request(world: &mut World, layouts: &mut Layouts, kind: Kind, len: u32) -> Op {
    let local = if kind.is_atomic() {
        vec![(layouts.back.take(world, len), len)]
    } else {
        let layout = if kind.returns_data() { &mut layouts.back } else { &mut layouts.out };
        layout.take_pieces(world, len, 4)
    };
    let remote = match kind {
        Kind::Write | Kind::WriteImm => layouts.target.take(world, len),
        Kind::Read => layouts.source.take(world, len),
        Kind::CompareSwap | Kind::FetchAdd => u64::from(world.random_below(CELLS)) * 8,
        Kind::Send | Kind::SendImm => 0,
    };
    let mut one_in = |n| world.random_below(n) == 0;
    Op {
        kind,
        len,
        local,
        remote,
        receive: None,
        imm: [0, 0, 0xBE, 0xEF],
        signaled: !one_in(3),
        solicited: kind.takes_receive() && one_in(5),
        fenced: one_in(6),
        inline: !kind.returns_data() && len as usize <= MAX_INLINE && one_in(3),
        operands: (u64::from(world.random_below(3)), u64::from(world.random_below(3))),
    }
}

/// The edges of packets, or anything.
fn length(world: &mut World, kind: Kind, mtu: Mtu, max_len: u32) -> u32 {
    if kind.is_atomic() {
        return 8;
    }
    let mtu = mtu.bytes();
    let edges = [0, 1, 3, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5];
    let len = match world.random_below(2) {
        0 => edges[world.random_below(edges.len() as u32) as usize],
        _ => world.random_below(max_len + 1),
    };
    len.min(max_len)
}

/// Room for a message of `len` bytes and, mostly, more.
fn receive(world: &mut World, layouts: &mut Layouts, qp_type: QpType, len: u32) -> Pieces {
    let header = if qp_type == QpType::Ud { UD_GRH_BYTES } else { 0 };
    let room = header + len + world.random_below(20);
    layouts.inbox.take_pieces(world, room, 3)
}
