//! The records by which these programs tell each other of a QP, one after another as text.
//!
//! perftest, 108 bytes with a NUL at the end:
//!
//! ```text
//! 0000:0080:00003d:e09292:00002945:000000552aaeb710:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4e:00:01:00000000:
//! LID  READs QPN   PSN    R_Key    address          GID, a byte each                                SRQN
//! ```
//!
//! pingpong, 52 bytes with a NUL at the end:
//!
//! ```text
//! 0000:000011:d6bcc2:00000000000000000000ffff0a4d0001
//! LID  QPN    PSN    GID
//! ```
//!
//! perftest over a connection of rdma_cm (`-R`), 56 bytes in network order:
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0, 4 | 4 each | LID: 0; READs |
//! | 8, 12, 16 | 4 each | QPN, PSN, R_Key |
//! | 20 | 4 | left over in memory |
//! | 24 | 8 | address |
//! | 32 | 16 | GID |
//! | 48, 52 | 4 each | SRQN: 0; GID index |

use super::super::link::LinkError;
use std::net::{IpAddr, Ipv6Addr};

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// READs and atomics that the sender of the record serves at a time.
    pub reads: u8,
    pub qpn: u32,
    pub psn: u32,
    pub rkey: u32,
    pub addr: u64,
    pub gid: IpAddr,
}

/// Bytes of perftest's record where rdma_cm made the connection.
pub(crate) const PERFTEST_CM_BYTES: usize = 56;
/// Bytes of a pingpong's record with its NUL.
pub(super) const PINGPONG_BYTES: usize = 52;

impl Record {
    /// Tells of no QP.
    pub const EMPTY: Record =
        Record { reads: 0, qpn: 0, psn: 0, rkey: 0, addr: 0, gid: IpAddr::V6(Ipv6Addr::UNSPECIFIED) };

    /// As perftest writes it.
    pub fn to_perftest(&self) -> Vec<u8> {
        let Record { reads, qpn, psn, rkey, addr, .. } = self;
        let gid: String = octets(self.gid).iter().map(|byte| format!("{byte:02x}:")).collect();
        let mut bytes = format!("0000:{reads:04x}:{qpn:06x}:{psn:06x}:{rkey:08x}:{addr:016x}:{gid}00000000:")
            .into_bytes();
        bytes.push(0);
        bytes
    }

    /// From perftest's record.
    pub fn of_perftest(bytes: &[u8]) -> Result<Record, LinkError> {
        let text = text_of(bytes)?;
        let parse = || {
            let [_, reads, qpn, psn, rkey, addr, gid @ .., _, _] = &fields::<24>(text)?;
            let gid = gid
                .iter()
                .try_fold(0, |gid, byte| Some(gid << 8 | u128::from(u8::from_str_radix(byte, 16).ok()?)))?;
            Some(Record {
                // Our limit is lower than the field's.
                reads: hex(reads)?.min(u8::MAX.into()) as u8,
                qpn: hex(qpn)?,
                psn: hex(psn)?,
                rkey: hex(rkey)?,
                addr: u64::from_str_radix(addr, 16).ok()?,
                gid: address(gid),
            })
        };
        parse().ok_or_else(|| unreadable(text))
    }

    /// As perftest writes it to a connection of rdma_cm.
    pub fn to_perftest_cm(&self) -> [u8; PERFTEST_CM_BYTES] {
        let mut bytes = [0; PERFTEST_CM_BYTES];
        let words = [0, u32::from(self.reads), self.qpn, self.psn, self.rkey];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_be_bytes());
        }
        bytes[24..32].copy_from_slice(&self.addr.to_be_bytes());
        bytes[32..48].copy_from_slice(&octets(self.gid));
        bytes
    }

    /// From perftest's record over a connection of rdma_cm.
    pub fn of_perftest_cm(bytes: &[u8]) -> Result<Record, LinkError> {
        let parse = || {
            let bytes: &[u8; PERFTEST_CM_BYTES] = bytes.try_into().ok()?;
            let word = |at: usize| Some(u32::from_be_bytes(*bytes[at..].first_chunk()?));
            Some(Record {
                reads: word(4)?.min(u8::MAX.into()) as u8,
                qpn: word(8)?,
                psn: word(12)?,
                rkey: word(16)?,
                addr: u64::from_be_bytes(*bytes[24..].first_chunk()?),
                gid: address(u128::from_be_bytes(*bytes[32..].first_chunk()?)),
            })
        };
        parse().ok_or_else(|| unreadable(&format!("{} bytes", bytes.len())))
    }

    /// As a pingpong writes it. It has no memory to tell of.
    pub fn to_pingpong(&self) -> Vec<u8> {
        let gid: String = octets(self.gid).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut bytes = format!("0000:{:06x}:{:06x}:{gid}", self.qpn, self.psn).into_bytes();
        bytes.push(0);
        bytes
    }

    /// From a pingpong's record.
    pub fn of_pingpong(bytes: &[u8]) -> Result<Record, LinkError> {
        let text = text_of(bytes)?;
        let parse = || {
            let [_, qpn, psn, gid] = fields(text)?;
            let gid = (gid.len() == 32).then(|| u128::from_str_radix(gid, 16).ok()).flatten()?;
            Some(Record { reads: 0, qpn: hex(qpn)?, psn: hex(psn)?, rkey: 0, addr: 0, gid: address(gid) })
        };
        parse().ok_or_else(|| unreadable(text))
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, LinkError> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..end]).map_err(|_| unreadable(&String::from_utf8_lossy(&bytes[..end])))
}

