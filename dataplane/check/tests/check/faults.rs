//! For every rule a fault that breaks it and nothing else, and a clean twin: the same capture without the fault.

use crate::edit::*;
use crate::support::{Seen, assert_passes, capture, check};
use check::{Options, Rule, Vantage};
use wire::Mac;

/// A fault: where it is made, from where it is looked at, what is done first to both, and to one of them.
struct Fault {
    capture: &'static str,
    vantage: Vantage,
    both: fn(&mut Vec<Seen>),
    fault: fn(&mut Vec<Seen>),
}

const A: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0A, 0]));
const B: Vantage = Vantage::Endpoint(Mac([2, 0, 0, 0, 0x0B, 0]));

fn fault(capture: &'static str, fault: fn(&mut Vec<Seen>)) -> Fault {
    Fault { capture, vantage: Vantage::Anywhere, both: |_| {}, fault }
}

/// In the last ACK of a capture, which nothing else depends on.
fn on_ack(frames: &mut [Seen], change: fn(&mut Vec<u8>)) {
    let at = last(frames, ACK);
    edit(&mut frames[at], change);
}

fn raw_on_ack(frames: &mut [Seen], change: fn(&mut Vec<u8>)) {
    let at = last(frames, ACK);
    raw(&mut frames[at], change);
}

/// A second READ, whose answers stop for those of the first, which is asked for again, and then go on.
fn interrupted_read(f: &mut Vec<Seen>) {
    let (read, first, end) = (last(f, READ), last(f, READ_FIRST), last(f, READ_LAST));
    let second = |b: &mut Vec<u8>| add_psn(b, 5);
    let counted = |b: &mut Vec<u8>| {
        add_psn(b, 5);
        add_msn(b, 1);
    };
    append(f, read, second);
    append(f, first, counted);
    append(f, first + 1, second);
    for at in [read, first, first + 1, first + 2, first + 3, end] {
        append(f, at, |_| {});
    }
    append(f, first + 2, second);
    append(f, first + 3, second);
    append(f, end, counted);
}

#[test]
fn every_rule_finds_its_fault_and_no_other_does() {
    for &rule in Rule::ALL {
        let Fault { capture: name, vantage, both, fault } = fault_for(rule);
        let options = Options { vantage, ..Options::default() };
        let mut frames = capture(name);
        both(&mut frames);
        assert_passes(&format!("{rule}: the clean twin in {name}"), &check(&frames, options));
        fault(&mut frames);
        let report = check(&frames, options);
        let mut broken: Vec<_> = report.violations.iter().map(|violation| violation.rule).collect();
        broken.dedup();
        assert_eq!(broken, [rule], "{rule} in {name}: {:#?}", report.violations);
        assert!(report.violations[0].frame as usize <= frames.len());
    }
}

fn fault_for(rule: Rule) -> Fault {
    match rule as usize {
        number if number <= Rule::Datagram as usize => alone(rule),
        number if number <= Rule::Service as usize => of_requests(rule),
        _ => of_answers(rule),
    }
}

