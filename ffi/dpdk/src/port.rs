//! Ports: network devices, physical or virtual, opened with what their driver offers.

mod config;
mod quirks;
pub(crate) mod raw;
mod stats;
mod tap;

pub use config::{Negotiated, PortConfig};
pub use stats::PortStats;
pub(crate) use tap::Tap;

use std::fmt;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys as sys;

use crate::eal::{Device, Eal, close_device, in_parentheses};
use crate::errno::Errno;
use crate::lend;
use crate::log;
use crate::mempool::Mempool;
use crate::queue::{RxQueue, TxQueue};
use config::{MtuLimits, Offer, Plan};

/// DPDK's number of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u16);

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}", self.0)
    }
}

/// An Ethernet address in transmission order.
pub type MacAddr = [u8; 6];

/// State of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether packets can pass.
    pub up: bool,
    /// Speed in Mb/s, if the driver knows one. Virtual devices name a fantasy.
    pub speed_mbps: Option<u32>,
    /// Whether both directions work at once.
    pub full_duplex: bool,
}

/// A port that exists, open or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Its number.
    pub id: PortId,
    /// Its name: a PCI address or a virtual device's name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Its address.
    pub mac: MacAddr,
    /// Its NUMA socket, if it has one.
    pub socket: Option<u32>,
}

/// Why a port cannot be used as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// There is no such port.
    #[error(
        "there is no port {0}; add it as a virtual device, or allow its PCI address and bind it to a DPDK driver"
    )]
    NoSuchPort(String),
    /// It is open already.
    #[error("{0} is open already; close it first")]
    AlreadyOpen(PortId),
    /// The configuration contradicts itself.
    #[error("{port} cannot be opened: {why}")]
    Config {
        /// The port.
        port: PortId,
        /// What is wrong.
        why: String,
    },
    /// The driver refused a step.
    #[error("{port} ({driver}) refuses to {step}: {errno}{}", in_parentheses(said))]
    Driver {
        /// The port.
        port: PortId,
        /// Its driver.
        driver: String,
        /// What it was to do.
        step: &'static str,
        /// Its reason as a number.
        errno: Errno,
        /// What the driver printed.
        said: String,
    },
}

/// An open, started port.
///
/// It is stopped and closed, and a virtual device is removed, when the `Port` and all its queues are dropped.
#[derive(Debug)]
pub struct Port {
    open: Arc<OpenPort>,
    queues: Vec<(RxQueue, TxQueue)>,
}

/// What a port and its queues share.
#[derive(Debug)]
pub(crate) struct OpenPort {
    id: PortId,
    name: String,
    negotiated: Negotiated,
    /// DPDK's port functions want one caller at a time.
    control: Mutex<()>,
    /// The virtual device to remove with it.
    device: Mutex<Option<Device>>,
    eal: Eal,
    /// Kept so that a pool is not taken over by another port while this one fills its queue from it.
    _pools: Vec<Arc<Mempool>>,
}

/// All ports that exist, by number.
pub fn ports(_started: &Eal) -> Vec<PortInfo> {
    let describe = |id| {
        let info = raw::info(id).ok()?;
        Some(PortInfo {
            id,
            name: raw::name(id).ok()?,
            driver: raw::driver(&info),
            mac: raw::mac(id).unwrap_or_default(),
            socket: raw::socket(id),
        })
    };
    raw::all().into_iter().filter_map(describe).collect()
}

/// The port of a name: a PCI address or a virtual device's name.
pub fn find(_started: &Eal, name: &str) -> Result<PortId, PortError> {
    raw::by_name(name).map_err(|_| PortError::NoSuchPort(name.to_owned()))
}

