//! Any bytes: parsers say yes or no, and what was read is written so that it reads the same.

use proptest::prelude::*;
use wire::mad::*;

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = CmMad::parse(&bytes);
        let _ = IpAddressing::parse(&bytes);
        let _ = MadHeader::parse(&bytes);
    }

    #[test]
    fn what_was_read_is_written_and_reads_the_same(
        kind in proptest::sample::select(MessageKind::ALL),
        mut bytes in proptest::collection::vec(any::<u8>(), MAD_LEN),
    ) {
        bytes[..4].copy_from_slice(&[1, class::CONNECTION, 2, method::SEND]);
        bytes[16..18].copy_from_slice(&kind.attribute().to_be_bytes());
        let mad = CmMad::parse(&bytes).unwrap();
        prop_assert_eq!(mad.message.kind(), kind);
        prop_assert_eq!(CmMad::parse(&mad.to_bytes()), Ok(mad));
    }

    /// Only reserved bits are lost, and an RTU has none.
    #[test]
    fn no_bit_of_an_rtu_is_lost(mut bytes in proptest::collection::vec(any::<u8>(), MAD_LEN)) {
        bytes[..8].copy_from_slice(&[1, class::CONNECTION, 2, method::SEND, 0, 0, 0, 0]);
        bytes[16..20].copy_from_slice(&[0, MessageKind::Rtu.attribute() as u8, 0, 0]);
        let mad = CmMad::parse(&bytes).unwrap();
        prop_assert_eq!(mad.to_bytes().to_vec(), bytes);
    }

    #[test]
    fn counters_come_out_again(mut bytes in any::<[u8; 72]>()) {
        bytes[0] = 0;
        bytes[4..8].fill(0);
        let counters = PortCountersExtended::from_bytes(&bytes);
        prop_assert_eq!(counters.to_bytes(), bytes);
    }
}
