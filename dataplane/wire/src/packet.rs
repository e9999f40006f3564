//! Packets to send: extension headers in a small buffer, and the whole of a packet's headers with their iCRC.

use crate::header::{Bth, ExtHeader};
use crate::icrc::{ICRC_LEN, Icrc};
use crate::template::HeaderTemplate;

/// Extension headers in wire order, in place. Aligned, so that no eight bytes of them lie in two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct ExtHeaders {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl ExtHeaders {
    /// Bytes of the longest set: RDETH, DETH and AtomicETH.
    pub const MAX_LEN: usize = 40;

    /// No headers.
    pub const EMPTY: ExtHeaders = ExtHeaders { bytes: [0; Self::MAX_LEN], len: 0 };

    /// These headers and one more: `ExtHeaders::EMPTY.with(reth).with(imm)`.
    ///
    /// # Panics
    /// When the sum is longer than [`MAX_LEN`](Self::MAX_LEN), which no packet's headers are.
    #[inline]
    #[must_use]
    pub fn with(mut self, header: impl ExtHeader) -> ExtHeaders {
        self.push(header);
        self
    }

    /// Adds one more, as [`with`](Self::with) does, where they are: a copy of what was just written waits for it, in pieces as large
    /// as the copy's.
    #[inline]
    pub fn push(&mut self, header: impl ExtHeader) {
        let written = header.emit(&mut self.bytes[usize::from(self.len)..]);
        self.len += written.expect("the headers of one packet fit") as u8;
    }

    /// Writes them, and up to seven bytes more: eight at a time, as most were written, for the sake of the processor's store buffer.
    #[inline]
    fn write_to(&self, room: &mut [u8; Self::MAX_LEN]) {
        let (mine, _) = self.bytes.as_chunks::<8>();
        let (room, _) = room.as_chunks_mut::<8>();
        for (at, (room, mine)) in room.iter_mut().zip(mine).enumerate() {
            if usize::from(self.len) <= 8 * at {
                break;
            }
            *room = *mine;
        }
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Their number.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// True without headers.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for ExtHeaders {
    fn default() -> Self {
        ExtHeaders::EMPTY
    }
}

impl PartialEq for ExtHeaders {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for ExtHeaders {}

/// Most bytes that [`write_headers`] writes.
pub const MAX_HEADERS_LEN: usize = HeaderTemplate::MAX_LEN + Bth::LEN + ExtHeaders::MAX_LEN;

/// Most bytes of a packet besides its payload: headers, pad, iCRC.
pub const MAX_OVERHEAD: usize = MAX_HEADERS_LEN + 3 + ICRC_LEN;

/// Headers that were written.
#[derive(Clone, Copy, Debug)]
pub struct TxHeaders {
    /// Their length: the payload goes behind them.
    pub len: usize,
    /// Where the BTH begins.
    pub bth_offset: usize,
    /// The iCRC before the BTH. All that was written from there on, payload and pad are to follow as they are: in one
    /// [`update`](Icrc::update) when they lie in one piece.
    pub icrc: Icrc,
}

/// Writes all headers of a packet with a payload of `payload_len` bytes and the BTH's pad to the beginning of `out`. `bth` is as
/// it goes on the wire: whoever knows most of it beforehand composes it for less than a [`Bth`] costs that comes through memory.
/// What follows them is the caller's: payload, pad, and the iCRC over all from the BTH on. Bytes behind the headers, up to
/// [`MAX_HEADERS_LEN`], may be overwritten, so headers come first; with that much room it costs least.
///
/// # Panics
/// When `out` is shorter than the headers; [`MAX_HEADERS_LEN`] is always enough.
#[inline]
pub fn write_headers(
    template: &HeaderTemplate,
    bth: &[u8; Bth::LEN],
    ext: &ExtHeaders,
    ip_id: u16,
    payload_len: usize,
    out: &mut [u8],
) -> TxHeaders {
    let own_len = Bth::LEN + ext.len();
    let transport_len = own_len + payload_len + Bth::pad_in(bth) + ICRC_LEN;
    // It is never more, which the compiler does not know.
    let lower_len = template.len().min(HeaderTemplate::MAX_LEN);
    match out.first_chunk_mut::<MAX_HEADERS_LEN>() {
        Some(room) => {
            if let Some(lower) = room.first_chunk_mut() {
                template.emit_to(lower, ip_id, transport_len);
            }
            // Copies of constant length are a few moves.
            if let Some((own, behind)) = room[lower_len..].split_first_chunk_mut() {
                *own = *bth;
                if let Some(behind) = behind.first_chunk_mut() {
                    ext.write_to(behind);
                }
            }
        }
        None => write_short(template, bth, ext, (ip_id, transport_len), out),
    }
    let icrc = template.icrc(ip_id, transport_len).before_bth(bth[CONGESTION]);
    TxHeaders { len: lower_len + own_len, bth_offset: lower_len, icrc }
}

/// Writes the headers where there is room for no more than they are.
#[inline(never)]
fn write_short(
    template: &HeaderTemplate,
    bth: &[u8; Bth::LEN],
    ext: &ExtHeaders,
    (ip_id, transport_len): (u16, usize),
    out: &mut [u8],
) {
    let lower_len = template.emit(out, ip_id, transport_len);
    let own = &mut out[lower_len..][..Bth::LEN + ext.len()];
    own[..Bth::LEN].copy_from_slice(bth);
    own[Bth::LEN..].copy_from_slice(ext.as_bytes());
}

/// The byte of a BTH that routers may write.
const CONGESTION: usize = 4;

/// Builds a whole frame (without FCS) in `out`, which is cleared before. The pad count is set by the payload, whatever the
/// BTH says.
pub fn build_frame(
    template: &HeaderTemplate,
    bth: &Bth,
    ext: &ExtHeaders,
    ip_id: u16,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let bth = Bth { pad_count: Bth::pad_for(payload.len()), ..*bth };
    let pad = &[0; 3][..usize::from(bth.pad_count)];
    out.clear();
    out.resize(MAX_HEADERS_LEN, 0);
    let TxHeaders { len, bth_offset, mut icrc } =
        write_headers(template, &bth.to_bytes(), ext, ip_id, payload.len(), out);
    out.truncate(len);
    out.extend_from_slice(payload);
    out.extend_from_slice(pad);
    icrc.update(&out[bth_offset..]);
    out.extend_from_slice(&icrc.to_wire());
}
