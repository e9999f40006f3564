//! The opcode table against the table of the facts (wire 7), written down a second time from there.

use wire::*;

/// operation code, name, header bytes after the BTH on RC, takes a receive WQE, completes one, reply
#[rustfmt::skip]
const FACTS: [(u8, &str, usize, bool, bool, Reply); 25] = [
    (0x00, "SEND First",           0,  true,  false, Reply::Ack),
    (0x01, "SEND Middle",          0,  false, false, Reply::Ack),
    (0x02, "SEND Last",            0,  false, true,  Reply::Ack),
    (0x03, "SEND Last w/ Imm",     4,  false, true,  Reply::Ack),
    (0x04, "SEND Only",            0,  true,  true,  Reply::Ack),
    (0x05, "SEND Only w/ Imm",     4,  true,  true,  Reply::Ack),
    (0x06, "WRITE First",          16, false, false, Reply::Ack),
    (0x07, "WRITE Middle",         0,  false, false, Reply::Ack),
    (0x08, "WRITE Last",           0,  false, false, Reply::Ack),
    (0x09, "WRITE Last w/ Imm",    4,  true,  true,  Reply::Ack),
    (0x0A, "WRITE Only",           16, false, false, Reply::Ack),
    (0x0B, "WRITE Only w/ Imm",    20, true,  true,  Reply::Ack),
    (0x0C, "READ Request",         16, false, false, Reply::ReadResponse),
    (0x0D, "READ Response First",  4,  false, false, Reply::Nothing),
    (0x0E, "READ Response Middle", 0,  false, false, Reply::Nothing),
    (0x0F, "READ Response Last",   4,  false, false, Reply::Nothing),
    (0x10, "READ Response Only",   4,  false, false, Reply::Nothing),
    (0x11, "Acknowledge",          4,  false, false, Reply::Nothing),
    (0x12, "ATOMIC Acknowledge",   12, false, false, Reply::Nothing),
    (0x13, "CmpSwap",              28, false, false, Reply::AtomicAcknowledge),
    (0x14, "FetchAdd",             28, false, false, Reply::AtomicAcknowledge),
    (0x16, "SEND Last w/ Inv",     4,  false, true,  Reply::Ack),
    (0x17, "SEND Only w/ Inv",     4,  true,  true,  Reply::Ack),
    (0x1C, "FLUSH",                20, false, false, Reply::ReadResponse),
    (0x1D, "ATOMIC WRITE",         16, false, false, Reply::ReadResponse),
];

#[test]
fn rc_opcodes_are_as_the_facts_say() {
    for (code, name, ext_len, takes, completes, reply) in FACTS {
        let info = Opcode(code).info().expect("a defined opcode");
        assert_eq!((info.service, info.name(), info.ext_len()), (Service::Rc, name, ext_len));
        assert_eq!((info.takes_receive_wqe(), info.completes_receive_wqe()), (takes, completes), "{info}");
        assert_eq!(info.reply(), reply, "{info}");
        assert_eq!(info.is_response(), (0x0D..=0x12).contains(&code), "{info}");
        assert_eq!(info.is_request(), !info.is_response(), "{info}");
        assert_eq!(info.header_len(), 12 + ext_len);
    }
}

/// The opcode bytes that exist, per service.
#[test]
fn services_have_the_operations_of_the_facts() {
    let defined: Vec<u8> = OpcodeInfo::all().map(|info| info.opcode.0).collect();
    let rc = FACTS.map(|fact| fact.0).to_vec();
    let (uc, rd): (Vec<u8>, Vec<u8>) = ((0x20..=0x2B).collect(), (0x40..=0x55).collect());
    let xrc: Vec<u8> = (0xA0..=0xB4).chain([0xB6, 0xB7]).collect();
    assert_eq!(defined, [rc, uc, rd, vec![0x64, 0x65, 0x81], xrc].concat());
    for opcode in (0..=255).map(Opcode) {
        assert_eq!(opcode.info().is_some(), defined.contains(&opcode.0));
        assert_eq!(
            opcode.info().is_none(),
            opcode.to_string() == format!("reserved opcode {:#04x}", opcode.0)
        );
    }
}

/// The same operation is the same on every service, but for the headers that the service puts in front.
#[test]
fn services_put_their_headers_in_front() {
    for info in OpcodeInfo::all() {
        let (own_len, first) = match (info.service, info.is_response()) {
            (Service::Rc | Service::Uc | Service::Cnp, _) | (Service::Xrc, true) => (0, None),
            (Service::Rd, true) => (4, Some(ExtKind::Rdeth)),
            (Service::Rd, false) => (12, Some(ExtKind::Rdeth)),
            (Service::Ud, _) => (8, Some(ExtKind::Deth)),
            (Service::Xrc, false) => (4, Some(ExtKind::XrcEth)),
        };
        if let Some(first) = first {
            assert_eq!(info.offset_of(first), Some(12), "{info}");
        }
        if let (Some(rc), true) = (Opcode(info.opcode.0 & 0x1F).info(), info.service != Service::Cnp) {
            assert_eq!(info.ext_len(), rc.ext_len() + own_len, "{info}");
            assert_eq!((info.operation, info.position), (rc.operation, rc.position), "{info}");
            assert_eq!(info.name(), rc.name());
        }
    }
}

/// Names of the two rows of their own, and of a service.
#[test]
fn opcodes_print_their_names() {
    let names = [0x09, 0x65, 0x81, 0xB7, 0x55].map(|byte| Opcode(byte).to_string());
    assert_eq!(
        names,
        ["RC WRITE Last w/ Imm", "UD SEND Only w/ Imm", "CNP", "XRC SEND Only w/ Inv", "RD RESYNC"]
    );
}

#[test]
fn headers_follow_each_other_without_gaps() {
    let offsets = |byte: u8, kinds: &[ExtKind]| {
        let info = Opcode(byte).info().expect("a defined opcode");
        kinds.iter().map(|&kind| info.offset_of(kind).expect("the header")).collect::<Vec<_>>()
    };
    use ExtKind::*;
    assert_eq!(offsets(0x0B, &[Reth, ImmDt]), [12, 28]);
    assert_eq!(offsets(0x12, &[Aeth, AtomicAckEth]), [12, 16]);
    assert_eq!(offsets(0x1C, &[Feth, Reth]), [12, 16]);
    assert_eq!(offsets(0x65, &[Deth, ImmDt]), [12, 20]);
    assert_eq!(offsets(0xAB, &[XrcEth, Reth, ImmDt]), [12, 16, 32]);
    assert_eq!(offsets(0x54, &[Rdeth, Deth, AtomicEth]), [12, 16, 24]);
    assert!(Opcode(0x04).info().is_some_and(|info| !info.has(Reth) && !info.has(ImmDt)));
}

/// A CNP is neither request nor response, and is never answered.
#[test]
fn a_cnp_is_nobodys_answer() {
    let cnp = Opcode::CNP.info().expect("a defined opcode");
    assert!(!cnp.is_request() && !cnp.is_response() && !cnp.takes_receive_wqe());
    assert_eq!((cnp.reply(), cnp.ext_len()), (Reply::Nothing, 0));
}

#[test]
fn unreliable_services_answer_nothing() {
    for info in OpcodeInfo::all().filter(|info| matches!(info.service, Service::Uc | Service::Ud)) {
        assert_eq!(info.reply(), Reply::Nothing, "{info}");
    }
}
