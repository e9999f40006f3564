//! What counters mean, in words: what a person would otherwise have to find out from several of them.

use super::QpStats;
use crate::net::{Conflict, SECOND_NS, TooBig};
use engine::Counter;
use std::net::IpAddr;
use wire::Mtu;

/// What a port and its queue pairs are up against.
pub(super) fn notes(qps: &[QpStats], too_big: &[TooBig], conflicts: &[String]) -> Vec<String> {
    let said = too_big.iter().map(|said| does_not_fit(said, qps));
    conflicts.iter().cloned().chain(qps.iter().flat_map(other_path_mtu)).chain(said).collect()
}

/// Another station has an address of ours.
pub(super) fn conflict(link: &str, address: IpAddr, conflict: &Conflict, now_ns: u64) -> String {
    let Conflict { mac, count, heard_ns, .. } = conflict;
    let ago = now_ns.saturating_sub(*heard_ns) / SECOND_NS;
    format!(
        "{mac} uses {address}, an address of {link}, too (heard {count} times, last {ago} s ago): give one of the two another \
         address"
    )
}

/// The peer sends packets that its own path MTU explains, and only another one than ours.
fn other_path_mtu(qp: &QpStats) -> impl Iterator<Item = String> {
    let counted = |counter: Counter| qp.counters.get(counter.name()).copied().unwrap_or_default();
    let QpStats { qpn, path_mtu, qp_type, .. } = qp;
    let remedy = if qp_type == "Ud" {
        "raise the MTU of this port, or lower that of the sender's"
    } else {
        "connect both ends with the same"
    };
    let cases = [
        (counted(Counter::OverPathMtu), "packets longer than its path MTU", "larger"),
        (counted(Counter::UnderPathMtu), "first and middle packets shorter than its path MTU", "smaller"),
    ];
    let told = cases.into_iter().filter(|&(count, ..)| count > 0).map(move |(count, what, size)| {
        format!("QP {qpn:#x} got {count} {what} {path_mtu}: the peer has a {size} path MTU; {remedy}")
    });
    told.collect::<Vec<_>>().into_iter()
}

/// A router has dropped packets of ours.
fn does_not_fit(said: &TooBig, qps: &[QpStats]) -> String {
    let TooBig { reporter, destination, mtu, count, .. } = said;
    let fits = match mtu {
        Some(mtu) => format!("at most {mtu} bytes of IP pass"),
        None => "it does not say how long they may be".into(),
    };
    let users: Vec<String> =
        qps.iter().filter(|qp| sends(qp, said)).map(|qp| format!("QP {:#x}", qp.qpn)).collect();
    let whose = match (users.is_empty(), said.dest_qpn) {
        (false, _) => format!("of {} to {destination}", users.join(", ")),
        (true, Some(qpn)) => format!("to {qpn} at {destination} (no queue pair is connected there now)"),
        (true, None) => format!("to {destination} (no queue pair is connected there now)"),
    };
    let remedy = match mtu.map(|mtu| Mtu::from_ip_mtu(mtu.into())) {
        Some(Some(most)) => format!("connect with a path MTU of {most}, or raise the MTU on the way"),
        Some(None) => "no path MTU is that small: raise the MTU on the way".into(),
        None => "connect with a smaller path MTU, or raise the MTU on the way".into(),
    };
    format!("{reporter} says that packets {whose} are too long ({fits}; said {count} times): {remedy}")
}

/// The queue pair is connected to where the packet went.
fn sends(qp: &QpStats, said: &TooBig) -> bool {
    let same = |one: IpAddr, other: IpAddr| one.to_canonical() == other.to_canonical();
    qp.peer.as_ref().is_some_and(|peer| {
        same(peer.address, said.destination)
            && same(peer.from, said.source)
            && said.dest_qpn.is_none_or(|qpn| qpn.value() == peer.qpn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::PeerStats;
    use wire::Qpn;

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    fn qp(qpn: u32, address: &str, from: &str, peer_qpn: u32) -> QpStats {
        let peer = PeerStats { address: ip(address), from: ip(from), qpn: peer_qpn };
        QpStats { qpn, peer: Some(peer), ..QpStats::default() }
    }

    fn said(dest_qpn: Option<u32>, mtu: Option<u16>) -> TooBig {
        TooBig {
            reporter: ip("10.0.0.9"),
            source: ip("10.0.0.1"),
            destination: ip("10.0.0.2"),
            dest_qpn: dest_qpn.map(Qpn::new),
            mtu,
            count: 3,
            at_ns: 0,
        }
    }

    #[test]
    fn a_router_is_quoted_for_the_queue_pairs_that_send_there() {
        let qps = [
            qp(1, "10.0.0.2", "10.0.0.1", 0x77),
            // As a GID has it.
            qp(2, "::ffff:10.0.0.2", "::ffff:10.0.0.1", 0x78),
            qp(3, "10.0.0.3", "10.0.0.1", 0x77),
            qp(4, "10.0.0.2", "10.0.0.4", 0x77),
            QpStats { qpn: 5, ..QpStats::default() },
        ];
        for (dest_qpn, whose) in [
            (Some(0x77), "packets of QP 0x1 to 10.0.0.2 are"),
            (None, "packets of QP 0x1, QP 0x2 to 10.0.0.2 are"),
            (Some(0x79), "at 10.0.0.2 (no queue pair is connected there now) are"),
        ] {
            let note = does_not_fit(&said(dest_qpn, None), &qps);
            assert!(note.starts_with("10.0.0.9 says that packets ") && note.contains(whose), "{note}");
        }
    }

    #[test]
    fn a_conflict_is_told_with_both_stations() {
        let config =
            crate::net::Config::new(wire::Mac([2, 0, 0, 0, 0, 1]), vec!["10.0.0.1/24".parse().unwrap()]);
        let mut interface = crate::net::Interface::new(config).unwrap();
        let mut arp =
            vec![0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
        arp.extend([2, 0, 0, 0, 0, 9, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1]);
        interface.on_frame(SECOND_NS, &arp);
        let (address, found) = interface.conflicts().next().unwrap();
        let note = conflict("port0.5", address, &found, 4 * SECOND_NS);
        assert_eq!(
            note,
            "02:00:00:00:00:09 uses 10.0.0.1, an address of port0.5, too (heard 1 times, last 3 s ago): give one of the two \
             another address"
        );
    }

    #[test]
    fn the_remedy_is_the_largest_path_mtu_that_fits() {
        for (mtu, remedy) in [
            (
                Some(1300),
                "(at most 1300 bytes of IP pass; said 3 times): connect with a path MTU of 1024, or",
            ),
            (Some(200), "no path MTU is that small: raise"),
            (None, "(it does not say how long they may be; said 3 times): connect with a smaller path MTU"),
        ] {
            let note = does_not_fit(&said(None, mtu), &[]);
            assert!(note.contains(remedy), "{note}");
        }
    }
}
