//! The virtual devices that suit us: name and arguments of each, and what one has to know about it.
//!
//! DPDK chooses the driver by the start of the name, so every device is called `net_DRIVER_SUFFIX` with a suffix
//! of the caller's. Values are joined with commas, hence may not contain any.

use std::path::Path;

/// A virtual device to be made by [`crate::Eal::add_vdev`] or at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vdev {
    name: String,
    args: String,
    /// The longest frame that passes, where the driver has a limit that it does not tell.
    longest_frame: Option<u16>,
}

/// Why a device cannot be described to DPDK.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VdevError {
    /// DPDK cuts arguments at commas and names at 63 bytes.
    #[error("{value:?} cannot be the {what} of a virtual device: {why}")]
    Value {
        /// Which argument.
        what: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// Which end of a shared-memory link this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemifRole {
    /// Listens on the socket.
    Server,
    /// Connects to the socket and provides the memory.
    Client,
}

/// The longest device name DPDK takes.
const LONGEST_NAME: usize = dpdk_sys::RTE_ETH_NAME_MAX_LEN as usize - 1;
/// The longest network interface name Linux takes (IFNAMSIZ with its NUL is 16).
const LONGEST_INTERFACE: usize = 15;

/// Frame slots of an `af_packet` ring: the driver's default, and ours for jumbo frames.
const AF_PACKET_SLOT: u16 = 2048;
const AF_PACKET_JUMBO_SLOT: u16 = 16_384;
/// Bytes of a slot that the kernel uses itself before a received Ethernet frame (struct tpacket2_hdr and
/// struct sockaddr_ll, with the network header aligned to 16).
const AF_PACKET_SLOT_OVERHEAD: u16 = 66;

/// Frames that each ring of an `af_packet` port holds. One that comes while the ring is full is lost, and nobody is told.
pub const AF_PACKET_SLOTS: u16 = 512;

/// Data room for the buffers of an `af_packet` port with jumbo frames: it must exceed the frame size of
/// [`Vdev::af_packet`], or the driver refuses the pool.
pub const AF_PACKET_JUMBO_DATA_ROOM: u16 = 18_304;

