//! Runs: frames that follow one another and differ in little are made in one loop. Short ones are copied, long ones lent.

use crate::lend::LEND_FROM;
use crate::seal::SEALED_LATER;
use crate::sink::{BurstSink, Way, place_piece};
use crate::tx::Outgoing;
use engine::{Follower, Followers, RegionGone, SinkError, TxRun};
use wire::{Bth, HeaderRun, ICRC_LEN, Icrc, MAX_HEADERS_LEN};

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
        if to_wire && len >= LEND_FROM && self.outgoing.lends_in_one() {
            return self.lend_run(run, followers);
        }
        if !to_wire || frame > SEALED_LATER {
            return run.emit_each(followers, self);
        }
        // Payloads without pad are summed while they are copied.
        let at_once = len > 0 && padded == len;
        // Composed for the first of them: often there is none.
        let mut headers = None;
        for _ in 0..self.outgoing.burst.room() {
            let Some(follower) = followers.next() else { break };
            let Some(mut mbuf) = self.fresh_buffer(frame) else { return Err(SinkError::Full) };
            let Outgoing { ip_id, memory, .. } = &mut *self.outgoing;
            *ip_id = ip_id.wrapping_add(1);
            // The worker's setup and its check of path MTUs see to buffers that are large enough.
            let out = mbuf.append_roomy(frame, MAX_HEADERS_LEN).ok_or(SinkError::RegionGone)?;
            let room = out.first_chunk_mut().ok_or(SinkError::RegionGone)?;
            let headers =
                headers.get_or_insert_with(|| HeaderRun::new(run.template, &run.bth, run.reth, len));
            let last = (follower.ack_req, follower.psn);
            if at_once {
                let lead = headers.write_leading(*ip_id, last, follower.va, room);
                let rest = &mut out[headers.len()..frame];
                let (payload, seal) = rest.split_at_mut(len);
                let icrc = memory.read_led(follower.span, payload, lead)?;
                seal.copy_from_slice(&Icrc::after(icrc).to_wire());
                self.outgoing.push(mbuf);
                continue;
            }
            let icrc = headers.write(*ip_id, last, follower.va, room);
            let payload = &mut out[headers.len()..headers.len() + padded];
            if len > 0 {
                place_piece(follower.span, memory, payload)?;
            }
            self.outgoing.push_unsealed(mbuf, headers.bth_offset(), icrc);
        }
        Ok(())
    }

    /// The same around payloads that stay where they are, where one buffer is all of a frame.
    #[inline(never)]
    fn lend_run(&mut self, run: &TxRun<'_>, followers: &mut impl Followers) -> Result<(), SinkError> {
        let pad = Bth::pad_in(&run.bth);
        let mut headers = None;
        for _ in 0..self.outgoing.burst.room() {
            let Some(follower) = followers.next() else { break };
            let headers = headers
                .get_or_insert_with(|| HeaderRun::new(run.template, &run.bth, run.reth, run.len as usize));
            if !self.lend_follower(headers, pad, &follower)? {
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
        headers: &HeaderRun,
        pad: usize,
        follower: &Follower,
    ) -> Result<bool, RegionGone> {
        let Outgoing { lending, memory, ip_id, .. } = &mut *self.outgoing;
        let Some(lending) = lending else { return Ok(false) };
        let begin = headers.len();
        let Some(mut mbuf) = lending.buffer(begin + pad + ICRC_LEN) else { return Ok(false) };
        *ip_id = ip_id.wrapping_add(1);
        let out = mbuf.append_roomy(begin + pad + ICRC_LEN, MAX_HEADERS_LEN).ok_or(RegionGone)?;
        let last = (follower.ack_req, follower.psn);
        let room = out.first_chunk_mut().ok_or(RegionGone)?;
        let icrc = headers.write_summed(*ip_id, last, follower.va, room);
        let mut icrc = Icrc::after(memory.sum(follower.span, icrc.value())?);
        let (zeros, seal) = out[begin..begin + pad + ICRC_LEN].split_at_mut(pad);
        if pad > 0 {
            zeros.fill(0);
            icrc.update(zeros);
        }
        seal.copy_from_slice(&icrc.to_wire());
        let frame = lending.lend(follower.span, mbuf, begin)?;
        self.outgoing.push(frame);
        Ok(true)
    }
}
