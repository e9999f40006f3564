//! The states of a connection, by the names that Linux has for them (rocev2 facts, CM 11).

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Active: the REQ is out.
    ReqSent,
    /// Active: the peer has asked for time to answer the REQ.
    MraReqRcvd,
    /// Active: the REP is here; the application has to answer.
    RepRcvd,
    /// Active: we have asked for time to answer the REP.
    MraRepSent,
    /// Passive: a REQ is here; the application has to answer.
    ReqRcvd,
    /// Passive: we have asked for time to answer the REQ.
    MraReqSent,
    /// Passive: the REP is out.
    RepSent,
    /// Passive: the peer has asked for time to answer the REP.
    MraRepRcvd,
    /// Connected.
    Established,
    /// The DREQ is out.
    DreqSent,
    /// Over; the numbers are not used again yet, and late messages of the peer are answered.
    Timewait,
}

impl State {
    /// Every state.
    pub const ALL: [State; 11] = [
        State::ReqSent,
        State::MraReqRcvd,
        State::RepRcvd,
        State::MraRepSent,
        State::ReqRcvd,
        State::MraReqSent,
        State::RepSent,
        State::MraRepRcvd,
        State::Established,
        State::DreqSent,
        State::Timewait,
    ];
}

impl State {
    /// The application has a request to answer.
    pub(crate) fn is_asked(self) -> bool {
        matches!(self, State::ReqRcvd | State::MraReqSent)
    }

    /// The application has a reply to answer.
    pub(crate) fn is_replied(self) -> bool {
        matches!(self, State::RepRcvd | State::MraRepSent)
    }

    /// Our REQ waits for its answer.
    pub(crate) fn is_asking(self) -> bool {
        matches!(self, State::ReqSent | State::MraReqRcvd)
    }

    /// Our REP waits for its answer.
    pub(crate) fn is_replying(self) -> bool {
        matches!(self, State::RepSent | State::MraRepRcvd)
    }

    /// A request of the peer is under way.
    pub(crate) fn is_half_open(self) -> bool {
        self.is_asked() || self.is_replying()
    }
}
