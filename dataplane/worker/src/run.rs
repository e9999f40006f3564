//! Runs: short frames that follow one another and differ in little become frames in one loop.

use crate::seal::SEALED_LATER;
use crate::sink::{BurstSink, Way, place_piece};
use crate::tx::Outgoing;
use engine::{Followers, SinkError, TxRun};
use wire::{Bth, HeaderRun, ICRC_LEN, MAX_HEADERS_LEN};

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
        if self.way(run.template) != Way::Wire || frame > SEALED_LATER {
            return run.emit_each(followers, self);
        }
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
            let icrc = headers.write(*ip_id, follower.psn, follower.va, room);
            let payload = &mut out[headers.len()..headers.len() + padded];
            if len > 0 {
                place_piece(follower.span, memory, payload)?;
            }
            self.outgoing.push_unsealed(mbuf, headers.bth_offset(), icrc);
        }
        Ok(())
    }
}