fn unreadable(text: &str) -> LinkError {
    let text: String = text.chars().take(120).collect();
    LinkError::Garbled(format!("{text:?} is no record of a queue pair; does the peer run the same program?"))
}

fn fields<const N: usize>(text: &str) -> Option<[&str; N]> {
    text.split(':').collect::<Vec<&str>>().try_into().ok()
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

fn octets(gid: IpAddr) -> [u8; 16] {
    match gid {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn address(gid: u128) -> IpAddr {
    let v6 = Ipv6Addr::from(gid);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of perftest's record with its NUL.
    const PERFTEST_BYTES: usize = 108;

    // Recorded between two Linux programs.
    const PERFTEST: &str = "0000:0080:00003d:e09292:00002945:000000552aaeb710:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4e:00:01:00000000:";
    const PERFTEST_V6: &str = "0000:0080:000022:e94f46:00001133:000000552aaea000:fd:78:00:00:00:00:00:00:00:00:00:00:00:00:00:01:00000000:";
    const PINGPONG: &str = "0000:000031:7a4a61:00000000000000000000ffff0a4e0001";

    fn with_nul(text: &str) -> Vec<u8> {
        [text.as_bytes(), &[0]].concat()
    }

    #[test]
    fn recorded_records_read_and_write_back() {
        let record = Record::of_perftest(&with_nul(PERFTEST)).unwrap();
        let expected = Record {
            reads: 0x80,
            qpn: 0x3d,
            psn: 0xe09292,
            rkey: 0x2945,
            addr: 0x55_2aae_b710,
            gid: "10.78.0.1".parse().unwrap(),
        };
        assert_eq!(record, expected);
        assert_eq!(record.to_perftest(), with_nul(PERFTEST));
        assert_eq!(record.to_perftest().len(), PERFTEST_BYTES);
        let v6 = Record::of_perftest(&with_nul(PERFTEST_V6)).unwrap();
        assert_eq!(v6.gid, "fd78::1".parse::<IpAddr>().unwrap());
        assert_eq!(v6.to_perftest(), with_nul(PERFTEST_V6));
        let pingpong = Record::of_pingpong(&with_nul(PINGPONG)).unwrap();
        assert_eq!((pingpong.qpn, pingpong.psn, pingpong.gid), (0x31, 0x7a4a61, expected.gid));
        assert_eq!(pingpong.to_pingpong(), with_nul(PINGPONG));
        assert_eq!(pingpong.to_pingpong().len(), PINGPONG_BYTES);
    }

    /// The records of both ends of a Linux capture over rdma_cm.
    #[test]
    fn recorded_records_over_rdma_cm_read_and_write_back() {
        let packets = crate::programs::testkit::capture("cm-write-bw-v4.pcap");
        let words = packets.iter().filter(|packet| packet.opcode == "RC SEND Only");
        let records: Vec<_> = words.filter(|packet| packet.payload.len() == PERFTEST_CM_BYTES).collect();
        assert_eq!(records.len(), 14, "two empty ones, three of the queue pair, two at the end; from both");
        for packet in records {
            let mut bytes = packet.payload.clone();
            let record = Record::of_perftest_cm(&bytes).unwrap();
            if bytes.iter().all(|&byte| byte == 0) {
                assert_eq!(record, Record { gid: Record::EMPTY.gid, ..Record::EMPTY });
            } else {
                let gid = format!("10.77.0.{}", packet.from).parse().unwrap();
                let (psn, rkey, addr) = match packet.from {
                    1 => (0xc7308e, 0x2c09, 0x55_2aaf_0000),
                    _ => (0x391b2e, 0x2e7d, 0x55_2aae_f000),
                };
                assert_eq!(record, Record { reads: 1, qpn: 0x3c, psn, rkey, addr, gid });
            }
            // What is left over in memory, and the index of the GID.
            bytes[20..24].fill(0);
            bytes[52..].fill(0);
            assert_eq!(record.to_perftest_cm()[..], bytes);
        }
    }

    #[test]
    fn what_is_no_record_is_refused_in_words() {
        for len in [0, 55, 57] {
            assert!(Record::of_perftest_cm(&vec![0; len]).is_err());
        }
        for text in
            ["", "0000", PINGPONG, &PERFTEST[1..50], &PERFTEST.replace("e09292", "e0929g"), "\u{1F600}"]
        {
            let refused = Record::of_perftest(&with_nul(text)).unwrap_err().to_string();
            assert!(refused.contains("is no record of a queue pair"), "{refused}");
        }
        for text in [PERFTEST, &PINGPONG[..50], &PINGPONG.replace("ffff", "fffff")] {
            assert!(Record::of_pingpong(&with_nul(text)).is_err(), "{text}");
        }
        assert!(Record::of_perftest(&[0xFF; PERFTEST_BYTES]).is_err());
    }
}
