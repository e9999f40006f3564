//! AETH syndromes, credits and RNR timers: the tables of the facts, transport 2 to 4.

use wire::*;

#[test]
fn every_byte_is_a_syndrome_and_comes_back() {
    for byte in 0..=255 {
        let syndrome = Syndrome::from_byte(byte);
        assert_eq!(syndrome.to_byte(), byte);
        let expected = match byte {
            0x00..=0x1F => Syndrome::Ack { credits: byte },
            0x20..=0x3F => Syndrome::RnrNak { timer: byte - 0x20 },
            0x60 => Syndrome::Nak(NakCode::PsnSequence),
            0x61 => Syndrome::Nak(NakCode::InvalidRequest),
            0x62 => Syndrome::Nak(NakCode::RemoteAccess),
            0x63 => Syndrome::Nak(NakCode::RemoteOperational),
            0x64 => Syndrome::Nak(NakCode::InvalidRdRequest),
            _ => Syndrome::Reserved(byte),
        };
        assert_eq!(syndrome, expected);
    }
    assert_eq!(Syndrome::ACK.to_byte(), 0x1F);
    assert_eq!(Syndrome::Ack { credits: 0xFF }.to_byte(), 0x1F);
    assert_eq!(Syndrome::RnrNak { timer: 0xFF }.to_byte(), 0x3F);
}

#[test]
fn rnr_timers_are_those_of_the_facts() {
    #[rustfmt::skip]
    let microseconds = [
        655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10_240,
        15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
    ];
    for (code, microseconds) in microseconds.into_iter().enumerate() {
        assert_eq!(rnr_timer_ns(code as u8), microseconds * 1000, "code {code}");
    }
    assert_eq!(rnr_timer_ns(32), rnr_timer_ns(0), "five bits");
}

#[test]
fn credits_are_those_of_the_facts() {
    for (code, granted) in
        [(0, 0), (1, 1), (2, 2), (3, 3), (5, 6), (7, 12), (9, 24), (15, 192), (23, 3072), (29, 24576)]
    {
        assert_eq!(credits(code), Some(granted));
    }
    for power in 1..=15u8 {
        assert_eq!(credits(2 * power), Some(1 << power), "code is twice the logarithm");
    }
    assert_eq!(credits(CREDITS_UNUSED), None);
}

#[test]
fn a_credit_code_never_grants_too_much() {
    for available in (0..70_000).step_by(if cfg!(miri) { 999 } else { 1 }).chain([u32::MAX]) {
        let code = credit_code(available);
        assert!(credits(code).is_some_and(|granted| granted <= available));
        assert!(credits(code + 1).is_none_or(|more| more > available), "{available} would allow more");
    }
}
