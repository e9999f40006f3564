//! What the workers of one port do with frames that arrive: WRITEs are parsed, verified by their iCRC, looked up, checked, copied to
//! registered memory and acknowledged, by the code of any endpoint.
//!
//! The frames are made by the thread that drives the worker, in turns with it, and come over `net_ring`; what counts is the time in
//! which a worker polls. So a core that does nothing but a worker's work is measured on one core, and two on two, though nobody is
//! left to send. Two workers share what those of a port share: its regions, directory, rings and pool.

mod generator;
mod port;

use generator::Generator;
use port::Opened;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Queue pairs of each worker.
    pub qps: usize,
    /// Bytes of a WRITE.
    pub size: usize,
    /// How long.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// WRITEs executed.
    pub messages: u64,
    /// Messages in a second of a worker's time; of several workers, all of theirs.
    pub per_second: f64,
    /// Frames that one worker handed to another.
    pub handed_over: u64,
    /// Queue pairs that moved.
    pub moved: u64,
}

/// Where frames arrive, with two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// At the queue of their queue pair's worker.
    Right,
    /// At the other's, where queue pairs stay where they are: every frame is handed over.
    Wrong,
    /// At the other's, and queue pairs move to where their frames arrive.
    Moving,
}

/// What one worker did.
struct Share {
    messages: u64,
    /// Of its own time.
    seconds: f64,
    written: Vec<usize>,
}

/// One worker on each of `cores`, each with frames for its own queue pairs.
pub fn parallel(cores: &[usize], load: Load) -> Result<Done, String> {
    let Opened { ways, receiver, _ports } = Opened::new(cores.len(), None, load)?;
    let (begin, over) = (Barrier::new(cores.len()), AtomicBool::new(false));
    let shares = std::thread::scope(|scope| {
        let (receiver, begin, over) = (&receiver, &begin, &over);
        let threads: Vec<_> = ways
            .into_iter()
            .zip(cores)
            .enumerate()
            .map(|(worker, (mut way, &core))| {
                scope.spawn(move || -> Result<Share, String> {
                    let ready = crate::limits::pin(core);
                    let _registered = receiver.register();
                    begin.wait();
                    ready?;
                    let end = Instant::now() + load.time;
                    let (mut messages, mut busy) = (0, Duration::ZERO);
                    while Instant::now() < end && !over.load(Ordering::Relaxed) {
                        messages += way.send()?;
                        busy += receiver.poll(worker);
                        way.take_answers();
                    }
                    // Who ends first ends all, so that nobody is measured alone.
                    over.store(true, Ordering::Relaxed);
                    Ok(Share { messages, seconds: busy.as_secs_f64(), written: way.written().collect() })
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a worker's thread died".into())))
            .collect::<Result<Vec<_>, String>>()
    })?;
    let done = receiver.account(shares.iter().flat_map(|share| share.written.iter().copied()))?;
    let sent: u64 = shares.iter().map(|share| share.messages).sum();
    if done.messages != sent || done.handed_over != 0 {
        return Err(format!("{sent} WRITEs were sent, {done:?}"));
    }
    let per_second = shares.iter().map(|share| share.messages as f64 / share.seconds).sum();
    Ok(Done { per_second, ..done })
}

/// Two workers, one after the other on one core. All frames are for queue pairs of the second. Time is that of both.
pub fn steered(core: usize, steering: Steering, load: Load) -> Result<Done, String> {
    let move_after = if steering == Steering::Moving { None } else { Some(u32::MAX) };
    let Opened { mut ways, receiver, _ports } = Opened::new(2, move_after, load)?;
    crate::limits::pin(core)?;
    let _registered = receiver.register();
    let mut way: Generator = ways.pop().ok_or("there is no second worker")?;
    if steering != Steering::Right {
        let first = ways.pop().ok_or("there is no first worker")?;
        way.arrive_like(first);
    }
    let end = Instant::now() + load.time;
    let (mut messages, mut busy) = (0, Duration::ZERO);
    while Instant::now() < end {
        messages += way.send()?;
        busy += receiver.poll(0);
        busy += receiver.poll(1);
        way.take_answers();
    }
    for _ in 0..100 {
        receiver.poll(0);
        receiver.poll(1);
        way.take_answers();
    }
    let done = receiver.account(way.written())?;
    if done.messages != messages {
        return Err(format!("{messages} WRITEs were sent, {done:?}"));
    }
    Ok(Done { per_second: messages as f64 / busy.as_secs_f64(), ..done })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { qps: 16, size: 64, time: Duration::from_millis(20) };

    fn cores() -> Vec<usize> {
        core_affinity::get_core_ids().unwrap().iter().map(|core| core.id).take(2).collect()
    }

    #[test]
    fn each_worker_executes_what_is_sent_to_it() {
        let cores = cores();
        let one = parallel(&cores[..1], LOAD).unwrap();
        assert!(one.messages > 0 && one.per_second > 0.0, "{one:?}");
        let two = parallel(&cores, LOAD).unwrap();
        assert!(two.messages > 0, "{two:?}");
    }

    #[test]
    fn frames_at_the_wrong_queue_are_handed_over_or_their_queue_pairs_move() {
        let core = cores()[0];
        let right = steered(core, Steering::Right, LOAD).unwrap();
        assert_eq!((right.handed_over, right.moved), (0, 0));
        let wrong = steered(core, Steering::Wrong, LOAD).unwrap();
        assert_eq!((wrong.handed_over, wrong.moved), (wrong.messages, 0));
        let moving = steered(core, Steering::Moving, LOAD).unwrap();
        assert_eq!(moving.moved, 16);
        assert!(moving.handed_over < moving.messages, "{moving:?}");
    }
}
