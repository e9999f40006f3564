//! The rules, one row each: id, words, and where the facts say so (W: the wire format, T: the transport, C: congestion).
//! `docs/spec-coverage.md` lists them with their tests.

/// Variants with their ids, words and sources, and the list of all, from one table.
macro_rules! rules {
    ($($variant:ident = $id:literal, $words:literal, $source:literal;)*) => {
        /// A rule of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Rule {
            $(#[doc = $words] $variant,)*
        }

        impl Rule {
            /// Every rule, in the order of their numbers (`as usize`).
            pub const ALL: &'static [Rule] = &[$(Rule::$variant,)*];

            /// Its short name, for machines.
            pub const fn id(self) -> &'static str {
                match self { $(Rule::$variant => $id,)* }
            }

            /// What it asks for.
            pub const fn words(self) -> &'static str {
                match self { $(Rule::$variant => $words,)* }
            }

            /// Where the facts say so: W (wire format), T (transport) or C (congestion) and the section.
            pub const fn source(self) -> &'static str {
                match self { $(Rule::$variant => $source,)* }
            }
        }
    };
}

rules! {
    // One frame by itself.
    IpHeader = "ip-header", "the IP header has version 4 or 6 and no options", "W3";
    IpFragment = "ip-fragment", "packets are not fragmented", "W1";
    IpChecksum = "ip-checksum", "the IPv4 header checksum is right", "W3";
    IpLength = "ip-length", "the IP length is that of the packet and lies within the frame", "W3";
    UdpLength = "udp-length", "UDP fills the IP packet", "W4";
    UdpChecksum = "udp-checksum", "the UDP checksum is 0 or right", "W4";
    Grh = "grh", "a BTH follows the GRH", "W14";
    Icrc = "icrc", "the iCRC is right", "W9";
    Opcode = "opcode", "the opcode is defined", "W7";
    Version = "bth-version", "the transport version is 0", "W5";
    DestQp = "dest-qp", "the destination QP is not 0, and 0xffffff exactly for a multicast datagram", "W5, W12";
    HeaderLength = "header-length", "BTH, extension headers, pad and iCRC fit the packet", "W8";
    Reserved = "reserved", "reserved bits, FECN and (but in a CNP) BECN are 0", "W5, W6";
    PKey = "p-key", "the P_Key is that of the default partition", "W5";
    Solicited = "solicited", "SE is set only at the end of a SEND or of a WRITE with immediate", "W5";
    Pad = "pad", "pad fills the payload up to four bytes, with zeros", "W8";
    PayloadLength = "payload-length", "First and Middle carry the path MTU, Last 1 to MTU, Only up to MTU, others what they carry", "W7, W8";
    Reth = "reth", "a RETH has at most 2^31 bytes, and as many as its packet's position allows", "W8";
    AtomicAlignment = "atomic-alignment", "an atomic's address is a multiple of eight", "T8";
    Syndrome = "syndrome", "the AETH syndrome is defined, and says ACK where data or an original value follows", "T3, T7";
    Cnp = "cnp", "a CNP has BECN, PSN 0, no flags, and 16 zero bytes", "C2";
    Datagram = "datagram", "a datagram to QP 1 has its Q_Key, and comes from a QP that can be", "W5, T20";

    // The requests of one QP.
    OpcodeOrder = "opcode-order", "First, Middle and Last of one message follow each other, then a new message begins", "T5, T6, T19";
    WriteLength = "write-length", "the payloads of a WRITE add up to its RETH length", "W8";
    ReadSpan = "read-span", "a READ takes one PSN for each response, and the next request the PSN after them", "T1, T7";
    ReadRestart = "read-restart", "a READ that starts again in the middle asks for the rest of the same range", "T9";
    Retransmission = "retransmission", "a request that is sent again is the same request", "T5";
    PsnOrder = "psn-order", "new requests take the next PSN; only what is not acknowledged is sent again", "T1, T5";
    Window = "window", "at most 2^23 PSNs are outstanding", "T1";
    RnrDelay = "rnr-delay", "after an RNR NAK the request waits at least the time that was named", "T4, T10";
    Service = "service", "the packets of a QP are all of its service, and unreliable ones are not answered", "T19, T20";

    // What is answered.
    GhostResponse = "ghost-response", "nothing is answered that was not asked", "T5, T6";
    ResponseKind = "response-kind", "a READ draws READ responses, an atomic an ATOMIC Acknowledge", "W7";
    Msn = "msn", "the MSN counts the messages that are complete", "T2";
    ReadResponse = "read-response", "READ responses are First, Middle, Last, or Only, by their PSN", "T5, T7";
    ReadLength = "read-length", "READ responses add up to the length that was asked for", "T7";
    ResponseOrder = "response-order", "responses leave in PSN order, READ data before a later ACK", "T6, T7";
    AtomicReplay = "atomic-replay", "an atomic that is answered again has the same original value", "T8, T9";
    AckGap = "ack-gap", "nothing is acknowledged beyond a request that did not arrive", "T6";
    SequenceNak = "sequence-nak", "a sequence NAK names the first PSN that is missing, and something ahead of it arrived", "T3, T6";
    NakOnce = "nak-once", "one sequence NAK for a gap, until the missing packet arrives", "T6";
    RnrNak = "rnr-nak", "an RNR NAK refuses a packet that needs a receive", "T3, T6, W7";
    AccessNak = "access-nak", "a remote access error refuses a packet of a request that names memory", "T11, T21";
    NakAcknowledged = "nak-acknowledged", "nothing is refused for good that was acknowledged", "T9";
    AfterFatalNak = "after-fatal-nak", "after a NAK that is not for sequence or RNR the QP is silent", "T6, T11";
    AckHeld = "ack-held", "an acknowledgement that is asked for is not held back", "T6";
}

impl Rule {
    /// How many there are.
    pub const COUNT: usize = Rule::ALL.len();
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id())
    }
}
