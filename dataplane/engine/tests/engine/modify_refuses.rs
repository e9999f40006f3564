//! What a modify refuses, that its words say what to do, and that a refused one changes nothing.

use crate::support::*;
use engine::qp::{ModifyError, rule};
use engine::{QpAttr, QpAttrMask as M, QpState, QpType};
use wire::{Gid, Mtu, Qpn};

/// Tries a move with everything it requires plus `extra`, after `spoil`; nothing may have changed.
fn refused(
    qp_type: QpType,
    from: QpState,
    to: QpState,
    extra: M,
    spoil: impl Fn(&mut QpAttr),
) -> ModifyError {
    let mut one = One::in_state(qp_type, from);
    let required = rule(qp_type, from, to).map(|rule| rule.required).unwrap_or_default();
    let mut attr = QpAttr { state: to, ..good() };
    spoil(&mut attr);
    // The QP's attributes differ from those offered, so that a change would show.
    let before = format!("{:?}", one.attr());
    let error = one.modify(&attr, required | extra | M::STATE).expect_err("a refusal");
    assert_eq!(format!("{:?}", one.attr()), before, "{error}");
    assert_eq!(one.shared.state(), from);
    error
}

#[test]
fn each_required_attribute_is_asked_for_by_name() {
    for (qp_type, from, to) in [
        (QpType::Rc, QpState::Reset, QpState::Init),
        (QpType::Ud, QpState::Reset, QpState::Init),
        (QpType::Rc, QpState::Init, QpState::Rtr),
        (QpType::Uc, QpState::Init, QpState::Rtr),
        (QpType::Rc, QpState::Rtr, QpState::Rts),
        (QpType::Ud, QpState::Rtr, QpState::Rts),
    ] {
        let required = rule(qp_type, from, to).expect("a move").required;
        for missing in required.iter() {
            let mut one = One::in_state(qp_type, from);
            let error = one.modify(&QpAttr { state: to, ..good() }, required.difference(missing) | M::STATE);
            assert_eq!(error, Err(ModifyError::Missing { from, to, missing }));
            assert!(error.unwrap_err().to_string().contains(missing.iter_names().next().unwrap().0));
            assert_eq!(one.state(), from);
        }
    }
}

#[test]
fn each_attribute_that_a_move_does_not_take_is_named() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for (from, to) in [
            (QpState::Reset, QpState::Init),
            (QpState::Init, QpState::Init),
            (QpState::Init, QpState::Rtr),
            (QpState::Rtr, QpState::Rts),
            (QpState::Rts, QpState::Rts),
            (QpState::Rts, QpState::Sqd),
            (QpState::Sqd, QpState::Sqd),
            (QpState::Sqd, QpState::Reset),
            (QpState::Sqd, QpState::Err),
        ] {
            let known = rule(qp_type, from, to).expect("a move");
            for extra in M::all().difference(known.required | known.optional | M::STATE | M::ALT_PATH).iter()
            {
                let error = refused(qp_type, from, to, extra, |attr| attr.cur_state = from);
                // A wrong CUR_STATE may be told before the masks are looked at.
                if extra != M::CUR_STATE {
                    assert_eq!(error, ModifyError::Forbidden { from, to, extra }, "{qp_type:?}");
                }
            }
        }
    }
}

#[test]
fn bits_that_mean_nothing_are_refused() {
    let extra = M::from_bits_retain(1 << 25);
    let error = refused(QpType::Rc, QpState::Init, QpState::Rtr, extra, |_| ());
    assert_eq!(error, ModifyError::Forbidden { from: QpState::Init, to: QpState::Rtr, extra });
    assert!(error.to_string().contains("0x2000000"), "{error}");
}

#[test]
fn moves_that_do_not_exist() {
    for (qp_type, from, to) in [
        (QpType::Rc, QpState::Reset, QpState::Err),
        (QpType::Rc, QpState::Reset, QpState::Rts),
        (QpType::Rc, QpState::Init, QpState::Rts),
        (QpType::Uc, QpState::Rts, QpState::Rtr),
        (QpType::Ud, QpState::Rts, QpState::Sqe),
        (QpType::Rc, QpState::Err, QpState::Rts),
    ] {
        assert_eq!(
            refused(qp_type, from, to, M::empty(), |_| ()),
            ModifyError::Transition { qp_type, from, to }
        );
    }
}

