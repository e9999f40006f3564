//! One end: engines over one memory, an address, and what became of the frames that they did not take.

use crate::bad_link::BadLink;
use crate::memory::VecMemory;
use crate::sink::FrameSink;
use engine::{
    Access, Binding, Counters, Engine, EngineConfig, EventQueue, MemoryRegion, MemoryWindow, MwType, Nanos,
    Payload, PdId, RegionId, RxPacket, Sge,
};
use std::sync::Arc;
use wire::{Frame, FrameError, Gid, LKey, Mac, Qpn, RKey};

/// Names an endpoint of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointId(pub(crate) usize);

/// The protection domain of everything at an endpoint.
pub(crate) const PD: PdId = PdId(1);

/// A registered region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Whose.
    pub endpoint: EndpointId,
    /// Its memory.
    pub id: RegionId,
    /// Its key object, shared with the engines.
    pub mr: Arc<MemoryRegion>,
    /// Address of its first byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
}

impl Region {
    /// Its key for local use.
    pub fn lkey(&self) -> LKey {
        LKey::new(self.mr.key())
    }

    /// Its key for a peer.
    pub fn rkey(&self) -> RKey {
        RKey::new(self.mr.key())
    }

    /// `len` bytes of it, for a memory window.
    pub fn binding(&self, offset: u64, len: u64, access: Access) -> Binding {
        Binding { mr: self.mr.clone(), mr_key: self.mr.key(), addr: self.addr + offset, len, access }
    }

    /// A piece of it, for local use.
    pub fn sge(&self, offset: u64, len: u32) -> Sge {
        Sge { addr: self.addr + offset, len, lkey: self.lkey() }
    }

    /// A place in it, for a peer.
    pub fn remote(&self, offset: u64) -> engine::wr::Remote {
        engine::wr::Remote { addr: self.addr + offset, rkey: self.rkey() }
    }
}

pub(crate) struct Endpoint {
    pub mac: Mac,
    pub v4: Gid,
    pub v6: Gid,
    pub memory: VecMemory,
    pub events: Arc<EventQueue>,
    /// One per worker. All but tests of moving QPs use the first only.
    pub engines: Vec<Engine<VecMemory>>,
    /// What the link does to frames, when somebody said so.
    pub link: Option<BadLink>,
    /// The transmitter is busy until then.
    pub busy_until: Nanos,
    /// Frames that the parser or the iCRC refused, by reason.
    pub refused: [u64; FrameError::ALL.len()],
    ip_id: u16,
    keys: u32,
    next_addr: u64,
}

/// Engines of an endpoint: enough to move a QP from one to the other.
pub(crate) const WORKERS: usize = 2;

impl Endpoint {
    pub fn new(number: u8) -> Endpoint {
        let memory = VecMemory::default();
        let events = Arc::new(EventQueue::new(256));
        let config = EngineConfig { max_qps: 64, max_mrs: 128, ..EngineConfig::default() };
        let mut v6 = [0; 16];
        (v6[0], v6[15]) = (0xFD, number);
        Endpoint {
            mac: Mac([2, 0, 0, 0, 0, number]),
            v4: Gid::from_v4([10, 0, 0, number]),
            v6: Gid(v6),
            engines: (0..WORKERS).map(|_| Engine::new(config, memory.clone(), events.clone())).collect(),
            memory,
            events,
            link: None,
            busy_until: 0,
            refused: [0; FrameError::ALL.len()],
            ip_id: 0,
            keys: 0,
            next_addr: 0x10_0000,
        }
    }

    /// A key that no other region here has: index from 1 up, the consumer's byte arbitrary.
    fn next_key(&mut self) -> u32 {
        self.keys += 1;
        self.keys << 8 | 0xA5
    }

    pub fn register(&mut self, endpoint: EndpointId, content: Vec<u8>, access: Access) -> Region {
        let (len, key) = (content.len() as u64, self.next_key());
        let addr = self.next_addr;
        // A gap, so that running over the end of one region does not lead into the next.
        self.next_addr += len.next_multiple_of(4096) + 4096;
        let id = self.memory.add(content);
        let mr = Arc::new(MemoryRegion::user(PD, id, key, addr, len, access));
        self.add(Region { endpoint, id, mr, addr, len })
    }

    /// A region for fast registration, in the free state.
    pub fn allocate_fast(&mut self, endpoint: EndpointId, content: Vec<u8>) -> Region {
        let (len, key) = (content.len() as u64, self.next_key());
        let id = self.memory.add(content);
        let mr = Arc::new(MemoryRegion::fast(PD, id, key, len));
        self.add(Region { endpoint, id, mr, addr: 0, len })
    }

    /// A memory window that is not bound.
    pub fn allocate_window(&mut self, mw_type: MwType) -> Arc<MemoryWindow> {
        let mw = Arc::new(MemoryWindow::new(PD, mw_type, self.next_key()));
        for engine in &mut self.engines {
            engine.add_mw(mw.clone());
        }
        mw
    }

    /// Takes a region's key and memory away, the memory first: packets meet both orders in real endpoints.
    pub fn deregister(&mut self, region: &Region) {
        self.memory.remove(region.id);
        for engine in &mut self.engines {
            engine.remove_mr(region.mr.index());
        }
    }

    /// When the link lets go of something.
    pub fn next_held(&self) -> Option<Nanos> {
        self.link.as_ref().and_then(BadLink::next_due)
    }

    fn add(&mut self, region: Region) -> Region {
        for engine in &mut self.engines {
            engine.add_mr(region.mr.clone());
        }
        region
    }

    /// The engine that has this QP.
    pub fn home(&mut self, qpn: Qpn) -> Option<&mut Engine<VecMemory>> {
        self.engines.iter_mut().find(|engine| engine.has_qp(qpn))
    }

    /// A frame arrives: parse, check, and on to the QP's engine. What no QP wants is the first engine's to count.
    pub fn receive(&mut self, now: Nanos, bytes: &[u8]) {
        let frame = match parse(bytes) {
            Ok(frame) => frame,
            Err(error) => return self.refused[error as usize] += 1,
        };
        let payload = &bytes[frame.payload_offset()..][..frame.payload_len()];
        let packet = RxPacket { frame: &frame, head: bytes, payload: Payload::contiguous(payload) };
        let home = self.engines.iter().position(|engine| engine.has_qp(frame.bth().dest_qpn));
        self.engines[home.unwrap_or(0)].on_packet(now, &packet);
    }

    /// Frames to send, at most `room`; true when there would be more.
    pub fn transmit(&mut self, now: Nanos, room: usize) -> (Vec<Vec<u8>>, bool) {
        let mut sink = FrameSink::new(&self.memory, room, &mut self.ip_id);
        let mut full = false;
        for engine in &mut self.engines {
            full |= engine.poll_transmit(now, &mut sink);
        }
        (sink.into_frames(), full)
    }

    pub fn next_timeout(&self) -> Option<Nanos> {
        self.engines.iter().filter_map(Engine::next_timeout).min()
    }

    pub fn on_timeout(&mut self, now: Nanos) {
        for engine in &mut self.engines {
            engine.on_timeout(now);
        }
    }

    pub fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for engine in &self.engines {
            sum.merge(&engine.counters());
        }
        sum
    }
}

/// The checks that a worker makes before the engine sees a frame.
pub(crate) fn parse(bytes: &[u8]) -> Result<Frame, FrameError> {
    let frame = Frame::parse(bytes, bytes.len())?;
    frame.verify_udp_checksum([bytes])?;
    frame.verify_icrc(bytes, [bytes])?;
    Ok(frame)
}
