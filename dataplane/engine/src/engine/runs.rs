//! Packets of a burst that follow one another and are alike: they are executed together, as far as that is what becomes of them one by one.

use super::{Engine, QpPlace};
use crate::Nanos;
use crate::memory::Memory;
use crate::packet::{Payload, RxPacket};
use crate::qp::{Ctx, execute_middles, execute_run};
use wire::Frame;

impl<M: Memory> Engine<M> {
    /// Packets of a burst that follow `first`, which was delivered to the QP at `place`, in a [run](wire::Run): `bytes` gives
    /// all bytes of their frames. What is not executed with them is delivered like any other.
    /// How many were executed together.
    #[inline(always)]
    pub fn deliver_followers<'a, F>(
        &mut self,
        now: Nanos,
        QpPlace(slot): QpPlace,
        first: &Frame,
        frames: &'a [F],
        bytes: impl Fn(&'a F) -> &'a [u8],
    ) -> u32 {
        let Engine { memory, keys, srqs, events, staged, qps, .. } = self;
        let there = qps.get_mut(slot as usize).and_then(|qp| qp.as_deref_mut());
        let mut executed = 0;
        if let Some(qp) = there.filter(|qp| qp.qpn == first.bth().dest_qpn) {
            let ctx = Ctx { now, memory, keys, srqs, events, staged };
            executed = execute_run(qp, &ctx, first, frames.iter().map(&bytes));
            if qp.resp.has_response() {
                self.sched.enqueue(slot);
            }
        }
        for odd in frames.get(executed as usize..).unwrap_or_default() {
            self.deliver_odd(now, first, bytes(odd));
        }
        executed
    }

    /// Packets of a burst that follow `first`, which was delivered to the QP at `place`, in a [run](wire::Run) of middles
    /// ([`middles_run`](crate::qp::middles_run)) whose payloads the memory holds, one at a time: `hold` sees to that for the next, and gives
    /// the last four bytes of its BTH, or nothing when there is none. How many were executed together. The next is to be delivered as any,
    /// which may be one that was held in vain.
    #[inline(always)]
    pub fn deliver_middles(
        &mut self,
        now: Nanos,
        QpPlace(slot): QpPlace,
        first: &Frame,
        mut hold: impl FnMut(&M) -> Option<[u8; 4]>,
    ) -> u32 {
        let Engine { memory, keys, srqs, events, staged, qps, .. } = self;
        let there = qps.get_mut(slot as usize).and_then(|qp| qp.as_deref_mut());
        let Some(qp) = there.filter(|qp| qp.qpn == first.bth().dest_qpn) else { return 0 };
        let memory = &*memory;
        let ctx = Ctx { now, memory, keys, srqs, events, staged };
        let executed = execute_middles(qp, &ctx, first, || hold(memory));
        if first.info.is_response() {
            self.settle(slot);
        } else if qp.resp.has_response() {
            self.sched.enqueue(slot);
        }
        executed
    }

    #[inline(never)]
    fn deliver_odd(&mut self, now: Nanos, first: &Frame, bytes: &[u8]) {
        let frame = first.following(bytes);
        let payload = bytes.get(frame.payload_offset()..).and_then(|rest| rest.get(..frame.payload_len()));
        let payload = Payload::contiguous(payload.unwrap_or_default());
        self.deliver(now, frame.bth().dest_qpn, &RxPacket { frame: &frame, head: bytes, payload });
    }
}
