//! perftest with `-R`: one connection for words, and one for each queue pair of the test.
//!
//! The client makes the first connection and speaks over it, message by message; the server answers each with the like. So it needs to
//! know nothing of the test:
//!
//! | word of the client | bytes | answer |
//! | --- | --- | --- |
//! | version | 16 | version |
//! | bytes that small messages go round in, bytes of a cache line | 4 each | the same |
//! | path MTU, a digit and a NUL | 2 | the same |
//! | an empty record; **then the client connects the queue pairs of the test**; and another | 56 each | empty ones |
//! | records of queue pairs, of the first one several times | 56 each | that of the queue pair which is connected to it |
//! | **the messages**, and then records again | | |
//! | after bandwidth tests of WRITE, READ and atomics: size, messages, peak, average, rate | 8 each | anything |
//!
//! The client disconnects the queue pairs of the test, then the server the first connection. Latency tests in which messages go to
//! and fro are not served: the server would have to know the test.

use super::ProgramError;
use crate::perf::{PERFTEST_CM_BYTES, PERFTEST_VERSION, Record};

/// Port of RDMA_PS_TCP, unless told otherwise.
pub const PORT: u16 = 18515;

/// Longest word.
pub(super) const MAX_WORD: usize = 64;
/// Bytes of the version.
const VERSION: usize = 16;

/// What to answer to a word. `record_of`: the record of the queue pair that is connected to the client's with this number.
pub(super) fn answer(
    word: &[u8],
    record_of: impl FnOnce(u32) -> Option<Record>,
) -> Result<Vec<u8>, ProgramError> {
    match word.len() {
        VERSION if word.starts_with(PERFTEST_VERSION.as_bytes()) => Ok(word.to_vec()),
        VERSION => {
            let theirs = String::from_utf8_lossy(word);
            let theirs = theirs.trim_end_matches('\0');
            Err(garbled(format!("it is version {theirs:?} of perftest, and known is {PERFTEST_VERSION}")))
        }
        2 | 4 | 8 => Ok(word.to_vec()),
        PERFTEST_CM_BYTES if word.iter().all(|&byte| byte == 0) => Ok(word.to_vec()),
        PERFTEST_CM_BYTES => {
            let theirs = Record::of_perftest_cm(word).map_err(|why| garbled(why.to_string()))?;
            let ours = record_of(theirs.qpn);
            let ours =
                ours.ok_or_else(|| garbled(format!("no queue pair is connected to its {:#x}", theirs.qpn)))?;
            Ok(ours.to_perftest_cm().to_vec())
        }
        len => Err(garbled(format!("a word of {len} bytes"))),
    }
}

fn garbled(what: String) -> ProgramError {
    ProgramError::Garbled(what)
}

#[cfg(test)]
mod tests {
    use super::super::testkit::{Packet, capture};
    use super::*;

    /// The words of a Linux capture, each of the client's with the server's next one.
    fn words() -> Vec<(Vec<u8>, Vec<u8>)> {
        let packets = capture("cm-write-bw-v4.pcap");
        let words: Vec<Packet> =
            packets.into_iter().filter(|packet| packet.opcode == "RC SEND Only").collect();
        let pairs = words.chunks_exact(2);
        assert!(pairs.remainder().is_empty());
        pairs
            .map(|pair| {
                assert_eq!((pair[0].from, pair[1].from), (2, 1), "the client speaks, the server answers");
                (pair[0].payload.clone(), pair[1].payload.clone())
            })
            .collect()
    }

    #[test]
    fn a_linux_client_gets_what_a_linux_server_answers() {
        let record = Record {
            reads: 1,
            qpn: 0x3c,
            psn: 0xc7308e,
            rkey: 0x2c09,
            addr: 0x55_2aaf_0000,
            gid: "10.77.0.1".parse().unwrap(),
        };
        let words = words();
        assert_eq!(words.len(), 16);
        for (word, theirs) in words {
            let ours = answer(&word, |qpn| (qpn == 0x3c).then(|| record.clone())).unwrap();
            assert_eq!(ours.len(), theirs.len());
            match word.len() {
                // Figures of a test that only the client measured.
                8 => {}
                PERFTEST_CM_BYTES => {
                    let record = |bytes: &[u8]| Record::of_perftest_cm(bytes).unwrap();
                    assert_eq!(record(&ours), record(&theirs));
                }
                _ => assert_eq!(ours, theirs),
            }
        }
    }

    #[test]
    fn what_no_perftest_says_is_refused() {
        let record = Record { qpn: 5, ..Record::EMPTY }.to_perftest_cm();
        let mut version = [0; VERSION];
        version[..4].copy_from_slice(b"5.99");
        for word in [&[][..], &[0; 3], &[0; MAX_WORD], &version, &record] {
            assert!(matches!(answer(word, |_| None), Err(ProgramError::Garbled(_))), "{word:?}");
        }
    }
}
