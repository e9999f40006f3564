//! What DPDK itself costs: frames that nobody looks into, and frames that carry something.

use super::carry::{Maker, SHORTEST, Taker};
use dpdk::ring::{RingConfig, ring_pair};
use dpdk::vdev::AF_PACKET_JUMBO_DATA_ROOM;
use dpdk::{
    Eal, EalConfig, MbufBurst, Memory, Mempool, PoolConfig, Port, PortConfig, RxQueue, TxQueue, Vdev,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Frames of a burst.
const BURST: usize = 32;
/// Frames that a ring holds, as Rockhopper's own pairs do.
const RING: u32 = 1024;

/// The sender's address.
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The type of frames (experimental): a kernel that sees them looks no further.
const TYPE: [u8; 2] = [0x88, 0xb5];
/// How long a wire may take to pass its first frame: taps have to be joined first.
const JOINED: Duration = Duration::from_secs(20);

/// Frames that went through.
#[derive(Clone, Copy, Debug)]
pub struct PortRate {
    /// Frames a second.
    pub frames_per_second: f64,
    /// Bytes of a frame.
    pub frame_bytes: usize,
}

/// What frames are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nobody looks into them.
    None,
    /// Each carries a payload, copied in and summed at one end, checked and copied out at the other.
    Payload,
}

/// Two ports, the second of which receives what the first sends.
#[derive(Clone, Debug)]
pub enum Pair {
    /// `net_ring`: frames change hands in memory.
    Ring,
    /// `net_af_packet` on two kernel interfaces that are joined, like the ends of a veth pair.
    Interfaces([String; 2]),
    /// `net_tap`: two kernel interfaces that it makes and somebody joins.
    Taps([String; 2]),
}

/// Buffer space for the longest frames: a path MTU of 4096 and its headers.
const ROOM: u16 = 4352;

struct Ports {
    eal: Eal,
    pool: Arc<Mempool>,
}

impl Ports {
    fn start(data_room: u16) -> Result<Ports, String> {
        let config = EalConfig { memory: Memory::Auto, ..EalConfig::default() };
        let eal = Eal::init(config).map_err(|why| why.to_string())?;
        let pool = PoolConfig { name: "limits".into(), count: 4095, data_room, ..PoolConfig::default() };
        let pool = Mempool::new(&eal, pool).map_err(|why| why.to_string())?;
        Ok(Ports { eal, pool })
    }

    fn open(&self, id: dpdk::PortId) -> Result<(Port, RxQueue, TxQueue), String> {
        let config = PortConfig { mtu: 4200, ..PortConfig::default() };
        let pools = std::slice::from_ref(&self.pool);
        let mut port = Port::open(&self.eal, id, &config, pools).map_err(|why| why.to_string())?;
        let (rx, tx) = port.take_queues().pop().ok_or("the port has no queue")?;
        Ok((port, rx, tx))
    }
}

/// One core allocates frames and sends them, another receives and frees them. Frames whose payload is not right do not count.
pub fn hop(
    pair: &Pair,
    content: Content,
    cores: [usize; 2],
    frame_bytes: usize,
    time: Duration,
) -> Result<PortRate, String> {
    let carries = content == Content::Payload;
    if carries && frame_bytes < SHORTEST {
        return Err(format!(
            "a frame that carries something has {SHORTEST} bytes or more: give such a --size"
        ));
    }
    let (ports, [a, b]) = joined(pair)?;
    let (_a, _, mut tx) = ports.open(a)?;
    let (b, mut rx, _) = ports.open(b)?;
    let header = header(&b)?;
    let (received, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (ports, received, over) = (&ports, &received, &over);
        let sink = scope.spawn(move || -> Result<(), String> {
            super::pin(cores[1])?;
            let _registered = ports.eal.register_thread().map_err(|why| why.to_string())?;
            let mut burst = MbufBurst::<BURST>::new();
            let mut taker = Taker::new();
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                let came = rx.burst(&mut burst);
                count += if carries { taker.take(burst.as_slice()) } else { came } as u64;
                burst.clear();
                received.store(count, Ordering::Relaxed);
            }
            Ok(())
        });
        let sent = super::pin(cores[0]).and_then(|()| {
            let _registered = ports.eal.register_thread().map_err(|why| why.to_string())?;
            let mut burst = MbufBurst::<BURST>::new();
            let mut maker = Maker::new(&ports.pool, &header, frame_bytes);
            let mut send = || {
                if carries {
                    maker.fill(&mut burst);
                } else {
                    fill(&ports.pool, &mut burst, &header, frame_bytes);
                }
                tx.burst(&mut burst);
            };
            let waits = Instant::now();
            while received.load(Ordering::Relaxed) == 0 && !sink.is_finished() {
                if waits.elapsed() > JOINED {
                    return Err(format!("no frame arrived within {JOINED:?}"));
                }
                send();
            }
            let (begin, before) = (Instant::now(), received.load(Ordering::Relaxed));
            while begin.elapsed() < time && !sink.is_finished() {
                (0..64).for_each(|_| send());
            }
            let frames = received.load(Ordering::Relaxed) - before;
            Ok(frames as f64 / begin.elapsed().as_secs_f64())
        });
        over.store(true, Ordering::Relaxed);
        sink.join().unwrap_or_else(|_| Err("the thread of the other core died".into()))?;
        sent.map(|frames_per_second| PortRate { frames_per_second, frame_bytes })
    })
}

