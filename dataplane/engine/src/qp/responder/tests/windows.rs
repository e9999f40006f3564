//! What a peer may do through a memory window, and SEND with Invalidate of every kind of key.

use super::help::*;
use crate::mw::{MemoryWindow, MwType};
use crate::wr::Bind;
use crate::{KeyUser, MrTable, PdId};
use std::sync::Arc;
use wire::Feth;

const ME: KeyUser = KeyUser { pd: PD, qpn: QPN };
const REMOTE: Access =
    Access::REMOTE_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC).union(Access::FLUSH_GLOBAL);

/// A window over bytes 64..128 of the region, bound by this queue pair.
fn window(rig: &mut Rig, region: &Region, mw_type: MwType, by: KeyUser, access: Access) -> Arc<MemoryWindow> {
    let mw = rig.window(by.pd, mw_type);
    let mut keys = MrTable::new(2);
    keys.insert(Arc::clone(&region.mr));
    keys.insert_window(Arc::clone(&mw));
    let (key, to) = (RKey::new(mw.key()), Some(region.binding(64, 64, access)));
    keys.bind(&Bind { mw: Arc::clone(&mw), key, to }, by).unwrap();
    mw
}

fn target(rig: &mut Rig) -> Region {
    rig.region(1024, Access::LOCAL_WRITE | Access::MW_BIND)
}

/// The requests of every kind that touch memory, at this address, with this key.
fn requests(rig: &Rig, va: u64, rkey: RKey) -> Vec<(Access, Packet)> {
    let reth = |len| Reth { va, rkey, dma_len: len };
    let atomic = AtomicEth { va, rkey, swap_or_add: 1, compare: 0 };
    let packet = |op, data: &[u8]| rig.packet(op, Only, FIRST, data);
    vec![
        (Access::REMOTE_WRITE, packet(Write, &[1; 8]).with(reth(8)).ack_req()),
        (Access::REMOTE_READ, packet(ReadRequest, &[]).with(reth(8))),
        (Access::REMOTE_ATOMIC, packet(FetchAdd, &[]).with(atomic)),
        (Access::REMOTE_WRITE, packet(AtomicWrite, &[1; 8]).with(reth(8))),
        (Access::FLUSH_GLOBAL, packet(Flush, &[]).with(Feth { plt: 1, sel: 0 }).with(reth(8))),
        (Access::FLUSH_GLOBAL, packet(Flush, &[]).with(Feth { plt: 1, sel: 1 }).with(reth(8))),
    ]
}

fn is_refused(sent: &[Packet]) -> bool {
    sent[0].syndrome() == Some(Syndrome::Nak(NakCode::RemoteAccess))
}

#[test]
fn every_operation_goes_through_a_window_that_grants_it() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        for i in 0..6 {
            let mut rig = Rig::new(QpType::Rc);
            let region = target(&mut rig);
            let mw = window(&mut rig, &region, mw_type, ME, REMOTE);
            let (_, packet) = requests(&rig, region.addr + 72, RKey::new(mw.key())).swap_remove(i);
            let before = rig.memory.content(region.id);
            let sent = rig.answer(&packet);
            assert!(!is_refused(&sent), "{:?}", packet.kind());
            let after = rig.memory.content(region.id);
            assert_eq!(before[..72], after[..72]);
            assert_eq!(before[80..], after[80..]);
            assert_eq!(before[72..80] != after[72..80], i == 0 || i == 2 || i == 3);
        }
    }
}

/// The last of them leaves the window, and runs into its end.
#[test]
fn writes_that_follow_one_another_go_through_a_window() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        let together = both_ways("window", |runs| {
            let mut rig = Rig::new(QpType::Rc);
            let region = target(&mut rig);
            let mw = window(&mut rig, &region, mw_type, ME, REMOTE);
            let write = |n: u32| {
                let va = region.addr + 64 + u64::from(n) * 16;
                let to = Reth { va, rkey: RKey::new(mw.key()), dma_len: 16 };
                rig.packet(Write, Only, FIRST + n, &[n as u8 + 1; 16]).with(to).ack_req()
            };
            let packets: Vec<_> = (0..5).map(write).collect();
            let together = if runs { rig.deliver_runs(&packets) } else { 0 };
            if !runs {
                packets.iter().for_each(|packet| rig.deliver_in_burst(packet));
            }
            rig.end_burst();
            (together, seen(&mut rig))
        });
        assert_eq!(together, 3);
    }
}

