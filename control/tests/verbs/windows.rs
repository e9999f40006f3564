//! Memory windows of both types, and SEND with Invalidate of them.

use crate::support::{ALL, End, Pair, bytes, devices, end, family};
use rockhopper::{
    Access, BindMwError, ConnectOptions, DeregisterError, Mr, Mw, MwType, QpType, RKey, RecvWr, RingPair,
    SendWr, WcFlags, WcOpcode, WcStatus,
};

const WRITE: Access = Access::REMOTE_WRITE;
const WINDOWS: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);

/// A region at `b` that gives peers nothing by its own key, and a window.
fn at_b(pair: &Pair, mw_type: MwType) -> (Mr, Mw) {
    let pd = &pair.b.pd;
    (pd.reg_mr(8192, WINDOWS).unwrap(), pd.alloc_mw(mw_type).unwrap())
}

#[track_caller]
fn bound(pair: &Pair) {
    let done = pair.at_b();
    assert_eq!((done.status, done.opcode), (WcStatus::Success, WcOpcode::BindMw));
}

#[test]
fn a_window_of_type_1_changes_its_key_with_each_bind() {
    let pair = Pair::new(QpType::Rc);
    let (region, mw) = at_b(&pair, MwType::Type1);
    assert_eq!((mw.is_bound(), mw.remote()), (false, None));
    let mut old: Option<RKey> = None;
    for turn in 0..3 {
        let piece = region.window(turn * 100..turn * 100 + 50, WRITE);
        let key = pair.b.qp.bind_mw(1, &mw, Some(&piece)).unwrap();
        bound(&pair);
        assert_eq!((mw.rkey(), mw.is_bound(), region.windows()), (key, true, 1));
        assert_ne!(old, Some(key));
        let remote = mw.remote().unwrap();
        assert_eq!((remote.len, remote.rkey), (50, key.value()));
        pair.a.qp.post_send(SendWr::write(2, remote.at(0)).inline(b"through")).unwrap();
        assert!(pair.at_a().is_success());
        assert_eq!(bytes(&region, turn * 100, 7), b"through");
        old = Some(key);
    }
    let last = mw.remote().unwrap();
    pair.b.qp.bind_mw(3, &mw, None).unwrap();
    bound(&pair);
    assert_eq!((mw.is_bound(), region.windows()), (false, 0));
    pair.a.qp.post_send(SendWr::write(4, last.at(0)).inline(b"late")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
    assert_eq!(bytes(&region, 200, 7), b"through");
}

#[test]
fn a_window_of_type_2_lives_from_bind_to_invalidation() {
    let pair = Pair::new(QpType::Rc);
    let (region, mw) = at_b(&pair, MwType::Type2);
    let mut offset = 0;
    for (byte, zero_based) in [(1, false), (2, true), (2, false)] {
        offset += 64;
        let extra = if zero_based { Access::ZERO_BASED } else { Access::empty() };
        let piece = region.window(offset..offset + 32, WRITE | extra);
        pair.b.qp.post_send(SendWr::bind_mw(1, &mw, byte, &piece)).unwrap();
        bound(&pair);
        let remote = mw.remote().unwrap();
        assert_eq!((remote.addr == 0, remote.len), (zero_based, 32));
        assert_eq!((mw.rkey(), mw.rkey().value() & 0xFF), (mw.key_with(byte), byte.into()));
        pair.a.qp.post_send(SendWr::write(2, remote.at(4)).inline(&[byte; 28]).unsignaled()).unwrap();
        pair.b.qp.post_recv(RecvWr::new(3)).unwrap();
        pair.a.qp.post_send(SendWr::send_inv(3, mw.rkey())).unwrap();
        assert!(pair.at_a().is_success());
        let received = pair.at_b();
        assert_eq!((received.invalidated, received.flags()), (Some(mw.rkey()), WcFlags::WITH_INV));
        assert_eq!((mw.is_bound(), region.windows()), (false, 0));
        assert_eq!(bytes(&region, offset + 4, 28), [byte; 28]);
    }
    // Or by its own side.
    pair.b.qp.post_send(SendWr::bind_mw(4, &mw, 7, &region.window(0..8, WRITE))).unwrap();
    bound(&pair);
    let remote = mw.remote().unwrap();
    pair.b.qp.post_send(SendWr::local_inv(5, mw.key_with(7))).unwrap();
    assert_eq!(pair.at_b().opcode, WcOpcode::LocalInv);
    assert!(!mw.is_bound());
    pair.a.qp.post_send(SendWr::write(6, remote.at(0)).inline(b"late")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}

#[test]
fn a_bind_that_the_region_does_not_allow_ends_with_a_bind_error() {
    type Post = fn(&End, &Mr, &Mw);
    let outside: Post =
        |b, mr, mw| b.qp.post_send(SendWr::bind_mw(1, mw, 1, &mr.window(8000..8193, WRITE))).unwrap();
    let no_right: Post = |b, _, mw| {
        let plain = b.pd.reg_mr(64, ALL).unwrap();
        b.qp.post_send(SendWr::bind_mw(1, mw, 1, &plain.window(0..64, WRITE))).unwrap();
    };
    let read_only: Post = |b, _, mw| {
        let constant = b.pd.reg_mr(64, Access::MW_BIND).unwrap();
        b.qp.post_send(SendWr::bind_mw(1, mw, 1, &constant.window(0..64, Access::REMOTE_ATOMIC))).unwrap();
        // It is registered until the request was executed.
        assert_eq!(b.cq.wait(crate::support::SOON).unwrap().status, WcStatus::MwBindErr);
        b.qp.post_send(SendWr::send(1)).unwrap();
    };
    let foreign: Post = |b, _, mw| {
        let foreign = b.device.alloc_pd().reg_mr(64, WINDOWS).unwrap();
        b.qp.post_send(SendWr::bind_mw(1, mw, 1, &foreign.window(0..64, WRITE))).unwrap();
    };
    for post in [outside, no_right, foreign, read_only] {
        let pair = Pair::new(QpType::Rc);
        let (region, mw) = at_b(&pair, MwType::Type2);
        post(&pair.b, &region, &mw);
        let status = pair.at_b().status;
        assert!(matches!(status, WcStatus::MwBindErr | WcStatus::WrFlushErr), "{status:?}");
        assert_eq!((mw.is_bound(), region.windows()), (false, 0));
    }
}

#[test]
fn what_can_be_told_before_the_post_is_told_in_words() {
    let pair = Pair::new(QpType::Rc);
    let (region, two) = at_b(&pair, MwType::Type2);
    let one = pair.b.pd.alloc_mw(MwType::Type1).unwrap();
    let foreign = pair.b.device.alloc_pd();
    let piece = region.window(0..8, WRITE);
    let refused = |mw: &Mw, to| pair.b.qp.bind_mw(1, mw, to).unwrap_err();
    assert_eq!(refused(&two, Some(&piece)), BindMwError::Type);
    assert_eq!(refused(&foreign.alloc_mw(MwType::Type1).unwrap(), Some(&piece)), BindMwError::Pd);
    let theirs = foreign.reg_mr(8, WINDOWS).unwrap().window(0..8, WRITE);
    assert_eq!(refused(&one, Some(&theirs)), BindMwError::Pd);
    let zero_based = region.window(0..8, WRITE | Access::ZERO_BASED);
    assert_eq!(refused(&one, Some(&zero_based)), BindMwError::ZeroBased);
    assert!(BindMwError::Type.to_string().contains("SendWr::bind_mw"));
    assert!(pair.b.cq.poll_one().is_none(), "nothing was posted");
}

#[test]
fn a_region_with_windows_is_not_deregistered() {
    let pair = Pair::new(QpType::Rc);
    let (region, mw) = at_b(&pair, MwType::Type1);
    pair.b.qp.bind_mw(1, &mw, Some(&region.window(0..64, WRITE))).unwrap();
    bound(&pair);
    let refused = region.deregister();
    assert_eq!(refused, Err(DeregisterError::Windows(1)));
    assert!(refused.unwrap_err().to_string().contains("unbind"));
    let remote = mw.remote().unwrap();
    pair.a.qp.post_send(SendWr::write(2, remote.at(0)).inline(b"alive")).unwrap();
    assert!(pair.at_a().is_success());
    // A window that is dropped is bound no more.
    drop(mw);
    assert_eq!((region.windows(), region.deregister(), region.deregister()), (0, Ok(()), Ok(())));
    assert_eq!(bytes(&region, 0, 5), b"alive", "the memory stays");
    pair.a.qp.post_send(SendWr::write(3, remote.at(0)).inline(b"late!")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}

#[test]
fn a_region_that_is_dropped_takes_its_windows_out_of_reach() {
    let pair = Pair::new(QpType::Rc);
    let (region, mw) = at_b(&pair, MwType::Type2);
    pair.b.qp.post_send(SendWr::bind_mw(1, &mw, 1, &region.window(0..64, WRITE))).unwrap();
    bound(&pair);
    let remote = mw.remote().unwrap();
    drop(region);
    pair.a.qp.post_send(SendWr::write(2, remote.at(0)).inline(b"nowhere")).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
}

#[test]
fn a_fast_region_with_a_window_is_not_invalidated() {
    let pair = Pair::new(QpType::Rc);
    let fast = pair.b.pd.alloc_fast_mr(4096).unwrap();
    let mw = pair.b.pd.alloc_mw(MwType::Type2).unwrap();
    pair.b.qp.post_send(SendWr::reg_mr(1, &fast, 9, ALL | Access::MW_BIND)).unwrap();
    assert_eq!(pair.at_b().status, WcStatus::Success);
    pair.b.qp.post_send(SendWr::bind_mw(2, &mw, 1, &fast.window(0..64, WRITE))).unwrap();
    bound(&pair);
    assert_eq!(fast.windows(), 1);
    pair.b.qp.post_recv(RecvWr::new(3)).unwrap();
    pair.a.qp.post_send(SendWr::send_inv(3, fast.key())).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
    assert_eq!(pair.at_b().status, WcStatus::RemInvReqErr);
    assert!(fast.is_valid() && mw.is_bound());
}

/// What a SEND may not invalidate, end to end: the peer is refused and the key stays.
#[test]
fn a_send_that_may_not_invalidate_is_refused() {
    for case in 0..4 {
        let (a, b) = devices(&RingPair::default());
        let options = family(false);
        let pair = Pair::of(&a, &b, QpType::Rc, &options);
        let (region, mw) = at_b(&pair, if case == 1 { MwType::Type1 } else { MwType::Type2 });
        let other = Pair::of(&a, &b, QpType::Rc, &options);
        let key = match case {
            // An ordinary region.
            0 => region.rkey(),
            // A window of type 1.
            1 => {
                pair.b.qp.bind_mw(1, &mw, Some(&region.window(0..64, WRITE))).unwrap();
                bound(&pair);
                mw.rkey()
            }
            // A window that another queue pair of the domain has bound, or one of another domain.
            _ => {
                let qp = match case {
                    2 => second_qp(&pair, &options),
                    _ => other.b.qp.clone(),
                };
                let (region, mw) = if case == 2 { (region, mw) } else { at_b(&other, MwType::Type2) };
                qp.post_send(SendWr::bind_mw(1, &mw, 5, &region.window(0..64, WRITE))).unwrap();
                bound(if case == 2 { &pair } else { &other });
                let key = mw.rkey();
                refused(&pair, key);
                assert!(mw.is_bound(), "{case}");
                continue;
            }
        };
        refused(&pair, key);
        assert_eq!(mw.is_bound(), case == 1);
    }

    fn refused(pair: &Pair, key: RKey) {
        pair.b.qp.post_recv(RecvWr::new(9)).unwrap();
        pair.a.qp.post_send(SendWr::send_inv(9, key)).unwrap();
        assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
        let received = pair.at_b();
        assert_eq!((received.status, received.flags()), (WcStatus::RemInvReqErr, WcFlags::empty()));
    }
}

/// Another queue pair of `b`'s domain, connected to one of `a`.
fn second_qp(pair: &Pair, options: &ConnectOptions) -> rockhopper::Qp {
    let make = |end: &End| end.pd.create_qp(&rockhopper::QpOptions::new(QpType::Rc, &end.cq)).unwrap();
    let (a, b) = (make(&pair.a), make(&pair.b));
    b.connect(&a.info(options), options).unwrap();
    a.connect(&b.info(options), options).unwrap();
    b
}

#[test]
fn windows_are_limited_counted_and_given_back() {
    let (a, _b) = devices(&RingPair::default());
    let most = a.attributes().max_mw;
    let pd = a.alloc_pd();
    let windows: Vec<Mw> = (0..most).map(|_| pd.alloc_mw(MwType::Type2).unwrap()).collect();
    let one_more = pd.alloc_mw(MwType::Type2).unwrap_err();
    assert!(one_more.to_string().contains("memory windows"), "{one_more}");
    assert!(pd.reg_mr(64, ALL).is_ok(), "regions are counted for themselves");
    drop(windows);
    assert!(pd.alloc_mw(MwType::Type2).is_ok());
    drop(end(&a, QpType::Rc));
}

/// Window, region and queue pair of two devices: the same domain numbers mean nothing.
#[test]
fn objects_of_another_device_are_refused() {
    let pair = Pair::new(QpType::Rc);
    let (region, mw) = at_b(&pair, MwType::Type2);
    pair.a.qp.post_send(SendWr::bind_mw(1, &mw, 1, &region.window(0..64, WRITE))).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::MwBindErr);
    assert!(!mw.is_bound());
}
