//! The course of a world: who posts when, what happens when, and when it is over.

use super::flow::{Flow, chance, options};
use super::keys::{Keys, keys};
use super::pool::Pool;
use super::shared;
use super::stats::Stats;
use super::verify;
use crate::endpoint::{EndpointId, Region};
use crate::plan::{Connection, Fault, Happening, Plan, Service, Side};
use crate::qp::QpId;
use crate::tap::Seen;
use crate::world::{Step, World};
use check::Rule;
use engine::event::EventSource;
use engine::{
    Access, AsyncEvent, Counter, Cqe, EventKind, Nanos, QpAttr, QpAttrMask, QpState, QpType, WcStatus,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A run that exchanges so many frames does not end by itself.
const MANY_FRAMES: u64 = 200_000;
/// A number that no SRQ has.
const NO_SRQN: wire::Srqn = wire::Srqn::new(0xFF_FF00);
/// Connections are made anew so often at most; every time, requests are gone for good.
const MANY_EPOCHS: usize = 200;

/// What has happened to a connection since it was made.
#[derive(Clone, Debug, Default)]
pub(super) struct Fortune {
    pub gave_up: [bool; 2],
    pub lost_source: [bool; 2],
    pub lost_target: [bool; 2],
}

/// A plan on its way.
pub(super) struct Stage {
    pub plan: Plan,
    pub world: World,
    pub flows: Vec<Flow>,
    pub qps: Vec<[QpId; 2]>,
    pub keys: Arc<Keys>,
    pub shared: Vec<Region>,
    pub pools: Vec<Pool>,
    pub fortunes: Vec<Fortune>,
    pub darkness: bool,
    /// Requests that completed with success.
    pub done: BTreeSet<u32>,
    pub ever_posted: BTreeSet<u32>,
    /// Requests that never will.
    pub dead: BTreeSet<u32>,
    /// Originals that fetch-and-adds of the shared counters brought, and how many more may have happened.
    pub counted: Vec<(Vec<u64>, u64)>,
    pub stats: Stats,
    /// What was found wrong on the way.
    wrong: Option<String>,
    began: Nanos,
    next_event: usize,
    dark_until: Option<Nanos>,
}

impl Stage {
    pub fn new(plan: &Plan, with_trace: bool) -> Result<Stage, String> {
        plan.check().map_err(|why| why.to_string())?;
        let impairments = match plan.impair.as_str() {
            "" => None,
            words => Some(words.parse::<impair::Plan>().map_err(|why| why.to_string())?),
        };
        let mut world = World::new(plan.seed);
        world.taps.trace = with_trace.then(Vec::new);
        world.forge = plan.forge;
        let mut faults = world.faults();
        (faults.delay_ns, faults.bits_per_second) = (plan.delay_ns, u64::from(plan.gbps) * 1_000_000_000);
        world.set_faults(faults);
        let endpoints: Vec<EndpointId> = (0..plan.endpoints).map(|_| world.add_endpoint()).collect();
        world.check();
        if plan.ops.iter().any(|op| op.fault == Some(Fault::Misaligned)) {
            world.taps.leave_out(Rule::AtomicAlignment);
        }
        if let Some(impairments) = &impairments {
            world.impair(impairments);
        }
        let counter = Access::LOCAL_WRITE | Access::REMOTE_ATOMIC;
        let shared: Vec<Region> =
            endpoints.iter().map(|&at| world.register(at, vec![0; 8], counter)).collect();
        let mut stage = Stage {
            plan: plan.clone(),
            flows: Vec::new(),
            qps: Vec::new(),
            keys: Arc::new(keys(&mut world, plan, &endpoints)),
            counted: vec![(Vec::new(), 0); shared.len()],
            shared,
            pools: shared::pools(&mut world, plan, &endpoints),
            wrong: None,
            fortunes: vec![Fortune::default(); plan.connections.len()],
            darkness: false,
            done: BTreeSet::new(),
            ever_posted: BTreeSet::new(),
            dead: BTreeSet::new(),
            stats: Stats::default(),
            began: world.now(),
            next_event: 0,
            dark_until: None,
            world,
        };
        stage.build(&endpoints);
        Ok(stage)
    }

    fn build(&mut self, endpoints: &[EndpointId]) {
        let plan = self.plan.clone();
        for (number, connection) in plan.connections.iter().enumerate() {
            let [a, b] = connection.ends.map(|end| endpoints[end as usize]);
            let srqs = Side::BOTH.map(|side| {
                let pool = self.pools_met(number, side.other()).first().copied();
                pool.filter(|_| connection.shared.contains(&side)).map(|pool| self.pools[pool].srq)
            });
            let met = Side::BOTH.map(|from| self.pools_met(number, from));
            let (options, world) = (options(connection), &mut self.world);
            let qps = match connection.service {
                Service::Rc => world.connect_sides(QpType::Rc, [a, b], srqs, &options),
                Service::Uc => world.connect_sides(QpType::Uc, [a, b], srqs, &options),
                Service::Ud => world.connect_sides(QpType::Ud, [a, b], srqs, &options),
                Service::Xrc => world.connect_xrc(a, b, &options).into(),
            };
            for qp in qps {
                world.taps.forget(world.qpn(qp), connection.mtu);
            }
            self.qps.push(qps);
            for (side, pools) in Side::BOTH.into_iter().zip(met) {
                let flow = Flow::new(world, &plan, number, side, qps, &self.keys, &self.shared);
                self.flows.push(Flow { pools, ..flow });
            }
        }
    }

    /// The pools that messages of a connection from one side meet.
    fn pools_met(&self, number: usize, from: Side) -> Vec<usize> {
        let connection = &self.plan.connections[number];
        if !connection.meets_shared(from) || !connection.service.senders().contains(&from) {
            return Vec::new();
        }
        let there = usize::from(connection.ends[from.other() as usize]);
        let xrc = connection.service == Service::Xrc;
        let pools = self.pools.iter().enumerate();
        pools
            .filter(|(_, pool)| pool.endpoint.0 == there && pool.xrc == xrc)
            .map(|(number, _)| number)
            .collect()
    }

    /// Everything in the plan, then silence.
    pub fn play(&mut self) -> Result<(), String> {
        for _ in 0..MANY_EPOCHS {
            self.until_rest()?;
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
            verify::at_rest(self)?;
            if !self.go_on()? {
                return verify::at_the_end(self);
            }
        }
        Err("connections fail again and again".into())
    }

    /// Lets everything happen that can happen with the connections as they are.
    fn until_rest(&mut self) -> Result<(), String> {
        loop {
            self.happen();
            self.pump();
            let planned = self.planned();
            match self.world.step(planned.unwrap_or(Nanos::MAX)) {
                Step::Moved => {}
                Step::Limit => self.world.skip_to(planned.unwrap_or_default()),
                // What was sent last may have ended a request.
                Step::Rest if self.pump() => {}
                Step::Rest => match planned {
                    Some(time) => self.world.skip_to(time),
                    None => return Ok(()),
                },
            }
            if self.world.frames_sent() > MANY_FRAMES {
                return Err(format!("it does not come to rest: {MANY_FRAMES} frames and no end"));
            }
        }
    }

    /// When something is to be done next that no frame or timer brings.
    fn planned(&self) -> Option<Nanos> {
        let event = self.plan.events.get(self.next_event).map(|event| self.began + event.at_ns);
        let receives = self
            .flows
            .iter()
            .filter(|flow| flow.next_receive_at > self.world.now() && self.wants_receive(flow))
            .map(|flow| flow.next_receive_at);
        let pools =
            self.pools.iter().filter(|pool| pool.next_at > self.world.now() && pool.wants(&self.world));
        receives.chain(pools.map(|pool| pool.next_at)).chain(event).chain(self.dark_until).min()
    }

    fn connection(&self, flow: &Flow) -> &Connection {
        &self.plan.connections[flow.connection]
    }

    /// Events whose time has come.
    fn happen(&mut self) {
        if self.dark_until.is_some_and(|until| until <= self.world.now()) {
            self.dark_until = None;
            self.set_dark(false);
        }
        while let Some(&event) = self.plan.events.get(self.next_event) {
            if self.began + event.at_ns > self.world.now() {
                return;
            }
            self.next_event += 1;
            let number = event.connection as usize;
            let qp = self.qps[number][event.side as usize];
            let fortune = &mut self.fortunes[number];
            let flow = &mut self.flows[2 * number + event.side as usize];
            let name = match event.what {
                Happening::Move => {
                    self.world.move_home(qp);
                    "move"
                }
                Happening::Drain => {
                    let attr = QpAttr { state: QpState::Sqd, notify_drained: true, ..QpAttr::default() };
                    let mask = QpAttrMask::STATE | QpAttrMask::EN_SQD_ASYNC_NOTIFY;
                    // Refused unless the QP is in RTS, and then there is nothing to drain.
                    if self.world.state(qp) != QpState::Rts || self.world.modify(qp, &attr, mask).is_err() {
                        continue;
                    }
                    "drain"
                }
                Happening::GiveUp => {
                    let attr = QpAttr { state: QpState::Err, ..QpAttr::default() };
                    fortune.gave_up[event.side as usize] =
                        self.world.modify(qp, &attr, QpAttrMask::STATE).is_ok();
                    "give_up"
                }
                Happening::LoseSource => {
                    fortune.lost_source[event.side as usize] = true;
                    take_away(&mut self.world, flow, super::flow::Area::DoomedSource);
                    "lose_source"
                }
                Happening::LoseTarget => {
                    fortune.lost_target[event.side as usize] = true;
                    take_away(&mut self.world, flow, super::flow::Area::DoomedTarget);
                    "lose_target"
                }
                Happening::Darkness(time) => {
                    self.darkness = true;
                    self.dark_until = Some(self.world.now() + time);
                    self.set_dark(true);
                    "darkness"
                }
            };
            self.stats.meet(format!("event {name}"), 1);
        }
    }

    fn set_dark(&mut self, dead: bool) {
        let faults = self.world.faults();
        self.world.set_faults(crate::Faults { dead, ..faults });
    }

    /// Takes completions and events, posts what there is room for. True when anything was done.
    fn pump(&mut self) -> bool {
        let mut pumped = self.take_events();
        for number in 0..self.flows.len() {
            let flow = &mut self.flows[number];
            let (sends, receives) = (self.world.send_cqes(flow.near), self.world.recv_cqes(flow.far));
            pumped |= !sends.is_empty() || !receives.is_empty();
            for cqe in &sends {
                if cqe.status == WcStatus::Success {
                    let upto = flow.ops.iter().position(|op| u64::from(op.id) == cqe.wr_id);
                    let known = flow.ops.get(flow.start..=upto.unwrap_or(0)).unwrap_or_default();
                    self.done.extend(known.iter().map(|op| op.id));
                }
            }
            flow.send_cqes.extend(sends);
            if flow.pools.is_empty() {
                flow.recv_cqes.extend(receives);
            } else {
                for cqe in receives {
                    self.take_shared(number, 0, cqe);
                }
            }
        }
        pumped |= self.take_of_xrc();
        for pool in &mut self.pools {
            pumped |= pool.post(&mut self.world, self.plan.seed);
        }
        for number in 0..self.flows.len() {
            pumped |= self.post_receives(number);
        }
        for number in 0..self.flows.len() {
            pumped |= self.post_sends(number);
        }
        pumped
    }

    /// A receive of one of a flow's pools has completed.
    fn take_shared(&mut self, number: usize, nth: usize, cqe: Cqe) {
        let flow = &mut self.flows[number];
        let pool = &mut self.pools[flow.pools[nth]];
        self.stats.meet(if pool.xrc { "xrc srq receive" } else { "srq receive" }, 1);
        let other = pool.latest.replace(number).is_some_and(|latest| latest != number);
        self.stats.meet("srq used by several", u64::from(other));
        match pool.complete(&self.world, cqe, nth) {
            Ok(received) => flow.received.push(received),
            Err(why) => self.wrong = self.wrong.take().or(Some(why)),
        }
    }

    /// Completions of XRC SRQs name the target that each came by.
    fn take_of_xrc(&mut self) -> bool {
        let mut any = false;
        for pool in 0..self.pools.len() {
            for cqe in self.world.srq_cqes(self.pools[pool].srq) {
                any = true;
                let came_by = |flow: &Flow| self.world.qpn(flow.far) == cqe.qpn;
                let found = self.flows.iter().enumerate().find_map(|(number, flow)| {
                    let nth = flow.pools.iter().position(|&of| of == pool)?;
                    came_by(flow).then_some((number, nth))
                });
                match found {
                    Some((number, nth)) => self.take_shared(number, nth, cqe),
                    None => self.wrong = Some(format!("{cqe:?} in the CQ of an SRQ")),
                }
            }
        }
        any
    }

    /// What is told of shared receives.
    fn hear(&mut self, event: AsyncEvent) {
        match (event.kind, event.source) {
            (EventKind::SrqLimitReached, EventSource::Srq(id)) => {
                if let Some(pool) = self.pools.iter_mut().find(|pool| pool.srq.0 == id as usize) {
                    pool.told += 1;
                }
                self.stats.meet("srq limit reached", 1);
            }
            (EventKind::QpLastWqeReached, EventSource::Qp(qpn)) => {
                for flow in self.flows.iter_mut().filter(|flow| self.world.qpn(flow.far) == qpn) {
                    flow.last_wqe += 1;
                }
                self.stats.meet("last wqe reached", 1);
            }
            _ => {}
        }
    }

    fn take_events(&mut self) -> bool {
        let mut any = false;
        for number in 0..usize::from(self.plan.endpoints) {
            for event in self.world.events(EndpointId(number)) {
                self.hear(event);
                let (EventKind::SqDrained, EventSource::Qp(qpn)) = (event.kind, event.source) else {
                    continue;
                };
                let drained = self.qps.iter().flatten().copied().find(|&qp| self.world.qpn(qp) == qpn);
                if let Some(qp) = drained.filter(|&qp| self.world.state(qp) == QpState::Sqd) {
                    let attr = QpAttr { state: QpState::Rts, ..QpAttr::default() };
                    any |= self.world.modify(qp, &attr, QpAttrMask::STATE).is_ok();
                }
            }
        }
        any
    }

    fn wants_receive(&self, flow: &Flow) -> bool {
        let state = self.world.state(flow.far);
        flow.pools.is_empty()
            && flow.awaited < flow.ops.len()
            && !matches!(state, QpState::Err | QpState::Reset)
            && self.world.receives_waiting(flow.far) < self.connection(flow).receives as usize
    }

    fn post_receives(&mut self, number: usize) -> bool {
        let mut any = false;
        loop {
            let flow = &mut self.flows[number];
            let skipped = flow.ops[flow.awaited..].iter().take_while(|op| !op.kind.takes_receive()).count();
            flow.awaited += skipped;
            let flow = &self.flows[number];
            if !self.wants_receive(flow) || flow.next_receive_at > self.world.now() {
                return any;
            }
            let wr = flow.recv_wr(flow.awaited);
            if self.world.post_recv(flow.far, wr).is_err() {
                return any;
            }
            let delay = self.connection(flow).receive_delay_ns;
            let later = chance(self.plan.seed, &flow.ops[flow.awaited], 12, delay + 1);
            let now = self.world.now();
            let flow = &mut self.flows[number];
            flow.awaited += 1;
            if delay > 0 {
                flow.next_receive_at = now + 1 + later;
            }
            any = true;
        }
    }

    fn post_sends(&mut self, number: usize) -> bool {
        let mut any = false;
        loop {
            let flow = &self.flows[number];
            let Some(op) = flow.ops.get(flow.posted) else { return any };
            let failed = matches!(self.world.state(flow.near), QpState::Err | QpState::Sqe);
            let early = op.after.is_some_and(|id| !self.done.contains(&id)) || is_hopeless(op, &self.dead);
            if early || (failed && flow.late_posts >= 2) {
                return any;
            }
            let wr = flow.send_wr(&self.world, self.plan.seed, flow.posted);
            let srqn = match (flow.service, flow.pool_of(op)) {
                (Service::Xrc, _) if op.fault == Some(Fault::BadSrqn) => Some(NO_SRQN),
                (Service::Xrc, Some(pool)) => self.world.srqn(self.pools[pool].srq),
                _ => None,
            };
            let posted = match srqn {
                Some(srqn) => self.world.post_send_to(flow.near, wr, srqn),
                None => self.world.post_send(flow.near, wr),
            };
            if posted.is_err() {
                return any;
            }
            let flow = &mut self.flows[number];
            self.ever_posted.insert(flow.ops[flow.posted].id);
            flow.posted += 1;
            flow.late_posts += usize::from(failed);
            any = true;
        }
    }

    /// Makes failed connections anew and passes by what can never be posted. False when all is over.
    fn go_on(&mut self) -> Result<bool, String> {
        let mut more = false;
        for number in 0..self.plan.connections.len() {
            // A receive that waits for a request which is passed by would meet another one's message.
            let skipped = self.skip_hopeless(number);
            let anew = self.has_failed(number) || skipped;
            let mut left = false;
            for flow in &mut self.flows[2 * number..2 * number + 2] {
                left |= flow.posted < flow.ops.len();
                flow.begin_epoch(anew);
            }
            if left && !anew {
                return Err(format!("connection {number} is at rest with requests that were never posted"));
            }
            more |= left;
            self.fortunes[number].gave_up = [false; 2];
            if anew {
                self.connect_anew(number);
            }
        }
        Ok(more)
    }

    pub fn has_failed(&self, number: usize) -> bool {
        self.qps[number].iter().any(|&qp| self.world.state(qp) != QpState::Rts)
    }

    /// Passes by requests that need one which has failed.
    fn skip_hopeless(&mut self, number: usize) -> bool {
        for flow in &self.flows[2 * number..2 * number + 2] {
            self.dead
                .extend(flow.ops[..flow.posted].iter().map(|op| op.id).filter(|id| !self.done.contains(id)));
        }
        let mut any = false;
        for flow in &mut self.flows[2 * number..2 * number + 2] {
            while let Some(op) = flow.ops.get(flow.posted).filter(|op| is_hopeless(op, &self.dead)) {
                self.dead.insert(op.id);
                flow.posted += 1;
                any = true;
            }
        }
        any
    }

    fn connect_anew(&mut self, number: usize) {
        let connection = self.plan.connections[number].clone();
        self.stats.meet("reconnect", 1);
        for flow in &self.flows[2 * number..2 * number + 2] {
            flow.pools.iter().for_each(|&pool| self.pools[pool].lost += 1);
        }
        self.world.reconnect(self.qps[number], &options(&connection));
        for qp in self.qps[number] {
            self.world.taps.forget(self.world.qpn(qp), connection.mtu);
        }
    }

    pub fn count_counters(&mut self) {
        for number in 0..usize::from(self.plan.endpoints) {
            let counters = self.world.counters(EndpointId(number));
            for &counter in Counter::ALL {
                self.stats.meet(counter.name(), counters.get(counter));
            }
            for &reason in engine::DropReason::ALL {
                self.stats.meet(reason.name(), counters.dropped(reason));
            }
            if let Some(link) = &self.world.endpoints[number].link {
                for (name, count) in link.counters().iter() {
                    self.stats.meet(name, count);
                }
            }
        }
        let signs = self.world.taps.signs;
        self.stats.meet("read restarted in the middle", signs.read_restarts);
        self.stats.meet("atomic replayed", signs.atomic_replays);
    }

    pub fn into_parts(mut self) -> (Stats, Vec<Seen>) {
        self.count_counters();
        self.stats.packets = self.world.frames_sent();
        (self.stats, self.world.taps.trace.take().unwrap_or_default())
    }
}

fn take_away(world: &mut World, flow: &Flow, area: super::flow::Area) {
    if let Some(region) = flow.regions.get(&area) {
        world.deregister(region);
    }
}

fn is_hopeless(op: &crate::plan::Op, dead: &BTreeSet<u32>) -> bool {
    op.needs_success_of().any(|id| dead.contains(&id))
}

impl Flow {
    /// Requests from here on are verified together. On a connection that goes on, receives wait where they are.
    fn begin_epoch(&mut self, anew: bool) {
        self.start = self.posted;
        if anew {
            (self.awaited, self.first_receive, self.next_receive_at) = (self.posted, self.posted, 0);
        } else {
            let next = self.receives_posted().nth(self.recv_cqes.len());
            self.first_receive = next.unwrap_or(self.awaited);
        }
        self.late_posts = 0;
        self.send_cqes.clear();
        self.recv_cqes.clear();
        self.received.clear();
        self.last_wqe = 0;
    }

    /// Requests whose receives were posted and had not completed when this round began.
    pub fn receives_posted(&self) -> impl Iterator<Item = usize> {
        (self.first_receive..self.awaited).filter(|&at| self.ops[at].kind.takes_receive())
    }
}
