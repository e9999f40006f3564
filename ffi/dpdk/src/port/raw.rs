//! DPDK's port functions as safe Rust: one function per C function, errors as [`Errno`].
//!
//! All of them check the port number themselves and answer with an error for one that does not exist, so the
//! only obligations are valid pointers, which live here, and one caller at a time per port, which
//! [`super::OpenPort`] and the lock in [`crate::Eal`] see to.

use std::ffi::{CStr, CString, c_char};

use dpdk_sys as sys;

use super::stats::PortStats;
use super::{Link, MacAddr, PortId};
use crate::errno::Errno;
use crate::mempool::Mempool;

type Result<T> = std::result::Result<T, Errno>;

pub(crate) fn by_name(name: &str) -> Result<PortId> {
    let name = CString::new(name).map_err(|_| Errno::ENODEV)?;
    let mut port = 0;
    // SAFETY: a C string in, a number out.
    Errno::check(unsafe { sys::rte_eth_dev_get_port_by_name(name.as_ptr(), &mut port) })?;
    Ok(PortId(port))
}

pub(crate) fn all() -> Vec<PortId> {
    let mut ports = Vec::new();
    let mut next = 0u16;
    loop {
        // SAFETY: any number may be given; one past the last port ends the walk.
        next = unsafe { sys::rte_eth_find_next(next) };
        if u32::from(next) >= sys::RTE_MAX_ETHPORTS {
            return ports;
        }
        ports.push(PortId(next));
        next += 1;
    }
}

pub(crate) fn exists(port: PortId) -> bool {
    // SAFETY: any number may be given.
    unsafe { sys::rte_eth_dev_is_valid_port(port.0) == 1 }
}

pub(crate) fn name(port: PortId) -> Result<String> {
    let mut text = [0 as c_char; sys::RTE_ETH_NAME_MAX_LEN as usize];
    // SAFETY: the buffer has the size the function asks for.
    Errno::check(unsafe { sys::rte_eth_dev_get_name_by_port(port.0, text.as_mut_ptr()) })?;
    Ok(c_text(&text))
}

pub(super) fn info(port: PortId) -> Result<sys::rte_eth_dev_info> {
    let mut info = sys::rte_eth_dev_info::default();
    // SAFETY: `info` is ours to be filled.
    Errno::check(unsafe { sys::rte_eth_dev_info_get(port.0, &mut info) })?;
    Ok(info)
}

/// The driver's name of a port's info.
pub(super) fn driver(info: &sys::rte_eth_dev_info) -> String {
    if info.driver_name.is_null() {
        return String::new();
    }
    // SAFETY: a driver's name is a C string in its library, which stays loaded.
    unsafe { CStr::from_ptr(info.driver_name) }.to_string_lossy().into_owned()
}

/// The NUMA socket, if the device has one.
pub(super) fn socket(port: PortId) -> Option<u32> {
    // SAFETY: any number may be given.
    u32::try_from(unsafe { sys::rte_eth_dev_socket_id(port.0) }).ok()
}

pub(super) fn configure(port: PortId, queues: u16, config: &sys::rte_eth_conf) -> Result<()> {
    // SAFETY: `config` is read during the call only.
    Errno::check(unsafe { sys::rte_eth_dev_configure(port.0, queues, queues, config) }).map(drop)
}

/// The numbers of descriptors that the driver makes of those asked for.
pub(super) fn adjust_descriptors(port: PortId, mut rx: u16, mut tx: u16) -> Result<(u16, u16)> {
    // SAFETY: two numbers in and out.
    Errno::check(unsafe { sys::rte_eth_dev_adjust_nb_rx_tx_desc(port.0, &mut rx, &mut tx) })?;
    Ok((rx, tx))
}