fn alone(rule: Rule) -> Fault {
    match rule {
        Rule::IpHeader => fault("rc-send-v4", |f| raw_on_ack(f, |b| b[IP] = 0x55)),
        Rule::IpFragment => fault("rc-send-v4", |f| on_ack(f, |b| b[IP + 6] |= 0x20)),
        Rule::IpChecksum => fault("rc-send-v4", |f| raw_on_ack(f, |b| b[IP + 10] ^= 1)),
        Rule::IpLength => fault("rc-send-v4", |f| on_ack(f, |b| b[IP + 3] = 10)),
        Rule::UdpLength => fault("rc-send-v4", |f| on_ack(f, |b| b[UDP + 5] += 4)),
        Rule::UdpChecksum => fault("rc-send-v4", |f| raw_on_ack(f, |b| b[UDP + 6] = 0x12)),
        Rule::Grh => fault("rc-send-v6", |f| {
            let at = f.len() - 1;
            raw(&mut f[at], |b| b[12..14].copy_from_slice(&[0x89, 0x15]));
        }),
        Rule::Icrc => fault("rc-send-v4", |f| raw_on_ack(f, |b| *b.last_mut().unwrap() ^= 1)),
        Rule::Opcode => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH] = 0x18)),
        Rule::Version => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH + 1] |= 1)),
        Rule::DestQp => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH + 5..BTH + 8].fill(0))),
        // An ACK without its AETH.
        Rule::HeaderLength => fault("rc-send-v4", |f| on_ack(f, |b| shorten(b, 4))),
        Rule::Reserved => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH + 8] |= 1)),
        Rule::PKey => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH + 2] = 0x12)),
        Rule::Solicited => fault("rc-send-v4", |f| on_ack(f, |b| b[BTH + 1] |= 0x80)),
        Rule::Pad => fault("rc-write-5-v4", |f| {
            let at = last(f, WRITE_ONLY);
            edit(&mut f[at], |b| {
                let pad = b.len() - 5;
                b[pad] = 1;
            });
        }),
        Rule::PayloadLength => fault("rc-send-v4", |f| {
            let at = last(f, MIDDLE);
            edit(&mut f[at], |b| shorten(b, 4));
        }),
        Rule::Reth => fault("rc-write-1024-v4", |f| {
            let at = last(f, WRITE_ONLY);
            edit(&mut f[at], |b| b[EXT + 15] += 1);
        }),
        Rule::AtomicAlignment => fault("rc-atomic-fadd-v4", |f| {
            let at = last(f, FETCH_ADD);
            edit(&mut f[at], |b| b[EXT + 7] |= 1);
        }),
        Rule::Syndrome => fault("rc-send-v4", |f| on_ack(f, |b| b[EXT] = 0x5F)),
        Rule::Cnp => Fault {
            both: |f| {
                let of = last(f, ACK);
                append(f, of, |b| {
                    set_body(b, &[0; 16]);
                    b[BTH..BTH + 2].copy_from_slice(&[0x81, 0]);
                    b[BTH + 4] = 0x40;
                    b[BTH + 8..EXT].fill(0);
                });
            },
            ..fault("rc-send-v4", |f| {
                let at = f.len() - 1;
                edit(&mut f[at], |b| b[BTH + 4] = 0);
            })
        },
        Rule::Datagram => fault("cm-rping-v4", |f| {
            let at = last(f, UD_SEND);
            edit(&mut f[at], |b| b[EXT] = 0);
        }),
        _ => unreachable!("{rule} is about more than one frame"),
    }
}

fn of_requests(rule: Rule) -> Fault {
    match rule {
        Rule::OpcodeOrder => fault("rc-send-v4", |f| {
            let at = last(f, MIDDLE);
            edit(&mut f[at], |b| b[BTH] = WRITE_MIDDLE);
        }),
        Rule::WriteLength => fault("rc-write-5000-v4", |f| {
            let at = last(f, WRITE_FIRST);
            edit(&mut f[at], |b| b[EXT + 15] += 4);
        }),
        // A SEND with the PSN of a READ's third response.
        Rule::ReadSpan => fault("rc-read-5000-v4", |f| {
            let of = last(f, READ);
            append(f, of, |b| {
                set_body(b, &[]);
                b[BTH] = 0x04;
                add_psn(b, 2);
            });
        }),
        Rule::ReadRestart => Fault {
            both: |f| {
                let of = last(f, READ);
                append(f, of, |b| {
                    add_psn(b, 2);
                    let va = u64::from_be_bytes(b[EXT..EXT + 8].try_into().unwrap()) + 2048;
                    b[EXT..EXT + 8].copy_from_slice(&va.to_be_bytes());
                    b[EXT + 12..EXT + 16].copy_from_slice(&(5000u32 - 2048).to_be_bytes());
                });
            },
            ..fault("rc-read-5000-v4", |f| {
                let at = f.len() - 1;
                edit(&mut f[at], |b| b[EXT + 7] ^= 8);
            })
        },
        Rule::Retransmission => Fault {
            both: |f| {
                let of = last(f, WRITE_LAST);
                append(f, of, |_| {});
            },
            ..fault("rc-write-5000-v4", |f| {
                let at = f.len() - 1;
                edit(&mut f[at], |b| b[EXT + 7] ^= 1);
            })
        },
        // What was acknowledged is sent again.
        Rule::PsnOrder => Fault {
            vantage: B,
            ..fault("rc-write-5000-v4", |f| {
                let of = last(f, WRITE_LAST);
                append(f, of, |_| {});
            })
        },
        Rule::Window => Fault {
            both: |f| {
                let of = last(f, WRITE_FIRST);
                let next = psn(&f[last(f, WRITE_LAST)].bytes) + 1;
                let mut reth = f[of].bytes[EXT..EXT + 16].to_vec();
                reth[12..].copy_from_slice(&(1u32 << 31).to_be_bytes());
                append(f, of, move |b| {
                    set_body(b, &reth);
                    b[BTH] = READ;
                    set_psn(b, next);
                });
            },
            ..fault("mtu256-rc-write-v4", |f| {
                let of = f.len() - 1;
                append(f, of, |b| add_psn(b, 1 << 23));
            })
        },
        Rule::RnrDelay => fault("rnr-rc-send-v4", |f| {
            let nak = all(f, ACK).into_iter().find(|&at| f[at].bytes[EXT] >> 5 == 1).unwrap();
            let refused = psn(&f[nak].bytes);
            let again =
                (nak + 1..f.len()).find(|&at| f[at].bytes[BTH] == 0x04 && psn(&f[at].bytes) == refused);
            f[again.unwrap()].time_ns = f[nak].time_ns + 100_000;
        }),
        // An ACK for a UC packet.
        Rule::Service => fault("uc-send-v4", |f| {
            let is_a = |frame: &Seen| frame.bytes[IP + 15] == 1;
            let of = (0..f.len()).rfind(|&at| is_a(&f[at])).unwrap();
            let asked = psn(&f.iter().rfind(|frame| !is_a(frame)).unwrap().bytes);
            append(f, of, move |b| {
                set_body(b, &[0x1F, 0, 0, 1]);
                b[BTH..BTH + 2].copy_from_slice(&[ACK, 0]);
                b[BTH + 8] = 0;
                set_psn(b, asked);
            });
        }),
        _ => unreachable!("{rule} is not about requests"),
    }
}

