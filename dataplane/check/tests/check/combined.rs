//! Faults where the table of every rule has none: IPv6 and tagged frames, UC and UD, other operations and captures. Each breaks the
//! rules that are listed with it and no other, and the capture without it passes.

use crate::edit::*;
use crate::support::{Seen, assert_passes, capture, check};
use check::{Options, Rule, Vantage};
use wire::Mac;

const A: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0A, 0]));
const B: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0B, 0]));

const UC_SEND_MIDDLE: u8 = 0x21;
const UC_SEND_LAST: u8 = 0x22;
const UC_WRITE_FIRST: u8 = 0x26;
const UC_WRITE_LAST: u8 = 0x28;
const COMPARE_SWAP: u8 = 0x13;
/// Where the headers behind the BTH begin.
const X: usize = 12;

/// One fault: what it is, where it is looked for, from where, and what is first done to both.
struct Made {
    what: &'static str,
    capture: &'static str,
    vantage: Vantage,
    both: fn(&mut Vec<Seen>),
    fault: fn(&mut Vec<Seen>),
    rules: &'static [Rule],
}

fn made(
    what: &'static str,
    capture: &'static str,
    rules: &'static [Rule],
    fault: fn(&mut Vec<Seen>),
) -> Made {
    Made { what, capture, vantage: Vantage::Anywhere, both: |_| {}, fault, rules }
}

