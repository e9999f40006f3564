//! Headers of packets that follow one another and differ in little: what is equal is composed and summed once.

use crate::crc::{Change, change_after};
use crate::frame::Network;
use crate::header::{Bth, Reth};
use crate::icrc::Icrc;
use crate::net::{Ipv4Header, UdpHeader};
use crate::packet::{ExtHeaders, MAX_HEADERS_LEN, TxHeaders, write_headers};
use crate::template::{Field, HeaderTemplate, ipv4_id_change};
use crate::types::Psn;
use ::crc::Lead;

/// The headers of a run: packets of the same lengths that differ in PSN, AckReq, IPv4 identification and, where they have a RETH, its
/// address. All have no extension header or a RETH alone.
#[derive(Clone, Copy, Debug)]
pub struct HeaderRun {
    /// As they are with identification and address zero.
    image: [u8; Self::ROOM],
    len: usize,
    bth_offset: usize,
    has_reth: bool,
    /// The reserved bits of the BTH's last word.
    reserved: u32,
    ipv4: Option<Ipv4>,
    /// What is before the BTH, with identification zero.
    icrc: Icrc,
    /// What is before the payload, with PSN and address zero, too, and without AckReq.
    all: Icrc,
}

/// What of an IPv4 header is not the same for all.
#[derive(Clone, Copy, Debug)]
struct Ipv4 {
    offset: usize,
    /// The folded sum of the header with identification and checksum zero.
    sum: u32,
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
        payload_len: usize,
    ) -> HeaderRun {
        let mut room = [0; MAX_HEADERS_LEN];
        let mut ext = ExtHeaders::EMPTY;
        if let Some(reth) = reth {
            ext.push(Reth { va: 0, ..reth });
        }
        let bth = Bth::with_last(*bth, false, Psn::new(0));
        let TxHeaders { len, bth_offset, icrc } =
            write_headers(template, &bth, &ext, 0, payload_len, &mut room);
        let mut all = icrc;
        all.update(&room[bth_offset..len]);
        let mut image = [0; Self::ROOM];
        image.copy_from_slice(&room[..Self::ROOM]);
        let [.., reserved, _, _, _] = bth;
        let ipv4 = (template.network() == Network::V4).then(|| {
            let offset = bth_offset - UdpHeader::LEN - Ipv4Header::LEN;
            let checksum = u16::from_be_bytes([image[offset + 10], image[offset + 11]]);
            Ipv4 { offset, sum: u32::from(!checksum) }
        });
        let reserved = u32::from(reserved) << 24;
        HeaderRun { image, len, bth_offset, has_reth: reth.is_some(), reserved, ipv4, icrc, all }
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

    /// Writes the headers of one packet, and gives the iCRC before its BTH: as [`write_headers`] does. `va` is the address of its RETH,
    /// and nothing to one without.
    #[inline(always)]
    pub fn write(
        &self,
        ip_id: u16,
        (ack_req, psn): (bool, Psn),
        va: u64,
        out: &mut [u8; Self::ROOM],
    ) -> Icrc {
        *out = self.image;
        // It is never more, which the compiler does not know.
        let bth = self.bth_offset.min(HeaderTemplate::MAX_LEN);
        let last = self.reserved | Bth::last(ack_req, psn);
        out[bth + 8..bth + 12].copy_from_slice(&last.to_be_bytes());
        if self.has_reth {
            out[bth + Bth::LEN..bth + Bth::LEN + 8].copy_from_slice(&va.to_be_bytes());
        }
        let Some(Ipv4 { offset, sum }) = self.ipv4 else { return self.icrc };
        let at = offset.min(HeaderTemplate::MAX_LEN);
        let sum = sum + u32::from(ip_id);
        // RFC 1624 3: what was a field of zeros adds to the sum; one fold is enough for two words.
        let checksum = !((sum + (sum >> 16)) as u16);
        out[at + 4..at + 6].copy_from_slice(&ip_id.to_be_bytes());
        out[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
        Icrc::after(self.icrc.value() ^ ipv4_id_change(ip_id))
    }

    /// The same, but gives the iCRC after all headers. Without a RETH it comes from tables: whoever sums bytes that were just stored, by
    /// larger loads than the stores were, waits for them.
    #[inline(always)]
    pub fn write_summed(
        &self,
        ip_id: u16,
        (ack_req, psn): (bool, Psn),
        va: u64,
        out: &mut [u8; Self::ROOM],
    ) -> Icrc {
        let mut icrc = self.write(ip_id, (ack_req, psn), va, out);
        if self.has_reth {
            let bth = self.bth_offset.min(HeaderTemplate::MAX_LEN);
            icrc.update(&out[bth..bth + Bth::LEN + Reth::LEN]);
            return icrc;
        }
        let id = if self.ipv4.is_some() { ID_BEFORE_BTH.of(ip_id) } else { 0 };
        let [ack_req, high, middle, low] = Bth::last(ack_req, psn).to_be_bytes().map(usize::from);
        let [last, one, two, three] = &LAST_OF_BTH;
        self.all.changed(id ^ last[low] ^ one[middle] ^ two[high] ^ three[ack_req])
    }

    /// The same, but gives the headers as what leads to the payload: nothing of what was just stored is summed, and no table but for the
    /// identification is needed.
    #[inline(always)]
    pub fn write_leading(
        &self,
        ip_id: u16,
        (ack_req, psn): (bool, Psn),
        va: u64,
        out: &mut [u8; Self::ROOM],
    ) -> Lead {
        self.write(ip_id, (ack_req, psn), va, out);
        let id = if self.ipv4.is_some() { ID_BEFORE_LAST.of(ip_id) } else { 0 };
        // A change in the state is one of the four bytes that follow.
        let last = u64::from(Bth::last(ack_req, psn).swap_bytes() ^ id);
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

/// What an IPv4 identification changes in the CRC of headers to the last four bytes of the BTH.
static ID_BEFORE_LAST: Field = Field::at(4, Ipv4Header::LEN + UdpHeader::LEN + Bth::LEN - 4);

/// What it changes in that of headers to the end of the BTH.
static ID_BEFORE_BTH: Field = Field::at(4, Ipv4Header::LEN + UdpHeader::LEN + Bth::LEN);

/// What the last four bytes change, the last one first.
static LAST_OF_BTH: [Change; 4] = [change_after(0), change_after(1), change_after(2), change_after(3)];