/// What the frames to a port begin with. To nobody else: a bridge would give them to its own host, too.
fn header(to: &Port) -> Result<[u8; 14], String> {
    let mut header = [0; 14];
    header[..6].copy_from_slice(&to.mac().map_err(|why| why.to_string())?);
    header[6..12].copy_from_slice(&SOURCE);
    header[12..].copy_from_slice(&TYPE);
    Ok(header)
}

fn joined(pair: &Pair) -> Result<(Ports, [dpdk::PortId; 2]), String> {
    match pair {
        Pair::Ring => {
            let ports = Ports::start(ROOM)?;
            let rings = RingConfig { queues: 1, size: RING, socket: None };
            let (a, b) = ring_pair(&ports.eal, "hop", &rings).map_err(|why| why.to_string())?;
            Ok((ports, [a, b]))
        }
        Pair::Interfaces(names) => {
            let ports = Ports::start(AF_PACKET_JUMBO_DATA_ROOM)?;
            let port = |suffix, interface: &str| {
                let vdev = Vdev::af_packet(suffix, interface, 1, true).map_err(|why| why.to_string())?;
                ports.eal.add_vdev(&vdev).map_err(|why| why.to_string())
            };
            let ids = [port("a", &names[0])?, port("b", &names[1])?];
            Ok((ports, ids))
        }
        Pair::Taps(names) => {
            let ports = Ports::start(ROOM)?;
            let port = |suffix, number, name: &str| {
                let mac = Some([2, 0x52, 0x48, 0, 0, number]);
                let vdev = Vdev::tap(suffix, name, mac).map_err(|why| why.to_string())?;
                ports.eal.add_vdev(&vdev).map_err(|why| why.to_string())
            };
            let ids = [port("a", 1, &names[0])?, port("b", 2, &names[1])?];
            Ok((ports, ids))
        }
    }
}

/// Fills a burst with frames of so many bytes, as far as there are buffers; their content is nobody's business.
fn fill(pool: &Mempool, burst: &mut MbufBurst<BURST>, header: &[u8; 14], frame_bytes: usize) {
    let old = burst.len();
    if pool.alloc_bulk(burst, BURST - old) {
        for mbuf in &mut burst.as_mut_slice()[old..] {
            // The buffers have room for the longest frame that is asked for.
            let _ = mbuf
                .append(frame_bytes)
                .map(|frame| frame.get_mut(..header.len()).map(|to| to.copy_from_slice(header)));
        }
    }
}

/// One core receives frames from a `net_ring` port and sends each back into it: what the driver and the buffers cost by themselves.
pub fn forward(core: usize, frame_bytes: usize, time: Duration) -> Result<PortRate, String> {
    let ports = Ports::start(ROOM)?;
    let vdev = Vdev::ring("forward").map_err(|why| why.to_string())?;
    let id = ports.eal.add_vdev(&vdev).map_err(|why| why.to_string())?;
    let (port, mut rx, mut tx) = ports.open(id)?;
    let header = header(&port)?;
    super::pin(core)?;
    let _registered = ports.eal.register_thread().map_err(|why| why.to_string())?;
    let mut burst = MbufBurst::<BURST>::new();
    // Two bursts stay under way.
    for _ in 0..2 {
        fill(&ports.pool, &mut burst, &header, frame_bytes);
        tx.burst(&mut burst);
    }
    let mut frames = 0u64;
    let begin = Instant::now();
    while begin.elapsed() < time {
        for _ in 0..64 {
            rx.burst(&mut burst);
            frames += tx.burst(&mut burst) as u64;
        }
    }
    Ok(PortRate { frames_per_second: frames as f64 / begin.elapsed().as_secs_f64(), frame_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores() -> [usize; 2] {
        let cores = core_affinity::get_core_ids().unwrap();
        [cores[0].id, cores[cores.len() - 1].id]
    }

    #[test]
    fn frames_hop_through_a_ring() {
        let time = Duration::from_millis(50);
        let rate = hop(&Pair::Ring, Content::None, cores(), 64, time).unwrap();
        assert!(rate.frames_per_second > 0.0 && rate.frame_bytes == 64, "{rate:?}");
    }

    #[test]
    fn payloads_hop_through_a_ring() {
        let time = Duration::from_millis(50);
        let rate = hop(&Pair::Ring, Content::Payload, cores(), 4170, time).unwrap();
        assert!(rate.frames_per_second > 0.0 && rate.frame_bytes == 4170, "{rate:?}");
    }

    #[test]
    fn a_frame_without_room_for_a_payload_is_refused() {
        let refused = hop(&Pair::Ring, Content::Payload, cores(), SHORTEST - 1, Duration::ZERO).unwrap_err();
        assert!(refused.contains("--size"), "{refused}");
    }

    #[test]
    fn frames_are_forwarded() {
        let rate = forward(cores()[0], 4200, Duration::from_millis(20)).unwrap();
        assert!(rate.frames_per_second > 0.0, "{rate:?}");
    }
}
