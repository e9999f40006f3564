//! What is no message of connection management is told by name, and an addressing header that is none too.

use wire::mad::*;

fn good() -> [u8; MAD_LEN] {
    CmMad::new(7, Rtu::default()).to_bytes()
}

#[test]
fn each_field_of_the_header_is_checked() {
    for (at, value, error) in [
        (0, 2, MadError::BaseVersion(2)),
        (1, 4, MadError::Class(4)),
        (2, 1, MadError::ClassVersion(1)),
        (3, 1, MadError::Method(1)),
        (17, 0x1B, MadError::Attribute(0x001B)),
        (16, 1, MadError::Attribute(0x0114)),
    ] {
        let mut mad = good();
        mad[at] = value;
        assert_eq!(CmMad::parse(&mad), Err(error));
    }
    assert!(CmMad::parse(&good()).is_ok());
}

#[test]
fn a_mad_has_256_bytes() {
    let long = [&good()[..], &[0]].concat();
    for len in [0, 1, 23, 24, 255, 257] {
        assert_eq!(CmMad::parse(&long[..len]), Err(MadError::Length(len)));
    }
}

#[test]
fn an_addressing_header_of_another_version_is_told() {
    let v4 = IpAddressing {
        source_port: 9,
        source: "192.0.2.1".parse().unwrap(),
        destination: "192.0.2.2".parse().unwrap(),
    };
    let mut bytes = v4.to_bytes().unwrap();
    assert_eq!(IpAddressing::parse(&bytes), Ok(v4));
    assert_eq!(IpAddressing::parse(&bytes[..35]), Err(AddressingError::Short));
    bytes[0] = 1;
    assert_eq!(IpAddressing::parse(&bytes), Err(AddressingError::Version(1)));
    (bytes[0], bytes[1]) = (0, 0x50);
    assert_eq!(IpAddressing::parse(&bytes), Err(AddressingError::IpVersion(5)));
}

#[test]
fn addresses_of_two_families_have_no_header() {
    let mixed = IpAddressing {
        source_port: 9,
        source: "192.0.2.1".parse().unwrap(),
        destination: "2001:db8::1".parse().unwrap(),
    };
    assert_eq!(mixed.to_bytes(), None);
}

#[test]
fn additional_information_is_no_longer_than_its_area() {
    let mut mad = CmMad::new(
        7,
        Rej {
            local_id: CommId(0),
            remote_id: CommId(1),
            message: Answered::Req,
            ari_len: 8,
            reason: RejectReason::TIMEOUT,
            ari_area: Area::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap(),
            private_data: Area::EMPTY,
        },
    )
    .to_bytes();
    let ari = |mad: &[u8]| match CmMad::parse(mad).map(|mad| mad.message) {
        Ok(CmMessage::Rej(rej)) => rej.ari().to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ari(&mad), [1, 2, 3, 4, 5, 6, 7, 8]);
    mad[24 + 9] = 0xFF;
    assert_eq!(ari(&mad).len(), 72);
}

#[test]
fn an_area_takes_what_fits() {
    assert_eq!(Area::<4>::new(b"abc"), Some(Area([b'a', b'b', b'c', 0])));
    assert_eq!(Area::<2>::new(b"abc"), None);
    assert_eq!(format!("{:?}", Area([1, 0xAB, 0, 0])), "[01ab; 4]");
}