pub(super) fn setup_rx(
    port: PortId,
    queue: u16,
    descriptors: u16,
    config: &sys::rte_eth_rxconf,
    pool: &Mempool,
) -> Result<()> {
    let socket = socket(port).unwrap_or(0);
    // SAFETY: `config` is read during the call only, and a pool lives until DPDK is shut down.
    let rc = unsafe { sys::rte_eth_rx_queue_setup(port.0, queue, descriptors, socket, config, pool.raw()) };
    Errno::check(rc).map(drop)
}

pub(super) fn setup_tx(
    port: PortId,
    queue: u16,
    descriptors: u16,
    config: &sys::rte_eth_txconf,
) -> Result<()> {
    let socket = socket(port).unwrap_or(0);
    // SAFETY: `config` is read during the call only.
    let rc = unsafe { sys::rte_eth_tx_queue_setup(port.0, queue, descriptors, socket, config) };
    Errno::check(rc).map(drop)
}

pub(super) fn start(port: PortId) -> Result<()> {
    // SAFETY: any number may be given.
    Errno::check(unsafe { sys::rte_eth_dev_start(port.0) }).map(drop)
}

/// Stops the port. No thread may be in a burst on it: queue handles keep their port from being stopped.
pub(crate) fn stop(port: PortId) -> Result<()> {
    // SAFETY: any number may be given; see above for bursts.
    Errno::check(unsafe { sys::rte_eth_dev_stop(port.0) }).map(drop)
}

/// Closes a stopped port; its number becomes invalid.
pub(crate) fn close(port: PortId) -> Result<()> {
    // SAFETY: any number may be given.
    Errno::check(unsafe { sys::rte_eth_dev_close(port.0) }).map(drop)
}

pub(super) fn mtu(port: PortId) -> Result<u16> {
    let mut mtu = 0;
    // SAFETY: a number out.
    Errno::check(unsafe { sys::rte_eth_dev_get_mtu(port.0, &mut mtu) })?;
    Ok(mtu)
}

pub(super) fn set_mtu(port: PortId, mtu: u16) -> Result<()> {
    // SAFETY: any number may be given.
    Errno::check(unsafe { sys::rte_eth_dev_set_mtu(port.0, mtu) }).map(drop)
}

