//! UD: one packet, where and with which key the request says.

use super::*;
use crate::PdId;
use crate::wr::AddressHandle;
use wire::{Addressing, Mac, QKey};

fn to(pd: PdId, qkey: u32, imm: Option<[u8; 4]>) -> SendOp {
    let template = HeaderTemplate::new(&addressing(LOCAL, PEER)).unwrap();
    let ah = Arc::new(AddressHandle::new(pd, PEER, template));
    SendOp::UdSend { ah, remote_qpn: Qpn::new(0x99), qkey: QKey::new(qkey), imm }
}

fn ud() -> (Rig, Region) {
    let mut rig = Rig::with(QpType::Ud, QpState::Rts, attributes());
    let region = rig.region(0x2000, Access::LOCAL_WRITE);
    (rig, region)
}

#[test]
fn datagrams_name_their_destination_key_and_sender() {
    let (mut rig, region) = ud();
    rig.post_send(wr(1, to(PD, 0x55, None), &[region.sge(0, 5)]));
    rig.post_send(wr(2, to(PD, 0x55, Some([1, 2, 3, 4])), &[]));
    let sent = rig.sent();
    assert_eq!(show(&sent), ["100 SEND Only 5 to(55)", "101 SEND Only w/ Imm 0 to(55) imm([1, 2, 3, 4])"]);
    assert_eq!(sent[0].bth.dest_qpn, Qpn::new(0x99));
    assert_eq!(sent[0].header::<Deth>().map(|deth| deth.src_qpn), Some(QPN));
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
}

#[test]
fn a_key_with_the_top_bit_stands_for_the_qps_own() {
    let (mut rig, _) = ud();
    rig.post_send(wr(1, to(PD, 0x8000_0001, None), &[]));
    sends(&mut rig, &["100 SEND Only 0 to(1234)"]);
}

#[test]
fn a_handle_of_another_pd_is_refused() {
    let (mut rig, _) = ud();
    rig.post_send(wr(1, to(PdId(PD.0 + 1), 1, None), &[]));
    sends(&mut rig, &[]);
    completes(&rig, &[(1, WcStatus::LocQpOpErr)]);
    assert_eq!(rig.state(), QpState::Sqe);
}

#[test]
fn above_the_port_mtu_nothing_leaves_and_all_is_well() {
    // IBA C10-93.1.1, as the rocev2 facts cite it.
    let (mut rig, region) = ud();
    rig.post_send(wr(1, to(PD, 1, None), &[region.sge(0, 4097)]));
    rig.post_send(wr(2, to(PD, 1, None), &[region.sge(0, 4096)]));
    sends(&mut rig, &["100 SEND Only 4096 to(1)"]);
    completes(&rig, &[(1, WcStatus::Success), (2, WcStatus::Success)]);
}

#[test]
fn the_address_handle_is_let_go() {
    let (mut rig, _) = ud();
    let op = to(PD, 1, None);
    let SendOp::UdSend { ah, .. } = &op else { panic!("a datagram") };
    let ah = Arc::clone(ah);
    rig.post_send(wr(1, op, &[]));
    rig.sent();
    assert_eq!(Arc::strong_count(&ah), 1);
}

#[test]
fn a_handle_follows_its_station_to_another_mac() {
    let way = addressing(LOCAL, PEER);
    let (old, new, other) = (way.dmac, Mac([2, 0, 0, 0, 0, 0x99]), Mac([2, 0, 0, 0, 0, 0x98]));
    let handle = |way: &Addressing| AddressHandle::new(PD, PEER, HeaderTemplate::new(way).unwrap());
    for udp_sport in [0, 0xC123] {
        let ah = handle(&Addressing { udp_sport, ..way });
        let headers = || ah.headers_of(QPN).unwrap_or(ah.template);
        let port = headers().udp_sport();
        assert!(port != 0 && headers().dmac() == old);
        assert!(!ah.redirect(other, new), "it was never there");
        assert!(ah.redirect(old, new) && !ah.redirect(old, other));
        assert_eq!((ah.dmac(), headers().dmac(), headers().udp_sport()), (new, new, port));
    }
    // Neither what never leaves nor a group has a station that could move.
    for dmac in [way.smac, Mac([1, 0, 0x5E, 0, 0, 1])] {
        assert!(!handle(&Addressing { dmac, ..way }).redirect(dmac, new));
    }
}
