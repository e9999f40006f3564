//! Short frames of a run whose payloads need no pad: two at a time are copied and summed in one pass, behind headers that are summed last.

use crate::run::run_of;
use crate::sink::BurstSink;
use crate::tx::{Outgoing, TX_BURST};
use dpdk::{Mbuf, MbufBurst};
use engine::{Follower, Followers, RegionGone, SinkError, TxRun};
use memory::{Lead, Region, Source};
use wire::{HeaderRun, Icrc, MAX_HEADERS_LEN};

impl BurstSink<'_> {
    /// Frames of `frame` bytes each for the followers, as long as the burst has room.
    #[inline(always)]
    pub(crate) fn write_led_run(
        &mut self,
        run: &TxRun<'_>,
        frame: usize,
        followers: &mut impl Followers,
    ) -> Result<(), SinkError> {
        let Outgoing { fresh, burst, bytes, memory, ip_id, .. } = &mut *self.outgoing;
        // Headers are composed, and the region is found, for the first of them: often there is none.
        let mut first = None;
        let mut waiting: Option<Begun<'_>> = None;
        let mut room = burst.room();
        let end = loop {
            if room == 0 {
                break Ok(());
            }
            let Some(follower) = followers.next() else { break Ok(()) };
            let Some(mbuf) = fresh.take_whole(frame) else { break Err(SinkError::Full) };
            let found = match &mut first {
                Some(found) => found,
                None => match memory.region(follower.span.region()) {
                    Ok(region) => first.insert((run_of(run, ip_id), region)),
                    Err(gone) => break Err(gone.into()),
                },
            };
            let (headers, region) = found;
            if region.id() != follower.span.region() {
                match memory.region(follower.span.region()) {
                    Ok(its) => *region = its,
                    Err(gone) => break Err(gone.into()),
                }
            }
            let begun = match Begun::new(mbuf, headers, region, &follower) {
                Ok(begun) => begun,
                Err(gone) => break Err(gone.into()),
            };
            room -= 1;
            match waiting.take() {
                None => waiting = Some(begun),
                Some(before) => {
                    *bytes += 2 * frame;
                    before.end_with(begun, headers.len(), burst);
                }
            }
        };
        if let (Some(last), Some((headers, _))) = (waiting, &first) {
            *bytes += frame;
            last.end(headers.len(), burst);
        }
        match end {
            Err(SinkError::Full) => self.no_buffer(),
            end => end,
        }
    }
}

/// A frame with its headers, which lacks the rest.
struct Begun<'a> {
    mbuf: Mbuf,
    payload: Source<'a>,
    lead: Lead,
}

impl<'a> Begun<'a> {
    /// A buffer that is as long as its frame gets the follower's headers.
    #[inline(always)]
    fn new(
        mut mbuf: Mbuf,
        headers: &HeaderRun,
        region: &Region<'a>,
        follower: &Follower,
    ) -> Result<Begun<'a>, RegionGone> {
        let payload = region.source(follower.span)?;
        let room = mbuf.roomy_mut(MAX_HEADERS_LEN).first_chunk_mut().ok_or(RegionGone)?;
        let lead = headers.write_leading((follower.ack_req, follower.psn), follower.va, room);
        Ok(Begun { mbuf, payload, lead })
    }

    /// Payload and iCRC.
    #[inline(always)]
    fn end(self, headers: usize, burst: &mut MbufBurst<TX_BURST>) {
        let Begun { mut mbuf, payload, lead } = self;
        let (room, seal) = rest_of(&mut mbuf, headers);
        seal.copy_from_slice(&Icrc::after(payload.read_led(room, lead)).to_wire());
        let _ = burst.push(mbuf);
    }

    /// The same with another one, whose headers have the same state before what differs.
    #[inline(always)]
    fn end_with(self, other: Self, headers: usize, burst: &mut MbufBurst<TX_BURST>) {
        let Begun { mut mbuf, payload, lead } = self;
        let Begun { mbuf: mut its_mbuf, payload: its_payload, lead: its_lead } = other;
        let (room, seal) = rest_of(&mut mbuf, headers);
        let (its_room, its_seal) = rest_of(&mut its_mbuf, headers);
        let (sum, its_sum) = payload.read_led_pair(room, lead, its_payload, its_room, its_lead.bytes);
        seal.copy_from_slice(&Icrc::after(sum).to_wire());
        its_seal.copy_from_slice(&Icrc::after(its_sum).to_wire());
        let _ = burst.push(mbuf);
        let _ = burst.push(its_mbuf);
    }
}

/// Where payload and iCRC of a frame belong.
#[inline(always)]
fn rest_of(mbuf: &mut Mbuf, headers: usize) -> (&mut [u8], &mut [u8]) {
    let rest = &mut mbuf.data_mut()[headers..];
    let payload = rest.len() - wire::ICRC_LEN;
    rest.split_at_mut(payload)
}
