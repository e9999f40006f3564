//! Runs: frames of a flow, one behind the other, that differ in what counts them, and behind the BTH.
//!
//! A requester sends its messages in a row. What was found of the first such frame holds for those that follow: the bytes below the
//! end of the BTH are the same, but for IPv4's identification and checksum, the PSN, which is the next one, and AckReq. So they need not be
//! parsed again, and the iCRC up to the PSN is known. A run decides nothing: a frame that is odd in anything does not follow.
//!
//! The packets of a long message are alike in this, too; and how its middles look is known from its first packet. Where their payloads are not at
//! hand, a run is of their headers, and says what the iCRC is behind them.

use super::flow::{BTH, L3};
use super::{Frame, Network};
use crate::crc::{Change, change_after};
use crate::header::Bth;
use crate::icrc::{Icrc, mask_headers};
use crate::net::Ipv4Header;
use crate::opcode::{Opcode, OpcodeInfo, Position};

/// Where the last four bytes of the BTH begin: AckReq, seven reserved bits and the PSN.
const LAST: usize = BTH + Bth::LEN - 4;

/// Where IPv4's identification lies.
const ID: usize = L3 + 4;

/// The bytes before the last four, in words of eight, the first byte lowest; the last two are once more in the number behind them.
type Words = [u64; 6];

/// The bits that are the same: all but IPv4's identification and checksum.
const SHARED: Words = [u64::MAX, u64::MAX, !0xFFFF_0000, !0xFFFF, u64::MAX, u64::MAX];

/// AckReq in the last eight bytes of a BTH, as a number.
const ACK_REQ: u64 = 1 << 31;

/// The PSN there.
const PSN: u64 = 0xFF_FFFF;

/// What the first byte of the identification changes in the iCRC before the BTH, and the second.
static ID_CHANGES: [Change; 2] = [change_after(BTH - ID - 1), change_after(BTH - ID - 2)];

/// Frames of a flow whose PSNs follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    shared: Words,
    /// The last eight bytes of the BTH of the frame that comes next, but for AckReq.
    next: u64,
    /// The sum of what is shared of the IPv4 header, by two bytes, or a sum that means the same.
    ip_sum: u32,
    /// The iCRC before the BTH where the identification is 0, once it was needed: most frames are not followed. What is shared of the BTH is
    /// summed each time: from there on a WRITE has, with its iCRC, as many bytes more than its payload as one register.
    icrc: Option<Icrc>,
    /// The words of the latest that was asked for, and the iCRC before its BTH: most senders leave identification and checksum as they are.
    latest: (Words, Icrc),
    /// Bytes of each frame, and up to the end of its iCRC.
    frame_len: usize,
    end: usize,
}

impl Run {
    /// The run that begins with a frame, which was parsed from `bytes`, is all there and was found right. `None` for what has a tag or
    /// a UDP checksum, or is not RoCEv2 over IPv4.
    #[inline(always)]
    pub fn of(frame: &Frame, bytes: &[u8]) -> Option<Run> {
        let runs = may_run(frame) && frame.end() <= bytes.len();
        Some(Run::begin(lower(bytes).filter(|_| runs)?, bytes.len(), frame.end(), 0))
    }

    /// The same by headers: nothing but those is in `headers`, which a frame of `frame_len` bytes was parsed from.
    #[inline(always)]
    pub fn of_headers(frame: &Frame, headers: &[u8], frame_len: usize) -> Option<Run> {
        let end = frame.payload_offset();
        let runs = may_run(frame) && headers.len() == end;
        Some(Run::begin(lower(headers).filter(|_| runs)?, frame_len, end, 0))
    }

