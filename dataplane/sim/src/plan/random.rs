//! Plans from seeds. What is drawn is meant to be small and nasty: short queues, few receives, late ones, requests that
//! depend on each other, mistakes on purpose, links that do everything at once.

use super::parts::{Connection, Event, Fault, Happening, Kind, Local, Op, Place, Service, Side, Srq};
use super::{Plan, episodes, links};
use engine::limits::MAX_INLINE;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// What whoever asks for a plan has decided already.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// What links do, instead of something random.
    pub impair: Option<String>,
    /// See [`Plan::forge`].
    pub forge: u32,
}

/// A source of decisions.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// A number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0.random_range(0..end.max(1))
    }

    /// From `least` to `most`.
    pub fn between(&mut self, least: u32, most: u32) -> u32 {
        self.0.random_range(least..=most)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn random(seed: u64, choices: &Choices) -> Plan {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let endpoints = if draw.one_in(4) { 3 } else { 2 };
        let count = draw.pick(&[1, 1, 1, 2, 2, 3]);
        let srq = draw.one_in(3).then(|| srq(&mut draw));
        let connections: Vec<Connection> =
            (0..count).map(|_| connection(&mut draw, endpoints, srq.is_some())).collect();
        let impair = links::random(&mut draw);
        let mut plan = Plan {
            seed,
            impair: choices.impair.clone().unwrap_or(impair),
            forge: choices.forge,
            delay_ns: draw.pick(&[200, 1_000, 1_000, 5_000, 40_000]),
            gbps: draw.pick(&[10, 25, 100]),
            endpoints: endpoints as u8,
            srq,
            connections,
            ops: Vec::new(),
            events: Vec::new(),
        };
        requests(&mut draw, &mut plan);
        events(&mut draw, &mut plan);
        plan
    }
}

fn srq(draw: &mut Draw) -> Srq {
    let depth = draw.pick(&[1, 2, 3, 4, 8, 16]);
    Srq { depth, limit: draw.below(depth + 1), receive_delay_ns: draw.pick(&[0, 0, 3_000, 50_000]) }
}

fn connection(draw: &mut Draw, endpoints: u32, has_srq: bool) -> Connection {
    let a = draw.below(endpoints);
    let b = (a + 1 + draw.below(endpoints - 1)) % endpoints;
    let depth = draw.pick(&[1, 2, 3, 4, 8, 16, 32]);
    let mtu = draw.pick(&[256, 256, 512, 1024, 1024, 2048, 4096]);
    use Service::{Rc, Uc, Ud, Xrc};
    let service = match has_srq {
        true => draw.pick(&[Rc, Rc, Rc, Rc, Uc, Ud, Xrc, Xrc]),
        false => draw.pick(&[Rc, Rc, Rc, Rc, Rc, Rc, Uc, Ud]),
    };
    let shares = |draw: &mut Draw| has_srq && service != Xrc && !draw.one_in(4);
    Connection {
        service,
        shared: Side::BOTH.into_iter().filter(|_| shares(draw)).collect(),
        ends: [a as u8, b as u8],
        mtu,
        v6: draw.one_in(3),
        depth,
        rd_atomic: draw.pick(&[1, 1, 2, 3, 4, 8]),
        timeout: draw.between(9, 13) as u8,
        retry_cnt: if draw.one_in(5) { draw.below(7) as u8 } else { 7 },
        rnr_retry: if draw.one_in(4) { draw.below(7) as u8 } else { 7 },
        rnr_timer: draw.between(1, 14) as u8,
        receives: draw.pick(&[1, depth, depth]),
        receive_delay_ns: draw.pick(&[0, 0, 0, 3_000, 50_000, 1_000_000]),
    }
}

fn requests(draw: &mut Draw, plan: &mut Plan) {
    let connections = plan.connections.clone();
    for (number, connection) in connections.iter().enumerate() {
        let share = draw.between(4, 50 / connections.len() as u32 + 4);
        for _ in 0..share {
            let from = if connection.service != Service::Xrc && draw.one_in(3) { Side::B } else { Side::A };
            let id = plan.ops.len() as u32;
            let op = request(draw, &plan.ops, Op::new(id, number as u32, from, Kind::Send, 0), connection);
            plan.ops.push(op);
        }
        if connection.service.is_reliable() {
            episodes::add(draw, plan, number as u32, connection);
        }
    }
}

/// Fills in a request.
fn request(draw: &mut Draw, before: &[Op], mut op: Op, connection: &Connection) -> Op {
    op.kind = match connection.service {
        Service::Rc => draw.pick(&[
            Kind::Send,
            Kind::SendImm,
            Kind::Write,
            Kind::Write,
            Kind::WriteImm,
            Kind::Read,
            Kind::Read,
            Kind::CompareSwap,
            Kind::FetchAdd,
            Kind::AtomicWrite,
            Kind::Flush,
        ]),
        Service::Xrc => draw.pick(&[
            Kind::Send,
            Kind::SendImm,
            Kind::Write,
            Kind::WriteImm,
            Kind::Read,
            Kind::CompareSwap,
            Kind::FetchAdd,
        ]),
        Service::Uc => draw.pick(&[Kind::Send, Kind::SendImm, Kind::Write, Kind::WriteImm]),
        Service::Ud => draw.pick(&[Kind::Send, Kind::SendImm]),
    };
    op.len = length(draw, op.kind, connection);
    op.signaled = !draw.one_in(3);
    op.solicited = op.kind.takes_receive() && draw.one_in(5);
    op.fenced = connection.service.is_reliable() && draw.one_in(7);
    op.inline = op.kind.carries_data() && op.len as usize <= MAX_INLINE && draw.one_in(3);
    if op.kind == Kind::FetchAdd && draw.one_in(3) {
        op.place = Place::Shared;
    }
    if connection.service.is_reliable() && draw.one_in(4) {
        depend(draw, before, &mut op);
    }
    op
}

