//! UC: a request whose packets are lent is complete when they have come back.

use super::*;
use crate::event::EventKind;
use crate::limits::WINDOW_START;
use crate::testkit::{Lends, Withdraws};
use proptest::prelude::*;

const FULL: u32 = 256;

fn uc() -> (Rig, Region) {
    uc_of(512)
}

fn uc_of(depth: u32) -> (Rig, Region) {
    let mut rig = Rig::with_capacities(QpType::Uc, QpState::Rts, attributes(), depth, 1024);
    let region = rig.region(0x8_0000, Access::LOCAL_WRITE);
    (rig, region)
}

/// What is sent now, up to `room` packets; payloads of a full packet are lent, in this loan.
fn lend_into(rig: &mut Rig, loan: u64, room: usize) -> Vec<Packet> {
    let mut sink = Lends::new(rig.memory.clone(), room, loan);
    rig.engine.poll_transmit(rig.now, &mut sink);
    sink.list.sent
}

fn lend(rig: &mut Rig, loan: u64) -> Vec<Packet> {
    lend_into(rig, loan, usize::MAX)
}

fn send(wr_id: u64, region: &Region, len: u32) -> SendWr {
    wr(wr_id, SendOp::Send, &[region.sge(0, len)])
}

const OK: WcStatus = WcStatus::Success;

#[test]
fn a_request_is_complete_when_its_memory_is_read_no_more() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 3 * FULL));
    assert_eq!(lend(&mut rig, 4).len(), 3);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 3);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 4);
    completes(&rig, &[(1, OK)]);
    assert_eq!((rig.shared.sq().outstanding(), rig.engine.next_timeout()), (0, None));
}

#[test]
fn a_request_in_two_loans_is_complete_with_the_second() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 5 * FULL));
    assert_eq!((lend_into(&mut rig, 0, 2).len(), lend(&mut rig, 1).len()), (2, 3));
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 1);
    completes(&rig, &[(1, OK)]);
}

/// Completions come in the order of posting.
#[test]
fn a_copied_request_waits_for_the_lent_one_before_it() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, FULL));
    lend(&mut rig, 7);
    rig.post_send(send(2, &region, 10));
    assert_eq!(lend(&mut rig, 8).len(), 1);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 7);
    completes(&rig, &[(1, OK), (2, OK)]);
    rig.post_send(send(3, &region, 10));
    lend(&mut rig, 8);
    completes(&rig, &[(3, OK)]);
}

/// No more is out than the window lets, and what comes back makes room in the middle of a message.
#[test]
fn a_long_message_goes_on_when_packets_come_back() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 700 * FULL));
    let (mut sent, mut loan) = (0, 0);
    while !rig.engine.is_idle() {
        let now = lend(&mut rig, loan).len();
        assert!(now >= 1 && (loan > 0 || now == WINDOW_START as usize), "{now} in {loan}");
        sent += now;
        assert!(rig.engine.is_idle());
        completes(&rig, &[]);
        rig.engine.on_returned(rig.now, loan);
        loan += 1;
    }
    assert_eq!((sent, loan), (700, 3));
    completes(&rig, &[(1, OK)]);
}

#[test]
fn a_request_with_a_fault_ends_behind_those_that_wait() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, FULL));
    rig.post_send(send(2, &region, 0x8_0001));
    rig.post_send(send(3, &region, FULL));
    assert_eq!(lend(&mut rig, 0).len(), 1);
    completes(&rig, &[]);
    assert_eq!(rig.state(), QpState::Rts);
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[(1, OK), (2, WcStatus::LocProtErr), (3, WcStatus::WrFlushErr)]);
    assert_eq!(rig.state(), QpState::Sqe);
}

/// Its packets that have left may be out for long.
#[test]
fn a_message_whose_memory_goes_ends_and_its_loan_says_nothing_of_later_ones() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 5 * FULL));
    lend_into(&mut rig, 0, 2);
    rig.memory.remove(region.id);
    assert_eq!(lend(&mut rig, 1).len(), 0);
    completes(&rig, &[(1, WcStatus::LocProtErr)]);
    rig.modify(QpState::Rts);
    let other = rig.region(0x1000, Access::LOCAL_WRITE);
    rig.post_send(send(2, &other, FULL));
    assert_eq!(show(&lend(&mut rig, 1)), ["102 SEND Only 256"]);
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 1);
    completes(&rig, &[(2, OK)]);
}

/// A run whose memory goes leaves packets behind that are lent.
#[test]
fn memory_that_goes_in_a_run() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 8 * FULL));
    let list = crate::testkit::ListSink::new(rig.memory.clone(), 99);
    let mut sink = Withdraws { list, after: 3, region: region.id };
    rig.engine.poll_transmit(rig.now, &mut sink);
    completes(&rig, &[(1, WcStatus::LocProtErr)]);
    assert_eq!((rig.state(), rig.count(crate::counters::Counter::TxPackets)), (QpState::Sqe, 3));
}