    /// The run of the middles that may follow the first packet of a message, of which nothing but headers is in `headers`; and what the
    /// parser would have said of a middle in its place. They lack its extension headers, and have another opcode.
    pub fn of_middles(first: &Frame, headers: &[u8], frame_len: usize) -> Option<(Frame, Run)> {
        let OpcodeInfo { service, operation, position, .. } = *first.info;
        let runs = position == Position::First && may_run(first) && first.bth_offset() == BTH;
        let opcode = Opcode::of(service, operation, Position::Middle).filter(|_| runs)?;
        let info = opcode.info()?;
        let less = first.info.header_len() - info.header_len();
        let (words, last) = lower(headers).filter(|_| headers.len() == first.payload_offset())?;
        let lessened = |len: u64| (len as u16).swap_bytes().checked_sub(less as u16).map(u16::swap_bytes);
        let [a, b, ip, c, udp, bth] = words;
        let ip = ip & !0xFFFF | u64::from(lessened(ip)?);
        let udp = udp & u64::MAX >> 16 | u64::from(lessened(udp >> 48)?) << 48;
        let bth = bth & !0xFF_0000 | u64::from(opcode.0) << 16;
        let frame = Frame {
            bth: first.bth.with_opcode(opcode),
            info,
            payload_offset: first.payload_offset - less as u8,
            ..*first
        };
        // Identification and checksum are those of a longer one.
        let more = 0xFFFF - (half(less as u64) << 8);
        let (frame_len, end) = (frame_len.checked_sub(less)?, frame.payload_offset());
        Some((frame, Run::begin(([a, b, ip, c, udp, bth], last), frame_len, end, more)))
    }

    /// The run of a frame that [may begin one](may_run). It is `more` that the sum of its IPv4 header lacks.
    // It comes to be where it stays: what is written in words and then copied in pairs of them has to reach the cache in between.
    #[inline(always)]
    fn begin((words, last): (Words, u64), frame_len: usize, end: usize, more: u32) -> Run {
        let mut shared = SHARED;
        shared.iter_mut().zip(words).for_each(|(shared, word)| *shared &= word);
        // With identification and checksum it is right, so it is what is missing to zero without them.
        let ip_sum = more + 2 * 0xFFFF - half(words[2] >> 16) - half(words[3]);
        Run { shared, next: after(last), ip_sum, icrc: None, latest: ([0; 6], Icrc::start()), frame_len, end }
    }

    /// Whether a frame, of which these are all bytes, comes next and is right: it would be parsed to what [`Frame::following`] says, and
    /// its iCRC would be found right. If so, the one behind it comes next.
    #[inline(always)]
    pub fn take(&mut self, bytes: &[u8]) -> bool {
        let Some(mut icrc) = self.before_next(bytes, bytes.len()) else { return false };
        icrc.update(self.rest(bytes));
        if icrc.is_right() {
            self.next = after(self.next);
        }
        icrc.is_right()
    }

    /// The same of two that may come one behind the other: how many of them do. Their iCRCs are found together.
    #[inline(always)]
    pub fn take_two(&mut self, bytes: &[u8], behind: &[u8]) -> usize {
        let Some(first) = self.before_next(bytes, bytes.len()) else { return 0 };
        let expected = self.next;
        self.next = after(expected);
        let Some(second) = self.before_next(behind, behind.len()) else {
            self.next = expected;
            return usize::from(self.take(bytes));
        };
        let mut icrcs = [first, second];
        Icrc::update_both(&mut icrcs, [self.rest(bytes), self.rest(behind)]);
        match icrcs.map(Icrc::is_right) {
            [true, true] => {
                self.next = after(self.next);
                2
            }
            [true, false] => 1,
            [false, _] => {
                self.next = expected;
                0
            }
        }
    }

    /// The iCRC behind the headers of a frame of `frame_len` bytes that comes next, of which these are all headers and nothing else. The
    /// one behind it comes next then.
    #[inline(always)]
    pub fn take_headers(&mut self, headers: &[u8], frame_len: usize) -> Option<Icrc> {
        let mut icrc = self.before_next(headers, frame_len).filter(|_| headers.len() == self.end)?;
        icrc.update(self.rest(headers));
        self.next = after(self.next);
        Some(icrc)
    }

