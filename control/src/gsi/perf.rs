//! Performance management: what tools ask of a port's counters (`perfquery` and its like).
//!
//! Answered from what the port has really counted. Nothing is reset: a Set is refused. A flood of questions costs one
//! collection in [`FRESH`]. Layouts: see [`wire::mad`].

use super::{Counter, Mad, Received};
use crate::endpoint::PortCore;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use wire::mad::{
    ClassPortInfo, MadHeader, PERF_DATA_OFFSET, PortCounters, PortCountersExtended, method, perf_attribute,
    status,
};
use worker::{Command, Drop, LaneCounters, Reply};

/// For so long a collection of counters answers.
const FRESH: Duration = Duration::from_millis(20);

/// The port that is asked for: where the port select lies in every attribute with counters.
const PORT_SELECT: usize = 1;
/// All ports of the device.
const ALL_PORTS: u8 = 0xFF;
/// A device has one port.
const OUR_PORT: u8 = 1;
/// Wide counters, but none of unicast and multicast packets alone.
const EXTENDED_WIDTH_WITHOUT_CASTS: u16 = 1 << 10;
/// Answers come within 4.096 µs × 2^18, a second.
const RESPONSE_TIME: u8 = 18;

/// What was collected last.
#[derive(Debug, Default)]
pub(super) struct Cache(Option<(Instant, Sums)>);

/// Sums over the workers of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    tx_bytes: u64,
    rx_bytes: u64,
    tx_packets: u64,
    rx_packets: u64,
    /// Broken frames of RoCE.
    rx_errors: u64,
    /// Frames that found no room on their way to where they belong.
    dropped: u64,
    /// Times that the port did not take what there was to send.
    tx_wait: u64,
}

impl Sums {
    fn add(&mut self, lane: &LaneCounters) {
        self.tx_bytes += lane.traffic.tx_bytes;
        self.rx_bytes += lane.traffic.rx_bytes;
        self.tx_packets += lane.traffic.tx_frames;
        self.rx_packets += lane.traffic.rx_frames;
        self.tx_wait += lane.traffic.tx_full;
        let broken = wire::FrameError::ALL.iter().filter(|reason| reason.is_roce());
        self.rx_errors += broken.map(|&reason| lane.frame_errors(reason)).sum::<u64>();
        let full = [Drop::MadRingFull, Drop::MadRate];
        self.dropped += full.map(|reason| lane.dropped(reason)).iter().sum::<u64>();
    }
}

/// A counter that stops at its largest value.
fn capped<T: TryFrom<u64>>(value: u64, most: T) -> T {
    T::try_from(value).unwrap_or(most)
}

impl PortCore {
    pub(super) fn answer_performance(&self, asked: &Received) {
        let Some(mut header) = MadHeader::parse(&asked.mad) else { return };
        // The attribute's bytes are the question's, where it does not say more.
        let mut answer: Mad = asked.mad;
        header.status = self.performance_attribute(&header, &mut answer);
        header.method = method::GET_RESP;
        answer[..MadHeader::LEN].copy_from_slice(&header.to_bytes());
        self.gsi.counters.count(Counter::Performance);
        self.send_mad(&asked.back, &answer);
    }

    /// Writes the attribute that is asked for into the answer; the result is its status.
    fn performance_attribute(&self, header: &MadHeader, answer: &mut Mad) -> u16 {
        if header.class_version != 1 {
            return status::BAD_VERSION;
        }
        if header.method != method::GET {
            return status::UNSUPPORTED_METHOD;
        }
        let port_select = answer[PERF_DATA_OFFSET + PORT_SELECT];
        let ours = matches!(port_select, OUR_PORT | ALL_PORTS);
        let data = &mut answer[PERF_DATA_OFFSET..];
        match header.attribute_id {
            perf_attribute::CLASS_PORT_INFO => put(data, &class_port_info().to_bytes()),
            perf_attribute::PORT_COUNTERS | perf_attribute::PORT_COUNTERS_EXTENDED if !ours => {
                return status::INVALID_VALUE;
            }
            perf_attribute::PORT_COUNTERS => put(data, &counters(port_select, &self.sums()).to_bytes()),
            perf_attribute::PORT_COUNTERS_EXTENDED => {
                put(data, &extended(port_select, &self.sums()).to_bytes())
            }
            _ => return status::UNSUPPORTED_ATTRIBUTE,
        }
        status::OK
    }

    fn sums(&self) -> Sums {
        let mut cache = self.gsi.performance.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sums)) = cache.0.filter(|(when, _)| when.elapsed() < FRESH) {
            return sums;
        }
        let mut sums = Sums::default();
        for lane in &self.lanes {
            if let Ok(Reply::Counters(counters)) = lane.worker.call(Command::Counters { lane: lane.lane }) {
                sums.add(&counters);
            }
        }
        cache.0 = Some((Instant::now(), sums));
        sums
    }
}

fn put(data: &mut [u8], attribute: &[u8]) {
    data[..attribute.len()].copy_from_slice(attribute);
}

fn class_port_info() -> ClassPortInfo {
    ClassPortInfo {
        base_version: 1,
        class_version: 1,
        capability_mask: ClassPortInfo::ALL_PORT_SELECT | EXTENDED_WIDTH_WITHOUT_CASTS,
        response_time: RESPONSE_TIME,
        ..ClassPortInfo::default()
    }
}

fn counters(port_select: u8, sums: &Sums) -> PortCounters {
    PortCounters {
        port_select,
        receive_errors: capped(sums.rx_errors, u16::MAX),
        vl15_dropped: capped(sums.dropped, u16::MAX),
        transmit_data: capped(sums.tx_bytes / 4, u32::MAX),
        receive_data: capped(sums.rx_bytes / 4, u32::MAX),
        transmit_packets: capped(sums.tx_packets, u32::MAX),
        receive_packets: capped(sums.rx_packets, u32::MAX),
        transmit_wait: capped(sums.tx_wait, u32::MAX),
        ..PortCounters::default()
    }
}

fn extended(port_select: u8, sums: &Sums) -> PortCountersExtended {
    PortCountersExtended {
        port_select,
        transmit_data: sums.tx_bytes / 4,
        receive_data: sums.rx_bytes / 4,
        transmit_packets: sums.tx_packets,
        receive_packets: sums.rx_packets,
        ..PortCountersExtended::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_counters_stop_and_data_counts_words() {
        let sums =
            Sums { tx_bytes: 1 << 40, rx_bytes: 400, rx_errors: 70_000, rx_packets: 3, ..Sums::default() };
        let narrow = counters(1, &sums);
        assert_eq!((narrow.transmit_data, narrow.receive_data), (u32::MAX, 100));
        assert_eq!((narrow.receive_errors, narrow.receive_packets), (u16::MAX, 3));
        assert_eq!(extended(1, &sums).transmit_data, 1 << 38);
    }
}