impl Vdev {
    /// A kernel interface called `interface` that the process makes (needs CAP_NET_ADMIN).
    ///
    /// - The MTU is at most 1504 in DPDK 22.11: the driver takes no longer frames to send.
    /// - What the port sends, the kernel receives on the interface, and the other way round.
    /// - The port's MAC is the interface's too. Where the kernel is to talk *to* the port (ping, ARP), the two
    ///   must differ: change the interface's MAC (`ip link set dev IF address ...`) after the port has started.
    /// - In a bridge they must differ for the same reason, or the bridge keeps the frames.
    /// - The driver's signals, one for each frame, are switched off when the port is opened: each receive burst reads
    ///   (`port/tap.rs`).
    /// - `mac` is the port's address, `None` for a random one; as many queues as asked for, RX and TX alike.
    pub fn tap(suffix: &str, interface: &str, mac: Option<[u8; 6]>) -> Result<Vdev, VdevError> {
        let mut args = format!("iface={}", check_interface(interface)?);
        if let Some([a, b, c, d, e, f]) = mac {
            args += &format!(",mac={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        }
        Vdev::new("net_tap", suffix, args)
    }

    /// An existing kernel interface, through a packet socket (needs CAP_NET_RAW).
    ///
    /// - With `jumbo`, frames up to 16318 bytes pass, and the pool needs [`AF_PACKET_JUMBO_DATA_ROOM`]. Without,
    ///   frames over 1982 bytes are dropped in silence.
    /// - The interface's MTU counts; [`crate::Port::open`] does not change it.
    /// - The kernel's own stack also sees what arrives; keep it quiet with an interface without addresses, or with frames for another
    ///   MAC than the interface's.
    pub fn af_packet(suffix: &str, interface: &str, queues: u16, jumbo: bool) -> Result<Vdev, VdevError> {
        let mut args = format!("iface={},qpairs={queues}", check_interface(interface)?);
        let slot = if jumbo { AF_PACKET_JUMBO_SLOT } else { AF_PACKET_SLOT };
        if jumbo {
            args += &format!(",blocksz=65536,framesz={slot},framecnt={AF_PACKET_SLOTS}");
        }
        let vdev = Vdev::new("net_af_packet", suffix, args)?;
        Ok(Vdev { longest_frame: Some(slot - AF_PACKET_SLOT_OVERHEAD), ..vdev })
    }

    /// One end of a shared-memory link between two processes, named by `socket` and `id`.
    ///
    /// - The link is down until the other process has started its end; frames sent before are dropped.
    /// - Frames longer than `buffer_bytes` use several buffers and arrive as chains.
    /// - When the other end leaves, the driver unmaps the shared memory on a thread of its own and does not wait for
    ///   threads that are inside a burst (seen with DPDK 22.11: a rare SIGSEGV in the end that stays). Nothing outside
    ///   the driver can prevent it: let the ends of a link end together.
    /// - `ring_log2` is the number of descriptors as a power of two, at most 14.
    pub fn memif(
        suffix: &str,
        role: MemifRole,
        socket: &Path,
        id: u32,
        buffer_bytes: u16,
        ring_log2: u8,
    ) -> Result<Vdev, VdevError> {
        let role = match role {
            MemifRole::Server => "server",
            MemifRole::Client => "client",
        };
        let socket = check_path("socket", socket)?;
        let args = format!(
            "role={role},id={id},socket={socket},socket-abstract=no,bsize={buffer_bytes},rsize={ring_log2}"
        );
        Vdev::new("net_memif", suffix, args)
    }

    /// An existing kernel interface through libpcap: slow, but works where nothing else does.
    pub fn pcap_interface(suffix: &str, interface: &str) -> Result<Vdev, VdevError> {
        Vdev::new("net_pcap", suffix, format!("iface={}", check_interface(interface)?))
    }

    /// Receives the frames of the capture file `rx` once and writes what is sent to the file `tx`.
    ///
    /// `tx` is complete only after the port is closed.
    pub fn pcap_files(suffix: &str, rx: &Path, tx: &Path) -> Result<Vdev, VdevError> {
        let args = format!("rx_pcap={},tx_pcap={}", check_path("rx_pcap", rx)?, check_path("tx_pcap", tx)?);
        Vdev::new("net_pcap", suffix, args)
    }

    /// Receives endless 64-byte frames of undefined content and discards what is sent: for measuring.
    pub fn null(suffix: &str) -> Result<Vdev, VdevError> {
        Vdev::new("net_null", suffix, String::new())
    }

    /// A port that receives what it sends. For two ports joined back to back see [`crate::ring::ring_pair`].
    pub fn ring(suffix: &str) -> Result<Vdev, VdevError> {
        Vdev::new("net_ring", suffix, String::new())
    }

    /// Any device by name and arguments, as after EAL's `--vdev`, for drivers this module does not know.
    pub fn custom(name: &str, args: &str) -> Result<Vdev, VdevError> {
        check_name(name)?;
        Ok(Vdev { name: name.to_owned(), args: args.to_owned(), longest_frame: None })
    }

    /// The device's name on DPDK's vdev bus and the name of its port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The arguments after the name.
    pub fn args(&self) -> &str {
        &self.args
    }

    /// Name and arguments as after EAL's `--vdev`.
    pub fn argument(&self) -> String {
        if self.args.is_empty() { self.name.clone() } else { format!("{},{}", self.name, self.args) }
    }

    pub(crate) fn longest_frame(&self) -> Option<u16> {
        self.longest_frame
    }

    fn new(driver: &str, suffix: &str, args: String) -> Result<Vdev, VdevError> {
        let name = format!("{driver}_{suffix}");
        check_name(&name)?;
        Ok(Vdev { name, args, longest_frame: None })
    }
}

fn bad<'a>(what: &'static str, value: &str, why: &'static str) -> Result<&'a str, VdevError> {
    Err(VdevError::Value { what, value: value.to_owned(), why })
}

/// Checks a device name.
pub(crate) fn check_name(name: &str) -> Result<&str, VdevError> {
    if name.len() > LONGEST_NAME {
        return bad("name", name, "DPDK takes at most 63 bytes");
    }
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
        return bad("name", name, "use letters, digits, '_', '-' and '.'");
    }
    Ok(name)
}

fn check_interface(name: &str) -> Result<&str, VdevError> {
    if name.is_empty() || name.len() > LONGEST_INTERFACE {
        return bad("interface", name, "Linux takes 1 to 15 bytes");
    }
    if name.bytes().any(|b| b == b',' || b == b'/' || b.is_ascii_whitespace() || b == 0) {
        return bad("interface", name, "no comma, slash, space or NUL can be in it");
    }
    Ok(name)
}

fn check_path<'a>(what: &'static str, path: &'a Path) -> Result<&'a str, VdevError> {
    match path.to_str() {
        None => bad(what, &path.to_string_lossy(), "it is not UTF-8"),
        Some(text) if text.is_empty() => bad(what, text, "it is empty"),
        Some(text) if text.contains([',', '\0']) => bad(what, text, "no comma or NUL can be in it"),
        Some(text) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_drivers() {
        let text = |vdev: Result<Vdev, VdevError>| vdev.unwrap().argument();
        assert_eq!(text(Vdev::tap("a", "rh0", None)), "net_tap_a,iface=rh0");
        assert_eq!(
            text(Vdev::tap("a", "rh0", Some([2, 0, 0, 0, 0, 0x1f]))),
            "net_tap_a,iface=rh0,mac=02:00:00:00:00:1f"
        );
        assert_eq!(
            text(Vdev::af_packet("0", "eth1", 1, true)),
            "net_af_packet_0,iface=eth1,qpairs=1,blocksz=65536,framesz=16384,framecnt=512"
        );
        assert_eq!(
            text(Vdev::memif("0", MemifRole::Client, Path::new("/run/m.sock"), 7, 2048, 10)),
            "net_memif_0,role=client,id=7,socket=/run/m.sock,socket-abstract=no,bsize=2048,rsize=10"
        );
        assert_eq!(
            text(Vdev::pcap_files("0", Path::new("in"), Path::new("out"))),
            "net_pcap_0,rx_pcap=in,tx_pcap=out"
        );
        assert_eq!(text(Vdev::null("0")), "net_null_0");
    }

    #[test]
    fn values_dpdk_would_misread_are_refused_in_a_sentence() {
        let refused = |vdev: Result<Vdev, VdevError>| vdev.unwrap_err().to_string();
        assert!(refused(Vdev::tap("a", "x,mac=fixed", None)).contains("comma"));
        assert!(refused(Vdev::tap("a", "sixteen-bytes-xx", None)).contains("15 bytes"));
        assert!(refused(Vdev::tap("a,b", "x", None)).contains("letters"));
        assert!(refused(Vdev::null(&"x".repeat(60))).contains("63"));
        assert!(refused(Vdev::pcap_files("a", Path::new("a,b"), Path::new("c"))).contains("comma"));
    }
}
