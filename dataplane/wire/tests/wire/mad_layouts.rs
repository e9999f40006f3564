//! Messages and fields that no capture shows: where each lies, by hand from the facts (rocev2 facts, CM 4, 6 and 7). Every field
//! has a value that no other has, at its place in bytes that are zero but for it.

use wire::mad::*;
use wire::*;

const GID_A: Gid = Gid([0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xAF]);
const GID_B: Gid = Gid([0xB0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xBF]);

/// The message behind the MAD header is these bytes at these places, and nothing else; and they read as the message.
fn check(message: impl Into<CmMessage>, places: &[(usize, &[u8])]) {
    let mad = CmMad::new(1, message);
    let mut expected = [0; MAD_LEN - MadHeader::LEN];
    for (at, bytes) in places {
        expected[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let bytes = mad.to_bytes();
    assert_eq!(bytes[MadHeader::LEN..], expected, "{mad:?}");
    assert_eq!(CmMad::parse(&bytes), Ok(mad));
}

#[test]
fn lap() {
    let lap = Lap {
        local_id: CommId(0x0102_0304),
        remote_id: CommId(0x0506_0708),
        remote_qpn: Qpn::new(0x11_2233),
        remote_cm_timeout: 0x15,
        path: AlternatePath {
            local_lid: 0x4142,
            remote_lid: 0x4344,
            local_gid: GID_A,
            remote_gid: GID_B,
            flow_label: 0x5_6789,
            traffic_class: 0xC1,
            hop_limit: 0xC2,
            rate: 0x2A,
            sl: 0x9,
            subnet_local: true,
            ack_timeout: 0x13,
        },
        private_data: Area::new(&[0xEE]).unwrap(),
    };
    check(
        lap,
        &[
            (0, &[1, 2, 3, 4, 5, 6, 7, 8]),
            (12, &[0x11, 0x22, 0x33, 0x15 << 3]),
            (20, &[0x41, 0x42, 0x43, 0x44]),
            (24, &GID_A.octets()),
            (40, &GID_B.octets()),
            (56, &[0x56, 0x78, 0x90, 0xC1, 0xC2, 0x2A, 0x98, 0x13 << 3]),
            (64, &[0xEE]),
        ],
    );
}

#[test]
fn apr() {
    let apr = Apr {
        local_id: CommId(0x0102_0304),
        remote_id: CommId(0x0506_0708),
        info_len: 2,
        status: AprStatus(9),
        info_area: Area::new(&[0xAA, 0xBB]).unwrap(),
        private_data: Area::new(&[0xEE]).unwrap(),
    };
    check(apr, &[(0, &[1, 2, 3, 4, 5, 6, 7, 8, 2, 9]), (12, &[0xAA, 0xBB]), (84, &[0xEE])]);
}

#[test]
fn rej_with_additional_information() {
    let rej = Rej {
        local_id: CommId(0x0102_0304),
        remote_id: CommId(0x0506_0708),
        message: Answered::Other,
        ari_len: 8,
        reason: RejectReason(0x0104),
        ari_area: Area::new(&[0xA1, 2, 3, 4, 5, 6, 7, 0xA8]).unwrap(),
        private_data: Area::new(&[0xEE]).unwrap(),
    };
    check(
        rej,
        &[
            (0, &[1, 2, 3, 4, 5, 6, 7, 8, 2 << 6, 8 << 1, 1, 4]),
            (12, &[0xA1, 2, 3, 4, 5, 6, 7, 0xA8]),
            (84, &[0xEE]),
        ],
    );
}

#[test]
fn mra_of_a_reply() {
    let mra = Mra {
        local_id: CommId(1),
        remote_id: CommId(2),
        message: Answered::Rep,
        service_timeout: 0x1B,
        private_data: Area::new(&[0xEE]).unwrap(),
    };
    check(mra, &[(3, &[1]), (7, &[2, 1 << 6, 0x1B << 3, 0xEE])]);
}

/// What Linux leaves zero in its requests.
#[test]
fn seldom_fields_of_a_req() {
    let req = Req {
        vendor_id: 0x0A_0B0C,
        local_qkey: QKey::new(0x1112_1314),
        local_eecn: 0x21_2223,
        remote_eecn: 0x31_3233,
        transport: Transport::Extended,
        flow_control: true,
        rdc_exists: true,
        srq: true,
        extended_transport: 1,
        pkey: PKey(0),
        alternate: PrimaryPath {
            local_lid: 0x4142,
            remote_lid: 0x4344,
            local_gid: GID_A,
            remote_gid: GID_B,
            flow_label: 0x5_6789,
            rate: 0x2A,
            traffic_class: 0xC1,
            hop_limit: 0xC2,
            sl: 0x9,
            subnet_local: true,
            ack_timeout: 0x13,
        },
        ..Req::default()
    };
    check(
        req,
        &[
            (5, &[0x0A, 0x0B, 0x0C]),
            (28, &[0x11, 0x12, 0x13, 0x14]),
            (36, &[0x21, 0x22, 0x23]),
            (40, &[0x31, 0x32, 0x33, 3 << 1 | 1]),
            (50, &[1 << 3, 1 << 3 | 1]),
            (96, &[0x41, 0x42, 0x43, 0x44]),
            (100, &GID_A.octets()),
            (116, &GID_B.octets()),
            (132, &[0x56, 0x78, 0x90, 0x2A, 0xC1, 0xC2, 0x98, 0x13 << 3]),
        ],
    );
}

#[test]
fn seldom_fields_of_a_rep() {
    let rep = Rep {
        local_qkey: QKey::new(0x1112_1314),
        vendor_id: 0x0A_0B0C,
        local_eecn: 0x21_2223,
        failover: 2,
        flow_control: true,
        srq: true,
        rnr_retry_count: 5,
        ..Rep::default()
    };
    check(
        rep,
        &[
            (8, &[0x11, 0x12, 0x13, 0x14]),
            (15, &[0x0A, 0x21, 0x22, 0x23, 0x0B]),
            (23, &[0x0C]),
            (26, &[2 << 1 | 1, 5 << 5 | 1 << 4]),
        ],
    );
}

#[test]
fn seldom_fields_of_a_sidr_rep() {
    let rep = SidrRep {
        request_id: 1,
        status: SidrStatus::REDIRECT,
        info_len: 3,
        vendor_id: 0x0A_0B0C,
        qpn: Qpn::new(0),
        service_id: ServiceId(0),
        qkey: QKey::new(0),
        info_area: Area::new(&[0xA1, 0xA2, 0xA3]).unwrap(),
        private_data: Area::new(&[0xEE]).unwrap(),
    };
    check(rep, &[(3, &[1, 4, 3, 0x0A, 0x0B]), (11, &[0x0C]), (24, &[0xA1, 0xA2, 0xA3]), (96, &[0xEE])]);
}
