//! What counters mean, in words: what a person would otherwise have to find out from several of them.

use super::QpStats;
use crate::net::TooBig;
use engine::Counter;
use std::net::IpAddr;
use wire::Mtu;

/// What the path MTUs of a port's queue pairs are up against.
pub(super) fn notes(qps: &[QpStats], too_big: &[TooBig]) -> Vec<String> {
    qps.iter().flat_map(other_path_mtu).chain(too_big.iter().map(|said| does_not_fit(said, qps))).collect()
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
