//! The way to a peer's service, one step after the other, for programs that have nothing else to do meanwhile.

use super::ProgramError;
use crate::cm::{CmAddr, CmEvent, CmEventKind, CmId, ConnParam, EventChannel, UdParam};
use crate::endpoint::{Destination, Endpoint};
use crate::perf::Shared;
use std::cell::RefCell;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::{Duration, Instant};
use wire::mad::{PortSpace, RejectReason};

/// How long finding the way may take, and connecting beyond what the identifier's own retries take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks whether somebody wants to stop.
const LOOK: Duration = Duration::from_millis(20);

/// The address that a peer's name stands for: an address itself, a link-local one with the name of a port behind it, in brackets or
/// not, or the first address of a name. An error is a sentence that says what to do.
pub fn destination(host: &str) -> Result<Destination, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(destination) = bare.parse() {
        return Ok(destination);
    }
    let unknown =
        |why: String| format!("there is no host {host}: {why}; name it by the address of its RDMA port");
    let mut found = (bare, 0).to_socket_addrs().map_err(|why| unknown(why.to_string()))?;
    let first = found.next().ok_or_else(|| unknown("it has no address".into()))?;
    Ok(first.ip().into())
}

/// Somebody who connects.
pub(crate) struct Dial<'a> {
    endpoint: &'a Endpoint,
    channel: EventChannel,
    stop: &'a Shared,
    /// What came of one identifier while another's was waited for.
    kept: RefCell<Vec<CmEvent>>,
}