fn of_answers(rule: Rule) -> Fault {
    match rule {
        Rule::GhostResponse => fault("rc-send-v4", |f| {
            let of = last(f, ACK);
            append(f, of, |b| add_psn(b, 1));
        }),
        Rule::ResponseKind => fault("rc-write-5-v4", |f| on_ack(f, |b| b[BTH] = READ_ONLY)),
        Rule::Msn => fault("rc-write-5-v4", |f| on_ack(f, |b| add_msn(b, 1))),
        // First and Last have the same headers.
        Rule::ReadResponse => fault("rc-read-5000-v4", |f| {
            let at = last(f, READ_FIRST);
            edit(&mut f[at], |b| b[BTH] = READ_LAST);
        }),
        Rule::ReadLength => fault("rc-read-5000-v4", |f| {
            let at = last(f, READ_LAST);
            edit(&mut f[at], |b| shorten(b, 4));
        }),
        Rule::ResponseOrder => Fault {
            vantage: A,
            both: interrupted_read,
            ..fault("rc-read-5000-v4", |f| {
                let at = last(f, READ_MIDDLE);
                let time_ns = f[at].time_ns;
                f.swap(at, at - 1);
                f[at].time_ns = time_ns;
            })
        },
        Rule::AtomicReplay => Fault {
            both: |f| {
                let (of, answer) = (last(f, FETCH_ADD), last(f, ATOMIC_ACK));
                append(f, of, |_| {});
                append(f, answer, |_| {});
            },
            ..fault("rc-atomic-fadd-v4", |f| {
                let at = f.len() - 1;
                edit(&mut f[at], |b| b[EXT + 11] ^= 1);
            })
        },
        Rule::AckGap => Fault {
            vantage: A,
            ..fault("rc-write-5000-v4", |f| {
                let at = last(f, WRITE_MIDDLE);
                f.remove(at);
            })
        },
        Rule::SequenceNak => fault("rc-write-5-v4", |f| on_ack(f, |b| refuse(b, 0x60))),
        Rule::NakOnce => Fault {
            vantage: A,
            ..fault("loss-rc-send-v4", |f| {
                let nak = all(f, ACK).into_iter().find(|&at| f[at].bytes[EXT] == 0x60).unwrap();
                let again = f[nak].clone();
                f.insert(nak + 1, again);
            })
        },
        Rule::RnrNak => fault("rc-write-5-v4", |f| on_ack(f, |b| refuse(b, 0x2C))),
        Rule::AccessNak => fault("rc-send-v4", |f| on_ack(f, |b| refuse(b, 0x62))),
        Rule::NakAcknowledged => fault("rc-write-5-v4", |f| {
            let of = last(f, ACK);
            append(f, of, |b| refuse(b, 0x61));
        }),
        Rule::AfterFatalNak => fault("rc-write-5-v4", |f| {
            let at = nth(f, ACK, 1);
            edit(&mut f[at], |b| refuse(b, 0x61));
        }),
        Rule::AckHeld => Fault {
            vantage: A,
            both: |f| f.sort_by_key(|frame| frame.bytes[BTH] == ACK),
            ..fault("rc-write-5-v4", |f| {
                for frame in f.iter_mut().filter(|frame| frame.bytes[BTH] == ACK) {
                    frame.time_ns += 2_000_000_000;
                }
            })
        },
        _ => unreachable!("{rule} is not about answers"),
    }
}
