//! Headers of packets that follow one another and differ in little: what is equal is composed and summed once.

use crate::crc::{Change, change_after};
use crate::header::{Bth, Reth};
use crate::icrc::Icrc;
use crate::packet::{ExtHeaders, MAX_HEADERS_LEN, TxHeaders, write_headers};
use crate::template::HeaderTemplate;
use crate::types::Psn;
use ::crc::Lead;

/// The headers of a run: packets of the same lengths that differ in PSN, AckReq and, where they have a RETH, its address. All have no
/// extension header or a RETH alone. Over IPv4 they have one identification, as DF is set (RFC 6864 4.1): nobody puts them together.
#[derive(Clone, Copy, Debug)]
pub struct HeaderRun {
    /// As they are with PSN and address zero, and without AckReq.
    image: [u8; Self::ROOM],
    len: usize,
    bth_offset: usize,
    has_reth: bool,
    /// The reserved bits of the BTH's last word.
    reserved: u32,
    /// What is before the BTH.
    icrc: Icrc,
    /// What is before the payload in the image.
    all: Icrc,
}

impl HeaderRun {
    /// Bytes that [`write`](Self::write) may write.
    pub const ROOM: usize = (HeaderTemplate::MAX_LEN + Bth::LEN + Reth::LEN).next_multiple_of(16);

    /// The headers of packets with `payload_len` bytes each, and the pad that `bth` says. Its PSN and AckReq, and the address of the RETH,
    /// are nobody's in particular.
    #[inline]
    pub fn new(
        template: &HeaderTemplate,
        bth: &[u8; Bth::LEN],
        reth: Option<Reth>,
        ip_id: u16,
        payload_len: usize,
    ) -> HeaderRun {
        let mut room = [0; MAX_HEADERS_LEN];
        let mut ext = ExtHeaders::EMPTY;
        if let Some(reth) = reth {
            ext.push(Reth { va: 0, ..reth });
        }
        let bth = Bth::with_last(*bth, false, Psn::new(0));
        let TxHeaders { len, bth_offset, icrc } =
            write_headers(template, &bth, &ext, ip_id, payload_len, &mut room);
        let mut all = icrc;
        all.update(&room[bth_offset..len]);
        let mut image = [0; Self::ROOM];
        image.copy_from_slice(&room[..Self::ROOM]);
        let [.., reserved, _, _, _] = bth;
        let reserved = u32::from(reserved) << 24;
        HeaderRun { image, len, bth_offset, has_reth: reth.is_some(), reserved, icrc, all }
    }

    /// Bytes of the headers.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "headers are never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Where the BTH begins.
    #[inline]
    pub const fn bth_offset(&self) -> usize {
        self.bth_offset
    }

    /// The iCRC before the BTH.
    #[inline]
    pub const fn icrc(&self) -> Icrc {
        self.icrc
    }

    /// Writes the headers of one packet, as [`write_headers`] does. `va` is the address of its RETH, and nothing to one without.
    #[inline(always)]
    pub fn write(&self, (ack_req, psn): (bool, Psn), va: u64, out: &mut [u8; Self::ROOM]) {
        *out = self.image;
        // It is never more, which the compiler does not know.
        let bth = self.bth_offset.min(HeaderTemplate::MAX_LEN);
        let last = self.reserved | Bth::last(ack_req, psn);
        out[bth + 8..bth + 12].copy_from_slice(&last.to_be_bytes());
        if self.has_reth {
            out[bth + Bth::LEN..bth + Bth::LEN + 8].copy_from_slice(&va.to_be_bytes());
        }
    }

    /// The same, and gives the iCRC after all headers. Without a RETH it comes from tables: whoever sums bytes that were just stored, by
    /// larger loads than the stores were, waits for them.
    #[inline(always)]
    pub fn write_summed(&self, (ack_req, psn): (bool, Psn), va: u64, out: &mut [u8; Self::ROOM]) -> Icrc {
        self.write((ack_req, psn), va, out);
        if self.has_reth {
            let bth = self.bth_offset.min(HeaderTemplate::MAX_LEN);
            let mut icrc = self.icrc;
            icrc.update(&out[bth..bth + Bth::LEN + Reth::LEN]);
            return icrc;
        }
        let [ack_req, high, middle, low] = Bth::last(ack_req, psn).to_be_bytes().map(usize::from);
        let [last, one, two, three] = &LAST_OF_BTH;
        self.all.changed(last[low] ^ one[middle] ^ two[high] ^ three[ack_req])
    }

    /// The same, but gives the headers as what leads to the payload: nothing of what was just stored is summed, and no table is needed.
    #[inline(always)]
    pub fn write_leading(&self, (ack_req, psn): (bool, Psn), va: u64, out: &mut [u8; Self::ROOM]) -> Lead {
        self.write((ack_req, psn), va, out);
        // A change in the state is one of the four bytes that follow.
        let last = u64::from(Bth::last(ack_req, psn).swap_bytes());
        let va = va.swap_bytes();
        let crc = self.all.value();
        if self.has_reth {
            // The last four bytes of the BTH, the address, and zeros for the key; behind them is the length.
            Lead { crc, bytes: [last | va << 32, va >> 32], behind: 4 }
        } else {
            Lead { crc, bytes: [0, last << 32], behind: 0 }
        }
    }
}

/// What the last four bytes change, the last one first.
static LAST_OF_BTH: [Change; 4] = [change_after(0), change_after(1), change_after(2), change_after(3)];
