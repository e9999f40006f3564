//! Runs: frames that follow one another and differ in little are made in one loop. Short ones are copied, long ones lent.

use crate::lend::LEND_FROM;
use crate::seal::SEALED_LATER;
use crate::sink::{BurstSink, Way, place_piece};
use crate::tx::Outgoing;
use engine::{Follower, Followers, RegionGone, SinkError, TxRun};
use wire::{Bth, HeaderRun, ICRC_LEN, Icrc, MAX_HEADERS_LEN, Opcode, Service};

impl BurstSink<'_> {
    /// Frames for the followers of a run as long as the burst has room.
    #[inline]
    pub(crate) fn write_run(
        &mut self,
        run: &TxRun<'_>,
        followers: &mut impl Followers,
    ) -> Result<(), SinkError> {
        let len = run.len as usize;
        let padded = len + Bth::pad_in(&run.bth);
        let frame = run.headers_len() + padded + ICRC_LEN;
        let to_wire = self.way(run.template) == Way::Wire;
        if to_wire && len >= LEND_FROM {
            let service = Opcode(run.bth[0]).info().map(|info| info.service);
            if let Some(service) = service.filter(|&service| self.outgoing.lends_in_one(service)) {
                return self.lend_run(run, service, followers);
            }
        }
        if !to_wire || frame > SEALED_LATER {
            return run.emit_each(followers, self);
        }
        // The worker's setup and its check of path MTUs see to buffers that are large enough.
        if frame > self.outgoing.fresh.room() {
            return Err(SinkError::RegionGone);
        }
        // Payloads without pad are summed while they are copied.
        if len > 0 && padded == len {
            return self.write_led_run(run, frame, followers);
        }
        // Composed for the first of them: often there is none.
        let mut headers = None;
        for _ in 0..self.outgoing.burst.room() {
            let Some(follower) = followers.next() else { break };
            let Some(mut mbuf) = self.outgoing.fresh.take_whole(frame) else { return self.no_buffer() };
            let headers = headers.get_or_insert_with(|| run_of(run, &mut self.outgoing.ip_id));
            let out = mbuf.roomy_mut(frame.max(MAX_HEADERS_LEN));
            let room = out.first_chunk_mut().ok_or(SinkError::RegionGone)?;
            headers.write((follower.ack_req, follower.psn), follower.va, room);
            let payload = &mut out[headers.len()..headers.len() + padded];
            if len > 0 {
                place_piece(follower.span, &self.outgoing.memory, payload)?;
            }
            self.outgoing.push_unsealed(mbuf, headers.bth_offset(), headers.icrc());
        }
        Ok(())
    }

    /// The pool has none: what it is for is offered again at the next poll.
    #[cold]
    pub(crate) fn no_buffer(&mut self) -> Result<(), SinkError> {
        self.traffic.no_buffer += 1;
        Err(SinkError::Full)
    }

    /// The same around payloads that stay where they are, where one buffer is all of a frame.
    #[inline(never)]
    fn lend_run(
        &mut self,
        run: &TxRun<'_>,
        service: Service,
        followers: &mut impl Followers,
    ) -> Result<(), SinkError> {
        let pad = Bth::pad_in(&run.bth);
        let mut headers = None;
        for _ in 0..self.outgoing.burst.room() {
            let Some(follower) = followers.next() else { break };
            let headers = headers.get_or_insert_with(|| run_of(run, &mut self.outgoing.ip_id));
            if !self.lend_follower(service, headers, pad, &follower)? {
                // A copy, if there is a buffer for that.
                run.emit_one(&follower, self)?;
            }
        }
        Ok(())
    }

    /// Adds a frame to the burst; false when there is no small buffer for it.
    #[inline(always)]
    fn lend_follower(
        &mut self,
        service: Service,
        headers: &HeaderRun,
        pad: usize,
        follower: &Follower,
    ) -> Result<bool, RegionGone> {
        let Outgoing { lending, memory, .. } = &mut *self.outgoing;
        let Some(lending) = lending else { return Ok(false) };
        let begin = headers.len();
        let own = begin + pad + ICRC_LEN;
        let Some(mut mbuf) = lending.whole(own) else { return Ok(false) };
        let out = mbuf.roomy_mut(own.max(MAX_HEADERS_LEN));
        let last = (follower.ack_req, follower.psn);
        let room = out.first_chunk_mut().ok_or(RegionGone)?;
        let icrc = headers.write_summed(last, follower.va, room);
        let mut icrc = Icrc::after(memory.sum(follower.span, icrc.value())?);
        let (zeros, seal) = out[begin..own].split_at_mut(pad);
        if pad > 0 {
            zeros.fill(0);
            icrc.update(zeros);
        }
        seal.copy_from_slice(&icrc.to_wire());
        let frame = lending.lend(service, follower.span, mbuf, begin)?;
        self.outgoing.push(frame);
        Ok(true)
    }
}

/// The headers of a run, which has an identification of its own.
#[inline(always)]
pub(crate) fn run_of(run: &TxRun<'_>, ip_id: &mut u16) -> HeaderRun {
    *ip_id = ip_id.wrapping_add(1);
    HeaderRun::new(run.template, &run.bth, run.reth, *ip_id, run.len as usize)
}
