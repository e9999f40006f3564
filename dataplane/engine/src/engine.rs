//! The engine: one worker's QPs and keys, driven from outside.

mod runs;

use crate::Nanos;
use crate::counters::{Counters, DropReason};
use crate::event::EventQueue;
use crate::limits::{MAX_QPS, WINDOW_MAX};
use crate::loans::Loans;
use crate::memory::Memory;
use crate::mr::{MemoryRegion, MrTable};
use crate::mw::MemoryWindow;
use crate::numbers::{NumberMap, Slot};
use crate::packet::{PacketSink, RxPacket};
use crate::qp::{
    Ctx, ModifyError, Poll, Qp, QpAttr, QpAttrMask, QpInit, QpState, QpType, SrqTable, admit, on_returned,
};
use crate::queue::{RecvQueue, Staged};
use crate::sched::Scheduler;
use crate::timer::TimerWheel;
use std::cell::RefCell;
use std::sync::Arc;
use wire::{Gid, Mac, Network, OpcodeInfo, Qpn, Srqn};

/// Capacities.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Most QPs. Tables grow as QPs are added, and with nothing else.
    pub max_qps: usize,
    /// Regions that fit before the table grows.
    pub max_mrs: usize,
    /// Packets that a QP may have outstanding, 16 to 4096: what the wire holds while nobody receives, where more would be lost.
    pub max_window: u32,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig { max_qps: MAX_QPS, max_mrs: 4096, max_window: WINDOW_MAX }
    }
}

/// Why a QP could not be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddQpError {
    /// The engine was made for fewer QPs.
    #[error("no room for another QP: the worker was configured for {0}")]
    Full(usize),
    /// The number is taken.
    #[error("QP {0} exists already")]
    Exists(Qpn),
}

/// Where a QP lives in its engine. Another one may come to live there: whoever goes by it says whose place it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpPlace(u32);

impl QpPlace {
    /// No QP's.
    pub const NOWHERE: QpPlace = QpPlace(u32::MAX);
}

/// The transport engine of one worker.
#[derive(Debug)]
pub struct Engine<M> {
    memory: M,
    keys: MrTable,
    srqs: SrqTable,
    events: Arc<EventQueue>,
    by_qpn: NumberMap<Slot>,
    /// By slot: as many as there ever were QPs at a time.
    qps: Vec<Option<Box<Qp>>>,
    /// Slots of `qps` without a QP.
    free: Vec<u32>,
    max_qps: usize,
    max_window: u32,
    sched: Scheduler,
    timers: TimerWheel,
    loans: Loans,
    /// Completions of the input, or of the burst.
    staged: RefCell<Staged>,
    /// Packets that reached no QP, and what destroyed QPs had counted.
    counters: Counters,
}

impl<M: Memory> Engine<M> {
    /// An engine without QPs. `events` is where asynchronous events go.
    pub fn new(config: EngineConfig, memory: M, events: Arc<EventQueue>) -> Self {
        Engine {
            memory,
            keys: MrTable::new(config.max_mrs),
            srqs: SrqTable::default(),
            events,
            by_qpn: NumberMap::default(),
            qps: Vec::new(),
            free: Vec::new(),
            max_qps: config.max_qps,
            max_window: config.max_window,
            sched: Scheduler::new(0),
            timers: TimerWheel::new(0),
            loans: Loans::default(),
            staged: RefCell::default(),
            counters: Counters::default(),
        }
    }

    /// Makes a region's key known here.
    pub fn add_mr(&mut self, region: Arc<MemoryRegion>) {
        self.keys.insert(region);
    }

    /// Forgets the region with this index (key >> 8). Later packets find it unknown.
    pub fn remove_mr(&mut self, index: u32) -> Option<Arc<MemoryRegion>> {
        self.keys.remove(index)
    }

    /// Makes a memory window's key known here.
    pub fn add_mw(&mut self, window: Arc<MemoryWindow>) {
        self.keys.insert_window(window);
    }

    /// Forgets the window with this index (key >> 8), and frees it: in other engines its key is dead from now on, too.
    pub fn remove_mw(&mut self, index: u32) -> Option<Arc<MemoryWindow>> {
        self.keys.remove_window(index)
    }

    /// Makes an XRC SRQ known here by its number.
    pub fn add_srq(&mut self, srq: Arc<RecvQueue>) {
        if let Some(srqn) = srq.srqn() {
            self.srqs.insert(srqn.value(), srq);
        }
    }

