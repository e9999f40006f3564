//! A queue pair: what it is, and the parts that its roles own.
//!
//! `requester.rs` decides what a send queue transmits next, `completer.rs` what an arriving response completes,
//! `responder.rs` what an arriving request does, `respond.rs` what is answered and when.

mod admit;
mod attr;
mod complete;
mod completer;
mod flight;
mod flush;
mod held_middles;
mod load;
mod middles;
mod modify;
mod other_mtu;
mod outstanding;
mod plain;
mod request;
mod requester;
#[cfg(test)]
mod requester_tests;
mod respond;
mod responder;
mod retry;
mod slots;
mod state;
mod transition;
mod unanswered;
mod window;

pub use attr::{QpAttr, QpAttrMask};
pub use held_middles::runs as middles_run;
pub use modify::ModifyError;
pub use responder::runs;
pub use state::{QpState, QpType};
pub use transition::{Rule, rule};

use crate::Nanos;
use crate::counters::Counters;
use crate::event::{EventKind, EventQueue, EventSource};
use crate::memory::Memory;
use crate::mr::{KeyUser, MrTable, PdId};
use crate::numbers::NumberMap;
use crate::packet::{PacketSink, RxPacket};
use crate::queue::{CompletionQueue, QpShared, RecvQueue, RecvWqe, Staged};
use crate::sched::Turn;
use requester::Requester;
use responder::Responder;
use ring::Taker;
use std::cell::RefCell;
use std::mem::offset_of;
use std::sync::Arc;
use wire::{Addressing, Gid, HeaderTemplate, Mac, Network, Qpn, Reach};

pub(crate) use admit::{Hears, admit, admits_like, count as count_admitted};
pub(crate) use held_middles::execute as execute_middles;
pub(crate) use responder::execute_run;
pub(crate) use unanswered::on_returned;

/// What a QP is created with.
#[derive(Clone, Debug)]
pub struct QpInit {
    /// What it shares with its posters; number and type are in there.
    pub shared: Arc<QpShared>,
    /// Its protection domain. An XRC target's is not used: each request has that of the SRQ that it names.
    pub pd: PdId,
    /// Completions of sends.
    pub send_cq: Arc<CompletionQueue>,
    /// Completions of receives.
    pub recv_cq: Arc<CompletionQueue>,
    /// Every send gives a completion, signaled or not.
    pub sq_sig_all: bool,
    /// Largest UD payload: the port's path MTU in bytes.
    pub port_mtu: wire::Mtu,
}

/// The XRC SRQs by number.
pub(crate) type SrqTable = NumberMap<Arc<RecvQueue>>;

/// What stage functions work with besides the QP.
pub(crate) struct Ctx<'a, M> {
    pub now: Nanos,
    pub memory: &'a M,
    pub keys: &'a MrTable,
    pub srqs: &'a SrqTable,
    pub events: &'a EventQueue,
    /// Completions that are told together.
    pub staged: &'a RefCell<Staged>,
}

/// The connection of an RC or UC QP.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub template: HeaderTemplate,
    /// Our GID: the destination of arriving packets.
    pub local: Gid,
    /// The peer's GID: their source.
    pub remote: Gid,
    /// The VLAN of both directions; 0 for none.
    pub vid: u16,
}

/// What one call for a packet to send came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Poll {
    /// A packet of this many payload bytes went out, or a request was done without one (0). Packets before it in the same call are noted in
    /// the turn.
    Sent(usize),
    /// There is nothing to send now.
    Idle,
    /// The sink is full; ask again.
    Full,
}

/// A queue pair. What packets and posts ask for lies in cache lines one after the other, from the end of `attr` to the first of
/// `counters`: of many QPs they come from memory, and each line that a QP's turn needs costs as much as all work on it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Qp {
    pub(crate) shared: Arc<QpShared>,
    pub(crate) recv_cq: Arc<CompletionQueue>,
    /// Where its receives come from, unless that is an SRQ.
    pub(crate) rq: Option<Taker<RecvWqe>>,
    pub(crate) attr: QpAttr,
    pub(crate) state: QpState,
    pub(crate) qp_type: QpType,
    /// What it hears, by type and state.
    pub(crate) hears: Hears,
    pub(crate) sq_sig_all: bool,
    /// COMM_EST was raised.
    pub(crate) established: bool,
    pub(crate) port_mtu: wire::Mtu,
    /// It has bound a window of type 2, which may still be its own.
    pub(crate) has_windows: bool,
    pub(crate) qpn: Qpn,
    pub(crate) pd: PdId,
    pub(crate) send_cq: Arc<CompletionQueue>,
    pub(crate) req: Requester,
    pub(crate) path: Option<Path>,
    pub(crate) resp: Responder,
    pub(crate) counters: Counters,
}

/// Bytes of the counters that most packets count in.
const FIRST_COUNTERS: usize = 64;

impl Path {
    /// Whether it is one of those that `which` names by VLAN, source GID and network.
    pub fn is_used(&self, which: impl Fn(u16, Gid, Network) -> bool) -> bool {
        which(self.vid, self.local, self.template.network())
    }
}

impl Qp {
    /// `None` when there is a QP with the same queues already.
    pub(crate) fn new(init: QpInit, window: u32) -> Option<Self> {
        Some(Qp {
            req: Requester::new(init.shared.sq().taker()?, window),
            rq: init.shared.rq().taker(),
            qpn: init.shared.qpn(),
            qp_type: init.shared.qp_type(),
            resp: Responder::new(),
            shared: init.shared,
            pd: init.pd,
            send_cq: init.send_cq,
            recv_cq: init.recv_cq,
            sq_sig_all: init.sq_sig_all,
            port_mtu: init.port_mtu,
            state: QpState::Reset,
            hears: Hears::default(),
            attr: QpAttr::default(),
            path: None,
            counters: Counters::default(),
            established: false,
            has_windows: false,
        })
    }