    /// The iCRC before the BTH of a frame that comes next.
    #[inline(always)]
    fn before_next(&mut self, bytes: &[u8], frame_len: usize) -> Option<Icrc> {
        let (words, last) = lower(bytes)?;
        if (last ^ self.next) & !ACK_REQ != 0 || frame_len != self.frame_len {
            return None;
        }
        let (latest, icrc) = &self.latest;
        if differ(&words, latest) == 0 { Some(*icrc) } else { self.find_before(&words, bytes) }
    }

    /// The same of words that are not the latest ones.
    #[inline]
    fn find_before(&mut self, words: &Words, bytes: &[u8]) -> Option<Icrc> {
        let mut shared = *words;
        shared.iter_mut().zip(SHARED).for_each(|(word, shared)| *word &= shared);
        let (id, checksum) = (words[2] >> 16, words[3]);
        let is_right = Ipv4Header::sum_ok(self.ip_sum + half(id) + half(checksum));
        if !is_right || differ(&shared, &self.shared) != 0 {
            return None;
        }
        let before = self.icrc.or_else(|| self.find_icrc(bytes))?;
        let [first, second] = &ID_CHANGES;
        let icrc = before.changed(first[usize::from(id as u8)] ^ second[usize::from((id >> 8) as u8)]);
        self.latest = (*words, icrc);
        Some(icrc)
    }

    /// What is summed of a frame behind that.
    #[inline(always)]
    fn rest<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(BTH..self.end).unwrap_or_default()
    }

    /// The iCRC of what the frames share.
    #[inline(never)]
    fn find_icrc(&mut self, bytes: &[u8]) -> Option<Icrc> {
        let mut shared: [u8; BTH - L3] = *bytes.get(L3..)?.first_chunk()?;
        mask_headers(Network::V4, &mut shared);
        shared[ID - L3..ID - L3 + 2].fill(0);
        let mut icrc = Icrc::start();
        icrc.update(&shared);
        // What routers may write there is the same for all.
        self.icrc = Some(icrc.before_bth(*bytes.get(BTH + 4)?));
        self.icrc
    }
}

impl Frame {
    /// What a frame that [follows](Run::take) this one was parsed to, by its bytes.
    #[must_use]
    pub fn following(&self, bytes: &[u8]) -> Frame {
        let last = bytes.get(self.bth_offset() + Bth::LEN - 4..).and_then(|rest| rest.first_chunk());
        Frame { bth: last.map_or(self.bth, |last| self.bth.with_last(u32::from_be_bytes(*last))), ..*self }
    }
}

/// Whether frames may follow one like this in a run: see [`Run::of`].
#[inline(always)]
fn may_run(frame: &Frame) -> bool {
    frame.network == Network::V4 && frame.l3_offset() == L3 && frame.udp_checksum == 0
}

/// The words of a frame's beginning, and the last eight bytes of its BTH as a number.
#[inline(always)]
fn lower(bytes: &[u8]) -> Option<(Words, u64)> {
    let lower = bytes.first_chunk::<{ LAST + 4 }>()?;
    let mut words = [0; 6];
    let (eights, _) = lower.as_chunks::<8>();
    for (word, eight) in words.iter_mut().zip(eights) {
        *word = u64::from_le_bytes(*eight);
    }
    Some((words, u64::from_be_bytes(*lower.last_chunk()?)))
}

/// Bits in which words differ, in one.
#[inline(always)]
fn differ(words: &Words, others: &Words) -> u64 {
    let [a, b, c, d, e, f] = words;
    let [g, h, i, j, k, l] = others;
    (a ^ g) | (b ^ h) | (c ^ i) | (d ^ j) | (e ^ k) | (f ^ l)
}

/// What comes after the last eight bytes of a BTH: the next PSN.
#[inline(always)]
const fn after(last: u64) -> u64 {
    last & !PSN | (last + 1) & PSN
}

/// Two bytes of a header.
#[inline(always)]
const fn half(word: u64) -> u32 {
    word as u32 & 0xFFFF
}
