//! Counters, by name. What mlx5 counts under a name is counted under that name here.

/// An enum whose variants are names of counters: `ALL` lists them, `name` gives the published text.
macro_rules! named {
    ($(#[$outer:meta])* $vis:vis enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        $vis enum $enum { $($(#[$doc])* $variant,)+ }

        impl $enum {
            /// Every variant, in order of its number.
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The published name.
            pub fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)+ }
            }
        }
    };
}

named! {
    /// What is counted, per QP and (summed) per port. The first eight are all that most packets count, and lie in one cache line.
    pub enum Counter {
        /// Packets sent, retransmissions and responses among them.
        TxPackets = "tx_roce_packets",
        /// Payload bytes sent.
        TxPayloadBytes = "tx_roce_payload_bytes",
        /// Packets that reached their QP.
        RxPackets = "rx_roce_packets",
        /// Payload bytes that reached their QP.
        RxPayloadBytes = "rx_roce_payload_bytes",
        /// WRITE requests received.
        RxWriteRequests = "rx_write_requests",
        /// SENDs received (first packets).
        RxSendRequests = "rx_send_requests",
        /// Positive ACKs sent.
        AckSent = "acks_sent",
        /// Request packets sent again.
        Retransmitted = "retransmitted_packets",
        /// READ requests received.
        RxReadRequests = "rx_read_requests",
        /// Atomic requests received.
        RxAtomicRequests = "rx_atomic_requests",
        /// FLUSH requests received.
        RxFlushRequests = "rx_flush_requests",
        /// ATOMIC WRITE requests received.
        RxAtomicWriteRequests = "rx_atomic_write_requests",
        /// A request that needed a receive found none.
        OutOfBuffer = "out_of_buffer",
        /// Request packets ahead of the expected PSN.
        OutOfSequence = "out_of_sequence",
        /// Request packets behind the expected PSN.
        DuplicateRequest = "duplicate_request",
        /// RNR NAKs received.
        RnrNakRetry = "rnr_nak_retry_err",
        /// RNR NAKs sent.
        RnrNakSent = "rnr_nak_sent",
        /// PSN sequence NAKs received.
        PacketSeqErr = "packet_seq_err",
        /// PSN sequence NAKs sent.
        SeqNakSent = "seq_nak_sent",
        /// Other NAKs sent.
        NakSent = "nak_sent",
        /// Responses whose place in the sequence shows that an earlier one was lost.
        ImpliedNakSeqErr = "implied_nak_seq_err",
        /// ACK timers that ran out.
        LocalAckTimeoutErr = "local_ack_timeout_err",
        /// Send requests that ended because retries ran out.
        RetryExceeded = "req_transport_retries_exceeded",
        /// Send requests that ended because RNR retries ran out.
        RnrRetryExceeded = "req_rnr_retries_exceeded",
        /// Send completions with an error status, flushes aside.
        ReqCqeError = "req_cqe_error",
        /// Flushed send completions.
        ReqCqeFlushError = "req_cqe_flush_error",
        /// Receive completions with an error status, flushes aside.
        RespCqeError = "resp_cqe_error",
        /// Flushed receive completions.
        RespCqeFlushError = "resp_cqe_flush_error",
        /// Requests refused for their key, range or rights.
        RespRemoteAccessErrors = "resp_remote_access_errors",
        /// SENDs longer than their receive.
        RespLocalLengthError = "resp_local_length_error",
        /// Requests refused as invalid.
        RespRemoteInvalidRequest = "resp_remote_invalid_request",
        /// Requests that failed for a reason of our own side (NAK remote operational error).
        RespLocalOperationError = "resp_local_operation_error",
        /// NAK invalid request received.
        ReqRemoteInvalidRequest = "req_remote_invalid_request",
        /// NAK remote access error received.
        ReqRemoteAccessErrors = "req_remote_access_errors",
        /// NAK remote operational error received.
        ReqRemoteOperationErrors = "req_remote_operation_errors",
        /// Packets with more payload than the path MTU: the peer has a larger one.
        OverPathMtu = "rx_over_path_mtu",
        /// First and Middle packets that are full by a smaller path MTU: the peer has that.
        UnderPathMtu = "rx_under_path_mtu",
        /// Packets with a wrong iCRC that it took their QP to find out: payloads which changed before they were placed.
        BadIcrc = "rx_icrc_encapsulated",
        /// Completions that found their CQ full.
        CqOverflow = "cq_overflow",
    }
}

