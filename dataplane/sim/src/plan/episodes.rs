//! Short stories between requests of a reliable connection: keys that come and go, memory that is taken away, mistakes.

use super::Plan;
use super::parts::{Connection, Fault, Kind, Local, Op, Place, Service, Side};
use super::random::{Draw, faults_of};

/// Adds some of them to a connection's requests.
pub(super) fn add(draw: &mut Draw, plan: &mut Plan, number: u32, connection: &Connection) {
    if connection.service == Service::Rc && draw.one_in(4) {
        window(draw, plan, number);
    }
    if connection.service == Service::Rc && draw.one_in(3) {
        memory_window(draw, plan, number);
    }
    if draw.one_in(6) {
        registered_source(draw, plan, number, connection);
    }
    if draw.one_in(8) {
        doomed(draw, plan, number, connection);
    }
    if draw.one_in(4) {
        mistake(draw, plan, number, connection);
    }
}

fn next(plan: &Plan, number: u32, from: Side, kind: Kind, len: u32) -> Op {
    let id = plan.ops.iter().map(|op| op.id + 1).max().unwrap_or(0);
    Op::new(id, number, from, kind, len)
}

/// One side registers, the other works there, the key is taken away, and perhaps somebody still tries.
fn window(draw: &mut Draw, plan: &mut Plan, number: u32) {
    let host = draw.pick(&Side::BOTH);
    let guest = host.other();
    let register = next(plan, number, host, Kind::RegMr, 0);
    plan.ops.push(register);
    let mut last = register.id;
    for _ in 0..draw.between(1, 4) {
        let kind = draw.pick(&[Kind::Write, Kind::WriteImm, Kind::Read, Kind::FetchAdd]);
        let len = if kind.is_atomic() { 8 } else { draw.between(1, 2_000) };
        let mut op = next(plan, number, guest, kind, len);
        (op.place, op.after) = (Place::Window(register.id), Some(register.id));
        // A READ of the window must be over before a WRITE changes it.
        op.fenced = !kind.returns_data();
        last = op.id;
        plan.ops.push(op);
    }
    if draw.one_in(2) {
        let mut op = next(plan, number, guest, Kind::SendInv, draw.below(300));
        (op.key_of, op.after, op.fenced) = (Some(register.id), Some(register.id), true);
        last = op.id;
        plan.ops.push(op);
    } else {
        let mut op = next(plan, number, host, Kind::LocalInv, 0);
        (op.key_of, op.after) = (Some(register.id), Some(last));
        last = op.id;
        plan.ops.push(op);
    }
    if draw.one_in(2) {
        let kind = draw.pick(&[Kind::Write, Kind::Read]);
        let mut op = next(plan, number, guest, kind, draw.between(1, 100));
        (op.place, op.after, op.fault) = (Place::Window(register.id), Some(last), Some(Fault::StaleKey));
        plan.ops.push(op);
    }
}

/// One side binds a window, again and again perhaps; the other works through it while it can, and makes mistakes.
fn memory_window(draw: &mut Draw, plan: &mut Plan, number: u32) {
    let host = draw.pick(&Side::BOTH);
    let guest = host.other();
    let kind = draw.pick(&[Kind::BindMw1, Kind::BindMw2]);
    let mut bind = next(plan, number, host, kind, draw.between(4_000, 6_000));
    for _ in 0..draw.between(1, 3) {
        plan.ops.push(bind);
        let last = through(draw, plan, number, guest, &bind);
        if draw.one_in(6) {
            // Past its end, or what it does not grant: then all is over.
            let atomic = !bind.grants_atomics() && draw.one_in(2);
            let (kind, len, fault) = match atomic {
                true => (Kind::FetchAdd, 8, Fault::NoRight),
                false => (draw.pick(&[Kind::Write, Kind::Read]), draw.between(1, 100), Fault::Range),
            };
            let mut op = next(plan, number, guest, kind, len);
            (op.place, op.after, op.fault) = (Place::Window(bind.id), Some(last), Some(fault));
            plan.ops.push(op);
            return;
        }
        // A window of type 1 is bound elsewhere, or nowhere; one of type 2 is invalidated by either side.
        let anew = draw.between(4_000, 6_000);
        let mut end = match (kind, draw.one_in(2)) {
            (Kind::BindMw1, true) => next(plan, number, host, kind, anew),
            (Kind::BindMw1, false) => next(plan, number, host, kind, 0),
            (_, true) => next(plan, number, guest, Kind::SendInv, draw.below(300)),
            (_, false) => next(plan, number, host, Kind::LocalInv, 0),
        };
        (end.key_of, end.after) = (Some(bind.id), Some(last));
        end.fenced = end.kind == Kind::SendInv;
        let stale = draw.one_in(3);
        if stale || end.kind != kind || end.len == 0 {
            plan.ops.push(end);
        }
        if stale {
            let mut op =
                next(plan, number, guest, draw.pick(&[Kind::Write, Kind::Read]), draw.between(1, 100));
            (op.place, op.after, op.fault) = (Place::Window(bind.id), Some(end.id), Some(Fault::StaleKey));
            plan.ops.push(op);
            return;
        }
        bind = if end.kind == kind && end.len > 0 {
            end
        } else {
            let mut again = next(plan, number, host, kind, anew);
            (again.key_of, again.after) = (Some(bind.id), Some(end.id));
            again
        };
    }
}

