//! UD.

use crate::support::{Pair, bytes, family, pattern};
use rockhopper::{QKey, QpType, RecvWr, RingPair, SendWr, WcOpcode};
use std::time::Duration;

const QKEY: QKey = QKey::new(0x1111_1111);

#[test]
fn datagrams_arrive_behind_the_grh_area_with_their_sender() {
    for v6 in [false, true] {
        let pair = Pair::over(&RingPair::default(), QpType::Ud, &family(v6));
        let to = pair.b.qp.info(&family(v6));
        let ah = pair.a.pd.create_ah(to.gid, None).unwrap();
        for (id, imm) in [(1, None), (2, Some([9, 8, 7, 6]))] {
            let data = pattern(id as u8, 3000);
            pair.a.mr.write(0, &data).unwrap();
            pair.b.qp.post_recv(RecvWr::new(id).sge(pair.b.mr.sge(0..4136))).unwrap();
            let send = SendWr::ud_send(id, &ah, to.qpn().unwrap(), QKEY, imm).sge(pair.a.mr.sge(0..3000));
            pair.a.qp.post_send(send).unwrap();
            assert!(pair.at_a().is_success());
            let received = pair.at_b();
            assert_eq!((received.opcode, received.imm, received.byte_len), (WcOpcode::Recv, imm, 3040));
            assert_eq!((received.src_qp, received.has_grh), (pair.a.qp.qpn(), true));
            assert_eq!(bytes(&pair.b.mr, 40, 3000), data);
        }
    }
}

#[test]
fn a_datagram_with_a_wrong_qkey_is_dropped_and_counted() {
    let pair = Pair::new(QpType::Ud);
    let to = pair.b.qp.info(&family(false));
    let ah = pair.a.pd.create_ah(to.gid, None).unwrap();
    pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..100))).unwrap();
    let wrong = SendWr::ud_send(1, &ah, to.qpn().unwrap(), QKey::new(5), None).inline(b"x");
    pair.a.qp.post_send(wrong).unwrap();
    assert!(pair.at_a().is_success(), "a datagram's sender learns nothing");
    std::thread::sleep(Duration::from_millis(50));
    assert!(pair.b.cq.is_empty());
    assert_eq!(pair.b.device.stats().roce["drop_qkey"], 1);
}