#[test]
fn each_right_of_a_window_stands_for_itself() {
    let rights = [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC, Access::FLUSH_GLOBAL];
    for granted in rights {
        for i in 0..6 {
            let mut rig = Rig::new(QpType::Rc);
            let region = target(&mut rig);
            let mw = window(&mut rig, &region, MwType::Type2, ME, granted);
            let (needed, packet) = requests(&rig, region.addr + 72, RKey::new(mw.key())).swap_remove(i);
            assert_eq!(is_refused(&rig.answer(&packet)), needed != granted, "{:?}", packet.kind());
        }
    }
}

#[test]
fn nothing_beside_the_window_is_reached() {
    for (offset, inside) in [(56, false), (60, false), (64, true), (120, true), (124, false), (128, false)] {
        let mut rig = Rig::new(QpType::Rc);
        let region = target(&mut rig);
        let mw = window(&mut rig, &region, MwType::Type2, ME, REMOTE);
        let (_, packet) = requests(&rig, region.addr + offset, RKey::new(mw.key())).swap_remove(0);
        assert_eq!(is_refused(&rig.answer(&packet)), !inside, "{offset}");
    }
}

#[test]
fn a_window_of_another_queue_pair_or_domain_is_out_of_reach() {
    let (other_qp, other_pd) = (KeyUser { qpn: PEER_QPN, ..ME }, KeyUser { pd: PdId(9), ..ME });
    for (mw_type, by, allowed) in [
        (MwType::Type1, other_qp, true),
        (MwType::Type2, other_qp, false),
        (MwType::Type1, other_pd, false),
        (MwType::Type2, other_pd, false),
    ] {
        let mut rig = Rig::new(QpType::Rc);
        let region = rig.region_of(by.pd, 1024, Access::LOCAL_WRITE | Access::MW_BIND);
        let mw = window(&mut rig, &region, mw_type, by, REMOTE);
        let before = rig.memory.snapshot();
        let (_, packet) = requests(&rig, region.addr + 72, RKey::new(mw.key())).swap_remove(0);
        assert_eq!(is_refused(&rig.answer(&packet)), !allowed, "{mw_type:?} {by:?}");
        assert_eq!(rig.memory.snapshot() == before, !allowed);
    }
}

/// A READ that is being answered stops when its window is taken away, as it does for a region.
#[test]
fn a_read_whose_window_is_invalidated_ends_with_a_nak() {
    let mut rig = Rig::new(QpType::Rc);
    let region = target(&mut rig);
    let mw = rig.window(PD, MwType::Type2);
    let mut keys = MrTable::new(2);
    keys.insert(Arc::clone(&region.mr));
    keys.insert_window(Arc::clone(&mw));
    let (key, to) = (RKey::new(mw.key()), Some(region.binding(0, 1024, REMOTE)));
    keys.bind(&Bind { mw: Arc::clone(&mw), key, to }, ME).unwrap();
    let reth = Reth { va: region.addr, rkey: key, dma_len: 1024 };
    rig.deliver(&rig.packet(ReadRequest, Only, FIRST, &[]).with(reth));
    assert_eq!(rig.sent_into(2).len(), 2);
    keys.invalidate(key, ME).unwrap();
    assert_eq!(acks(&rig.sent()), [nak(NakCode::RemoteAccess, FIRST + 2, 1)]);
    assert_failed(&mut rig);
}

#[test]
fn uc_writes_through_a_window_of_its_own() {
    for (by, written) in [(ME, true), (KeyUser { qpn: PEER_QPN, ..ME }, false)] {
        let mut rig = Rig::new(QpType::Uc);
        let region = target(&mut rig);
        let mw = window(&mut rig, &region, MwType::Type2, by, REMOTE);
        let reth = Reth { va: region.addr + 64, rkey: RKey::new(mw.key()), dma_len: 3 };
        rig.deliver(&rig.packet(Write, Only, FIRST, b"new").with(reth));
        assert_eq!(&rig.memory.content(region.id)[64..67] == b"new", written);
        assert_eq!(rig.dropped(DropReason::UcAccess), u64::from(!written));
    }
}

fn send_inv(rig: &mut Rig, rkey: RKey) -> Vec<Packet> {
    rig.post_recv(1, &[]);
    rig.answer(&rig.packet(SendInv, Only, FIRST, &[]).with(Ieth { rkey }).ack_req())
}

