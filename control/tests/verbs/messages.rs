//! SEND, WRITE and READ in all their forms, over RC and UC, IPv4 and IPv6.

use crate::support::{Pair, bytes, family, pattern};
use rockhopper::{PostError, QpType, RecvWr, RingPair, SendWr, WcOpcode, WcStatus};

/// Lengths around packets and messages: nothing, a byte, around one and several packets, many packets.
const LENGTHS: [usize; 9] = [0, 1, 63, 4095, 4096, 4097, 8192, 100_001, 500_000];

#[test]
fn sends_arrive_whole() {
    for (qp_type, v6) in [(QpType::Rc, false), (QpType::Rc, true), (QpType::Uc, false), (QpType::Uc, true)] {
        let pair = Pair::over(&RingPair::default(), qp_type, &family(v6));
        for (turn, len) in LENGTHS.into_iter().enumerate() {
            let data = pattern(turn as u8, len);
            pair.a.mr.write(0, &data).unwrap();
            pair.b.qp.post_recv(RecvWr::new(100 + turn as u64).sge(pair.b.mr.sge(0..len))).unwrap();
            pair.a.qp.post_send(SendWr::send(turn as u64).sge(pair.a.mr.sge(0..len))).unwrap();
            let (sent, received) = (pair.at_a(), pair.at_b());
            assert_eq!(
                (sent.wr_id, sent.status, sent.opcode),
                (turn as u64, WcStatus::Success, WcOpcode::Send)
            );
            assert_eq!(received.wr_id, 100 + turn as u64);
            assert_eq!((received.status, received.opcode), (WcStatus::Success, WcOpcode::Recv));
            assert_eq!((received.byte_len as usize, received.imm), (len, None));
            assert_eq!(bytes(&pair.b.mr, 0, len), data, "{qp_type:?} v6 {v6} {len} bytes");
        }
    }
}

#[test]
fn writes_and_reads_move_what_they_say() {
    let pair = Pair::new(QpType::Rc);
    let remote = pair.b.mr.remote();
    for (turn, len) in LENGTHS.into_iter().enumerate() {
        let data = pattern(turn as u8, len);
        pair.a.mr.write(0, &data).unwrap();
        pair.a.qp.post_send(SendWr::write(1, remote.at(64)).sge(pair.a.mr.sge(0..len))).unwrap();
        pair.a
            .qp
            .post_send(SendWr::read(2, remote.at(64)).sge(pair.a.mr.sge(520_000..520_000 + len)))
            .unwrap();
        let (written, read) = (pair.at_a(), pair.at_a());
        assert_eq!((written.status, written.opcode), (WcStatus::Success, WcOpcode::RdmaWrite));
        assert_eq!(
            (read.status, read.opcode, read.byte_len as usize),
            (WcStatus::Success, WcOpcode::RdmaRead, len)
        );
        assert_eq!(bytes(&pair.b.mr, 64, len), data);
        assert_eq!(bytes(&pair.a.mr, 520_000, len), data);
    }
}

#[test]
fn immediates_arrive_as_they_were_given() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        let pair = Pair::new(qp_type);
        pair.a.mr.write(0, b"payload").unwrap();
        pair.b.qp.post_recv(RecvWr::new(1).sge(pair.b.mr.sge(0..16))).unwrap();
        pair.b.qp.post_recv(RecvWr::new(2)).unwrap();
        pair.a.qp.post_send(SendWr::send_imm(1, [1, 2, 3, 4]).sge(pair.a.mr.sge(0..7))).unwrap();
        let to = pair.b.mr.remote().at(100);
        pair.a.qp.post_send(SendWr::write_imm(2, to, [5, 6, 7, 8]).sge(pair.a.mr.sge(0..7))).unwrap();
        let (send, write) = (pair.at_b(), pair.at_b());
        assert_eq!((send.opcode, send.imm, send.byte_len), (WcOpcode::Recv, Some([1, 2, 3, 4]), 7));
        assert_eq!(
            (write.opcode, write.imm, write.byte_len),
            (WcOpcode::RecvRdmaWithImm, Some([5, 6, 7, 8]), 7)
        );
        assert_eq!(
            (bytes(&pair.b.mr, 0, 7), bytes(&pair.b.mr, 100, 7)),
            (b"payload".to_vec(), b"payload".to_vec())
        );
    }
}