named! {
    /// Why a packet was discarded without an answer. The parser's own reasons are `wire::FrameError`.
    pub enum DropReason {
        /// No QP has this number.
        UnknownQp = "drop_unknown_qp",
        /// The opcode belongs to another service than the QP, or to the half of XRC that the QP is not.
        WrongService = "drop_wrong_service",
        /// The QP's state takes no such packet.
        WrongState = "drop_wrong_state",
        /// The addresses are not those of the connection.
        WrongAddress = "drop_wrong_address",
        /// The P_Key does not match.
        PKey = "drop_pkey",
        /// UD: the Q_Key does not match.
        QKey = "drop_qkey",
        /// A response that acknowledges nothing outstanding.
        GhostResponse = "drop_ghost_response",
        /// A response to a READ or atomic that we already have, or that came behind a gap.
        StaleResponse = "drop_stale_response",
        /// A response with a reserved syndrome or NAK code.
        ReservedSyndrome = "drop_reserved_syndrome",
        /// A request ahead of the expected PSN.
        AheadOfSequence = "drop_ahead_of_sequence",
        /// A duplicate that is malformed, or a READ or atomic that is not in the slots any more, does not fit its original or
        /// lost its memory.
        UnknownDuplicate = "drop_unknown_duplicate",
        /// UC: a Middle or Last without its beginning.
        UcBroken = "drop_uc_broken_message",
        /// UC or UD: no receive posted.
        NoReceive = "drop_no_receive",
        /// UC or UD: the message does not fit the receive, or the receive's memory is not usable.
        ReceiveUnusable = "drop_receive_unusable",
        /// UC or UD: lengths, opcode or rights are wrong.
        InvalidRequest = "drop_invalid_request",
        /// UC: the key does not allow the access.
        UcAccess = "drop_uc_access",
        /// RC: a request refused with a NAK (the NAK is counted too), and what came behind it before the NAK was out.
        Refused = "drop_refused",
        /// A request that found no receive and got an RNR NAK.
        ReceiverNotReady = "drop_receiver_not_ready",
        /// A payload that was lent, and is not what its sender has summed.
        Spoilt = "drop_spoilt_payload",
        /// A CNP: congestion notifications are not acted on.
        Cnp = "drop_cnp",
    }
}

/// A set of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Counters {
    values: [u64; Counter::COUNT],
    drops: [u64; DropReason::COUNT],
}

impl Default for Counters {
    fn default() -> Self {
        Counters { values: [0; Counter::COUNT], drops: [0; DropReason::COUNT] }
    }
}

impl Counters {
    /// Counts one.
    pub fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Counts several.
    pub fn add(&mut self, counter: Counter, by: u64) {
        self.values[counter as usize] = self.values[counter as usize].wrapping_add(by);
    }

    /// Counts a discarded packet.
    pub fn drop_packet(&mut self, reason: DropReason) {
        self.drops[reason as usize] = self.drops[reason as usize].wrapping_add(1);
    }

    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Packets discarded for a reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Adds another set to this one.
    pub fn merge(&mut self, other: &Counters) {
        for (mine, theirs) in self.values.iter_mut().zip(&other.values) {
            *mine = mine.wrapping_add(*theirs);
        }
        for (mine, theirs) in self.drops.iter_mut().zip(&other.drops) {
            *mine = mine.wrapping_add(*theirs);
        }
    }

    /// Every counter with its published name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let values = Counter::ALL.iter().map(|&counter| (counter.name(), self.get(counter)));
        values.chain(DropReason::ALL.iter().map(|&reason| (reason.name(), self.dropped(reason))))
    }
}
