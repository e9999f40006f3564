//! The world: virtual time, and everything that happens in its order.

use crate::bad_link::BadLink;
use crate::endpoint::{Endpoint, EndpointId, Region};
use crate::forge;
use crate::link::Faults;
use crate::memory::VecMemory;
use crate::qp::{QpId, SimQp};
use crate::tap::{Seen, Taps};
use engine::qp::ModifyError;
use engine::queue::PostError;
use engine::{
    Access, AsyncEvent, CompletionQueue, Counters, Cqe, MemoryWindow, MwType, Nanos, QpAttr, QpAttrMask,
    QpState, QpType, RecvQueue, RecvWr, SendWr,
};
use impair::Direction;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use wire::{EthernetHeader, FrameError, Mac, Qpn};

/// The world did not come to rest in the time given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Endpoints, the links between them and the time.
pub struct World {
    pub(crate) now: Nanos,
    pub(crate) rng: ChaCha8Rng,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) qps: Vec<SimQp>,
    pub(crate) srqs: Vec<Arc<RecvQueue>>,
    /// By the number of the SRQ.
    pub(crate) xrc_cqs: BTreeMap<usize, Arc<CompletionQueue>>,
    pub(crate) taps: Taps,
    /// One frame in so many is forged, see [`forge`].
    pub(crate) forge: u32,
    faults: Faults,
    /// Frames under way, by arrival; the number keeps those of the same moment in order.
    under_way: BTreeMap<(Nanos, u64), Vec<u8>>,
    arrivals: u64,
    frames_sent: u64,
    history: DefaultHasher,
}

/// Frames that an endpoint's transmitter takes ahead of the wire: a small TX ring, so that it is full often.
const TX_RING: usize = 16;

/// So much virtual time is enough for anything: every retry of the longest timers in use.
const AGES: Nanos = 3_600_000_000_000;

/// A run that exchanges so many frames does not end by itself.
const MANY_FRAMES: u64 = 5_000_000;

impl World {
    /// An empty world with clean links. The same seed makes the same random choices.
    pub fn new(seed: u64) -> World {
        World {
            // Not zero: nobody may take zero for "never".
            now: 1_000_000,
            rng: ChaCha8Rng::seed_from_u64(seed),
            endpoints: Vec::new(),
            qps: Vec::new(),
            srqs: Vec::new(),
            xrc_cqs: BTreeMap::new(),
            taps: Taps::default(),
            forge: 0,
            faults: Faults::default(),
            under_way: BTreeMap::new(),
            arrivals: 0,
            frames_sent: 0,
            history: DefaultHasher::new(),
        }
    }

    /// What links do from now on.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// What links do.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Gives every endpoint that there is an impairment stage with this plan. What it does, frames meet twice: where they
    /// leave and where they arrive.
    pub fn impair(&mut self, plan: &impair::Plan) {
        for endpoint in &mut self.endpoints {
            endpoint.link = Some(BadLink::new(plan, self.rng.random()));
        }
    }