impl Port {
    /// Opens and starts a port. `pools` is one pool for all queues or one per queue asked for.
    ///
    /// Wishes in `config` that the driver cannot fulfil are reduced; see [`Port::negotiated`]. Errors are for
    /// what leaves no working port.
    pub fn open(
        eal: &Eal,
        id: PortId,
        config: &PortConfig,
        pools: &[Arc<Mempool>],
    ) -> Result<Port, PortError> {
        let mut ports = eal.ports();
        if ports.open.contains(&id) {
            return Err(PortError::AlreadyOpen(id));
        }
        if !raw::exists(id) {
            return Err(PortError::NoSuchPort(id.0.to_string()));
        }
        check(id, config, pools)?;
        log::forget();
        let name = raw::name(id).unwrap_or_default();
        let longest_frame = ports.unopened.get(&id).and_then(|device| device.longest_frame);
        let mut opening = Opening::new(id, longest_frame)?;
        let negotiated = opening.run(config, pools)?;
        let trigger = tap::Trigger::instead_of_signals(&opening.driver, opening.info.if_index);
        ports.open.insert(id);
        let open = Arc::new(OpenPort {
            id,
            name,
            negotiated,
            control: Mutex::new(()),
            device: Mutex::new(ports.unopened.remove(&id)),
            eal: eal.clone(),
            _pools: pools.to_vec(),
        });
        let count = open.negotiated.queues;
        let passes_on = quirks::passes_on(&open.negotiated.driver);
        let queue = |n: u16| {
            let pool = pools.get(usize::from(n)).unwrap_or(&pools[0]);
            let taken_into = passes_on.then(|| Arc::clone(pool));
            let file = opening.rx_files.get(usize::from(n)).copied().flatten();
            let tap = trigger.map(|trigger| trigger.queue(file));
            let in_one = passes_on && lend::in_one_flag() != 0;
            (RxQueue::new(&open, n, taken_into, tap), TxQueue::new(&open, n, in_one))
        };
        let queues = (0..count).map(queue).collect();
        Ok(Port { open, queues })
    }

    /// Hands out the queues, RX and TX in pairs by number. A second call gives none.
    pub fn take_queues(&mut self) -> Vec<(RxQueue, TxQueue)> {
        std::mem::take(&mut self.queues)
    }

    /// Its number.
    pub fn id(&self) -> PortId {
        self.open.id
    }

    /// Its name: a PCI address or a virtual device's name.
    pub fn name(&self) -> &str {
        &self.open.name
    }

    /// What it was opened with.
    pub fn negotiated(&self) -> &Negotiated {
        &self.open.negotiated
    }

    /// Its address.
    pub fn mac(&self) -> Result<MacAddr, PortError> {
        self.control("tell its address", raw::mac)
    }

    /// The state of its link, without waiting.
    pub fn link(&self) -> Result<Link, PortError> {
        self.control("tell its link state", raw::link)
    }

    /// The largest IP packet that passes now, as the driver tells; for a port on a kernel interface see
    /// [`Negotiated::mtu`].
    pub fn mtu(&self) -> Result<u16, PortError> {
        self.control("tell its MTU", raw::mtu)
    }

    /// Changes the MTU and returns what the driver made of it. Many drivers refuse while the port runs.
    pub fn set_mtu(&self, mtu: u16) -> Result<u16, PortError> {
        self.control("change its MTU", |id| raw::set_mtu(id, mtu).and_then(|()| raw::mtu(id)))
    }

    /// Receives frames for other addresses too, or stops doing so.
    pub fn set_promiscuous(&self, on: bool) -> Result<(), PortError> {
        self.control("change promiscuous mode", |id| raw::set_promiscuous(id, on))
    }

    /// Receives frames for a further address.
    pub fn add_mac(&self, mac: MacAddr) -> Result<(), PortError> {
        self.control("add an address", |id| raw::add_mac(id, mac))
    }

    /// Stops receiving frames for an address added before.
    pub fn remove_mac(&self, mac: MacAddr) -> Result<(), PortError> {
        self.control("remove an address", |id| raw::remove_mac(id, mac))
    }

    /// Receives frames for exactly these multicast groups.
    pub fn set_multicast(&self, groups: &[MacAddr]) -> Result<(), PortError> {
        self.control("filter multicast groups", |id| raw::set_multicast(id, groups))
    }

    /// Counters every driver has.
    pub fn stats(&self) -> Result<PortStats, PortError> {
        self.control("count", raw::stats)
    }