/// Requests through a window; gives the last of them.
fn through(draw: &mut Draw, plan: &mut Plan, number: u32, guest: Side, bind: &Op) -> u32 {
    let mut last = bind.id;
    for _ in 0..draw.between(1, 3) {
        let kinds = [Kind::Write, Kind::WriteImm, Kind::Read, Kind::FetchAdd];
        let kind = draw.pick(&kinds[..if bind.grants_atomics() { 4 } else { 3 }]);
        let len = if kind.is_atomic() { 8 } else { draw.between(1, 1_200) };
        let mut op = next(plan, number, guest, kind, len);
        (op.place, op.after) = (Place::Window(bind.id), Some(bind.id));
        op.fenced = !kind.returns_data();
        last = op.id;
        plan.ops.push(op);
    }
    last
}

/// A side registers memory of its own, sends from there, and invalidates its key.
fn registered_source(draw: &mut Draw, plan: &mut Plan, number: u32, connection: &Connection) {
    let side = draw.pick(connection.service.senders());
    let register = next(plan, number, side, Kind::RegMr, 0);
    plan.ops.push(register);
    for _ in 0..draw.between(1, 3) {
        let kind = draw.pick(&[Kind::Send, Kind::Write]);
        let mut op = next(plan, number, side, kind, draw.between(1, 2_000));
        op.local = Local::Registered(register.id);
        plan.ops.push(op);
    }
    let mut invalidate = next(plan, number, side, Kind::LocalInv, 0);
    invalidate.key_of = Some(register.id);
    plan.ops.push(invalidate);
    if draw.one_in(3) {
        let mut op = next(plan, number, side, Kind::Write, draw.between(1, 100));
        (op.local, op.fault) = (Local::Registered(register.id), Some(Fault::StaleLkey));
        // Keys are looked at when a request is taken: the invalidation must be over.
        op.after = Some(invalidate.id);
        plan.ops.push(op);
    }
}

/// Requests that work in memory which an event takes away.
fn doomed(draw: &mut Draw, plan: &mut Plan, number: u32, connection: &Connection) {
    let side = draw.pick(connection.service.senders());
    let source = draw.one_in(2);
    for _ in 0..draw.between(2, 8) {
        let kind = if source {
            draw.pick(&[Kind::Send, Kind::Write])
        } else {
            let flush = if connection.service == Service::Rc { Kind::Flush } else { Kind::Read };
            draw.pick(&[Kind::Write, Kind::Read, flush])
        };
        let mut op = next(plan, number, side, kind, draw.between(1, 6 * connection.mtu.min(1024)));
        if source {
            op.local = Local::Doomed;
        } else {
            op.place = Place::Doomed;
        }
        let at = draw.below(plan.ops.len() as u32) as usize;
        plan.ops.insert(at, op);
    }
}

/// Spoils one request.
fn mistake(draw: &mut Draw, plan: &mut Plan, number: u32, connection: &Connection) {
    let candidates: Vec<usize> = (0..plan.ops.len())
        .filter(|&at| {
            let op = &plan.ops[at];
            let plain = op.local == Local::Own && matches!(op.place, Place::Own | Place::Shared);
            op.connection == number && plain && op.fault.is_none() && !faults_of(op, connection).is_empty()
        })
        .collect();
    if candidates.is_empty() {
        return;
    }
    let at = draw.pick(&candidates);
    let fault = draw.pick(&faults_of(&plan.ops[at], connection));
    let op = &mut plan.ops[at];
    op.fault = Some(fault);
    // An inline request's key is not looked at.
    op.inline &= !fault.is_local();
    if matches!(op.place, Place::Shared) {
        op.place = Place::Own;
    }
    // Whoever works where a spoiled request does is spoiled too.
    let spoiled = op.id;
    for other in &mut plan.ops {
        if other.place == Place::Over(spoiled) {
            other.place = Place::Own;
        }
    }
}