impl<'a> Dial<'a> {
    /// From an endpoint. `stop` ends every wait.
    pub fn new(endpoint: &'a Endpoint, stop: &'a Shared) -> Result<Dial<'a>, ProgramError> {
        Ok(Dial { endpoint, channel: EventChannel::new()?, stop, kept: RefCell::default() })
    }

    /// An identifier that knows the way to a peer, from an address of ours or the one that the way begins at.
    pub fn resolve(&self, space: PortSpace, from: Option<IpAddr>, to: &CmAddr) -> Result<CmId, ProgramError> {
        let id = self.endpoint.create_id(&self.channel, space);
        id.resolve_addr(from, to.clone(), PATIENCE)?;
        self.wait(&id, |kind| matches!(kind, CmEventKind::AddrResolved))?;
        id.resolve_route(PATIENCE)?;
        self.wait(&id, |kind| matches!(kind, CmEventKind::RouteResolved))?;
        Ok(id)
    }

    /// Connects an identifier that knows the way and has a queue pair. What the peer says of itself.
    pub fn connect(
        &self,
        id: &CmId,
        param: &ConnParam,
    ) -> Result<(ConnParam, Option<UdParam>), ProgramError> {
        id.connect(param)?;
        match self.wait(id, |kind| matches!(kind, CmEventKind::Established { .. }))?.kind {
            CmEventKind::Established { param, ud } => Ok((param, ud)),
            other => Err(ProgramError::Unexpected(other.to_string())),
        }
    }

    /// Connects to a service that may not listen yet. Where nobody listens, it is tried again for a while, each time with another
    /// identifier: `again` makes it ready. The one that is connected.
    pub fn connect_when_heard(
        &self,
        first: CmId,
        param: &ConnParam,
        mut again: impl FnMut() -> Result<CmId, ProgramError>,
    ) -> Result<CmId, ProgramError> {
        let (mut id, end) = (first, Instant::now() + PATIENCE);
        loop {
            match self.connect(&id, param) {
                Ok(_) => return Ok(id),
                Err(ProgramError::Rejected(RejectReason::INVALID_SERVICE_ID)) if Instant::now() < end => {
                    std::thread::sleep(LOOK);
                    id = again()?;
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// The first event of an identifier that came when it was not its turn.
    fn kept(&self, id: &CmId) -> Option<CmEvent> {
        let mut kept = self.kept.borrow_mut();
        let at = kept.iter().position(|event| event.id == *id)?;
        Some(kept.remove(at))
    }

    /// The event that is awaited. Any other of the identifier's ends the wait.
    pub fn wait(&self, id: &CmId, awaited: impl Fn(&CmEventKind) -> bool) -> Result<CmEvent, ProgramError> {
        let options = id.options();
        let patience = PATIENCE + options.retransmit * (u32::from(options.retries) + 1);
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if self.stop.is_stopped() {
                return Err(ProgramError::Stopped);
            }
            match self.kept(id).or_else(|| self.channel.wait(LOOK)) {
                Some(event) if matches!(event.kind, CmEventKind::TimewaitExit) => {}
                Some(event) if event.id != *id => self.kept.borrow_mut().push(event),
                Some(event) if awaited(&event.kind) => return Ok(event),
                Some(event) => return Err(unexpected(event.kind)),
                None => {}
            }
        }
        Err(ProgramError::Silent(patience))
    }
}

/// What an event means for somebody who waited for another.
fn unexpected(kind: CmEventKind) -> ProgramError {
    match kind {
        CmEventKind::AddrError(why) | CmEventKind::RouteError(why) => ProgramError::Resolve(why),
        CmEventKind::Unreachable(why) => ProgramError::Unreachable(why),
        CmEventKind::Rejected { reason, .. } => ProgramError::Rejected(reason),
        CmEventKind::ConnectError(why) | CmEventKind::MulticastError { error: why, .. } => {
            ProgramError::Connect(why)
        }
        other => ProgramError::Unexpected(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cq, Pd, Qp, QpOptions, QpType, RingPair};

    /// An identifier with a queue pair, and what keeps that.
    fn ready(dial: &Dial<'_>, to: &CmAddr) -> (CmId, (Pd, Cq, Qp)) {
        let id = dial.resolve(PortSpace::Tcp, None, to).unwrap();
        let device = id.device().unwrap();
        let (pd, cq) = (device.alloc_pd(), device.create_cq(4).unwrap());
        let qp = id.create_qp(&pd, &QpOptions::new(QpType::Rc, &cq)).unwrap();
        (id, (pd, cq, qp))
    }

    #[test]
    fn a_service_that_listens_a_little_later_is_waited_for() {
        let (near, far) = Endpoint::ring_pair(&RingPair::default()).unwrap();
        let (stop, at) = (Shared::default(), "10.82.72.2:7471".parse().unwrap());
        let (dial, to) = (Dial::new(&near, &stop).unwrap(), CmAddr::from(at));
        let channel = EventChannel::new().unwrap();
        let listener = far.create_id(&channel, PortSpace::Tcp);
        std::thread::scope(|scope| {
            let mut kept = Vec::new();
            let (first, things) = ready(&dial, &to);
            kept.push(things);
            let again = || {
                // Twice nobody listens; then somebody does.
                if kept.len() == 2 {
                    listener.bind(at).unwrap();
                    listener.listen(1).unwrap();
                    scope.spawn(|| {
                        let asked = channel.wait(PATIENCE).unwrap().id;
                        let device = asked.device().unwrap();
                        let (pd, cq) = (device.alloc_pd(), device.create_cq(4).unwrap());
                        asked.create_qp(&pd, &QpOptions::new(QpType::Rc, &cq)).unwrap();
                        asked.accept(&ConnParam::default()).unwrap();
                        // Until the other end has heard of it.
                        channel.wait(PATIENCE).unwrap();
                    });
                }
                let (id, things) = ready(&dial, &to);
                kept.push(things);
                Ok(id)
            };
            let id = dial.connect_when_heard(first, &ConnParam::default(), again).unwrap();
            assert_eq!(id.state(), crate::cm::State::Connected);
            assert_eq!(kept.len(), 3);
        });
        // Where nobody comes, it ends.
        let nobody = CmAddr::from("10.82.72.2:9".parse::<std::net::SocketAddr>().unwrap());
        let (first, _things) = ready(&dial, &nobody);
        let begin = Instant::now();
        let ended = dial.connect_when_heard(first, &ConnParam::default(), || Ok(ready(&dial, &nobody).0));
        assert!(matches!(ended, Err(ProgramError::Rejected(RejectReason::INVALID_SERVICE_ID))), "{ended:?}");
        assert!(begin.elapsed() >= PATIENCE);
    }
}