    /// Forgets the XRC SRQ with this number. Requests that name it are refused from now on.
    pub fn remove_srq(&mut self, srqn: Srqn) -> Option<Arc<RecvQueue>> {
        self.srqs.remove(srqn.value())
    }

    /// Creates a QP in RESET.
    pub fn create_qp(&mut self, init: QpInit) -> Result<(), AddQpError> {
        let qpn = init.shared.qpn();
        if init.shared.qp_type() == QpType::Uc {
            self.loans.prepare();
        }
        let qp = Qp::new(init, self.max_window).ok_or(AddQpError::Exists(qpn))?;
        self.place(Box::new(qp)).map(|_| ()).map_err(|(_, why)| why)
    }

    /// Takes over a QP that another engine [detached](Self::detach_qp); gives it back when there is no place. Doorbells
    /// that rang at the old home meanwhile need not be repeated: this answers them. Nobody tells here of what it has lent there.
    pub fn attach_qp(&mut self, now: Nanos, qp: Box<Qp>) -> Result<(), (Box<Qp>, AddQpError)> {
        let slot = self.place(qp)?;
        self.with_qp(now, slot, |qp, ctx| {
            on_returned(qp, ctx, qp.req.sent_end);
            qp.on_doorbell(ctx);
        });
        Ok(())
    }

    fn place(&mut self, qp: Box<Qp>) -> Result<u32, (Box<Qp>, AddQpError)> {
        let qpn = qp.qpn;
        if self.by_qpn.get(qpn.value()).is_some() {
            return Err((qp, AddQpError::Exists(qpn)));
        }
        let Some((number, slot)) = self.free_slot().and_then(|number| Some((number, Slot::new(number)?)))
        else {
            return Err((qp, AddQpError::Full(self.max_qps)));
        };
        self.by_qpn.insert(qpn.value(), slot);
        self.qps[number as usize] = Some(qp);
        Ok(number)
    }

