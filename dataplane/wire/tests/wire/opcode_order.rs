//! Which packet may follow which, and which opcode a packet of a message has.

use wire::*;

fn info(byte: u8) -> &'static OpcodeInfo {
    Opcode(byte).info().expect("a defined opcode")
}

/// All successors of some RC opcodes, from the facts (transport 6): inside a message its own Middle or Last, otherwise any
/// beginning.
#[test]
fn messages_go_on_as_they_began() {
    let successors = |previous: Option<&OpcodeInfo>| -> Vec<u8> {
        OpcodeInfo::all()
            .filter(|info| info.service == Service::Rc && info.may_follow(previous))
            .map(|info| info.opcode.0)
            .collect()
    };
    let beginnings =
        [0x00, 0x04, 0x05, 0x06, 0x0A, 0x0B, 0x0C, 0x0D, 0x10, 0x11, 0x12, 0x13, 0x14, 0x17, 0x1C, 0x1D];
    for send in [0x00, 0x01] {
        assert_eq!(successors(Some(info(send))), [0x01, 0x02, 0x03, 0x16]);
    }
    for write in [0x06, 0x07] {
        assert_eq!(successors(Some(info(write))), [0x07, 0x08, 0x09]);
    }
    for response in [0x0D, 0x0E] {
        assert_eq!(successors(Some(info(response))), [0x0E, 0x0F]);
    }
    for end in
        [0x02, 0x03, 0x04, 0x05, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0F, 0x10, 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D]
    {
        assert_eq!(successors(Some(info(end))), beginnings, "{}", info(end));
    }
    assert_eq!(successors(None), beginnings);
}

#[test]
fn messages_do_not_change_service() {
    assert!(info(0x22).may_follow(Some(info(0x20))));
    assert!(!info(0x22).may_follow(Some(info(0x00))));
}

#[test]
fn every_opcode_is_found_by_its_parts() {
    for info in OpcodeInfo::all() {
        assert_eq!(Opcode::of(info.service, info.operation, info.position), Some(info.opcode), "{info}");
    }
}

/// Immediates and invalidated keys travel in the last packet; before it the message looks like a plain one.
#[test]
fn messages_with_immediate_begin_plainly() {
    use Operation::*;
    use Position::*;
    let of = |service, operation, position| Opcode::of(service, operation, position).map(|opcode| opcode.0);
    for (operation, codes) in [
        (SendImm, [0x00, 0x01, 0x03, 0x05]),
        (SendInv, [0x00, 0x01, 0x16, 0x17]),
        (WriteImm, [0x06, 0x07, 0x09, 0x0B]),
    ] {
        assert_eq!([First, Middle, Last, Only].map(|at| of(Service::Rc, operation, at)), codes.map(Some));
    }
    assert_eq!(of(Service::Uc, WriteImm, First), Some(0x26));
    assert_eq!(of(Service::Xrc, SendInv, Middle), Some(0xA1));
}

#[test]
fn services_refuse_what_they_do_not_have() {
    use Operation::*;
    use Position::*;
    for at in [First, Middle, Last, Only] {
        assert_eq!(Opcode::of(Service::Uc, SendInv, at), None);
        assert_eq!(Opcode::of(Service::Uc, ReadRequest, at), None);
        assert_eq!(Opcode::of(Service::Ud, Write, at), None);
        assert_eq!(Opcode::of(Service::Ud, Send, at).is_some(), at == Only);
        assert_eq!(Opcode::of(Service::Ud, SendImm, at).is_some(), at == Only);
        assert_eq!(Opcode::of(Service::Rc, CompareSwap, at).is_some(), at == Only);
    }
}

#[test]
fn positions_come_from_both_ends() {
    let all = [(true, false), (false, false), (false, true), (true, true)]
        .map(|(begins, ends)| Position::of(begins, ends));
    assert_eq!(all, [Position::First, Position::Middle, Position::Last, Position::Only]);
    assert_eq!(all.map(Position::begins), [true, false, false, true]);
    assert_eq!(all.map(Position::ends), [false, false, true, true]);
}