    /// The driver's own counters, by name.
    pub fn xstats(&self) -> Result<Vec<(String, u64)>, PortError> {
        self.control("name its counters", raw::xstats)
    }

    fn control<T>(
        &self,
        step: &'static str,
        run: impl FnOnce(PortId) -> Result<T, Errno>,
    ) -> Result<T, PortError> {
        let _one_at_a_time = self.open.lock();
        run(self.open.id).map_err(|errno| PortError::Driver {
            port: self.open.id,
            driver: self.open.negotiated.driver.clone(),
            step,
            errno,
            said: String::new(),
        })
    }
}

impl OpenPort {
    pub(crate) fn id(&self) -> PortId {
        self.id
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenPort {
    /// No queue handle exists any more, so nobody is in a burst.
    fn drop(&mut self) {
        let mut ports = self.eal.ports();
        // A failure leaves a port that the end of the process closes; there is nobody to tell.
        let _ = raw::stop(self.id);
        match self.device.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Some(device) => close_device(self.id, device),
            None => {
                let _ = raw::close(self.id);
            }
        }
        ports.open.remove(&self.id);
    }
}

fn check(port: PortId, config: &PortConfig, pools: &[Arc<Mempool>]) -> Result<(), PortError> {
    let refuse = |why: String| Err(PortError::Config { port, why });
    if config.queues == 0 {
        return refuse("it needs at least one queue".into());
    }
    match pools.len() {
        1 => Ok(()),
        n if n == usize::from(config.queues) => Ok(()),
        n => refuse(format!("{n} pools for {} queues; give one pool or one per queue", config.queues)),
    }
}

/// A port on its way from probed to started.
struct Opening {
    id: PortId,
    info: sys::rte_eth_dev_info,
    driver: String,
    /// See [`Device::longest_frame`].
    longest_frame: Option<u16>,
    /// By queue: what a tap's queue reads.
    rx_files: Vec<Option<RawFd>>,
}

impl Opening {
    fn new(id: PortId, longest_frame: Option<u16>) -> Result<Opening, PortError> {
        match raw::info(id) {
            Ok(info) => {
                Ok(Opening { id, driver: raw::driver(&info), info, longest_frame, rx_files: Vec::new() })
            }
            Err(_) => Err(PortError::NoSuchPort(id.0.to_string())),
        }
    }

    fn run(&mut self, config: &PortConfig, pools: &[Arc<Mempool>]) -> Result<Negotiated, PortError> {
        let data_room = pools.iter().map(|pool| pool.data_room()).min().unwrap_or(0);
        let always_chains = quirks::always_chains(&self.driver);
        let limits = MtuLimits {
            data_room,
            longest_frame: self.longest_frame,
            actual: quirks::actual_mtu(&self.driver, &self.info),
            always_chains,
        };
        let plan = Plan::make(config, &Offer::of(&self.info), &limits);
        self.configure(&plan)?;
        let rx_asked = quirks::rx_descriptors(&self.driver, config.rx_descriptors, data_room);
        let (rx_descriptors, tx_descriptors) =
            raw::adjust_descriptors(self.id, rx_asked, config.tx_descriptors)
                .map_err(|errno| self.error("take descriptors", errno))?;
        self.setup_queues(&plan, rx_descriptors, tx_descriptors, pools)?;
        let mtu = match plan.actual_mtu {
            Some(mtu) => mtu,
            None => self.settle_mtu(&plan)?,
        };
        raw::start(self.id).map_err(|errno| self.error("start", errno))?;
        if config.promiscuous {
            let _ = raw::set_promiscuous(self.id, true); // The result is read back below.
        }
        if config.allmulticast {
            let _ = raw::enable_allmulticast(self.id);
        }
        let rx = |flag: u64| plan.rx_offloads & flag != 0;
        Ok(Negotiated {
            driver: self.driver.clone(),
            queues_asked: config.queues,
            queues: plan.queues,
            rx_descriptors,
            tx_descriptors,
            mtu_asked: config.mtu,
            mtu,
            max_rx_pktlen: self.info.max_rx_pktlen,
            scatter: always_chains || rx(sys::SHIM_RX_OFFLOAD_SCATTER),
            rx_checksum: rx(sys::SHIM_RX_OFFLOAD_IPV4_CKSUM) && rx(sys::SHIM_RX_OFFLOAD_UDP_CKSUM),
            vlan_strip: rx(sys::SHIM_RX_OFFLOAD_VLAN_STRIP),
            rss: plan.rss_flows != 0,
            rss_hash: rx(sys::SHIM_RX_OFFLOAD_RSS_HASH),
            tx_lends: quirks::reads_in_place(&self.driver)
                && plan.tx_offloads & sys::SHIM_TX_OFFLOAD_MULTI_SEGS != 0,
            tx_multi_segs: plan.tx_offloads & sys::SHIM_TX_OFFLOAD_MULTI_SEGS != 0,
            promiscuous: raw::promiscuous(self.id),
            allmulticast: raw::allmulticast(self.id),
        })
    }