    /// A slot without a QP, which has its place in every table.
    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = Some(self.qps.len()).filter(|&slot| slot < self.max_qps)?;
        self.qps.push(None);
        self.sched.add_slot();
        self.timers.add_slot();
        Some(slot as u32)
    }

    /// Removes a QP with all that it has in flight, to be attached elsewhere.
    pub fn detach_qp(&mut self, qpn: Qpn) -> Option<Box<Qp>> {
        let slot = self.by_qpn.remove(qpn.value())?.number();
        self.sched.remove(slot);
        self.timers.disarm(slot);
        self.loans.forget(qpn);
        self.free.push(slot);
        // Where it goes, it may complete more. And nobody else may have its queue.
        self.staged.get_mut().let_go(&self.events);
        self.qps[slot as usize].take()
    }

    /// Destroys a QP; its requests vanish without completions, and windows of type 2 that it has bound are free. False when there
    /// is none.
    pub fn destroy_qp(&mut self, qpn: Qpn) -> bool {
        match self.detach_qp(qpn) {
            Some(mut qp) => {
                qp.reset();
                if qp.has_windows {
                    self.keys.leave(qpn);
                }
                self.counters.merge(&qp.counters);
                true
            }
            None => false,
        }
    }

    /// Changes attributes and state. On an error nothing changed.
    pub fn modify_qp(
        &mut self,
        now: Nanos,
        qpn: Qpn,
        attr: &QpAttr,
        mask: QpAttrMask,
    ) -> Result<QpState, ModifyError> {
        let slot = self.slot_of(qpn).ok_or(ModifyError::UnknownQp(qpn))?;
        let state = self.with_qp(now, slot, |qp, ctx| {
            let result = qp.modify(ctx, attr, mask);
            (result.map(|()| qp.state), qp.req.outstanding())
        });
        let (state, outstanding) = state.unzip();
        if outstanding == Some(0) {
            // PSNs may begin anew.
            self.loans.forget(qpn);
        }
        state.unwrap_or(Err(ModifyError::UnknownQp(qpn)))
    }

    /// Takes up to `most` QPs with a path to ERROR that `is_stray` names by VLAN (0 for none), source GID and network: an event
    /// tells of each ([`crate::EventKind::QpFatal`]). How many it were.
    pub fn break_qps(
        &mut self,
        now: Nanos,
        most: usize,
        is_stray: impl Fn(u16, Gid, Network) -> bool,
    ) -> usize {
        let mut broken = 0;
        for slot in 0..self.qps.len() as u32 {
            if broken == most {
                break;
            }
            broken += usize::from(self.break_slot(now, slot, &is_stray));
        }
        broken
    }

    /// The same for one QP; whether it was taken to ERROR.
    pub fn break_qp(&mut self, now: Nanos, qpn: Qpn, is_stray: impl Fn(u16, Gid, Network) -> bool) -> bool {
        self.slot_of(qpn).is_some_and(|slot| self.break_slot(now, slot, is_stray))
    }

    fn break_slot(&mut self, now: Nanos, slot: u32, is_stray: impl Fn(u16, Gid, Network) -> bool) -> bool {
        let uses = |qp: &Qp| qp.path.as_ref().is_some_and(|path| path.is_used(&is_stray));
        let is_stray = |qp: &Qp| qp.state != QpState::Err && uses(qp);
        let stray = self.qps[slot as usize].as_deref().is_some_and(is_stray);
        if stray {
            self.with_qp(now, slot, |qp, ctx| qp.break_path(ctx));
        }
        stray
    }

    /// Has up to `most` QPs that send to the MAC `from` send to `to`, if `leads` says so by VLAN (0 for none) and peer. How many
    /// it were.
    pub fn redirect(&mut self, from: Mac, to: Mac, most: usize, leads: impl Fn(u16, Gid) -> bool) -> usize {
        let led = self.qps.iter_mut().filter_map(|qp| qp.as_deref_mut());
        led.filter_map(|qp| qp.redirect(from, to, &leads).then_some(())).take(most).count()
    }

    /// A QP, to look at.
    pub fn qp(&self, qpn: Qpn) -> Option<&Qp> {
        self.find(qpn)
    }

    /// How many QPs are here.
    pub fn qp_count(&self) -> usize {
        self.qps.len() - self.free.len()
    }

    /// QPs here.
    pub fn qps(&self) -> impl Iterator<Item = &Qp> {
        self.qps.iter().filter_map(|qp| qp.as_deref())
    }

    /// Whether a QP lives here.
    pub fn has_qp(&self, qpn: Qpn) -> bool {
        self.slot_of(qpn).is_some()
    }

    /// Where a QP lives, if it does here: the first pass over a burst asks for each packet, and the second finds it there, and in the cache.
    #[inline]
    pub fn place_of(&self, qpn: Qpn, info: &OpcodeInfo) -> Option<QpPlace> {
        let slot = self.slot_of(qpn)?;
        if self.has_many_qps()
            && let Some(qp) = self.qps[slot as usize].as_deref()
        {
            qp.fetch();
            if info.takes_receive_wqe() {
                qp.fetch_receive_queue();
            }
        }
        Some(QpPlace(slot))
    }

    /// Asks for what the lookup of a QP needs, where many are here.
    #[inline]
    pub fn expect_qp(&self, qpn: Qpn) {
        if self.has_many_qps() {
            self.by_qpn.fetch(qpn.value());
        }
    }

    /// There are so many QPs that one of them is not in the cache when its turn comes. Then it is worth asking for ahead.
    #[inline]
    pub fn has_many_qps(&self) -> bool {
        self.qps.len() > MANY_QPS
    }

    /// Asks for what so many packets alike need of a QP that was asked for before ([`place_of`](Self::place_of)): the receives that they take,
    /// or what they complete.
    #[inline]
    pub fn fetch_for(&self, place: QpPlace, info: &OpcodeInfo, packets: usize) {
        if let Some(Some(qp)) = self.qps.get(place.0 as usize) {
            if info.is_response() {
                qp.req.flight.fetch_oldest();
            } else if info.takes_receive_wqe() {
                qp.fetch_receives(packets);
            }
        }
    }

    /// A packet that passed the parser and the iCRC: lookup, admission, responder or completer.
    pub fn on_packet(&mut self, now: Nanos, packet: &RxPacket<'_>) {
        self.deliver(now, packet.frame.bth().dest_qpn, packet);
        self.end_burst(now);
    }

    /// The same for a packet of a burst, whose completions are told together when [`end_burst`](Self::end_burst) is called; and for a QP
    /// of which the packet does not speak: a member of the multicast group that it is for.
    #[inline(never)]
    pub fn deliver(&mut self, now: Nanos, qpn: Qpn, packet: &RxPacket<'_>) {
        match self.slot_of(qpn) {
            Some(slot) => self.deliver_at(now, QpPlace(slot), qpn, packet),
            None => self.counters.drop_packet(DropReason::UnknownQp),
        }
    }

    /// The same where the QP was found at `place`. If it is not there any more, it is looked up again. Always inlined, for who takes most
    /// packets.
    #[inline(always)]
    pub fn deliver_at(&mut self, now: Nanos, QpPlace(slot): QpPlace, qpn: Qpn, packet: &RxPacket<'_>) {
        let Engine { memory, keys, srqs, events, staged, qps, .. } = self;
        let there = qps.get_mut(slot as usize).and_then(|qp| qp.as_deref_mut());
        let Some(qp) = there.filter(|qp| qp.qpn == qpn) else {
            return self.deliver(now, qpn, packet);
        };
        let ctx = Ctx { now, memory, keys, srqs, events, staged };
        if let Err(reason) = admit(qp, &ctx, packet) {
            return qp.counters.drop_packet(reason);
        }
        qp.on_packet(&ctx, packet);
        if packet.frame.info.is_response() {
            self.settle(slot);
        } else if qp.resp.has_response() {
            // A request changes nothing of what the QP itself asks for, or of its timer.
            self.sched.enqueue(slot);
        }
    }

    /// All packets of a burst are delivered: what they have completed can be polled from now on, and who asked for that is notified.
    pub fn end_burst(&mut self, now: Nanos) {
        self.staged.get_mut().flush(&self.events);
        while let Some(refused) = self.staged.get_mut().take_refused() {
            for qpn in refused {
                if let Some(slot) = self.slot_of(qpn) {
                    self.staging(now, slot, |qp, ctx| qp.on_cq_full(ctx));
                }
            }
            self.staged.get_mut().flush(&self.events);
        }
    }

    /// A poster rang for this QP: the bell is answered, and then what was posted is looked at. A QP that is not here is gone, or
    /// has moved: then its new engine has looked, or will.
    pub fn on_doorbell(&mut self, now: Nanos, qpn: Qpn) {
        if let Some(slot) = self.slot_of(qpn) {
            self.with_qp(now, slot, |qp, ctx| qp.on_doorbell(ctx));
        }
    }

    /// The same for several QPs: one that is not here is passed by.
    pub fn on_doorbells(&mut self, now: Nanos, qpns: &[Qpn]) {
        if self.has_many_qps() {
            qpns.iter().for_each(|qpn| self.by_qpn.fetch(qpn.value()));
            qpns.iter().filter_map(|&qpn| self.find(qpn)).for_each(Qp::fetch);
            qpns.iter().filter_map(|&qpn| self.find(qpn)).for_each(|qp| qp.req.flight.fetch_bell());
        }
        for &qpn in qpns {
            if let Some(slot) = self.slot_of(qpn) {
                self.staging(now, slot, |qp, ctx| qp.on_doorbell(ctx));
            }
        }
        self.end_burst(now);
    }

    /// [`on_doorbell`](Self::on_doorbell) for every QP here: posters rang for somebody.
    pub fn on_all_doorbells(&mut self, now: Nanos) {
        for slot in 0..self.qps.len() as u32 {
            self.with_qp(now, slot, |qp, ctx| qp.on_doorbell(ctx));
        }
    }

    /// Sends what can be sent, in turns, until nobody has anything or the sink is full. True when the sink was full.
    pub fn poll_transmit(&mut self, now: Nanos, sink: &mut impl PacketSink) -> bool {
        let full = self.take_turns(now, sink);
        // Requests that are complete when they were sent.
        self.end_burst(now);
        full
    }

    fn take_turns(&mut self, now: Nanos, sink: &mut impl PacketSink) -> bool {
        if self.has_many_qps() {
            // The first that are asked for only when others have their turn before.
            (0..TURNS_AHEAD).for_each(|ahead| self.fetch_turn(ahead));
        }
        while let Some(slot) = self.sched.front() {
            if self.has_many_qps() {
                self.fetch_turn(TURNS_AHEAD);
                self.fetch_posted(TURNS_AHEAD / 2);
            }
            let Engine { memory, keys, srqs, events, staged, qps, loans, .. } = self;
            let Some(qp) = qps[slot as usize].as_deref_mut() else {
                self.sched.leave();
                continue;
            };
            let may_lend = qp.qp_type == QpType::Uc;
            if may_lend && loans.is_full() {
                return true;
            }
            let sent_before = qp.req.sent_end;
            let ctx = Ctx { now, memory, keys, srqs, events, staged };
            let mut turn = self.sched.begin_turn(slot);
            let came_to = qp.poll_transmit(&ctx, sink, &mut turn);
            self.sched.end_turn(slot, turn);
            if may_lend && qp.req.outstanding() > 0 && qp.req.sent_end != sent_before {
                loans.note(qp.req.loan, qp.qpn, qp.req.sent_end);
            }
            let deadline = qp.deadline();
            if let Some(deadline) = deadline {
                self.timers.arm(slot, deadline);
            }
            match came_to {
                Poll::Sent(_) => self.sched.rotate(),
                Poll::Idle => self.sched.leave(),
                Poll::Full => return true,
            }
        }
        false
    }

    /// Asks for the QP whose turn comes after `ahead` others.
    #[inline]
    fn fetch_turn(&self, ahead: usize) {
        if let Some(slot) = self.sched.later(ahead)
            && let Some(qp) = self.qps[slot as usize].as_deref()
        {
            qp.fetch();
            self.timers.fetch(slot);
            self.sched.fetch(slot);
        }
    }

    /// Asks for what was posted to such a QP, which itself is there by now.
    #[inline]
    fn fetch_posted(&self, ahead: usize) {
        if let Some(qp) = self.sched.later(ahead).and_then(|slot| self.qps[slot as usize].as_deref()) {
            qp.req.flight.fetch_waiting();
        }
    }

    /// The loan of this number has come back, and all before it: what was lent of UC is read no more
    /// ([`PacketSink::take_loan`](crate::PacketSink::take_loan)).
    pub fn on_returned(&mut self, now: Nanos, loan: u64) {
        while let Some((qpn, end)) = self.loans.take(loan) {
            if let Some(slot) = self.slot_of(qpn) {
                self.staging(now, slot, |qp, ctx| on_returned(qp, ctx, end));
            }
        }
        self.end_burst(now);
    }

    /// Fires every timer that is due.
    pub fn on_timeout(&mut self, now: Nanos) {
        while let Some(slot) = self.timers.pop_expired(now) {
            self.with_qp(now, slot, |qp, ctx| {
                if qp.deadline().is_some_and(|deadline| deadline <= now) {
                    qp.on_timeout(ctx);
                }
            });
        }
    }

    /// When [`on_timeout`](Self::on_timeout) is next needed, at the latest.
    pub fn next_timeout(&self) -> Option<Nanos> {
        self.timers.next_deadline()
    }

    /// True when nothing waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.sched.is_empty()
    }

    /// Everything counted here, QPs present and gone.
    pub fn counters(&self) -> Counters {
        let mut sum = self.counters.clone();
        for qp in self.qps() {
            sum.merge(&qp.counters);
        }
        sum
    }

    /// The memory that the engine copies to and from.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The same, to be told that no copy is under way.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    #[inline]
    fn find(&self, qpn: Qpn) -> Option<&Qp> {
        self.qps[self.slot_of(qpn)? as usize].as_deref()
    }

    fn slot_of(&self, qpn: Qpn) -> Option<u32> {
        self.by_qpn.get(qpn.value()).map(|slot| slot.number())
    }

    /// Runs an input on a QP and then settles what follows from it.
    fn with_qp<R>(
        &mut self,
        now: Nanos,
        slot: u32,
        input: impl FnOnce(&mut Qp, &Ctx<'_, M>) -> R,
    ) -> Option<R> {
        let result = self.staging(now, slot, input);
        self.end_burst(now);
        result
    }

    /// The same, but its completions wait for [`end_burst`](Self::end_burst).
    fn staging<R>(
        &mut self,
        now: Nanos,
        slot: u32,
        input: impl FnOnce(&mut Qp, &Ctx<'_, M>) -> R,
    ) -> Option<R> {
        let Engine { memory, keys, srqs, events, staged, qps, .. } = self;
        let qp = qps[slot as usize].as_deref_mut()?;
        let ctx = Ctx { now, memory, keys, srqs, events, staged };
        let result = input(qp, &ctx);
        self.settle(slot);
        Some(result)
    }

    /// After every input: the QP joins the round if it has something to send, and its timer runs.
    fn settle(&mut self, slot: u32) {
        let Some(qp) = self.qps[slot as usize].as_deref() else { return };
        if qp.wants_transmit() {
            self.sched.enqueue(slot);
        }
        if let Some(deadline) = qp.deadline() {
            self.timers.arm(slot, deadline);
        }
    }
}

/// QPs that a core's second cache holds, with their requests: about 1.5 KB each.
const MANY_QPS: usize = 192;

/// QPs that have their turns between asking for one and its own: a turn is not much shorter than a way from memory.
const TURNS_AHEAD: usize = 4;
