//! Headers: value → bytes → value, bytes → value → bytes, and slices that are too short.

use proptest::prelude::*;
use wire::*;

/// Both directions for one header. `reserved` has ones in the bits that are sent as zero.
macro_rules! round_trip {
    ($($test:ident: $header:ident, reserved $reserved:expr;)*) => {
        proptest! {
            $(#[test]
            fn $test(bytes in any::<[u8; $header::LEN]>()) {
                let header = $header::from_bytes(&bytes);
                let reserved: [u8; $header::LEN] = $reserved;
                let mut expected = bytes;
                for (byte, reserved) in expected.iter_mut().zip(reserved) {
                    *byte &= !reserved;
                }
                prop_assert_eq!(header.to_bytes(), expected);
                prop_assert_eq!($header::from_bytes(&expected), header);

                let mut out = [0xEE; $header::LEN + 2];
                prop_assert_eq!(header.emit(&mut out), Some($header::LEN));
                prop_assert_eq!(&out[..$header::LEN], &expected[..]);
                prop_assert_eq!(&out[$header::LEN..], &[0xEE; 2][..]);
                prop_assert_eq!($header::parse(&out), Some(header));
                prop_assert_eq!($header::parse(&out[..$header::LEN - 1]), None);
                let mut short = [0xEE; $header::LEN - 1];
                prop_assert_eq!(header.emit(&mut short), None);
                prop_assert_eq!(short, [0xEE; $header::LEN - 1]);
            })*
        }
    };
}

round_trip! {
    bth: Bth, reserved [0; 12];
    reth: Reth, reserved [0; 16];
    aeth: Aeth, reserved [0; 4];
    atomic_eth: AtomicEth, reserved [0; 28];
    atomic_ack_eth: AtomicAckEth, reserved [0; 8];
    imm_dt: ImmDt, reserved [0; 4];
    ieth: Ieth, reserved [0; 4];
    deth: Deth, reserved [0, 0, 0, 0, 0xFF, 0, 0, 0];
    xrc_eth: XrcEth, reserved [0xFF, 0, 0, 0];
    rdeth: Rdeth, reserved [0xFF, 0, 0, 0];
    feth: Feth, reserved [0xFF, 0xFF, 0xFF, 0xC0];
}

proptest! {
    #[test]
    fn ethernet(dmac: [u8; 6], smac: [u8; 6], tag: Option<u16>, ethertype: u16) {
        prop_assume!(ethertype != wire::ethertype::VLAN);
        let header = EthernetHeader { dmac: Mac(dmac), smac: Mac(smac), vlan: tag.map(Vlan::from_tci), ethertype };
        let mut bytes = [0; EthernetHeader::MAX_LEN];
        prop_assert_eq!(header.emit(&mut bytes), Some(header.len()));
        prop_assert_eq!(EthernetHeader::parse(&bytes[..header.len()]), Some(header));
        prop_assert_eq!(EthernetHeader::parse(&bytes[..header.len() - 1]), None);
        prop_assert_eq!(header.emit(&mut bytes[..header.len() - 1]), None);
        prop_assert_eq!(header.vlan.map(Vlan::tci), tag);
    }

    #[test]
    fn ipv4(mut bytes: [u8; 20]) {
        bytes[0] = 0x45;
        bytes[6] &= 0x7F; // reserved flag
        prop_assert_eq!(Ipv4Header::from_bytes(&bytes).to_bytes(), bytes);
    }

    #[test]
    fn ipv6(mut bytes: [u8; 40]) {
        bytes[0] = 0x60 | bytes[0] & 0x0F;
        prop_assert_eq!(Ipv6Header::from_bytes(&bytes).to_bytes(), bytes);
    }

    #[test]
    fn udp(bytes: [u8; 8]) {
        prop_assert_eq!(UdpHeader::from_bytes(&bytes).to_bytes(), bytes);
    }
}

/// Fields wider than their place must not spill into their neighbours.
#[test]
fn too_wide_fields_are_cut() {
    let bth =
        Bth { pad_count: 4, tver: 16, resv6: 64, resv7: 128, ..Bth::new(Opcode(4), Qpn::GSI, Psn::new(0)) };
    assert_eq!(bth.to_bytes(), Bth { pad_count: 0, tver: 0, resv6: 0, resv7: 0, ..bth }.to_bytes());
    assert_eq!(Feth { plt: 0x12, sel: 5 }.to_bytes(), [0, 0, 0, 0x12]);
    assert_eq!(XrcEth { srqn: 0x0100_0001 }.to_bytes(), [0, 0, 0, 1]);
}

#[test]
fn a_cnp_is_the_captured_one() {
    let captured = crate::support::vector("cnp_connectx4lx_capture");
    let frame = captured.parse();
    assert_eq!(frame.bth(), Bth::cnp(Qpn::new(0x118)));
    assert_eq!(&captured.frame[frame.payload_offset()..frame.icrc_offset()], &CNP_BODY);
}

#[test]
fn extension_headers_stand_in_order() {
    let reth = Reth { va: 1, rkey: RKey::new(2), dma_len: 3 };
    let ext = ExtHeaders::EMPTY.with(XrcEth { srqn: 9 }).with(reth).with(ImmDt(*b"abcd"));
    let expected = [&[0, 0, 0, 9][..], &reth.to_bytes(), b"abcd"].concat();
    assert_eq!((ext.as_bytes(), ext.len()), (&expected[..], 24));
    assert!(ExtHeaders::default().is_empty() && !ext.is_empty());
}
