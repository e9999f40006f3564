//! Two connected ends, driven by one thread, and bytes that tell where they belong.

use super::way::Way;
use crate::cli::failure::Failure;
use rockhopper::{Access, ConnectOptions, Cq, Cqe, Device, Mr, Pd, Qp, QpOptions, QpType, RecvWr};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Bytes of each end's memory.
pub const MEMORY: usize = 2 << 20;
/// Longer than any operation takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// A message that has not arrived after so long is lost.
const LOST: Duration = Duration::from_millis(50);
/// The longest message where messages get lost: a few packets.
const SHORT: usize = 16_384;
/// Times that a message is sent where messages get lost.
const TRIES: usize = 200;

/// What a peer may do with an end's memory.
pub const EVERYTHING: Access = Access::LOCAL_WRITE
    .union(Access::REMOTE_WRITE)
    .union(Access::REMOTE_READ)
    .union(Access::REMOTE_ATOMIC)
    .union(Access::FLUSH_GLOBAL)
    .union(Access::MW_BIND);

/// One end.
pub struct End {
    pub device: Device,
    pub pd: Pd,
    pub cq: Cq,
    pub qp: Qp,
    pub mr: Mr,
    pub options: ConnectOptions,
}

impl End {
    fn new(device: &Device, qp_type: QpType, sgid_index: usize) -> Result<End, Failure> {
        let pd = device.alloc_pd();
        let cq = device.create_cq(512)?;
        let qp = pd.create_qp(&QpOptions::new(qp_type, &cq))?;
        let mr = pd.reg_mr(MEMORY, EVERYTHING)?;
        let options = ConnectOptions { sgid_index: Some(sgid_index), ..ConnectOptions::default() };
        Ok(End { device: device.clone(), pd, cq, qp, mr, options })
    }

    /// Bytes of its memory.
    pub fn bytes(&self, at: usize, len: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = vec![0; len];
        self.mr.read(at, &mut bytes)?;
        Ok(bytes)
    }
}

/// Two connected ends.
pub struct Pair {
    pub near: End,
    pub far: End,
    /// Messages may get lost: the link is spoiled on purpose, and the service does not repeat them.
    lossy: bool,
    /// A receive waits at the far end.
    waits: Cell<bool>,
}

impl Pair {
    /// `spoiled`: the link between them is.
    pub fn connect(
        near: &Device,
        far: &Device,
        qp_type: QpType,
        way: &Way,
        spoiled: bool,
    ) -> Result<Pair, Failure> {
        let [near, far] = [End::new(near, qp_type, way.near)?, End::new(far, qp_type, way.far)?];
        let lossy = spoiled && qp_type != QpType::Rc;
        let pair = Pair { near, far, lossy, waits: Cell::new(false) };
        if qp_type == QpType::Ud {
            pair.near.qp.activate(&pair.near.options)?;
            pair.far.qp.activate(&pair.far.options)?;
        } else {
            pair.join(&pair.near.qp, &pair.far.qp)?;
        }
        Ok(pair)
    }

    /// Connects a queue pair of the near end with one of the far end.
    pub fn join(&self, near: &Qp, far: &Qp) -> Result<(), Failure> {
        far.connect(&near.info(&self.near.options), &self.far.options)?;
        near.connect(&far.info(&self.far.options), &self.near.options)?;
        Ok(())
    }

    /// The longest datagram between them, in bytes.
    pub fn longest_datagram(&self) -> usize {
        self.near.device.path_mtu().min(self.far.device.path_mtu()).bytes() as usize
    }

    /// Sends a message and checks what arrived. Where messages get lost it is sent until it has arrived whole: one of them
    /// that is late can be taken for the next, so a wrong one is no fault there.
    pub fn until_whole(&self, attempt: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
        let mut outcome = attempt();
        for _ in 1..if self.lossy { TRIES } else { 1 } {
            if outcome.is_ok() {
                break;
            }
            outcome = attempt();
        }
        outcome
    }

    /// Of `lengths`, which ascend, those that are tried: where messages get lost a long one never arrives whole.
    pub fn lengths<'a>(&self, lengths: &'a [usize]) -> &'a [usize] {
        let short = lengths.partition_point(|&len| len <= SHORT);
        if self.lossy { &lengths[..short] } else { lengths }
    }

    /// Posts a receive at the far end, unless that of a lost message still waits there.
    pub fn expect(&self, receive: RecvWr) -> Result<(), Failure> {
        if !self.waits.replace(true) {
            self.far.qp.post_recv(receive)?;
        }
        Ok(())
    }

    /// The completion of the far end's receive.
    pub fn received(&self) -> Result<Cqe, Failure> {
        let cqe = self.completion(&self.far, if self.lossy { LOST } else { PATIENCE })?;
        self.waits.set(false);
        Ok(cqe)
    }

    /// The next completion of an end, which has to be a success.
    pub fn done(&self, end: &End) -> Result<Cqe, Failure> {
        self.completion(end, PATIENCE)
    }

    fn completion(&self, end: &End, patience: Duration) -> Result<Cqe, Failure> {
        let begin = Instant::now();
        while begin.elapsed() < patience {
            if let Some(cqe) = end.cq.poll_one() {
                if cqe.is_success() {
                    return Ok(cqe);
                }
                return Err(Failure::Run(format!("request {} ended with {:?}", cqe.wr_id, cqe.status)));
            }
            self.near.device.drive();
            self.far.device.drive();
        }
        Err(Failure::Run(format!("no completion within {patience:?}")))
    }
}

/// `len` bytes that differ from place to place and from message to message.
pub fn pattern(message: u64, len: usize) -> Vec<u8> {
    let word =
        |at: u64| (at ^ message << 40).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    (0..len.div_ceil(8) as u64).flat_map(|at| word(at).to_le_bytes()).take(len).collect()
}
