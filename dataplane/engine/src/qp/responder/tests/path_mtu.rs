//! A peer that uses another path MTU: refused as any wrong length is, and told apart by two counters.

use super::help::*;
use wire::Mtu;

/// How often it was counted that the peer's path MTU is larger, and smaller.
fn counted(rig: &Rig) -> (u64, u64) {
    (rig.count(Counter::OverPathMtu), rig.count(Counter::UnderPathMtu))
}

/// A QP with a path MTU of 1024, and a receive for the largest packet.
fn rig(qp_type: QpType) -> Rig {
    let mut rig = Rig::with(qp_type, QpState::Rts, QpAttr { path_mtu: Mtu::Mtu1024, ..attributes() });
    let buffer = rig.region(4096, ALL);
    rig.post_recv(1, &[buffer.sge(0, 4096)]);
    rig
}

#[test]
fn what_explains_a_wrong_length_is_counted() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        for (at, len, expected) in [
            (Only, 1024, (0, 0)),
            (First, 1024, (0, 0)),
            (Only, 1025, (1, 0)),
            (First, 2048, (1, 0)),
            (First, 512, (0, 1)),
            (First, 256, (0, 1)),
            // No path MTU is that small: the packet is just wrong.
            (First, 128, (0, 0)),
            (First, 513, (0, 0)),
        ] {
            let mut rig = rig(qp_type);
            let sent = rig.answer(&rig.packet(Send, at, FIRST, &bytes(len)).ack_req());
            assert_eq!(counted(&rig), expected, "{qp_type:?} {at:?} of {len}");
            let refused =
                sent.iter().any(|sent| sent.syndrome() == Some(Syndrome::Nak(NakCode::InvalidRequest)));
            assert_eq!(refused, qp_type == QpType::Rc && len != 1024, "{qp_type:?} {at:?} of {len}");
        }
    }
}

#[test]
fn a_duplicate_and_a_datagram_are_looked_at_too() {
    let mut again = rig(QpType::Rc);
    again.deliver(&again.packet(Send, Only, FIRST - 1, &bytes(2048)));
    assert_eq!((counted(&again), again.dropped(DropReason::UnknownDuplicate)), ((1, 0), 1));
    // The port of the test rig carries 4096.
    let mut datagram = rig(QpType::Ud);
    let deth = Deth { qkey: attributes().qkey, src_qpn: PEER_QPN };
    datagram.deliver(&datagram.packet(Send, Only, FIRST, &bytes(4097)).with(deth));
    assert_eq!((counted(&datagram), datagram.dropped(DropReason::InvalidRequest)), ((1, 0), 1));
}

#[test]
fn what_is_refused_for_another_reason_is_not_explained_by_the_path_mtu() {
    for (at, len) in [(First, 1024), (Only, 512)] {
        let mut rig = rig(QpType::Rc);
        let mut packet = rig.packet(Send, at, FIRST, &bytes(len));
        packet.bth.pad_count = 1;
        assert_eq!(acks(&rig.answer(&packet)), [nak(NakCode::InvalidRequest, FIRST, 0)]);
        assert_eq!(counted(&rig), (0, 0), "{at:?} of {len}");
    }
}
