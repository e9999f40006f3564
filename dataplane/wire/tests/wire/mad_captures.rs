//! Connection management of Linux in the captures: what was read comes out again byte for byte, and what both ends said of
//! themselves fits together (rocev2 facts, CM 3 to 12).

use crate::captures::{directory, frames};
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::mad::*;
use wire::*;

/// Every MAD to QP 1 of a capture, in order.
fn mads(file: &str) -> Vec<Vec<u8>> {
    let frames = frames(&directory().join(file));
    let mads = frames.iter().filter_map(|bytes| {
        let frame = Frame::parse(bytes, bytes.len()).ok()?;
        (frame.bth().dest_qpn == Qpn::GSI)
            .then(|| bytes[frame.payload_offset()..][..frame.payload_len()].to_vec())
    });
    mads.collect()
}

fn captures() -> impl Iterator<Item = String> {
    std::fs::read_dir(directory())
        .expect("the captures")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".pcap"))
}

#[test]
fn every_captured_mad_comes_out_again() {
    let mut kinds = BTreeMap::new();
    for file in captures() {
        for mad in mads(&file) {
            let parsed = CmMad::parse(&mad).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert_eq!(parsed.to_bytes().as_slice(), mad, "{file}: {parsed:?}");
            *kinds.entry(parsed.message.kind()).or_insert(0) += 1;
        }
    }
    let counted = [
        (MessageKind::Req, 26),
        (MessageKind::Rej, 1),
        (MessageKind::Rep, 25),
        (MessageKind::Rtu, 25),
        (MessageKind::Dreq, 27),
        (MessageKind::Drep, 27),
        (MessageKind::SidrReq, 2),
        (MessageKind::SidrRep, 2),
    ];
    assert_eq!(kinds, BTreeMap::from(counted));
}

#[test]
fn a_connection_of_rping() {
    for (file, active, passive) in
        [("cm-rping-v4.pcap", "10.77.0.2", "10.77.0.1"), ("cm-rping-v6.pcap", "fd77::2", "fd77::1")]
    {
        let (active, passive): (IpAddr, IpAddr) = (active.parse().unwrap(), passive.parse().unwrap());
        let mads: Vec<_> = mads(file).iter().map(|mad| CmMad::parse(mad).unwrap()).collect();
        let [
            CmMessage::Req(req),
            CmMessage::Rep(rep),
            CmMessage::Rtu(rtu),
            CmMessage::Dreq(dreq),
            CmMessage::Drep(drep),
        ] = [0, 1, 2, 3, 4].map(|nth: usize| mads[nth].message.clone())
        else {
            panic!("{file}: other messages")
        };
        assert_eq!(req.service_id, ServiceId::new(PortSpace::Tcp, 7174), "{file}");
        let addressing = IpAddressing::parse(req.private_data.bytes()).unwrap();
        assert_eq!((addressing.source, addressing.destination), (active, passive), "{file}");
        assert_eq!((req.primary.local_gid.ip(), req.primary.remote_gid.ip()), (active, passive), "{file}");
        assert_eq!((req.transport, req.mtu()), (Transport::Rc, Some(Mtu::Mtu1024)), "{file}");
        assert_eq!((req.remote_cm_timeout, req.local_cm_timeout, req.max_cm_retries), (20, 20, 15), "{file}");
        assert_eq!((req.primary.hop_limit, req.primary.ack_timeout), (64, 19), "{file}");
        assert_eq!((rep.remote_id, rtu.local_id, dreq.local_id), (req.local_id, req.local_id, req.local_id));
        assert_eq!(
            (rtu.remote_id, dreq.remote_id, drep.local_id),
            (rep.local_id, rep.local_id, rep.local_id)
        );
        assert_eq!(dreq.remote_qpn, rep.local_qpn, "{file}");
        let transactions: Vec<_> = mads.iter().map(|mad| mad.transaction_id).collect();
        assert!(
            transactions.iter().all(|&id| id == transactions[0]),
            "{file}: a DREQ of the active side repeats it"
        );
    }
}

/// A starting PSN is where the receiver of the message begins to send, against the facts' words in CM 4: the first packet of
/// each side in the capture shows it.
#[test]
fn a_starting_psn_is_where_the_receiver_of_it_begins() {
    let mut shown = 0;
    for file in ["cm-rping-v4.pcap", "cm-rping-v6.pcap", "cm-rdma-client-v4.pcap", "cm-ucmatose-v4.pcap"] {
        let frames = frames(&directory().join(file));
        let (mut reqs, mut first_psn) = (BTreeMap::new(), BTreeMap::new());
        for bytes in &frames {
            let frame = Frame::parse(bytes, bytes.len()).unwrap();
            let mad = CmMad::parse(&bytes[frame.payload_offset()..][..frame.payload_len()]);
            match mad.map(|mad| mad.message) {
                Ok(CmMessage::Req(req)) => drop(reqs.insert(req.local_id, req)),
                Ok(CmMessage::Rep(rep)) => {
                    let req = &reqs[&rep.remote_id];
                    let to_passive = (req.primary.remote_gid, rep.local_qpn);
                    let to_active = (req.primary.local_gid, req.local_qpn);
                    first_psn.insert(to_passive, rep.starting_psn);
                    first_psn.insert(to_active, req.starting_psn);
                }
                _ => {
                    let is_request = frame.bth().opcode.info().is_some_and(|info| {
                        matches!(info.operation, Operation::Send | Operation::Write | Operation::ReadRequest)
                    });
                    let to = (frame.dst, frame.bth().dest_qpn);
                    if let Some(psn) = is_request.then(|| first_psn.remove(&to)).flatten() {
                        assert_eq!(frame.bth().psn, psn, "{file}");
                        shown += 1;
                    }
                }
            }
        }
    }
    assert_eq!(shown, 10, "first packets of both directions");
}

#[test]
fn a_refusal_names_no_id_of_its_own() {
    let mads = mads("cm-refused-v4.pcap");
    let (req, rej) = (CmMad::parse(&mads[0]).unwrap(), CmMad::parse(&mads[1]).unwrap());
    let (CmMessage::Req(request), CmMessage::Rej(refusal)) = (req.message, rej.message) else { panic!() };
    assert_eq!(refusal.reason, RejectReason::INVALID_SERVICE_ID);
    assert_eq!((refusal.local_id, refusal.remote_id), (CommId(0), request.local_id));
    assert_eq!(refusal.message, Answered::Req);
    assert_eq!(rej.transaction_id, req.transaction_id);
}