#[test]
fn a_send_frees_a_window_of_type_2_and_its_completion_says_so() {
    let mut rig = Rig::new(QpType::Rc);
    let region = target(&mut rig);
    let mw = window(&mut rig, &region, MwType::Type2, ME, REMOTE);
    let key = RKey::new(mw.key());
    assert_eq!(acks(&send_inv(&mut rig, key)), [ack(FIRST, 1)]);
    let cqe = rig.recv_cqes()[0];
    assert_eq!((cqe.status, cqe.invalidated), (WcStatus::Success, Some(key)));
    assert_eq!((mw.is_bound(), region.mr.windows()), (false, 0));
    // The duplicate finds nothing to invalidate, and nothing is wrong with that.
    let again = rig.packet(SendInv, Only, FIRST, &[]).with(Ieth { rkey: key });
    assert_eq!(acks(&rig.answer(&again)), [ack(FIRST, 1)]);
}

/// rocev2 facts, transport 18: neither windows of type 1 nor ordinary regions; nor what is not the queue pair's own.
#[test]
fn what_a_send_may_not_invalidate_is_refused_and_stays() {
    type Make = fn(&mut Rig) -> (RKey, Box<dyn Fn() -> bool>);
    fn bound(rig: &mut Rig, mw_type: MwType, by: KeyUser) -> (RKey, Box<dyn Fn() -> bool>) {
        let region = rig.region_of(by.pd, 1024, Access::LOCAL_WRITE | Access::MW_BIND);
        let mw = window(rig, &region, mw_type, by, REMOTE);
        (RKey::new(mw.key()), Box::new(move || mw.is_bound()))
    }
    let cases: [(&str, Make); 8] = [
        ("a window of type 1", |rig| bound(rig, MwType::Type1, ME)),
        ("another queue pair's window", |rig| bound(rig, MwType::Type2, KeyUser { qpn: PEER_QPN, ..ME })),
        ("another domain's window", |rig| bound(rig, MwType::Type2, KeyUser { pd: PdId(9), ..ME })),
        ("an ordinary region", |rig| {
            let region = rig.region(64, ALL);
            (region.rkey(), Box::new(move || region.mr.is_valid()))
        }),
        ("another domain's fast region", |rig| {
            let id = rig.memory.add(vec![0; 64]);
            let mr = Arc::new(crate::MemoryRegion::fast(PdId(9), id, 0x7700, 64));
            mr.register(PdId(9), RKey::new(0x7700), 0, 64, ALL).unwrap();
            rig.engine.add_mr(Arc::clone(&mr));
            (RKey::new(0x7700), Box::new(move || mr.is_valid()))
        }),
        ("a fast region with windows", |rig| {
            let region = rig.fast_region(1024, Access::LOCAL_WRITE | Access::MW_BIND);
            window(rig, &region, MwType::Type1, ME, REMOTE);
            (region.rkey(), Box::new(move || region.mr.is_valid()))
        }),
        ("a key byte of another life", |rig| {
            let (key, there) = bound(rig, MwType::Type2, ME);
            (RKey::new(key.value() ^ 1), there)
        }),
        ("nobody's key", |_| (RKey::new(0xBAD_0000), Box::new(|| true))),
    ];
    for (what, make) in cases {
        let mut rig = Rig::new(QpType::Rc);
        let (key, still_there) = make(&mut rig);
        let before = rig.memory.snapshot();
        assert_eq!(acks(&send_inv(&mut rig, key)), [nak(NakCode::RemoteAccess, FIRST, 0)], "{what}");
        let cqe = rig.recv_cqes()[0];
        assert_eq!(
            (cqe.status, cqe.vendor_err),
            (WcStatus::RemInvReqErr, Fault::InvalidateRefused as u32),
            "{what}"
        );
        assert!(still_there(), "{what}");
        assert_eq!(rig.memory.snapshot(), before);
        assert_failed(&mut rig);
    }
}

#[test]
fn a_window_that_is_free_cannot_be_invalidated() {
    let mut rig = Rig::new(QpType::Rc);
    let mw = rig.window(PD, MwType::Type2);
    assert_eq!(acks(&send_inv(&mut rig, RKey::new(mw.key()))), [nak(NakCode::RemoteAccess, FIRST, 0)]);
    assert_failed(&mut rig);
}