/// Lets a request work where an earlier one of its QP did, or send on what one has read.
fn depend(draw: &mut Draw, before: &[Op], op: &mut Op) {
    let earlier: Vec<&Op> = before
        .iter()
        .filter(|other| {
            (other.connection, other.from) == (op.connection, op.from) && other.place == Place::Own
        })
        .collect();
    if earlier.is_empty() {
        return;
    }
    let other = *draw.pick(&earlier);
    match (op.kind, other.kind) {
        // Behind a fence a SEND or WRITE may carry what a READ brought.
        (kind, Kind::Read) if (kind.is_send() || kind.is_write()) && draw.one_in(2) => {
            (op.local, op.len, op.inline, op.fenced) = (Local::Forward(other.id), other.len, false, true);
        }
        // A WRITE over what is read must not overtake the READ: a fence holds it back.
        (Kind::Write | Kind::WriteImm, Kind::Read | Kind::Write | Kind::WriteImm) => {
            (op.place, op.len, op.fenced) = (Place::Over(other.id), other.len, true);
            op.inline &= op.len as usize <= MAX_INLINE;
        }
        (Kind::Read | Kind::Flush, Kind::Write | Kind::WriteImm | Kind::Read) => {
            (op.place, op.len) = (Place::Over(other.id), other.len);
        }
        (Kind::AtomicWrite, Kind::Write | Kind::WriteImm) if other.len >= 8 => {
            (op.place, op.fenced) = (Place::Over(other.id), true);
        }
        _ => {}
    }
}

/// The edges of packets, or anything up to a few packets.
fn length(draw: &mut Draw, kind: Kind, connection: &Connection) -> u32 {
    if kind.is_of_eight() {
        return 8;
    }
    let mtu = connection.mtu;
    let most = match connection.service {
        Service::Ud => 4_096,
        _ if draw.one_in(8) => 24 * mtu.min(512),
        _ => (4 * mtu).min(6_000),
    };
    let edges = [0, 1, 3, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5];
    let len = if draw.one_in(2) { draw.pick(&edges) } else { draw.below(most + 1) };
    len.min(most)
}

fn events(draw: &mut Draw, plan: &mut Plan) {
    let count = draw.pick(&[0, 0, 1, 1, 2, 4]);
    for _ in 0..count {
        let connection = draw.below(plan.connections.len() as u32);
        let of = &plan.connections[connection as usize];
        let patience = 4_096u64 << of.timeout;
        let what = match draw.below(20) {
            0..=11 => Happening::Move,
            12..=15 => Happening::Drain,
            16 | 17 => Happening::GiveUp,
            18 => Happening::Darkness(patience * u64::from(draw.between(1, 3)) / 2),
            _ => Happening::Darkness(patience * 16),
        };
        let side = draw.pick(&Side::BOTH);
        plan.events.push(Event { at_ns: u64::from(draw.below(150_000)), connection, side, what });
    }
    // Doomed memory, where some request works in it.
    let doomed: Vec<(u32, Side, Happening)> = plan
        .ops
        .iter()
        .filter_map(|op| match (op.local, op.place) {
            (Local::Doomed, _) => Some((op.connection, op.from, Happening::LoseSource)),
            (_, Place::Doomed) => Some((op.connection, op.from, Happening::LoseTarget)),
            _ => None,
        })
        .collect();
    if let Some(&(connection, side, what)) = doomed.first() {
        plan.events.push(Event { at_ns: u64::from(draw.below(60_000)), connection, side, what });
    }
    plan.events.sort_by_key(|event| event.at_ns);
}

/// Faults that a request can have on its connection.
pub(super) fn faults_of(op: &Op, connection: &Connection) -> Vec<Fault> {
    let of_receive = |fault: &Fault| matches!(fault, Fault::ShortReceive | Fault::BadReceive);
    let mut faults = of_kind(op).to_vec();
    faults.retain(|fault| !(of_receive(fault) && connection.meets_shared(op.from)));
    if connection.service == Service::Xrc && !op.kind.is_local() {
        faults.push(Fault::BadSrqn);
    }
    faults
}

/// Faults that a kind of request can have.
fn of_kind(op: &Op) -> &'static [Fault] {
    match op.kind {
        Kind::Send | Kind::SendImm if op.len == 0 => &[Fault::BadReceive],
        Kind::Send | Kind::SendImm => &[Fault::ShortReceive, Fault::BadReceive, Fault::BadLkey],
        Kind::Write | Kind::WriteImm | Kind::Read if op.len > 0 => {
            &[Fault::BadRkey, Fault::StaleKey, Fault::Range, Fault::NoRight, Fault::BadLkey]
        }
        Kind::CompareSwap | Kind::FetchAdd => &[
            Fault::BadRkey,
            Fault::Range,
            Fault::NoRight,
            Fault::Misaligned,
            Fault::BadLkey,
            Fault::AtomicLength,
        ],
        Kind::AtomicWrite => &[
            Fault::BadRkey,
            Fault::StaleKey,
            Fault::Range,
            Fault::NoRight,
            Fault::Misaligned,
            Fault::BadLkey,
            Fault::AtomicLength,
        ],
        Kind::Flush if op.len > 0 => &[
            Fault::BadRkey,
            Fault::StaleKey,
            Fault::Range,
            Fault::NoRight,
            Fault::Volatile,
            Fault::NoPlacement,
        ],
        Kind::BindMw1 | Kind::BindMw2 if op.len > 0 => &[Fault::BadBind],
        _ => &[],
    }
}