    /// From now on the checker of the protocol stands at every endpoint that there is.
    pub(crate) fn check(&mut self) {
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            self.taps.check(EndpointId(number), endpoint.mac);
        }
    }

    /// A new endpoint.
    pub fn add_endpoint(&mut self) -> EndpointId {
        self.endpoints.push(Endpoint::new(self.endpoints.len() as u8 + 1));
        EndpointId(self.endpoints.len() - 1)
    }

    /// Registers a region with this content.
    pub fn register(&mut self, endpoint: EndpointId, content: Vec<u8>, access: Access) -> Region {
        self.endpoints[endpoint.0].register(endpoint, content, access)
    }

    /// Takes a region away: its memory, and its key.
    pub fn deregister(&mut self, region: &Region) {
        self.endpoints[region.endpoint.0].deregister(region);
    }

    /// Allocates a region for fast registration.
    pub fn allocate_fast(&mut self, endpoint: EndpointId, content: Vec<u8>) -> Region {
        self.endpoints[endpoint.0].allocate_fast(endpoint, content)
    }

    /// Registers a region that can persist, with this content, which has.
    pub fn register_durable(&mut self, endpoint: EndpointId, content: Vec<u8>, access: Access) -> Region {
        let region = self.register(endpoint, content, access);
        self.memory(endpoint).make_durable(region.id);
        region
    }

    /// Allocates a memory window, which a bind (`SendOp::BindMw`) ties to a region.
    pub fn allocate_window(&mut self, endpoint: EndpointId, mw_type: MwType) -> Arc<MemoryWindow> {
        self.endpoints[endpoint.0].allocate_window(mw_type)
    }

    /// Gives a memory window back: it is freed in every engine of the endpoint.
    pub fn free_window(&mut self, endpoint: EndpointId, window: &MemoryWindow) {
        for engine in &mut self.endpoints[endpoint.0].engines {
            engine.remove_mw(window.index());
        }
    }

    /// An endpoint's memory.
    pub fn memory(&self, endpoint: EndpointId) -> &VecMemory {
        &self.endpoints[endpoint.0].memory
    }

    /// The bytes of a region as they are now.
    pub fn content(&self, region: &Region) -> Vec<u8> {
        self.memory(region.endpoint).content(region.id)
    }

    /// Bytes without pattern.
    pub fn random_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill(&mut bytes[..]);
        bytes
    }

    /// A number below `end`.
    pub fn random_below(&mut self, end: u32) -> u32 {
        self.rng.random_range(0..end)
    }

    /// Posts a send request and lets the engine know.
    pub fn post_send(&mut self, qp: QpId, wr: SendWr) -> Result<(), PostError> {
        let ring = self.qps[qp.0].shared.post_send(wr)?;
        self.ring(qp, ring);
        Ok(())
    }

    /// Posts a receive.
    pub fn post_recv(&mut self, qp: QpId, wr: RecvWr) -> Result<(), PostError> {
        let ring = self.qps[qp.0].shared.post_recv(wr)?;
        self.ring(qp, ring);
        Ok(())
    }

    pub(crate) fn ring(&mut self, qp: QpId, ring: bool) {
        let SimQp { endpoint, qpn, .. } = self.qps[qp.0];
        if ring && let Some(engine) = self.endpoints[endpoint.0].home(qpn) {
            engine.on_doorbell(self.now, qpn);
        }
    }

    /// Changes a QP's attributes.
    pub fn modify(&mut self, qp: QpId, attr: &QpAttr, mask: QpAttrMask) -> Result<QpState, ModifyError> {
        let SimQp { endpoint, qpn, .. } = self.qps[qp.0];
        let engine = self.endpoints[endpoint.0].home(qpn).ok_or(ModifyError::UnknownQp(qpn))?;
        engine.modify_qp(self.now, qpn, attr, mask)
    }

    /// A QP's state, as its posters see it.
    pub fn state(&self, qp: QpId) -> QpState {
        self.qps[qp.0].shared.state()
    }

    /// A QP's number.
    pub fn qpn(&self, qp: QpId) -> Qpn {
        self.qps[qp.0].qpn
    }

    /// A QP's type.
    pub fn qp_type(&self, qp: QpId) -> QpType {
        self.qps[qp.0].shared.qp_type()
    }

    /// Send requests of a QP that have not completed.
    pub fn outstanding(&self, qp: QpId) -> u32 {
        self.qps[qp.0].shared.sq().outstanding()
    }

    /// Where a QP lives.
    pub fn endpoint_of(&self, qp: QpId) -> EndpointId {
        self.qps[qp.0].endpoint
    }

    /// Moves a QP to the endpoint's other engine, with all that it has under way.
    pub fn move_home(&mut self, qp: QpId) {
        let SimQp { endpoint, qpn, .. } = self.qps[qp.0];
        let engines = &mut self.endpoints[endpoint.0].engines;
        let from = engines.iter().position(|engine| engine.has_qp(qpn)).expect("a QP that exists");
        let moving = engines[from].detach_qp(qpn).expect("it is there");
        let to = (from + 1) % engines.len();
        engines[to].attach_qp(self.now, moving).map_err(|(_, why)| why).expect("there is room");
    }

    /// Send completions that nobody has taken yet.
    pub fn send_cqes(&self, qp: QpId) -> Vec<Cqe> {
        std::iter::from_fn(|| self.qps[qp.0].send_cq.poll()).collect()
    }

    /// Receive completions that nobody has taken yet.
    pub fn recv_cqes(&self, qp: QpId) -> Vec<Cqe> {
        std::iter::from_fn(|| self.qps[qp.0].recv_cq.poll()).collect()
    }

    /// Asynchronous events that nobody has taken yet.
    pub fn events(&self, endpoint: EndpointId) -> Vec<AsyncEvent> {
        std::iter::from_fn(|| self.endpoints[endpoint.0].events.poll()).collect()
    }

    /// What an endpoint counted.
    pub fn counters(&self, endpoint: EndpointId) -> Counters {
        self.endpoints[endpoint.0].counters()
    }

    /// What a QP counted.
    pub fn qp_counters(&self, qp: QpId) -> Counters {
        let SimQp { endpoint, qpn, .. } = self.qps[qp.0];
        let engines = &self.endpoints[endpoint.0].engines;
        let home = engines.iter().find_map(|engine| engine.qp(qpn));
        home.map_or_else(Counters::default, |qp| qp.counters().clone())
    }

    /// Frames that an endpoint's parser refused for this reason.
    pub fn refused(&self, endpoint: EndpointId, reason: FrameError) -> u64 {
        self.endpoints[endpoint.0].refused[reason as usize]
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Frames that left any endpoint.
    pub fn frames_sent(&self) -> u64 {
        self.frames_sent
    }

    /// A number that stands for every frame that arrived, and when: equal for equal runs.
    pub fn history(&self) -> u64 {
        self.history.finish()
    }

    /// Lets time pass until nothing happens any more.
    pub fn run(&mut self) -> Result<(), Busy> {
        self.run_for(AGES)
    }

    /// Lets time pass until nothing happens any more, or so much is over.
    pub fn run_for(&mut self, time: Nanos) -> Result<(), Busy> {
        let end = self.now + time;
        let frames_at_most = self.frames_sent + MANY_FRAMES;
        loop {
            match self.step(end) {
                Step::Moved if self.frames_sent <= frames_at_most => {}
                Step::Rest => return Ok(()),
                Step::Moved | Step::Limit => {
                    self.now = end;
                    return Err(Busy);
                }
            }
        }
    }

    /// One moment further, unless that is after `limit`.
    pub(crate) fn step(&mut self, limit: Nanos) -> Step {
        let wake = self.transmit();
        let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
        let timeout = self.endpoints.iter().filter_map(Endpoint::next_timeout).min();
        let held = self.endpoints.iter().filter_map(Endpoint::next_held).min();
        let Some(next) = [wake, arrival, timeout, held].into_iter().flatten().min() else {
            return Step::Rest;
        };
        if next > limit {
            return Step::Limit;
        }
        self.now = self.now.max(next);
        self.deliver();
        self.release();
        for endpoint in &mut self.endpoints {
            endpoint.on_timeout(self.now);
        }
        Step::Moved
    }

    /// Everybody sends what its transmitter takes. Gives the time at which one that was full has room again.
    fn transmit(&mut self) -> Option<Nanos> {
        let mut wake: Option<Nanos> = None;
        for number in 0..self.endpoints.len() {
            let endpoint = &mut self.endpoints[number];
            let free = endpoint.busy_until <= self.now;
            let (frames, full) = endpoint.transmit(self.now, if free { TX_RING } else { 0 });
            endpoint.busy_until = endpoint.busy_until.max(self.now);
            for frame in frames {
                self.frames_sent += 1;
                self.leave(number, frame);
            }
            if full {
                // At least a moment later, or time would stand still.
                let again = self.endpoints[number].busy_until.max(self.now + 1);
                wake = Some(wake.map_or(again, |wake| wake.min(again)));
            }
        }
        wake
    }

    /// A frame goes onto the wire.
    fn leave(&mut self, number: usize, mut frame: Vec<u8>) {
        let endpoint = &mut self.endpoints[number];
        endpoint.busy_until += self.faults.wire_time(frame.len());
        let at = endpoint.busy_until;
        if self.forge > 0 && self.frames_sent.is_multiple_of(u64::from(self.forge)) {
            forge::forge(&mut frame);
        }
        let seen = Seen { at, endpoint: EndpointId(number), arrived: false, fate: "", frame: frame.clone() };
        self.taps.passes(EndpointId(number), self.now, &frame);
        let Some(link) = &mut endpoint.link else {
            self.taps.see(seen);
            return self.carry(at, vec![frame]);
        };
        let passed = link.pass(self.now, Direction::Tx, frame);
        if passed.harmed {
            self.taps.harm(&seen.frame);
        }
        self.taps.see(Seen { fate: passed.fate, ..seen });
        self.carry(at, passed.frames);
    }

    /// Frames are on the wire from `at` on.
    fn carry(&mut self, at: Nanos, frames: Vec<Vec<u8>>) {
        for frame in frames {
            if self.faults.dead {
                self.taps.harm(&frame);
            }
            for (at, frame) in self.faults.carry(&mut self.rng, at, frame) {
                self.arrivals += 1;
                self.under_way.insert((at, self.arrivals), frame);
            }
        }
    }

    /// What has arrived by now goes to the endpoint with its MAC address.
    fn deliver(&mut self) {
        while let Some(entry) = self.under_way.first_entry() {
            let (at, _) = *entry.key();
            if at > self.now {
                break;
            }
            let frame = entry.remove();
            (at, &frame).hash(&mut self.history);
            let dmac = EthernetHeader::parse(&frame).map_or(Mac::BROADCAST, |ethernet| ethernet.dmac);
            if let Some(number) = self.endpoints.iter().position(|endpoint| endpoint.mac == dmac) {
                self.arrive(number, frame);
            }
        }
    }

    fn arrive(&mut self, number: usize, frame: Vec<u8>) {
        let seen =
            Seen { at: self.now, endpoint: EndpointId(number), arrived: true, fate: "", frame: Vec::new() };
        let endpoint = &mut self.endpoints[number];
        let Some(link) = &mut endpoint.link else {
            self.taps.see(Seen { frame: frame.clone(), ..seen });
            return self.receive(number, &frame);
        };
        let as_it_came = frame.clone();
        let passed = link.pass(self.now, Direction::Rx, frame);
        for frame in &passed.frames {
            self.receive(number, frame);
        }
        if passed.harmed {
            self.taps.harm(&as_it_came);
        }
        self.taps.see(Seen { fate: passed.fate, frame: as_it_came, ..seen });
    }

    /// The engine gets a frame.
    fn receive(&mut self, number: usize, frame: &[u8]) {
        self.taps.passes(EndpointId(number), self.now, frame);
        self.endpoints[number].receive(self.now, frame);
    }

    /// Held frames whose time has come go on.
    fn release(&mut self) {
        for number in 0..self.endpoints.len() {
            let endpoint = &mut self.endpoints[number];
            let Some(link) = &mut endpoint.link else { continue };
            let (leaving, arriving) = (link.due(self.now, Direction::Tx), link.due(self.now, Direction::Rx));
            for frame in arriving {
                self.receive(number, &frame);
                let at = self.now;
                self.taps.see(Seen {
                    at,
                    endpoint: EndpointId(number),
                    arrived: true,
                    fate: "let go",
                    frame,
                });
            }
            self.carry(self.now, leaving);
        }
    }

    /// Time passes, with nothing to do until then.
    pub(crate) fn skip_to(&mut self, time: Nanos) {
        self.now = self.now.max(time);
    }
}

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something happened.
    Moved,
    /// Nothing will happen by itself any more.
    Rest,
    /// What happens next is after the limit.
    Limit,
}