/// The MTU of a kernel interface by its index; `None` if there is no such interface.
pub(super) fn interface_mtu(index: u32) -> Option<u16> {
    // SAFETY: opens and closes a socket of its own; any index may be given.
    let mtu = unsafe { sys::shim_interface_mtu(index) };
    // The loopback interface has 65536.
    (mtu > 0).then(|| u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// The name of a kernel interface by its index; `None` if there is no such interface.
pub(super) fn interface_name(index: u32) -> Option<String> {
    let mut name = [0 as c_char; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size the function asks for; any index may be given.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    (!found.is_null()).then(|| c_text(&name))
}

pub(super) fn mac(port: PortId) -> Result<MacAddr> {
    let mut mac = sys::rte_ether_addr::default();
    // SAFETY: an address out.
    Errno::check(unsafe { sys::rte_eth_macaddr_get(port.0, &mut mac) })?;
    Ok(mac.addr_bytes)
}

pub(super) fn add_mac(port: PortId, mac: MacAddr) -> Result<()> {
    let mut mac = sys::rte_ether_addr { addr_bytes: mac };
    // SAFETY: the address is read during the call only; pool 0 is the port itself.
    Errno::check(unsafe { sys::rte_eth_dev_mac_addr_add(port.0, &mut mac, 0) }).map(drop)
}

pub(super) fn remove_mac(port: PortId, mac: MacAddr) -> Result<()> {
    let mut mac = sys::rte_ether_addr { addr_bytes: mac };
    // SAFETY: the address is read during the call only.
    Errno::check(unsafe { sys::rte_eth_dev_mac_addr_remove(port.0, &mut mac) }).map(drop)
}

pub(super) fn set_multicast(port: PortId, groups: &[MacAddr]) -> Result<()> {
    let mut list: Vec<_> = groups.iter().map(|&addr_bytes| sys::rte_ether_addr { addr_bytes }).collect();
    let count = u32::try_from(list.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: `count` addresses, read during the call only.
    Errno::check(unsafe { sys::rte_eth_dev_set_mc_addr_list(port.0, list.as_mut_ptr(), count) }).map(drop)
}

pub(super) fn set_promiscuous(port: PortId, on: bool) -> Result<()> {
    // SAFETY: any number may be given.
    let rc = unsafe {
        if on { sys::rte_eth_promiscuous_enable(port.0) } else { sys::rte_eth_promiscuous_disable(port.0) }
    };
    Errno::check(rc).map(drop)
}

pub(super) fn promiscuous(port: PortId) -> bool {
    // SAFETY: any number may be given.
    unsafe { sys::rte_eth_promiscuous_get(port.0) == 1 }
}

pub(super) fn enable_allmulticast(port: PortId) -> Result<()> {
    // SAFETY: any number may be given.
    Errno::check(unsafe { sys::rte_eth_allmulticast_enable(port.0) }).map(drop)
}

pub(super) fn allmulticast(port: PortId) -> bool {
    // SAFETY: any number may be given.
    unsafe { sys::rte_eth_allmulticast_get(port.0) == 1 }
}

pub(super) fn link(port: PortId) -> Result<Link> {
    let (mut speed, mut up, mut full_duplex) = (0u32, 0, 0);
    // SAFETY: three numbers out.
    Errno::check(unsafe { sys::shim_link(port.0, &mut speed, &mut up, &mut full_duplex) })?;
    const UNKNOWN: u32 = u32::MAX; // RTE_ETH_SPEED_NUM_UNKNOWN
    let speed_mbps = (speed != 0 && speed != UNKNOWN).then_some(speed);
    Ok(Link { up: up != 0, speed_mbps, full_duplex: full_duplex != 0 })
}

pub(super) fn stats(port: PortId) -> Result<PortStats> {
    let mut raw = sys::rte_eth_stats::default();
    // SAFETY: `raw` is ours to be filled.
    Errno::check(unsafe { sys::rte_eth_stats_get(port.0, &mut raw) })?;
    Ok(PortStats {
        rx_packets: raw.ipackets,
        tx_packets: raw.opackets,
        rx_bytes: raw.ibytes,
        tx_bytes: raw.obytes,
        rx_missed: raw.imissed,
        rx_errors: raw.ierrors,
        tx_errors: raw.oerrors,
        rx_no_mbuf: raw.rx_nombuf,
    })
}

/// The driver's own counters by name.
pub(super) fn xstats(port: PortId) -> Result<Vec<(String, u64)>> {
    // SAFETY: asks for the number of counters, without an array.
    let count = Errno::check(unsafe { sys::rte_eth_xstats_get_names(port.0, std::ptr::null_mut(), 0) })?;
    let mut names = vec![sys::rte_eth_xstat_name::default(); count as usize];
    let mut values = vec![sys::rte_eth_xstat::default(); count as usize];
    let count = count as u32;
    // SAFETY: the array has `count` places.
    let named = Errno::check(unsafe { sys::rte_eth_xstats_get_names(port.0, names.as_mut_ptr(), count) })?;
    // SAFETY: the array has `count` places.
    let valued = Errno::check(unsafe { sys::rte_eth_xstats_get(port.0, values.as_mut_ptr(), count) })?;
    // A larger number than the places given means that counters appeared meanwhile and nothing was filled.
    if named as u32 > count || valued as u32 > count {
        return Err(Errno::EBUSY);
    }
    let of = |value: &sys::rte_eth_xstat| {
        names.get(value.id as usize).map(|name| (c_text(&name.name), value.value))
    };
    Ok(values[..valued as usize].iter().filter_map(of).collect())
}

/// A C string in a fixed array.
fn c_text(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
