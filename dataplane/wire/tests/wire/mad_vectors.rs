//! The worked vectors of connection management: every field is what the vector was made of, and the same bytes come out again
//! (rocev2 facts, CM 2 to 9).

use crate::support::vector;
use std::net::Ipv4Addr;
use wire::mad::*;
use wire::*;

const ACTIVE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const PASSIVE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 20);
const ACTIVE_ID: CommId = CommId(0x4200_0001);
const PASSIVE_ID: CommId = CommId(0x4300_0002);
const TID: u64 = 0x0000_0009_0000_0042;
const DREQ_TID: u64 = 0x0000_0009_0000_0043;
const ADDRESSING: IpAddressing = IpAddressing {
    source_port: 40001,
    source: std::net::IpAddr::V4(ACTIVE),
    destination: std::net::IpAddr::V4(PASSIVE),
};

/// The bytes of a vector's MAD mean `expected`, and `expected` has these bytes.
fn check(name: &str, transaction_id: u64, expected: impl Into<CmMessage>) {
    let vector = vector(name);
    let frame = vector.parse();
    let mad = &vector.frame[frame.payload_offset()..][..frame.payload_len()];
    let expected = CmMad::new(transaction_id, expected);
    assert_eq!(CmMad::parse(mad), Ok(expected.clone()), "{name}");
    assert_eq!(expected.to_bytes().as_slice(), mad, "{name}");
}

fn private_data<const N: usize>(application: &[u8]) -> Area<N> {
    Area::new(&[&ADDRESSING.to_bytes().unwrap(), application].concat()).unwrap()
}

#[test]
fn req() {
    let req = Req {
        local_id: ACTIVE_ID,
        service_id: ServiceId(0x0000_0000_0106_1D2F),
        local_ca_guid: 0x0200_00FF_FE00_000A,
        local_qpn: Qpn::new(0x456),
        responder_resources: 4,
        initiator_depth: 4,
        remote_cm_timeout: 20,
        starting_psn: Psn::new(0x100),
        local_cm_timeout: 20,
        retry_count: 7,
        path_mtu: 3,
        rnr_retry_count: 7,
        max_cm_retries: 15,
        primary: PrimaryPath {
            local_lid: 0xFFFF,
            remote_lid: 0xFFFF,
            local_gid: ACTIVE.into(),
            remote_gid: PASSIVE.into(),
            flow_label: 0x3090E,
            hop_limit: 64,
            ack_timeout: 17,
            ..PrimaryPath::default()
        },
        private_data: private_data(b"hello"),
        ..Req::default()
    };
    assert_eq!(req.mtu(), Some(Mtu::Mtu1024));
    assert_eq!(req.service_id, ServiceId::new(PortSpace::Tcp, 7471));
    assert_eq!((req.service_id.port_space(), req.service_id.port()), (Some(PortSpace::Tcp), Some(7471)));
    assert_eq!(IpAddressing::parse(req.private_data.bytes()), Ok(ADDRESSING));
    check("cm_req_ipv4", TID, req);
}

#[test]
fn mra() {
    let mra = Mra {
        local_id: PASSIVE_ID,
        remote_id: ACTIVE_ID,
        message: Answered::Req,
        service_timeout: 24,
        private_data: Area::EMPTY,
    };
    check("cm_mra_ipv4", TID, mra);
}

#[test]
fn rep() {
    let rep = Rep {
        local_id: PASSIVE_ID,
        remote_id: ACTIVE_ID,
        local_qpn: Qpn::new(0x123),
        starting_psn: Psn::new(0x200),
        responder_resources: 4,
        initiator_depth: 4,
        target_ack_delay: 15,
        rnr_retry_count: 7,
        local_ca_guid: 0x0200_00FF_FE00_000B,
        ..Rep::default()
    };
    check("cm_rep_ipv4", TID, rep);
}

#[test]
fn rtu() {
    check("cm_rtu_ipv4", TID, Rtu { local_id: ACTIVE_ID, remote_id: PASSIVE_ID, ..Rtu::default() });
}

#[test]
fn rej() {
    let rej = Rej {
        local_id: CommId(0),
        remote_id: ACTIVE_ID,
        message: Answered::Req,
        ari_len: 0,
        reason: RejectReason::CONSUMER_DEFINED,
        ari_area: Area::EMPTY,
        private_data: Area::EMPTY,
    };
    check("cm_rej_ipv4", TID, rej);
}

#[test]
fn dreq_and_drep() {
    let dreq = Dreq {
        local_id: ACTIVE_ID,
        remote_id: PASSIVE_ID,
        remote_qpn: Qpn::new(0x123),
        private_data: Area::EMPTY,
    };
    check("cm_dreq_ipv4", DREQ_TID, dreq);
    check("cm_drep_ipv4", DREQ_TID, Drep { local_id: PASSIVE_ID, remote_id: ACTIVE_ID, ..Drep::default() });
}

#[test]
fn sidr_req_and_rep() {
    let service_id = ServiceId::new(PortSpace::Udp, 7471);
    let req =
        SidrReq { request_id: ACTIVE_ID.0, pkey: PKey(0xFFFF), service_id, private_data: private_data(b"") };
    check("cm_sidr_req_ipv4", TID, req);
    let rep = SidrRep {
        request_id: ACTIVE_ID.0,
        status: SidrStatus::SUCCESS,
        info_len: 0,
        vendor_id: 0,
        qpn: Qpn::new(0x123),
        service_id,
        qkey: QKey::new(0x0123_4567),
        info_area: Area::EMPTY,
        private_data: Area::EMPTY,
    };
    check("cm_sidr_rep_ipv4", TID, rep);
}