/// PSNs begin where they began before.
#[test]
fn a_loan_of_a_qp_that_was_reset_says_nothing_of_its_new_requests() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, FULL));
    lend(&mut rig, 0);
    for state in [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts] {
        rig.modify(state);
    }
    rig.post_send(send(2, &region, FULL));
    assert_eq!(show(&lend(&mut rig, 1)), ["100 SEND Only 256"]);
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[]);
    rig.engine.on_returned(rig.now, 1);
    completes(&rig, &[(2, OK)]);
}

#[test]
fn a_qp_in_error_waits_for_nothing() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, FULL));
    lend(&mut rig, 0);
    rig.modify(QpState::Err);
    completes(&rig, &[(1, WcStatus::WrFlushErr)]);
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[]);
}

#[test]
fn a_queue_drains_when_all_has_come_back() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, 3 * FULL));
    lend(&mut rig, 0);
    let attr = QpAttr { state: QpState::Sqd, notify_drained: true, ..attributes() };
    let mask = QpAttrMask::STATE | QpAttrMask::EN_SQD_ASYNC_NOTIFY;
    rig.engine.modify_qp(rig.now, QPN, &attr, mask).unwrap();
    assert!(rig.raised().is_empty());
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[(1, OK)]);
    assert_eq!(rig.raised().iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::SqDrained]);
}

/// Who moves it sees to that nothing is lent; its new engine hears of no loan.
#[test]
fn a_qp_that_moves_waits_for_nothing() {
    let (mut rig, region) = uc();
    rig.post_send(send(1, &region, FULL));
    lend(&mut rig, 0);
    let qp = rig.engine.detach_qp(QPN).unwrap();
    rig.engine.on_returned(rig.now, 0);
    completes(&rig, &[]);
    rig.engine.attach_qp(rig.now, qp).unwrap();
    completes(&rig, &[(1, OK)]);
}

/// As many turns as may wait: then nothing leaves until some have come back.
#[test]
fn turns_without_number_wait_for_loans() {
    let (mut rig, region) = uc_of(4096);
    let mut loan = 0;
    let mut post = |rig: &mut Rig| {
        rig.post_send(with_flags(send(loan, &region, FULL), SendFlags::empty()));
        loan += 1;
        lend(rig, loan - 1).len()
    };
    // The window is as large as it can be.
    for _ in 0..4096 {
        assert_eq!(post(&mut rig), 1);
        rig.engine.on_returned(rig.now, u64::MAX);
    }
    assert_eq!(rig.shared.sq().outstanding(), 0);
    let left = (0..2100).take_while(|_| post(&mut rig) > 0).count();
    assert_eq!(left, 2048);
    assert!(!rig.engine.is_idle());
    rig.engine.on_returned(rig.now, u64::MAX);
    assert_eq!(rig.shared.sq().outstanding(), 1);
    assert_eq!(lend(&mut rig, u64::MAX).len(), 1);
}

/// What happens to a QP.
#[derive(Clone, Debug)]
enum Step {
    Post(u32),
    /// So many packets at most.
    Send(usize),
    /// The loans that are out, but for so many.
    Return(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![3 => 0..3 * FULL, 1 => 0..10_000u32, 1 => Just(2 * FULL)];
    prop_oneof![
        3 => len.prop_map(Step::Post),
        3 => prop_oneof![0..9usize, Just(usize::MAX)].prop_map(Step::Send),
        2 => (0..4u64).prop_map(Step::Return),
    ]
}

proptest! {
    /// A request is complete when all of it has left, and all that was lent up to its last packet has come back; or, if it was copied, what
    /// was lent in the same turn behind it.
    #[test]
    fn requests_wait_for_what_was_lent(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut rig, region) = uc();
        // The loan of each packet that left, and whether it was lent; and where requests end.
        let (mut left, mut ends): (Vec<(u64, bool)>, Vec<usize>) = (vec![], vec![]);
        let (mut loan, mut home, mut completed) = (1, 0, 0);
        let end = [Step::Send(usize::MAX), Step::Return(0)].into_iter().cycle().take(20);
        for step in steps.into_iter().chain(end) {
            match step {
                Step::Post(len) => {
                    rig.post_send(send(ends.len() as u64, &region, len));
                    let before = ends.last().copied().unwrap_or(0);
                    ends.push(before + len.div_ceil(FULL).max(1) as usize);
                }
                Step::Send(room) => {
                    let sent = lend_into(&mut rig, loan, room);
                    left.extend(sent.iter().map(|it| (loan, it.payload.len() >= Lends::FROM)));
                    loan += 1;
                }
                Step::Return(but) => {
                    home = home.max((loan - 1).saturating_sub(but));
                    rig.engine.on_returned(rig.now, home);
                }
            }
            let complete_with = |done: usize| ends.iter().filter(|&&end| end <= done).count();
            let most = complete_with(left.iter().take_while(|(loan, lent)| *loan <= home || !lent).count());
            let least = complete_with(left.iter().take_while(|(loan, _)| *loan <= home).count());
            let cqes: Vec<u64> = rig.send_cqes().iter().map(|cqe| cqe.wr_id).collect();
            let complete = completed + cqes.len();
            prop_assert!((least..=most).contains(&complete), "{complete} not of {least} to {most}");
            prop_assert_eq!(cqes, (completed as u64..complete as u64).collect::<Vec<_>>());
            completed = complete;
        }
        prop_assert_eq!(completed, ends.len());
    }
}
