//! Counters of a port.

/// What every driver counts, since the port was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received; whether the frame check counts is the driver's choice.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets the device dropped because the receive queue was full.
    pub rx_missed: u64,
    /// Packets received in error.
    pub rx_errors: u64,
    /// Packets that failed to be sent.
    pub tx_errors: u64,
    /// Times the pool had no buffer for a received packet.
    pub rx_no_mbuf: u64,
}
