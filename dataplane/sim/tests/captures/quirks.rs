//! Where Linux's software RoCE (6.1) and we differ for a reason.

use engine::WcStatus;
use wire::{Aeth, NakCode, Syndrome};

/// Another answer than Linux's.
pub struct OtherAnswer {
    pub file: &'static str,
    pub linux: Syndrome,
    pub ours: Syndrome,
}

pub const OTHER_ANSWERS: &[OtherAnswer] = &[
    // Linux 6.1 takes a SEND longer than its receive for a fault of its own; the facts say invalid request.
    OtherAnswer {
        file: "probe-send-too-long-v4",
        linux: Syndrome::Nak(NakCode::RemoteOperational),
        ours: Syndrome::Nak(NakCode::InvalidRequest),
    },
    // Linux acknowledges a SEND whose invalidate it refuses; we say so to the peer.
    OtherAnswer {
        file: "probe-send-inv-v4",
        linux: Syndrome::ACK,
        ours: Syndrome::Nak(NakCode::RemoteAccess),
    },
];

/// Linux's AETH in a file, turned into the one that is expected of us.
pub fn expected_aeth(file: &str, linux: Aeth) -> Aeth {
    match OTHER_ANSWERS.iter().find(|quirk| quirk.file == file && quirk.linux == linux.syndrome) {
        Some(quirk) => Aeth { syndrome: quirk.ours, ..linux },
        None => linux,
    }
}

/// Linux sends a sequence NAK for the first packet behind one that it answered with an RNR NAK. Both are allowed: the
/// requester is waiting and ignores it.
pub const SEQUENCE_NAK_AFTER_RNR: &str = "rnr-rc-send-v4";

/// Disconnected before the last request was answered: the peer's QP was gone by then. Ours is still there and answers it;
/// the requester waits for ever.
pub const GONE_BEFORE_THE_LAST_ANSWER: &str = "cm-rstream-v4";

/// Regions of the probes: one that grants everything and one that grants READ only, as the probe printed them.
pub struct ProbeRegions {
    pub file: &'static str,
    pub key: u32,
    pub read_only: u32,
}

/// Where the probe's regions begin, and their length.
pub const PROBE_ADDR: u64 = 0x55_2AAB_1000;
pub const PROBE_LEN: usize = 16_384;
/// Where the read-only region begins, as the request to it shows; it lies before the other.
pub const PROBE_READ_ONLY_ADDR: u64 = 0x55_2AAB_0000;

/// For the probes that ask for what they may not have. In other captures regions follow from what was granted.
pub const PROBE_REGIONS: &[ProbeRegions] = &[
    ProbeRegions { file: "probe-atomic-bad-rkey-v4", key: 0x4152, read_only: 0x420d },
    ProbeRegions { file: "probe-bad-rkey-read-v4", key: 0x392d, read_only: 0x3a95 },
    ProbeRegions { file: "probe-bad-rkey-write-v4", key: 0x37bb, read_only: 0x38b8 },
    ProbeRegions { file: "probe-past-end-read-v4", key: 0x3d02, read_only: 0x3e14 },
    ProbeRegions { file: "probe-readonly-write-v4", key: 0x3fb4, read_only: 0x40dc },
    ProbeRegions { file: "probe-send-inv-v4", key: 0x3312, read_only: 0x34c9 },
];

/// The probe's receives have less room than a packet of its long message.
pub const SHORT_RECEIVE: (&str, u32) = ("probe-send-too-long-v4", 512);

/// How the requests of a file end that do not end well.
pub fn final_status(file: &str) -> WcStatus {
    match file {
        "probe-atomic-bad-rkey-v4"
        | "probe-bad-rkey-read-v4"
        | "probe-bad-rkey-write-v4"
        | "probe-past-end-read-v4"
        | "probe-readonly-write-v4" => WcStatus::RemAccessErr,
        "probe-send-too-long-v4" => WcStatus::RemOpErr,
        _ => WcStatus::Success,
    }
}

/// On UC and UD Linux sets AckReq as it does on RC. Nobody answers; we leave it clear.
pub const ACK_REQ_ON_UNRELIABLE: bool = true;
