//! Messages of several packets: First, Middle, Last, and what goes into which.

use super::*;

#[test]
fn a_send_is_cut_at_the_path_mtu() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    let sent = rig.sent();
    assert_eq!(show(&sent), ["100 SEND First 256", "101 SEND Middle 256", "102 SEND Last 88 A"]);
    let bytes: Vec<u8> = sent.iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!(bytes, pattern(0, 600));
}

#[test]
fn a_multiple_of_the_mtu_has_a_full_last_packet() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 512)]));
    rig.post_send(wr(2, SendOp::Send, &[region.sge(0, 256)]));
    sends(&mut rig, &["100 SEND First 256", "101 SEND Last 256 A", "102 SEND Only 256 A"]);
}

#[test]
fn the_reth_is_in_the_first_packet_and_the_immediate_in_the_last() {
    let (mut rig, region) = rc();
    let write = wr(1, SendOp::WriteImm(REMOTE, [1, 2, 3, 4]), &[region.sge(0, 513)]);
    rig.post_send(with_flags(write, SendFlags::SOLICITED));
    sends(
        &mut rig,
        &[
            "100 WRITE First 256 @7f000000+513",
            "101 WRITE Middle 256",
            "102 WRITE Last w/ Imm 1 A SE imm([1, 2, 3, 4])",
        ],
    );
}

#[test]
fn the_key_to_invalidate_is_in_the_last_packet() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::SendInv(RKey::new(0x99)), &[region.sge(0, 257)]));
    sends(&mut rig, &["100 SEND First 256", "101 SEND Last w/ Inv 1 A inv(99)"]);
}

#[test]
fn packets_cross_sges() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 200), region.sge(1000, 100), region.sge(2000, 300)]));
    let bytes: Vec<u8> = rig.sent().iter().flat_map(|packet| packet.payload.clone()).collect();
    assert_eq!(bytes, [pattern(0, 200), pattern(1000, 100), pattern(2000, 300)].concat());
}

#[test]
fn a_read_takes_a_psn_for_each_response() {
    let (mut rig, region) = rc();
    rig.post_send(wr(1, SendOp::Read(REMOTE), &[region.sge(0, 600)]));
    rig.post_send(wr(2, SendOp::Send, &[]));
    sends(&mut rig, &["100 READ Request 0 A @7f000000+600", "103 SEND Only 0 A"]);
}

#[test]
fn psns_wrap_inside_a_message() {
    let attr = QpAttr { sq_psn: wire::Psn::new(0xFF_FFFF), ..attributes() };
    let (mut rig, region) = rc_with(attr);
    rig.post_send(wr(1, SendOp::Send, &[region.sge(0, 600)]));
    sends(&mut rig, &["ffffff SEND First 256", "0 SEND Middle 256", "1 SEND Last 88 A"]);
    ack(&mut rig, 0xFF_FFFF);
    completes(&rig, &[]);
    ack(&mut rig, 1);
    completes(&rig, &[(1, WcStatus::Success)]);
}
