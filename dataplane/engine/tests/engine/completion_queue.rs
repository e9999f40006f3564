//! The completion queue: order, arming, overflow, and the race between arming and completing.

use engine::queue::{Arm, CompletionQueue, CqFull};
use engine::{Cqe, WcOpcode, WcStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wire::Qpn;

fn cqe(wr_id: u64) -> Cqe {
    Cqe::new(wr_id, WcStatus::Success, WcOpcode::Send, Qpn::new(2))
}

fn counting(capacity: usize) -> (CompletionQueue, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let notified = count.clone();
    let queue = CompletionQueue::new(7, capacity, move || {
        notified.fetch_add(1, Ordering::SeqCst);
    });
    (queue, count)
}

#[test]
fn completions_come_in_order() {
    let (queue, _) = counting(4);
    for wr_id in 0..4 {
        queue.push(cqe(wr_id)).unwrap();
    }
    assert_eq!((queue.id(), queue.len(), queue.capacity()), (7, 4, 4));
    for wr_id in 0..4 {
        assert_eq!(queue.poll().map(|cqe| cqe.wr_id), Some(wr_id));
    }
    assert!(queue.is_empty() && queue.poll().is_none());
}

#[test]
fn a_full_queue_refuses_and_remembers() {
    let (queue, _) = counting(1);
    queue.push(cqe(1)).unwrap();
    assert!(!queue.is_overflowed());
    assert_eq!(queue.push(cqe(2)), Err(CqFull));
    assert_eq!(queue.poll().map(|cqe| cqe.wr_id), Some(1), "what was there stays");
    assert!(queue.is_overflowed(), "polling does not mend it");
}

#[test]
fn one_arming_gives_one_notification() {
    let (queue, notified) = counting(8);
    queue.push(cqe(1)).unwrap();
    assert_eq!(notified.load(Ordering::SeqCst), 0, "not armed");
    queue.arm(Arm::Any);
    assert_eq!(
        notified.load(Ordering::SeqCst),
        0,
        "what lies there already does not notify: poll after arming"
    );
    queue.push(cqe(2)).unwrap();
    queue.push(cqe(3)).unwrap();
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    queue.arm(Arm::Any);
    queue.push(cqe(4)).unwrap();
    assert_eq!(notified.load(Ordering::SeqCst), 2);
}

#[test]
fn several_at_once_notify_once_and_only_of_what_fits() {
    let (queue, notified) = counting(3);
    queue.arm(Arm::Any);
    assert_eq!(queue.push_all(&[cqe(1), cqe(2)]), 2);
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    assert!(!queue.is_overflowed());
    queue.arm(Arm::Any);
    assert_eq!(queue.push_all(&[]), 0);
    assert_eq!(notified.load(Ordering::SeqCst), 1, "of nothing");
    assert_eq!(queue.push_all(&[cqe(3), cqe(4)]), 1);
    assert_eq!((notified.load(Ordering::SeqCst), queue.is_overflowed()), (2, true));
    queue.arm(Arm::Any);
    assert_eq!(queue.push_all(&[cqe(5)]), 0);
    assert_eq!(notified.load(Ordering::SeqCst), 2, "nothing came");
    let mut polled = vec![cqe(0)];
    assert_eq!((queue.poll_into(&mut polled, 2), queue.poll_into(&mut polled, 9)), (2, 1));
    let ids: Vec<u64> = polled.iter().map(|cqe| cqe.wr_id).collect();
    assert_eq!(ids, [0, 1, 2, 3]);
}

/// Others wait while somebody takes completions, so a vector that is too small grows before. Checked where they are taken, in
/// builds with debug assertions.
#[test]
fn a_vector_without_room_has_it_before_completions_are_taken() {
    let (queue, _) = counting(64);
    for spare in [0, 1, 5, 40] {
        (0..20).for_each(|wr_id| queue.push(cqe(wr_id)).unwrap());
        let mut polled = Vec::with_capacity(spare);
        assert_eq!((queue.poll_into(&mut polled, 18), queue.poll_into(&mut polled, 18)), (18, 2));
        assert!(polled.iter().map(|cqe| cqe.wr_id).eq(0..20), "{spare}");
        assert_eq!(queue.poll_into(&mut polled, 0), 0);
    }
}

/// rocev2 facts: an armed "solicited only" CQ fires for a receive with SE, or for any completion in error.
#[test]
fn solicited_arming_waits_for_solicited_completions_and_errors() {
    let solicited = Cqe { solicited: true, ..cqe(2) };
    let failed = Cqe { status: WcStatus::WrFlushErr, ..cqe(3) };
    for rousing in [solicited, failed] {
        let (queue, notified) = counting(8);
        queue.arm(Arm::Solicited);
        queue.push(cqe(1)).unwrap();
        assert_eq!(notified.load(Ordering::SeqCst), 0);
        queue.push(rousing).unwrap();
        assert_eq!(notified.load(Ordering::SeqCst), 1);
        queue.push(rousing).unwrap();
        assert_eq!(notified.load(Ordering::SeqCst), 1, "armed once");
        queue.arm(Arm::Solicited);
        queue.push_all(&[cqe(1), rousing, cqe(4)]);
        assert_eq!(notified.load(Ordering::SeqCst), 2, "by one of several");
    }
}

#[test]
fn a_wider_arming_is_not_narrowed() {
    let (queue, notified) = counting(8);
    queue.arm(Arm::Solicited);
    queue.arm(Arm::Any);
    queue.arm(Arm::Solicited);
    queue.push(cqe(1)).unwrap();
    assert_eq!(notified.load(Ordering::SeqCst), 1);
}

/// A consumer that arms, polls once more and sleeps is always woken: no completion falls between its poll and its sleep.
#[test]
fn no_completion_sleeps_through_an_arming() {
    const COUNT: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let (wake, woken) = std::sync::mpsc::channel();
    let queue = CompletionQueue::new(1, COUNT as usize, move || {
        // The consumer may have finished and gone.
        let _ = wake.send(());
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for wr_id in 0..COUNT {
                queue.push(cqe(wr_id)).expect("room");
            }
        });
        let mut expected = 0;
        let mut drain = || {
            while let Some(cqe) = queue.poll() {
                assert_eq!(cqe.wr_id, expected);
                expected += 1;
            }
            expected
        };
        while drain() < COUNT {
            queue.arm(Arm::Any);
            if drain() == COUNT {
                break;
            }
            woken.recv_timeout(std::time::Duration::from_secs(20)).expect("a notification");
        }
    });
}
