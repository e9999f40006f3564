//! What the workers of one port do with frames that arrive: WRITEs are parsed, verified by their iCRC, looked up, checked, copied to
//! registered memory and acknowledged, by the code of any endpoint.
//!
//! The frames are made by the thread that drives the worker, in turns with it, and come over `net_ring`; what counts is the time in
//! which a worker polls. So a core that does nothing but a worker's work is measured on one core, and two on two, though nobody is
//! left to send. Two workers share what those of a port share: its regions, directory, rings and pool.
//!
//! Over two taps the kernel chooses the queue by the flow of a frame, and knows nothing of queue pairs: `net_tap` tells no RSS hash.

mod generator;
mod port;

use generator::Generator;
use port::{Opened, Receiver, Wire};
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
    let Opened { ways, receiver, _ports } = Opened::new(Wire::Ring, cores.len(), None, load)?;
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
    let Opened { mut ways, receiver, _ports } = Opened::new(Wire::Ring, 2, move_after, load)?;
    crate::limits::pin(core)?;
    let _registered = receiver.register();
    let mut way: Generator = ways.pop().ok_or("there is no second worker")?;
    if steering != Steering::Right {
        let first = ways.pop().ok_or("there is no first worker")?;
        way.arrive_like(first);
    }
    in_turns(&mut way, &receiver, load)
}

/// What becomes of frames that the kernel brings to the wrong queue of a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapSteering {
    /// Queue pairs stay where they are: frames at the wrong queue are handed over, each time.
    Staying,
    /// Queue pairs move to where their frames arrive.
    Moving,
    /// Queue pairs stay, and answer by the UDP ports of what they answer. The kernel brings a flow's frames to the queue that
    /// its answers came from.
    Followed,
}

/// Two workers of a port on the second of two taps, one after the other on one core, each with its half of the queue pairs. Frames
/// come through the first tap and arrive at the queue that the kernel chooses. Time is that of both workers, with their system
/// calls. Waits until somebody has joined the taps.
pub fn steered_by_kernel(
    core: usize,
    names: &[String; 2],
    steering: TapSteering,
    load: Load,
) -> Result<Done, String> {
    let move_after = if steering == TapSteering::Moving { None } else { Some(u32::MAX) };
    let wire = Wire::Taps { names, answers_alike: steering == TapSteering::Followed };
    let Opened { mut ways, receiver, _ports } = Opened::new(wire, 2, move_after, load)?;
    crate::limits::pin(core)?;
    let _registered = receiver.register();
    let mut way: Generator = ways.pop().ok_or("the first tap has no queue")?;
    let begin = Instant::now();
    while called(&receiver)? == 0 {
        if begin.elapsed() > JOINED {
            return Err(format!(
                "no frame arrived within {JOINED:?}: the taps {} are not joined",
                names.join(" and ")
            ));
        }
        way.call()?;
        std::thread::sleep(Duration::from_millis(10));
    }
    in_turns(&mut way, &receiver, load)
}

/// How long it may take until somebody has joined the taps.
const JOINED: Duration = Duration::from_secs(20);

/// Frames of no interest that have come to either worker.
fn called(receiver: &Receiver) -> Result<u64, String> {
    receiver.poll(0);
    receiver.poll(1);
    receiver.called()
}

/// Sends, and lets two workers poll, for as long as the load says and until all is done.
fn in_turns(way: &mut Generator, receiver: &Receiver, load: Load) -> Result<Done, String> {
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

    fn ip(words: &str) -> bool {
        let output = std::process::Command::new("ip").args(words.split(' ')).output();
        output.expect("the package iproute2 is installed").status.success()
    }

    #[test]
    fn frames_at_the_wrong_queue_of_a_tap_are_handed_over_until_their_queue_pairs_move_or_the_kernel_learns()
    {
        assert!(nix::unistd::geteuid().is_root(), "this test makes network interfaces: run it as root");
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        assert!(
            ip("link add br0 address 02:00:00:00:00:0a type bridge mcast_snooping 0")
                && ip("link set br0 up")
        );
        let taps = ["rh-a", "rh-b"].map(String::from);
        let core = cores()[0];
        // Each queue pair has its turn often enough to move, also while others keep the machine busy.
        let load = Load { time: Duration::from_millis(600), ..LOAD };
        let over = AtomicBool::new(false);
        let done = std::thread::scope(|scope| {
            // Somebody joins them as they appear: see `TapBridge::join` of the suite.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for (tap, number) in taps.iter().zip(1..) {
                        ip(&format!("link set dev {tap} address 02:00:00:00:fe:0{number} master br0 up"));
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let each = [TapSteering::Staying, TapSteering::Moving, TapSteering::Followed];
            let done = each.map(|steering| steered_by_kernel(core, &taps, steering, load));
            over.store(true, Ordering::Relaxed);
            done
        });
        let [staying, moving, followed] = done.map(|done| done.unwrap_or_else(|why| panic!("{why}")));
        let part = |done: Done| done.handed_over as f64 / done.messages as f64;
        assert!(part(staying) > 0.0 && part(staying) < 1.0 && staying.moved == 0, "{staying:?}");
        assert!(moving.moved > 0 && part(moving) < part(staying), "{moving:?} {staying:?}");
        assert!(followed.moved == 0 && part(followed) < part(staying), "{followed:?} {staying:?}");
    }
}
