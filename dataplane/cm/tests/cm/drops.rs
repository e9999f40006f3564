//! Every way to drop a MAD has a name, and each is reached.

use crate::support::*;
use cm::*;
use std::collections::BTreeSet;
use wire::Gid;
use wire::mad::*;

/// What a passive end with one connection drops, for one MAD from the active end's address.
fn dropped(make: impl Fn(&mut Pair, (CommId, CommId)) -> Vec<u8>) -> Vec<DropReason> {
    let mut pair = Pair::new();
    let (a, _) = pair.connected();
    pair.a.cm.send_dreq(0, a, b"").unwrap();
    let dreq = crate::message!(pair.a.sent_one(), Dreq);
    let bytes = make(&mut pair, (dreq.local_id, dreq.remote_id));
    let path = pair.b.path;
    let before = pair.b.cm.counters().clone();
    pair.b.cm.on_mad(0, &path, &bytes);
    let counters = pair.b.cm.counters();
    let all = DropReason::ALL.iter().copied();
    all.filter(|&reason| counters.dropped(reason) > before.dropped(reason)).collect()
}

fn bent(at: usize, value: u8) -> Vec<DropReason> {
    dropped(|_, (local_id, remote_id)| {
        let mut bytes = CmMad::new(1, Rtu { local_id, remote_id, ..Rtu::default() }).to_bytes();
        bytes[at] = value;
        bytes.to_vec()
    })
}

fn mad(message: impl Into<CmMessage>) -> Vec<u8> {
    CmMad::new(1, message).to_bytes().to_vec()
}

fn request(local_id: u32, from: Gid) -> Req {
    Req {
        local_id: CommId(local_id),
        service_id: SERVICE,
        local_qpn: wire::Qpn::new(local_id),
        path_mtu: 1,
        primary: PrimaryPath { local_gid: from, remote_gid: B, ..PrimaryPath::default() },
        ..Req::default()
    }
}

/// A passive end with small limits, and what it drops when it is asked five times.
fn crowded(change: impl Fn(&mut Config), ask: impl Fn(u32) -> Vec<u8>) -> Vec<DropReason> {
    let mut config = Config::new(B_GUID, [2; 32]);
    change(&mut config);
    let mut end = End::with(config, B, A);
    end.cm.listen(SERVICE, None, 4).unwrap();
    let path = end.path;
    (1..=5).for_each(|nth| end.cm.on_mad(0, &path, &ask(nth)));
    DropReason::ALL.iter().copied().filter(|&reason| end.cm.counters().dropped(reason) > 0).collect()
}

#[test]
fn every_drop_has_its_name() {
    let sidr = |request_id| mad(SidrReq { request_id, service_id: SERVICE, ..SidrReq::default() });
    let cases = [
        (DropReason::Length, dropped(|_, _| vec![1; 255])),
        (DropReason::BaseVersion, bent(0, 2)),
        (DropReason::Class, bent(1, 3)),
        (DropReason::ClassVersion, bent(2, 1)),
        (DropReason::Method, bent(3, 1)),
        (DropReason::Attribute, bent(17, 0x20)),
        (DropReason::UnknownId, dropped(|_, (local_id, _)| mad(Rtu { local_id, ..Rtu::default() }))),
        (
            DropReason::WrongPeer,
            dropped(|pair, (local_id, remote_id)| {
                pair.b.path.remote = Gid::from_v4([192, 0, 2, 77]);
                mad(Rtu { local_id, remote_id, ..Rtu::default() })
            }),
        ),
        (DropReason::NoId, dropped(|_, _| mad(request(0, A)))),
        (DropReason::Duplicate, bent(255, 0)),
        (
            DropReason::Unexpected,
            dropped(|_, (local_id, remote_id)| mad(Drep { local_id, remote_id, ..Drep::default() })),
        ),
        (
            DropReason::WrongQpn,
            dropped(|_, (local_id, remote_id)| mad(Dreq { local_id, remote_id, ..Dreq::default() })),
        ),
        (DropReason::Backlog, crowded(|_| (), |nth| mad(request(nth, A)))),
        (
            DropReason::PeerLimit,
            crowded(|config| config.limits.half_open_per_peer = 2, |nth| mad(request(nth, A))),
        ),
        (DropReason::SidrFull, crowded(|config| config.limits.sidr = 2, sidr)),
    ];
    for (expected, dropped) in &cases {
        assert_eq!(dropped, &[*expected]);
    }
    let reached: BTreeSet<_> = cases.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), DropReason::ALL);
    let labels: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), DropReason::ALL.len());
}
