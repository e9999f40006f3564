//! Ports that borrow a network interface of the kernel, whose MTU is the machine's business.
//!
//! `net_af_packet` sets the interface's MTU when its own is set, and (in 22.11) takes 1500 at most although longer
//! frames pass. So for these drivers the port's MTU is left alone, and the interface's MTU is what counts.

use dpdk_sys as sys;

/// Drivers on an interface that was there before. (`net_tap` makes its own, and may set its MTU.)
const BORROWING: [&str; 3] = ["net_af_packet", "net_af_xdp", "net_pcap"];

/// The MTU of the kernel interface that a port borrows, if it borrows one.
pub(super) fn borrowed_mtu(driver: &str, info: &sys::rte_eth_dev_info) -> Option<u16> {
    if info.if_index == 0 || !BORROWING.contains(&driver) {
        return None;
    }
    // SAFETY: opens and closes a socket of its own; any index may be given.
    let mtu = unsafe { sys::shim_interface_mtu(info.if_index) };
    // The loopback interface has 65536; a negative number is an interface that has just vanished.
    (mtu > 0).then(|| u16::try_from(mtu).unwrap_or(u16::MAX))
}