#[test]
fn values_out_of_range() {
    use QpState::{Init, Reset, Rtr, Rts};
    let rtr = |spoil: fn(&mut QpAttr)| refused(QpType::Rc, Init, Rtr, M::empty(), spoil);
    let rts = |spoil: fn(&mut QpAttr)| refused(QpType::Rc, Rtr, Rts, M::empty(), spoil);
    let out = |attribute, given, max| ModifyError::OutOfRange { attribute, given, max };

    let init = |spoil: fn(&mut QpAttr)| refused(QpType::Rc, Reset, Init, M::empty(), spoil);
    assert_eq!(init(|attr| attr.pkey_index = 1), ModifyError::PKeyIndex(1));
    assert_eq!(init(|attr| attr.port = 2), ModifyError::Port(2));
    assert_eq!(init(|attr| attr.port = 0), ModifyError::Port(0));

    let too_wide = ModifyError::PathMtu { given: Mtu::Mtu4096, port: Mtu::Mtu2048 };
    assert_eq!(rtr(|attr| attr.path_mtu = Mtu::Mtu4096), too_wide);
    assert_eq!(rtr(|attr| attr.min_rnr_timer = 32), out(M::MIN_RNR_TIMER, 32, 31));
    assert_eq!(rtr(|attr| attr.max_dest_rd_atomic = 129), out(M::MAX_DEST_RD_ATOMIC, 129, 128));
    assert_eq!(rtr(|attr| attr.dest_qpn = Qpn::new(0)), ModifyError::DestQpn(Qpn::SMI));
    assert_eq!(rtr(|attr| attr.dest_qpn = Qpn::MULTICAST), ModifyError::DestQpn(Qpn::MULTICAST));

    assert_eq!(rts(|attr| attr.timeout = 32), out(M::TIMEOUT, 32, 31));
    assert_eq!(rts(|attr| attr.retry_cnt = 8), out(M::RETRY_CNT, 8, 7));
    assert_eq!(rts(|attr| attr.rnr_retry = 8), out(M::RNR_RETRY, 8, 7));
    assert_eq!(rts(|attr| attr.max_rd_atomic = 129), out(M::MAX_RD_ATOMIC, 129, 128));
}

#[test]
fn the_last_good_value_is_taken() {
    let mut one = One::in_state(QpType::Rc, QpState::Init);
    let mut attr = good();
    (attr.path_mtu, attr.min_rnr_timer, attr.max_dest_rd_atomic) = (Mtu::Mtu2048, 31, 128);
    (attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.max_rd_atomic) = (31, 7, 7, 128);
    for to in [QpState::Rtr, QpState::Rts] {
        let required = rule(QpType::Rc, one.state(), to).expect("a move").required;
        attr.state = to;
        assert_eq!(one.modify(&attr, required | M::STATE), Ok(to));
    }
}

#[test]
fn paths_that_lead_nowhere() {
    let rtr = |spoil: fn(&mut QpAttr)| refused(QpType::Uc, QpState::Init, QpState::Rtr, M::empty(), spoil);
    let to = |dst| wire::Addressing { dst, ..path() };
    assert_eq!(rtr(|attr| attr.path = None), ModifyError::NoPath);
    let group = Gid::from_v4([239, 1, 2, 3]);
    assert_eq!(
        rtr(|attr| attr.path.as_mut().unwrap().dst = Gid::from_v4([239, 1, 2, 3])),
        ModifyError::PathGid(group)
    );
    let nobody = Gid::UNSPECIFIED;
    assert_eq!(rtr(|attr| attr.path.as_mut().unwrap().src = Gid::UNSPECIFIED), ModifyError::PathGid(nobody));
    let mixed = to("fd00::1".parse().unwrap());
    let mut one = One::in_state(QpType::Uc, QpState::Init);
    let required = rule(QpType::Uc, QpState::Init, QpState::Rtr).unwrap().required;
    let attr = QpAttr { state: QpState::Rtr, path: Some(mixed), ..good() };
    assert_eq!(one.modify(&attr, required | M::STATE), Err(ModifyError::PathFamilies(wire::MixedFamilies)));
}

#[test]
fn the_alternate_path_is_refused_by_name() {
    let error = refused(QpType::Rc, QpState::Init, QpState::Rtr, M::ALT_PATH, |_| ());
    assert_eq!(error, ModifyError::AltPath);
}

#[test]
fn the_current_state_guards() {
    use QpState::*;
    let given = |cur_state, from, to| {
        refused(QpType::Rc, from, to, M::CUR_STATE, |attr: &mut QpAttr| attr.cur_state = cur_state)
    };
    assert_eq!(given(Rts, Rtr, Rts), ModifyError::CurState { given: Rts, actual: Rtr });
    assert_eq!(given(Sqd, Rts, Rts), ModifyError::CurState { given: Sqd, actual: Rts });
    assert_eq!(given(Init, Init, Rtr), ModifyError::CurStateNotAllowed(Init));
    assert_eq!(given(Err, Err, Reset), ModifyError::CurStateNotAllowed(Err));

    let mut one = One::in_state(QpType::Rc, Rtr);
    let required = rule(QpType::Rc, Rtr, Rts).unwrap().required;
    let attr = QpAttr { state: Rts, cur_state: Rtr, ..good() };
    assert_eq!(one.modify(&attr, required | M::STATE | M::CUR_STATE), Ok(Rts));
}

#[test]
fn there_is_no_such_qp() {
    let mut one = One::new(QpType::Rc);
    let result = one.engine.modify_qp(0, PEER, &good(), M::STATE);
    assert_eq!(result, Err(ModifyError::UnknownQp(PEER)));
}
