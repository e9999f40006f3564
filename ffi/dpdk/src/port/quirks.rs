//! Drivers whose word on MTU and chains is not what happens.

use dpdk_sys as sys;

use super::config::FRAME_OVERHEAD;
use super::raw;

/// Drivers on a kernel interface that was there before, whose MTU is the machine's business. (`net_tap` makes its
/// own interface and may set its MTU.)
///
/// `net_af_packet` sets the interface's MTU when its own is set, and (in 22.11) takes 1500 at most although longer
/// frames pass.
const BORROWING: [&str; 3] = ["net_af_packet", "net_af_xdp", "net_pcap"];

/// Drivers that receive a frame longer than a buffer as a chain, without offering the offload of that name.
const CHAINING: [&str; 2] = ["net_memif", "net_pcap"];

/// Drivers that pass frames of any length but name 1500 as their limit.
const UNLIMITED: [&str; 1] = ["net_memif"];

/// Drivers by which a packet arrives as it was sent, the very buffers.
const PASSING_ON: [&str; 1] = ["net_ring"];

/// Drivers that read a packet's bytes by the processor, wherever they lie, and not by DMA.
const READING_IN_PLACE: [&str; 4] = ["net_ring", "net_tap", "net_af_packet", "net_memif"];

/// Drivers whose receive descriptors are the buffers of one frame: each read names them all to the kernel, which checks them
/// one by one, however long the frame is.
const DESCRIBING_ONE_FRAME: [&str; 1] = ["net_tap"];

/// As long as any frame that such a driver passes.
const LONGEST_FRAME: u16 = 9216 + FRAME_OVERHEAD;

/// The largest IP packet that passes whatever the driver tells, where that is known. The driver's own setting
/// is then left alone.
pub(super) fn actual_mtu(driver: &str, info: &sys::rte_eth_dev_info) -> Option<u16> {
    if UNLIMITED.contains(&driver) {
        return Some(u16::MAX);
    }
    if info.if_index == 0 || !BORROWING.contains(&driver) {
        return None;
    }
    raw::interface_mtu(info.if_index)
}

/// Receive descriptors to ask for, where `asked` are wanted and buffers have so much room.
pub(super) fn rx_descriptors(driver: &str, asked: u16, data_room: u16) -> u16 {
    let one_frame = LONGEST_FRAME.div_ceil(data_room.max(1)) + 1;
    if DESCRIBING_ONE_FRAME.contains(&driver) { asked.min(one_frame) } else { asked }
}

/// Whether a packet arrives in the buffers that it was sent in.
pub(super) fn passes_on(driver: &str) -> bool {
    PASSING_ON.contains(&driver)
}

/// Whether packets may point to bytes that no device can reach.
pub(super) fn reads_in_place(driver: &str) -> bool {
    READING_IN_PLACE.contains(&driver)
}

/// Whether frames longer than a buffer arrive as chains in any case.
pub(super) fn always_chains(driver: &str) -> bool {
    CHAINING.contains(&driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_gets_buffers_for_one_frame() {
        assert_eq!(rx_descriptors("net_tap", 1024, 2048), 6);
        assert_eq!(rx_descriptors("net_tap", 1024, 18_304), 2);
        assert_eq!(rx_descriptors("net_tap", 4, 512), 4);
        assert_eq!(rx_descriptors("net_tap", 1024, 0), 1024);
        assert_eq!(rx_descriptors("net_af_packet", 1024, 2048), 1024);
    }
}