fn finds_each_and_nothing_else(list: &[Made]) {
    let mut wrong = Vec::new();
    for Made { what, capture: name, vantage, both, fault, rules } in list {
        for tagged in [false, true] {
            let options = Options { vantage: *vantage, ..Options::default() };
            let tags = |frames: &[Seen]| {
                let mut frames = frames.to_vec();
                frames.iter_mut().filter(|_| tagged).for_each(tag);
                frames
            };
            let mut frames = capture(name);
            both(&mut frames);
            assert_passes(&format!("{what}: the clean twin in {name}"), &check(&tags(&frames), options));
            fault(&mut frames);
            let report = check(&tags(&frames), options);
            let mut broken: Vec<_> = report.violations.iter().map(|violation| violation.rule).collect();
            broken.dedup();
            if broken != *rules {
                wrong.push(format!("{what} in {name}, tagged {tagged}: {:#?}", report.violations));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Changes the last packet with an opcode, from its BTH on.
fn on_last(frames: &mut [Seen], opcode: u8, change: impl FnOnce(&mut [u8])) {
    let at = last_with(frames, opcode);
    edit_at(&mut frames[at], change);
}

/// A changed copy behind all others, a second later.
fn again(frames: &mut Vec<Seen>, opcode: u8, change: impl FnOnce(&mut [u8])) {
    let mut copy = frames[last_with(frames, opcode)].clone();
    copy.time_ns = frames.last().expect("a frame").time_ns + 1_000_000_000;
    edit_at(&mut copy, change);
    frames.push(copy);
}

fn next_psn(b: &mut [u8], by: i32) {
    let psn = u32::from_be_bytes([0, b[9], b[10], b[11]]).wrapping_add_signed(by);
    b[9..12].copy_from_slice(&psn.to_be_bytes()[1..]);
}

fn next_msn(b: &mut [u8], by: i32) {
    let msn = u32::from_be_bytes([0, b[X + 1], b[X + 2], b[X + 3]]).wrapping_add_signed(by);
    b[X + 1..X + 4].copy_from_slice(&msn.to_be_bytes()[1..]);
}

/// Breaks the iCRC, and nothing else.
fn spoil(frames: &mut [Seen], opcode: u8) {
    let at = last_with(frames, opcode);
    *frames[at].bytes.last_mut().unwrap() ^= 0x80;
}

#[test]
fn in_single_frames() {
    finds_each_and_nothing_else(&[
        made("iCRC of READ data over IPv6", "rc-read-5000-v6", &[Rule::Icrc], |f| spoil(f, READ_MIDDLE)),
        made("iCRC of an atomic's answer", "rc-atomic-cas-v4", &[Rule::Icrc], |f| spoil(f, ATOMIC_ACK)),
        made("iCRC of a datagram over IPv6", "ud-send-v6", &[Rule::Icrc], |f| spoil(f, UD_SEND)),
        made("payload changed behind the iCRC", "uc-send-v6", &[Rule::Icrc], |f| {
            let at = last_with(f, UC_SEND_MIDDLE);
            let place = bth(&f[at]) + 100;
            f[at].bytes[place] ^= 1;
        }),
        made("P_Key of READ data", "mtu4096-rc-read-v4", &[Rule::PKey], |f| {
            on_last(f, READ_LAST, |b| b[2] = 0)
        }),
        made("P_Key of a UC WRITE", "uc-write-5000-v4", &[Rule::PKey], |f| {
            on_last(f, UC_WRITE_LAST, |b| b[3] = 0xFE)
        }),
        made("P_Key of a datagram over IPv6", "ud-send-v6", &[Rule::PKey], |f| {
            on_last(f, UD_SEND, |b| b[2] = 0x7E)
        }),
        made("Q_Key of connection management over IPv6", "cm-rping-v6", &[Rule::Datagram], |f| {
            on_last(f, UD_SEND, |b| b[X + 3] ^= 1)
        }),
        made("a datagram from QP 0", "ud-sendbw-1024-v4", &[Rule::Datagram], |f| {
            on_last(f, UD_SEND, |b| b[X + 5..X + 8].fill(0))
        }),
        made("a datagram to a group's QP, but to one station", "ud-send-v6", &[Rule::DestQp], |f| {
            on_last(f, UD_SEND, |b| b[5..8].fill(0xFF))
        }),
        made("a datagram to a group, but to one QP", "mcast-udaddy-v4", &[Rule::DestQp], |f| {
            on_last(f, 0x65, |b| b[5..8].copy_from_slice(&[0, 0, 0x11]))
        }),
        made("PadCnt of a datagram", "ud-send-v4", &[Rule::Pad], |f| on_last(f, UD_SEND, |b| b[1] |= 0x10)),
        made("bytes behind an ACK over IPv6", "rc-atomic-fadd-v6", &[Rule::PayloadLength], |f| {
            on_last(f, ATOMIC_ACK, |b| b[0] = ACK)
        }),
        made("SE in the last of a WRITE", "uc-write-5000-v4", &[Rule::Solicited], |f| {
            on_last(f, UC_WRITE_LAST, |b| b[1] |= 0x80)
        }),
        made("a reserved bit of a DETH", "ud-send-v6", &[Rule::Reserved], |f| {
            on_last(f, UD_SEND, |b| b[X + 4] = 1)
        }),
        made("FECN", "rc-write-5000-v6", &[Rule::Reserved], |f| on_last(f, WRITE_FIRST, |b| b[4] = 0x80)),
        made("a NAK code on READ data", "rc-read-5000-v6", &[Rule::Syndrome], |f| {
            on_last(f, READ_LAST, |b| b[X] = 0x60)
        }),
        made("a reserved NAK code", "rc-send-v6", &[Rule::Syndrome], |f| on_last(f, ACK, |b| b[X] = 0x7F)),
        made("an unaligned compare-and-swap", "probe-cswap-v4", &[Rule::AtomicAlignment], |f| {
            on_last(f, COMPARE_SWAP, |b| b[X + 7] += 4)
        }),
        made("a WRITE of more than 2^31 bytes", "rc-write-5000-v6", &[Rule::Reth], |f| {
            // The first packet of the last WRITE, whose other packets are not there: nothing to add up.
            let at = last_with(f, WRITE_FIRST);
            f.truncate(at + 1);
            edit_at(&mut f[at], |b| b[X + 12] = 0x81);
        }),
        made("a version of the transport", "uc-send-v6", &[Rule::Version], |f| {
            on_last(f, UC_SEND_LAST, |b| b[1] |= 0x0F)
        }),
        made("an opcode that nobody has", "uc-send-v6", &[Rule::Opcode], |f| {
            on_last(f, UC_SEND_LAST, |b| b[0] = 0x3E)
        }),
        made("QP 0", "rc-read-5000-v6", &[Rule::DestQp], |f| on_last(f, READ_MIDDLE, |b| b[5..8].fill(0))),
    ]);
}

#[test]
fn in_requests() {
    finds_each_and_nothing_else(&[
        made("a UC SEND that ends twice", "uc-send-v6", &[Rule::OpcodeOrder], |f| {
            on_last(f, UC_SEND_MIDDLE, |b| b[0] = UC_SEND_LAST)
        }),
        made("a Middle where a message begins", "rc-send-v6", &[Rule::OpcodeOrder], |f| {
            on_last(f, 0x00, |b| b[0] = MIDDLE)
        }),
        made("a SEND's Last in a WRITE", "rc-bidir-write-v4", &[Rule::OpcodeOrder], |f| {
            on_last(f, WRITE_LAST, |b| b[0] = 0x02)
        }),
        made("a UC WRITE beyond its RETH", "uc-write-5000-v4", &[Rule::WriteLength], |f| {
            on_last(f, UC_WRITE_FIRST, |b| b[X + 12..X + 16].copy_from_slice(&3000u32.to_be_bytes()))
        }),
        made("a WRITE beyond its RETH over IPv6", "rc-write-5000-v6", &[Rule::WriteLength], |f| {
            on_last(f, WRITE_FIRST, |b| b[X + 12..X + 16].copy_from_slice(&4999u32.to_be_bytes()))
        }),
        made("a WRITE that ends short of its RETH", "mtu4096-rc-write-v4", &[Rule::WriteLength], |f| {
            on_last(f, WRITE_FIRST, |b| b[X + 12..X + 16].copy_from_slice(&20_000u32.to_be_bytes()))
        }),
        made("a WRITE with the PSN of READ data", "rc-read-5000-v6", &[Rule::ReadSpan], |f| {
            f.truncate(last_with(f, READ) + 1);
            on_last(f, READ, |b| {
                b[0] = WRITE_ONLY;
                b[X + 12..X + 16].fill(0);
                next_psn(b, -1);
            });
        }),
        made("a READ that starts again with another key", "rc-read-5000-v6", &[Rule::ReadRestart], |f| {
            again(f, READ, |b| {
                next_psn(b, 1);
                let va = u64::from_be_bytes(b[X..X + 8].try_into().unwrap()) + 1024;
                b[X..X + 8].copy_from_slice(&va.to_be_bytes());
                b[X + 11] ^= 1;
                b[X + 12..X + 16].copy_from_slice(&(5000u32 - 1024).to_be_bytes());
            })
        }),
        made(
            "an atomic that is sent again with another operand",
            "rc-atomic-cas-v4",
            &[Rule::Retransmission],
            |f| again(f, COMPARE_SWAP, |b| b[X + 27] ^= 1),
        ),
        made("a READ that is sent again for another place", "rc-read-1-v4", &[Rule::Retransmission], |f| {
            again(f, READ, |b| b[X + 7] ^= 1)
        }),
        made("a SEND that is sent again as another", "rc-send-v6", &[Rule::Retransmission], |f| {
            again(f, 0x02, |b| b[X] ^= 1)
        }),
        made("a UC packet that is sent again", "uc-send-v6", &[Rule::Retransmission], |f| {
            again(f, UC_SEND_LAST, |b| b[X] ^= 1)
        }),
        Made {
            vantage: B,
            ..made("a PSN left out", "rc-atomic-fadd-v4", &[Rule::PsnOrder], |f| {
                let at = last_with(f, FETCH_ADD);
                f.truncate(at + 1);
                edit_at(&mut f[at], |b| next_psn(b, 1));
            })
        },
        made("a SEND on a UC connection", "uc-send-v6", &[Rule::Service], |f| {
            again(f, UC_SEND_LAST, |b| {
                b[0] = 0x02;
                next_psn(b, 40);
            })
        }),
    ]);
}

#[test]
fn in_answers() {
    finds_each_and_nothing_else(&[
        made("MSN of an atomic's answer over IPv6", "rc-atomic-fadd-v6", &[Rule::Msn], |f| {
            on_last(f, ATOMIC_ACK, |b| next_msn(b, 1))
        }),
        made("MSN of READ data over IPv6", "rc-read-5000-v6", &[Rule::Msn], |f| {
            on_last(f, READ_LAST, |b| next_msn(b, -1))
        }),
        made("MSN of an ACK that runs behind", "rc-send-v6", &[Rule::Msn], |f| {
            on_last(f, ACK, |b| next_msn(b, -1))
        }),
        made("an ACK for what was not sent, over IPv6", "rc-write-5000-v6", &[Rule::GhostResponse], |f| {
            on_last(f, ACK, |b| next_psn(b, 1))
        }),
        made("an atomic's answer to no request", "rc-atomic-fadd-v6", &[Rule::GhostResponse], |f| {
            again(f, ATOMIC_ACK, |b| next_psn(b, 1))
        }),
        made("READ data for what was not asked for", "rc-read-5000-v6", &[Rule::GhostResponse], |f| {
            again(f, READ_LAST, |b| next_psn(b, 1))
        }),
        made("READ data in answer to an atomic", "rc-atomic-cas-v4", &[Rule::ResponseKind], |f| {
            let at = last_with(f, ATOMIC_ACK);
            let end = f[at].bytes.len();
            f[at].bytes[end - 4..].fill(0);
            edit_at(&mut f[at], |b| b[0] = READ_ONLY);
        }),
        made("an atomic's answer to a READ", "rc-read-5000-v4", &[Rule::ResponseKind], |f| {
            let at = last_with(f, READ_LAST);
            let asked = last_with(f, READ);
            let psn = psn(&f[asked].bytes);
            edit(&mut f[at], |b| {
                let aeth = b[EXT..EXT + 4].to_vec();
                set_body(b, &[aeth, vec![0; 8]].concat());
                b[BTH..BTH + 2].copy_from_slice(&[ATOMIC_ACK, 0]);
                set_psn(b, psn);
            });
        }),
        made(
            "READ data of a PSN too early",
            "rc-read-5000-v6",
            &[Rule::ReadResponse, Rule::ReadLength],
            |f| on_last(f, READ_LAST, |b| next_psn(b, -1)),
        ),
        made("READ data that is too long", "rc-read-1-v4", &[Rule::ReadLength], |f| {
            on_last(f, READ_ONLY, |b| b[1] &= !0x30)
        }),
        Made {
            vantage: A,
            ..made("a READ response left out", "rc-read-5000-v6", &[Rule::ResponseOrder], |f| {
                f.remove(last_with(f, READ_MIDDLE));
            })
        },
        Made {
            both: |f| {
                again(f, COMPARE_SWAP, |_| {});
                again(f, ATOMIC_ACK, |_| {});
            },
            ..made("a compare-and-swap done twice", "rc-atomic-cas-v4", &[Rule::AtomicReplay], |f| {
                on_last(f, ATOMIC_ACK, |b| b[X + 11] ^= 1)
            })
        },
        Made {
            both: |f| {
                again(f, FETCH_ADD, |_| {});
                again(f, ATOMIC_ACK, |_| {});
            },
            ..made("a fetch-and-add done twice over IPv6", "rc-atomic-fadd-v6", &[Rule::AtomicReplay], |f| {
                on_last(f, ATOMIC_ACK, |b| b[X + 4] ^= 0x40)
            })
        },
        made("a sequence NAK without a cause over IPv6", "rc-write-5000-v6", &[Rule::SequenceNak], |f| {
            on_last(f, ACK, |b| {
                b[X] = 0x60;
                next_psn(b, 1);
            })
        }),
        made("an RNR NAK for a READ", "rc-read-5000-v4", &[Rule::RnrNak], |f| {
            let at = last_with(f, READ_FIRST);
            let psn = psn(&f[at].bytes);
            f.truncate(at + 1);
            edit(&mut f[at], |b| {
                set_body(b, &[0x2C, 0, 0, 4]);
                b[BTH..BTH + 2].copy_from_slice(&[ACK, 0]);
                set_psn(b, psn);
            });
        }),
        made("a remote access error for a SEND over IPv6", "rc-send-v6", &[Rule::AccessNak], |f| {
            on_last(f, ACK, |b| {
                b[X] = 0x62;
                next_msn(b, -1);
            })
        }),
        made("a refusal of what was acknowledged", "rc-atomic-fadd-v6", &[Rule::NakAcknowledged], |f| {
            let at = last_with(f, ATOMIC_ACK);
            let mut nak = f[at].clone();
            // The eight bytes of the original value go.
            let (end, bth) = (nak.bytes.len(), bth(&nak));
            nak.bytes.drain(end - 12..end - 4);
            nak.bytes[bth - 3] -= 8;
            nak.bytes[bth - 8 - 40 + 5] -= 8;
            edit_at(&mut nak, |b| {
                b[0] = ACK;
                b[X] = 0x63;
                next_msn(b, -1);
            });
            f.push(nak);
        }),
        Made {
            vantage: B,
            ..made("a WRITE behind a refusal", "probe-bad-rkey-write-v4", &[Rule::AfterFatalNak], |f| {
                let nak = last_with(f, ACK);
                f.truncate(nak + 1);
                again(f, WRITE_ONLY, |b| next_psn(b, 1))
            })
        },
        Made {
            vantage: B,
            ..made(
                "a READ sent again after its refusal",
                "probe-bad-rkey-read-v4",
                &[Rule::AfterFatalNak],
                |f| {
                    let nak = last_with(f, ACK);
                    f.truncate(nak + 1);
                    again(f, READ, |_| {})
                },
            )
        },
        made("an ACK behind a refusal", "probe-atomic-bad-rkey-v4", &[Rule::AfterFatalNak], |f| {
            again(f, FETCH_ADD, |b| next_psn(b, 1));
            again(f, ACK, |b| {
                b[X] = 0x1F;
                next_psn(b, 1);
            });
        }),
        // The refused SEND was under way more than once: only its sender's port tells that none of them crossed the NAK.
        Made {
            vantage: B,
            ..made("an early retry after the last RNR NAK", "rnr-rc-send-v4", &[Rule::RnrDelay], |f| {
                let nak = with_opcode(f, ACK).into_iter().rfind(|&at| f[at].bytes[EXT] >> 5 == 1).unwrap();
                let refused = psn(&f[nak].bytes);
                let retry =
                    (nak + 1..f.len()).find(|&at| f[at].bytes[BTH] == 0x04 && psn(&f[at].bytes) == refused);
                f[retry.unwrap()].time_ns = f[nak].time_ns + 50_000;
            })
        },
    ]);
}