    /// The QP's number.
    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    /// The state.
    pub fn state(&self) -> QpState {
        self.state
    }

    /// The attributes as last modified, with the present state.
    pub fn attr(&self) -> QpAttr {
        QpAttr { state: self.state, cur_state: self.state, ..self.attr.clone() }
    }

    /// What the QP counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its GID is gone: it can neither send nor hear any more.
    pub(crate) fn break_path<M: Memory>(&mut self, ctx: &Ctx<'_, M>) {
        flush::enter_error(self, ctx);
        ctx.events.raise(EventKind::QpFatal, self.source());
    }

    /// Sends to the station `to` from now on, if it did to `from` by a hop that `leads` describes; whether it did. Packets to
    /// ourselves never leave.
    pub(crate) fn redirect(&mut self, from: Mac, to: Mac, leads: impl Fn(u16, Gid) -> bool) -> bool {
        let Some(path) = &mut self.path else { return false };
        let follows = path.template.reach() == Reach::Wire
            && path.template.dmac() == from
            && leads(path.vid, path.remote);
        if follows {
            path.template = path.template.with_dmac(to);
            self.attr.path = self.attr.path.map(|known| Addressing { dmac: to, ..known });
        }
        follows
    }

    /// As whom it uses keys.
    pub(crate) fn key_user(&self) -> KeyUser {
        KeyUser { pd: self.pd, qpn: self.qpn }
    }

    pub(crate) fn source(&self) -> EventSource {
        EventSource::Qp(self.qpn)
    }

    pub(crate) fn set_state(&mut self, state: QpState) {
        self.state = state;
        self.hears = Hears::of(self.qp_type, state);
        self.shared.set_state(state);
    }

    /// When the QP wants its timer to fire.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.req.deadline()
    }

    /// There may be something to send.
    pub(crate) fn wants_transmit(&self) -> bool {
        self.resp.has_response() || requester::may_send(self)
    }

    /// Asks for what packets and posts need of it, but for what lies behind pointers.
    #[inline]
    pub(crate) fn fetch(&self) {
        const BEGIN: usize = offset_of!(Qp, attr) + offset_of!(QpAttr, access);
        ring::fetch_from(&self.attr.access, offset_of!(Qp, counters) + FIRST_COUNTERS - BEGIN);
    }

    /// Asks for where its receives come from, and where they complete.
    #[inline]
    pub(crate) fn fetch_receive_queue(&self) {
        ring::fetch_from(&self.recv_cq, offset_of!(Qp, attr) - offset_of!(Qp, recv_cq));
    }

    /// Asks for the receives that so many packets take, if they are its own: of a run no more than are needed before it asks itself. The step
    /// before was [`fetch_receive_queue`](Self::fetch_receive_queue).
    #[inline]
    pub(crate) fn fetch_receives(&self, packets: usize) {
        if let Some(own) = &self.rq {
            own.fetch_take(responder::FIRST_RECEIVES.min(packets as u32));
        }
    }

    /// A packet that [`admit`] let in.
    #[inline(always)]
    pub(crate) fn on_packet<M: Memory>(&mut self, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
        if packet.frame.info.is_response() {
            completer::on_response(self, ctx, packet);
        } else {
            responder::on_request(self, ctx, packet);
        }
    }

    /// Sends packets as long as its turn lasts: what the peer waits for first, then our own requests.
    /// With what the last came to.
    pub(crate) fn poll_transmit<M: Memory>(
        &mut self,
        ctx: &Ctx<'_, M>,
        sink: &mut impl PacketSink,
        turn: &mut Turn,
    ) -> Poll {
        loop {
            match respond::poll(self, ctx, sink, turn) {
                Poll::Sent(bytes) if turn.spend(bytes) => {}
                // Requests that leave give no more to answer.
                Poll::Idle => break,
                other => return other,
            }
        }
        loop {
            match requester::poll(self, ctx, sink, turn) {
                Poll::Sent(bytes) if turn.spend(bytes) => {}
                other => return other,
            }
        }
    }

    /// The timer fired at or after [`deadline`](Self::deadline).
    pub(crate) fn on_timeout<M: Memory>(&mut self, ctx: &Ctx<'_, M>) {
        retry::on_timeout(self, ctx);
    }

    /// A poster rang: new requests, or receives to flush.
    pub(crate) fn on_doorbell<M: Memory>(&mut self, ctx: &Ctx<'_, M>) {
        self.req.flight.answer();
        if matches!(self.state, QpState::Err | QpState::Sqe) {
            flush::flush_posted(self, ctx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counter;

    /// A line more is one more to come from memory for every turn of one among many QPs.
    #[test]
    fn what_packets_need_lies_in_seven_lines_and_that_of_the_counters() {
        let begin = offset_of!(Qp, attr) + offset_of!(QpAttr, access);
        let end = offset_of!(Qp, resp) + responder::USUAL_BYTES;
        let lines = end.div_ceil(64) - begin / 64;
        assert!(lines <= 7, "{lines} lines: bytes {begin} to {end}");
        assert_eq!(offset_of!(Qp, counters) % 64, 0);
        assert_eq!(
            Counter::ALL[..8].last(),
            Some(&Counter::Retransmitted),
            "the first eight lie in one line"
        );
        assert!(size_of::<QpShared>() <= 64);
    }
}