#[test]
fn pieces_are_gathered_and_scattered_in_order() {
    let pair = Pair::new(QpType::Rc);
    let data = pattern(9, 6000);
    pair.a.mr.write(0, &data).unwrap();
    let gather = |wr: SendWr| {
        wr.sge(pair.a.mr.sge(0..1000)).sge(pair.a.mr.sge(1000..1000)).sge(pair.a.mr.sge(1000..6000))
    };
    let scatter = [0..7, 10_000..14_000, 20_000..21_993];
    let receive = scatter.iter().fold(RecvWr::new(1), |wr, piece| wr.sge(pair.b.mr.sge(piece.clone())));
    pair.b.qp.post_recv(receive).unwrap();
    pair.a.qp.post_send(gather(SendWr::send(1))).unwrap();
    assert!(pair.at_a().is_success() && pair.at_b().is_success());
    let arrived: Vec<u8> =
        scatter.iter().flat_map(|piece| bytes(&pair.b.mr, piece.start, piece.len())).collect();
    assert_eq!(arrived, data);
}

#[test]
fn inline_data_may_change_after_the_post_and_unsignaled_requests_are_silent() {
    let pair = Pair::new(QpType::Rc);
    let mut words = *b"first";
    pair.a.qp.post_send(SendWr::write(1, pair.b.mr.remote().at(0)).inline(&words).unsignaled()).unwrap();
    words = *b"later";
    pair.a.qp.post_send(SendWr::write(2, pair.b.mr.remote().at(8)).inline(&words)).unwrap();
    assert_eq!(pair.at_a().wr_id, 2, "the first gives none");
    assert_eq!(bytes(&pair.b.mr, 0, 13), *b"first\0\0\0later");
}

#[test]
fn a_key_or_range_that_is_wrong_ends_in_error_at_the_requester_and_changes_nothing() {
    let pair = Pair::new(QpType::Rc);
    pair.a.mr.write(0, b"data").unwrap();
    let past_the_end = pair.b.mr.remote().at((1 << 20) - 2);
    pair.a.qp.post_send(SendWr::write(1, past_the_end).sge(pair.a.mr.sge(0..4))).unwrap();
    pair.a.qp.post_send(SendWr::write(2, pair.b.mr.remote().at(0)).sge(pair.a.mr.sge(0..4))).unwrap();
    assert_eq!(pair.at_a().status, WcStatus::RemAccessErr);
    let flushed = pair.at_a();
    assert_eq!((flushed.wr_id, flushed.status), (2, WcStatus::WrFlushErr));
    assert_eq!(bytes(&pair.b.mr, (1 << 20) - 2, 2), [0, 0]);
    assert_eq!(bytes(&pair.b.mr, 0, 4), [0; 4]);
}

#[test]
fn posts_that_cannot_be_are_refused_at_once() {
    let pair = Pair::new(QpType::Uc);
    let sge = pair.a.mr.sge(0..1);
    let many = (0..9).fold(SendWr::send(1), |wr, _| wr.sge(sge));
    assert_eq!(pair.a.qp.post_send(many), Err(PostError::TooManySges { got: 9, max: 8 }));
    let five = (0..5).fold(SendWr::send(1), |wr, _| wr.sge(sge));
    assert_eq!(pair.a.qp.post_send(five), Err(PostError::TooManySges { got: 5, max: 4 }));
    assert_eq!(pair.a.qp.post_send(SendWr::send(1).inline(&[0; 1000])), Err(PostError::Inline));
    let read = SendWr::read(1, pair.b.mr.remote().at(0)).sge(sge);
    assert_eq!(pair.a.qp.post_send(read), Err(PostError::Operation(QpType::Uc)));
    let many = (0..9).fold(RecvWr::new(1), |wr, _| wr.sge(sge));
    assert_eq!(pair.a.qp.post_recv(many), Err(PostError::TooManySges { got: 9, max: 8 }));
    let full = (0..1000).map(|id| pair.a.qp.post_recv(RecvWr::new(id))).find_map(Result::err);
    assert_eq!(full, Some(PostError::Full));
}