    /// Configures the port with the largest MTU it takes.
    fn configure(&self, plan: &Plan) -> Result<(), PortError> {
        let mut refused = Errno::EINVAL;
        for &mtu in &plan.mtus {
            let mut config = sys::rte_eth_conf::default();
            config.rxmode.mtu = u32::from(mtu);
            config.rxmode.offloads = plan.rx_offloads;
            config.txmode.offloads = plan.tx_offloads;
            if plan.rss_flows != 0 {
                config.rxmode.mq_mode = sys::rte_eth_rx_mq_mode_RTE_ETH_MQ_RX_RSS;
                config.rx_adv_conf.rss_conf.rss_hf = plan.rss_flows;
            }
            match raw::configure(self.id, plan.queues, &config) {
                Ok(()) => return Ok(()),
                // What DPDK answers to an MTU it does not like; anything else does not get better by a smaller.
                Err(Errno::EINVAL) => refused = Errno::EINVAL,
                Err(errno) => return Err(self.error("be configured", errno)),
            }
        }
        Err(self.error("be configured", refused))
    }

    fn setup_queues(
        &mut self,
        plan: &Plan,
        rx_descriptors: u16,
        tx_descriptors: u16,
        pools: &[Arc<Mempool>],
    ) -> Result<(), PortError> {
        // The driver's defaults, plus the offloads: some drivers read them per queue.
        let mut rx = self.info.default_rxconf;
        rx.offloads = plan.rx_offloads;
        let mut tx = self.info.default_txconf;
        tx.offloads = plan.tx_offloads;
        for queue in 0..plan.queues {
            let pool = pools.get(usize::from(queue)).unwrap_or(&pools[0]);
            let before = tap::taps(&self.driver, self.info.if_index);
            raw::setup_rx(self.id, queue, rx_descriptors, &rx, pool)
                .map_err(|errno| self.error("set up an RX queue", errno))?;
            let after = tap::taps(&self.driver, self.info.if_index);
            self.rx_files.push(after.into_iter().find(|file| !before.contains(file)));
            raw::setup_tx(self.id, queue, tx_descriptors, &tx)
                .map_err(|errno| self.error("set up a TX queue", errno))?;
        }
        Ok(())
    }

    /// Sets the MTU once more by its own function and asks what came of it.
    ///
    /// Some drivers apply an MTU only there, some only when configured. A refusal as such is not an error: the
    /// driver says below what holds.
    fn settle_mtu(&self, plan: &Plan) -> Result<u16, PortError> {
        let configured = raw::mtu(self.id).map_err(|errno| self.error("tell its MTU", errno))?;
        for &mtu in plan.mtus.iter().filter(|&&mtu| mtu <= configured) {
            match raw::set_mtu(self.id, mtu) {
                Err(Errno::EINVAL) => continue,
                Ok(()) | Err(_) => break,
            }
        }
        raw::mtu(self.id).map_err(|errno| self.error("tell its MTU", errno))
    }

    fn error(&self, step: &'static str, errno: Errno) -> PortError {
        PortError::Driver { port: self.id, driver: self.driver.clone(), step, errno, said: log::said() }
    }
}
