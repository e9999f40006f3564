//! Two ports joined back to back by rings in memory: what one sends, the other receives, without a copy.
//!
//! The packets change owner inside the process, so a received packet comes from the *sender's* pool, and no
//! frame is too long for the receiver's buffers.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::{RING_F_EXACT_SZ, RING_F_SC_DEQ, RING_F_SP_ENQ, SOCKET_ID_ANY, rte_mbuf, rte_ring};

use crate::eal::{Device, Eal, EalError};
use crate::errno::Errno;
use crate::lend;
use crate::log;
use crate::port::PortId;
use crate::vdev::{VdevError, check_name};

/// The longest name of a ring in DPDK (RTE_RING_NAMESIZE: 32 less a prefix "RG_" and the NUL), less the
/// "_a_65535" added here.
const LONGEST_NAME: usize = 20;

/// The most queues the driver has room for (RTE_PMD_RING_MAX_RX_RINGS of DPDK's build).
const MOST_QUEUES: u16 = 16;
/// The largest ring worth asking for: DPDK rounds up to a power of two and counts in 31 bits.
const LARGEST_SIZE: u32 = 1 << 24;

/// The shape of a ring pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingConfig {
    /// Queues of each port, 1 to 16.
    pub queues: u16,
    /// Packets each queue holds, 1 to 2^24.
    pub size: u32,
    /// NUMA socket of the rings; `None` for any.
    pub socket: Option<u32>,
}

impl Default for RingConfig {
    /// One queue of 1024 packets.
    fn default() -> Self {
        RingConfig { queues: 1, size: 1024, socket: None }
    }
}

/// Why there is no ring pair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The name does not suit DPDK.
    #[error(transparent)]
    Name(#[from] VdevError),
    /// The name is too long for the rings' names made from it.
    #[error("the ring pair's name {0:?} is too long: at most {LONGEST_NAME} bytes")]
    LongName(String),
    /// There cannot be so many queues, or such large ones.
    #[error(
        "a ring pair of {queues} queues of {size} packets cannot be: 1 to {MOST_QUEUES} queues of 1 to {LARGEST_SIZE}"
    )]
    Shape {
        /// Queues asked for.
        queues: u16,
        /// Packets per queue asked for.
        size: u32,
    },
    /// A ring could not be made.
    #[error("no ring of {size} packets for {name}: {errno}; a name is used once, and memory must suffice")]
    Ring {
        /// The pair's name.
        name: String,
        /// Packets per ring asked for.
        size: u32,
        /// DPDK's reason.
        errno: Errno,
    },
    /// A port could not be made of the rings.
    #[error(transparent)]
    Port(#[from] EalError),
}

/// The rings behind a pair, freed when both ports are gone.
#[derive(Debug)]
pub(crate) struct Rings(Vec<NonNull<rte_ring>>);

// SAFETY: after creation the handles are only used by `drop`, by whichever thread lets go last.
unsafe impl Send for Rings {}
// SAFETY: nothing is done with them through a shared reference.
unsafe impl Sync for Rings {}

impl Rings {
    fn create(&mut self, name: &str, config: &RingConfig) -> Result<(), Errno> {
        let c_name = CString::new(name).map_err(|_| Errno::EINVAL)?;
        let socket = config.socket.map_or(SOCKET_ID_ANY, |socket| socket as i32);
        // One producer and one consumer: a queue handle has one owner, and it takes `&mut` to use it.
        let flags = RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ;
        // SAFETY: EAL is started, the name outlives the call, and the size is in range.
        let ring = unsafe { dpdk_sys::rte_ring_create(c_name.as_ptr(), config.size, socket, flags) };
        self.0.push(NonNull::new(ring).ok_or_else(Errno::last)?);
        Ok(())
    }

    fn pointers(&self, queues: u16, second: bool) -> Vec<*mut rte_ring> {
        let half = usize::from(queues);
        let rings = if second { &self.0[half..] } else { &self.0[..half] };
        rings.iter().map(|ring| ring.as_ptr()).collect()
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        for ring in &self.0 {
            let mut packets = [std::ptr::null_mut::<rte_mbuf>(); 32];
            loop {
                let slots = packets.as_mut_ptr().cast();
                let none = std::ptr::null_mut();
                // SAFETY: both ports are closed, so this thread is the only consumer; 32 slots are given.
                let n = unsafe { dpdk_sys::rte_ring_dequeue_burst(ring.as_ptr(), slots, 32, none) };
                if n == 0 {
                    break;
                }
                // SAFETY: what lies in a port's ring are sent packets, which the ring owned until now.
                unsafe { dpdk_sys::shim_free_bulk(packets.as_mut_ptr(), n, lend::in_one_flag()) };
            }
            // SAFETY: nothing refers to the ring any more.
            unsafe { dpdk_sys::rte_ring_free(ring.as_ptr()) };
        }
    }
}

/// Makes two ports, `net_ring_NAME_a` and `net_ring_NAME_b`, joined queue by queue: what `a` sends on its queue
/// i arrives at `b`'s queue i, and the other way round. Open both with [`crate::Port::open`].
pub fn ring_pair(eal: &Eal, name: &str, config: &RingConfig) -> Result<(PortId, PortId), RingError> {
    if check_name(name)?.len() > LONGEST_NAME {
        return Err(RingError::LongName(name.to_owned()));
    }
    let (queues, size) = (config.queues, config.size);
    if !(1..=MOST_QUEUES).contains(&queues) || !(1..=LARGEST_SIZE).contains(&size) {
        return Err(RingError::Shape { queues, size });
    }
    let mut rings = Rings(Vec::new());
    for direction in ["a", "b"] {
        for queue in 0..config.queues {
            rings
                .create(&format!("{name}_{direction}_{queue}"), config)
                .map_err(|errno| RingError::Ring { name: name.to_owned(), size: config.size, errno })?;
        }
    }
    let (to_b, to_a) = (rings.pointers(config.queues, false), rings.pointers(config.queues, true));
    let rings = Arc::new(rings);
    let a = port_from_rings(eal, &format!("{name}_a"), &to_a, &to_b, &rings, config)?;
    match port_from_rings(eal, &format!("{name}_b"), &to_b, &to_a, &rings, config) {
        Ok(b) => Ok((a, b)),
        Err(error) => {
            eal.remove_vdev(a);
            Err(error.into())
        }
    }
}

fn port_from_rings(
    eal: &Eal,
    name: &str,
    rx: &[*mut rte_ring],
    tx: &[*mut rte_ring],
    rings: &Arc<Rings>,
    config: &RingConfig,
) -> Result<PortId, EalError> {
    let mut ports = eal.ports();
    log::forget();
    let device = format!("net_ring_{name}"); // The name rte_eth_from_rings gives it.
    let c_name = CString::new(name).map_err(|_| EalError::NulInArgument(name.to_owned()))?;
    let queues = u32::from(config.queues);
    let socket = config.socket.unwrap_or(0);
    // SAFETY: both arrays hold `queues` living rings, kept by `rings` until the port is closed.
    let rc = unsafe {
        dpdk_sys::rte_eth_from_rings(c_name.as_ptr(), rx.as_ptr(), queues, tx.as_ptr(), queues, socket)
    };
    let port = u16::try_from(rc).map(PortId).map_err(|_| EalError::device(device.clone(), Errno::last()))?;
    ports.unopened.insert(port, Device { name: device, longest_frame: None, rings: Some(Arc::clone(rings)) });
    Ok(port)
}
