//! Why a frame is not taken. One variant per reason; whoever drops the frame counts it by [`FrameError::name`].

/// Variants with their names, and the list of all, from one table.
macro_rules! frame_errors {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $what:literal;)*) => {
        /// Why a frame is not a RoCE packet that a QP may look at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FrameError {
            $($(#[$doc])* $variant,)*
        }

        impl FrameError {
            /// Every reason, in the order of their numbers (`as usize`).
            pub const ALL: &'static [FrameError] = &[$(FrameError::$variant,)*];

            /// The name to count it by.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FrameError::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for FrameError {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(FrameError::$variant => $what,)*
                })
            }
        }
    };
}

frame_errors! {
    /// Neither IPv4 nor IPv6 nor RoCE v1: ARP, MAC control and the like. Not RoCE.
    EtherType = "not_roce_ethertype", "another ethertype";
    /// IP, but not UDP (or IPv6 with extension headers). Not RoCE.
    NotUdp = "not_roce_protocol", "another IP protocol";
    /// UDP, but not port 4791. Not RoCE.
    OtherPort = "not_roce_port", "another UDP port";
    /// The frame ends before its headers or its IP length do.
    Truncated = "drop_truncated", "the frame is cut short";
    /// IP version or header length that cannot be.
    IpHeader = "drop_ip_header", "the IP version or header length is wrong";
    /// IPv4 options in front of a RoCE packet.
    IpOptions = "drop_ip_options", "IPv4 options";
    /// An IPv4 fragment of a UDP packet: senders do not fragment, we do not reassemble.
    Fragment = "drop_ip_fragment", "an IPv4 fragment";
    /// IPv4 header checksum.
    IpChecksum = "drop_ip_checksum", "the IPv4 header checksum is wrong";
    /// IPv4 total length below its own header.
    IpLength = "drop_ip_length", "the IPv4 total length is below its header's";
    /// The UDP length differs from what IP carries.
    UdpLength = "drop_udp_length", "the UDP length does not fit the IP length";
    /// A UDP checksum that is neither 0 nor right.
    UdpChecksum = "drop_udp_checksum", "the UDP checksum is wrong";
    /// RoCE v1: no BTH behind the GRH.
    GrhNextHeader = "drop_grh_next_header", "no BTH follows the GRH";
    /// No room for BTH and iCRC.
    TooShort = "drop_too_short", "shorter than BTH and iCRC";
    /// Reserved or vendor's opcode.
    UnknownOpcode = "drop_unknown_opcode", "the opcode is not defined";
    /// Headers, pad and iCRC are more than the packet has.
    NegativePayload = "drop_negative_payload", "no room for headers, pad and iCRC";
    /// TVer is not 0.
    TransportVersion = "drop_transport_version", "the transport version is not 0";
    /// Destination QP 0, which RoCE does not have.
    DestQpZero = "drop_dest_qp_zero", "the destination QP is 0";
    /// The iCRC is wrong.
    BadIcrc = "drop_icrc", "the iCRC is wrong";
}

impl FrameError {
    /// False when the frame is no RoCE packet at all and may be for somebody else (ARP, ICMP, another UDP port); true when
    /// it is, or must be taken for, a broken one.
    pub const fn is_roce(self) -> bool {
        !matches!(self, FrameError::EtherType | FrameError::NotUdp | FrameError::OtherPort)
    }
}

impl std::error::Error for FrameError {}
