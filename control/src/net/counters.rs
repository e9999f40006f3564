//! Every frame that the slow path takes in or sends ends in one of these counters.

/// One counter per outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// ARP requests for our addresses, answered.
    ArpAnswered,
    /// Neighbour solicitations for our addresses, answered.
    NdAnswered,
    /// Echo requests answered, both families.
    EchoAnswered,
    /// Announcements and answers to our own questions, taken in.
    NeighbourLearned,
    /// ARP requests and neighbour solicitations sent by us.
    Solicited,
    /// Announcements of our addresses sent.
    Announced,
    /// Routers asked which groups we belong to.
    GroupQuery,
    /// Reports of our groups sent.
    GroupReported,
    /// Routers said that a packet of ours is too long for the way.
    PacketTooBig,
    /// Another station uses one of our addresses.
    Conflict,
    /// Shorter than its headers say, or a header that contradicts itself.
    Malformed,
    /// A checksum is wrong.
    BadChecksum,
    /// Sent to another MAC.
    NotOurMac,
    /// Comes from ourselves, or from a source that no station can have.
    BadSource,
    /// Carries another VLAN than ours, a tag where none belongs, or none where one does.
    OtherVlan,
    /// Sent to, or asks for, an address that is not ours.
    NotOurAddress,
    /// Neighbour discovery from beyond the link: its hop limit is not 255.
    NdHopLimit,
    /// Neighbour discovery that breaks a rule of unverified RFC 4861 7.1.
    NdInvalid,
    /// A fragment: nothing here is reassembled.
    Fragment,
    /// A protocol or message type that the slow path does not serve.
    UnknownProtocol,
    /// An answer that the limit of answers per second, or a full transmit queue, kept back.
    RateLimited,
    /// An echo request whose reply exceeds the MTU.
    EchoTooBig,
    /// A router says of a packet that it is too long, and we have not sent that, or it would fit.
    TooBigNotOurs,
    /// Neighbour information that nobody asked for, or too soon after the last change.
    NeighbourIgnored,
    /// An event dropped because nobody polled the ones before.
    EventLost,
}

const NAMES: [(Counter, &str); 25] = [
    (Counter::ArpAnswered, "arp_answered"),
    (Counter::NdAnswered, "nd_answered"),
    (Counter::EchoAnswered, "echo_answered"),
    (Counter::NeighbourLearned, "neighbour_learned"),
    (Counter::Solicited, "neighbour_solicited"),
    (Counter::Announced, "address_announced"),
    (Counter::GroupQuery, "group_query"),
    (Counter::GroupReported, "group_reported"),
    (Counter::PacketTooBig, "icmp_packet_too_big"),
    (Counter::Conflict, "address_conflict"),
    (Counter::Malformed, "drop_malformed"),
    (Counter::BadChecksum, "drop_bad_checksum"),
    (Counter::NotOurMac, "drop_not_our_mac"),
    (Counter::BadSource, "drop_bad_source"),
    (Counter::OtherVlan, "drop_other_vlan"),
    (Counter::NotOurAddress, "drop_not_our_address"),
    (Counter::NdHopLimit, "drop_nd_hop_limit"),
    (Counter::NdInvalid, "drop_nd_invalid"),
    (Counter::Fragment, "drop_fragment"),
    (Counter::UnknownProtocol, "drop_unknown_protocol"),
    (Counter::RateLimited, "drop_rate_limited"),
    (Counter::EchoTooBig, "drop_echo_too_big"),
    (Counter::TooBigNotOurs, "drop_icmp_too_big_not_ours"),
    (Counter::NeighbourIgnored, "drop_neighbour_ignored"),
    (Counter::EventLost, "event_lost"),
];

/// The counters of one interface.
#[derive(Clone, Debug, Default)]
pub struct Counters([u64; NAMES.len()]);

impl Counters {
    /// The value of one counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        NAMES.iter().map(|&(counter, name)| (name, self.get(counter)))
    }

    pub(super) fn count(&mut self, counter: Counter) {
        self.0[counter as usize] += 1;
    }

    #[cfg(test)]
    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_own_place_and_name() {
        for (place, (counter, _)) in NAMES.iter().enumerate() {
            assert_eq!(*counter as usize, place);
        }
        let names: std::collections::BTreeSet<_> = NAMES.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), NAMES.len());
    }
}
