//! Connecting in one blocking call, for programs that need no event loop.

use super::error::CmError;
use super::{CmAddr, CmEvent, CmEventKind, CmId, CmOptions, ConnParam, EventChannel, PortSpace};
use crate::endpoint::Endpoint;
use crate::verbs::{Cq, Device, Pd, Qp, QpCaps, QpOptions};
use engine::QpType;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What a connection is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Protection domain; a new one by default.
    pub pd: Option<Pd>,
    /// Queue of all completions; a new one by default.
    pub cq: Option<Cq>,
    /// Depth of a new completion queue.
    pub cq_depth: u32,
    /// Sizes of the queue pair.
    pub caps: QpCaps,
    /// What the peer is told.
    pub param: ConnParam,
    /// Timeouts and the like.
    pub options: CmOptions,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            pd: None,
            cq: None,
            cq_depth: 512,
            caps: QpCaps::default(),
            param: ConnParam::default(),
            options: CmOptions::default(),
        }
    }
}

/// A connection: its identifier and all that goes with it. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    id: CmId,
    pd: Pd,
    cq: Cq,
    qp: Qp,
    private_data: Vec<u8>,
    channel: EventChannel,
}

impl Connection {
    /// Its identifier.
    pub fn id(&self) -> &CmId {
        &self.id
    }

    /// Its protection domain: register memory here.
    pub fn pd(&self) -> &Pd {
        &self.pd
    }

    /// Where its sends and receives complete.
    pub fn cq(&self) -> &Cq {
        &self.cq
    }

    /// Its queue pair, ready to send and receive.
    pub fn qp(&self) -> &Qp {
        &self.qp
    }

    /// What the peer said when it connected, or accepted; zeros follow.
    pub fn private_data(&self) -> &[u8] {
        &self.private_data
    }

    /// Its events: [`Disconnected`](CmEventKind::Disconnected) when the peer closes.
    pub fn channel(&self) -> &EventChannel {
        &self.channel
    }

    /// Closes it, and waits up to `timeout` until the peer knows.
    pub fn disconnect(&self, timeout: Duration) -> Result<(), CmError> {
        self.id.disconnect()?;
        let end = Instant::now() + timeout;
        loop {
            match next(&self.channel, end)?.kind {
                CmEventKind::Disconnected => return Ok(()),
                CmEventKind::TimewaitExit => return Ok(()),
                _ => {}
            }
        }
    }
}

/// Waits for connections.
#[derive(Debug)]
pub struct Listener {
    id: CmId,
    channel: EventChannel,
}

/// Peers that may wait to be accepted.
const BACKLOG: usize = 1024;

impl Listener {
    /// Listens at an address and port of an endpoint: port 0 chooses a free one, the unspecified address stands for all.
    pub fn bind(endpoint: &Endpoint, at: SocketAddr) -> Result<Listener, CmError> {
        let channel = EventChannel::new()?;
        let id = endpoint.create_id(&channel, PortSpace::Tcp);
        id.bind(at)?;
        id.listen(BACKLOG)?;
        Ok(Listener { id, channel })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.local_addr()
    }

    /// Its identifier.
    pub fn id(&self) -> &CmId {
        &self.id
    }

    /// Where connect requests wait: its file descriptor tells a program's own loop of them.
    pub fn channel(&self) -> &EventChannel {
        &self.channel
    }

    /// The next connection, accepted with defaults. A peer that goes away while it is accepted is passed over.
    pub fn accept(&self, timeout: Duration) -> Result<Connection, CmError> {
        self.accept_with(&Setup::default(), timeout)
    }

    /// The next connection, accepted by a setup.
    pub fn accept_with(&self, setup: &Setup, timeout: Duration) -> Result<Connection, CmError> {
        let end = Instant::now() + timeout;
        loop {
            let (id, asked) = self.id.get_request(end.saturating_duration_since(Instant::now()))?;
            let channel = EventChannel::new()?;
            id.migrate(&channel);
            id.set_options(setup.options.clone())?;
            let (pd, cq, qp) = equip(&id, setup)?;
            if id.accept(&setup.param).is_err() {
                continue;
            }
            if let CmEventKind::Established { .. } = next(&channel, end)?.kind {
                let private_data = asked.private_data;
                return Ok(Connection { id, pd, cq, qp, private_data, channel });
            }
        }
    }
}

impl CmId {
    /// The next connect request of this listener, after `rdma_get_request`: the identifier to accept or reject, and what the
    /// peer asks for. Other events of its channel stay where they are.
    pub fn get_request(&self, timeout: Duration) -> Result<(CmId, ConnParam), CmError> {
        let channel = self.inner.lock().channel.upgrade().ok_or(CmError::NoChannel)?;
        let channel = EventChannel { shared: channel };
        match channel.wait_for_request(self, timeout) {
            Some(CmEvent { id, kind: CmEventKind::ConnectRequest { param }, .. }) => Ok((id, param)),
            _ => Err(CmError::Timeout),
        }
    }
}

/// Connects with defaults: the result is ready to send and receive.
///
/// Errors: [`CmError::Ended`] says why the peer is not connected, [`CmError::Timeout`] that nothing was known in time.
pub fn connect(endpoint: &Endpoint, to: impl Into<CmAddr>, timeout: Duration) -> Result<Connection, CmError> {
    connect_with(endpoint, to, &Setup::default(), timeout)
}

/// Connects by a setup.
pub fn connect_with(
    endpoint: &Endpoint,
    to: impl Into<CmAddr>,
    setup: &Setup,
    timeout: Duration,
) -> Result<Connection, CmError> {
    let end = Instant::now() + timeout;
    let channel = EventChannel::new()?;
    let id = endpoint.create_id(&channel, PortSpace::Tcp);
    id.set_options(setup.options.clone())?;
    id.resolve_addr(None, to, timeout)?;
    if let CmEventKind::AddrError(why) = next(&channel, end)?.kind {
        return Err(why.into());
    }
    id.resolve_route(timeout)?;
    next(&channel, end)?;
    let (pd, cq, qp) = equip(&id, setup)?;
    id.connect(&setup.param)?;
    match next(&channel, end)?.kind {
        CmEventKind::Established { param, .. } => {
            Ok(Connection { id, pd, cq, qp, private_data: param.private_data, channel })
        }
        CmEventKind::Rejected { reason, .. } => Err(CmError::Ended(format!("the peer refuses: {reason}"))),
        CmEventKind::Unreachable(why) => Err(CmError::Ended(why.to_string())),
        CmEventKind::ConnectError(why) => Err(CmError::Ended(why.to_string())),
        other => Err(CmError::Ended(format!("the connection ended before it began: {other}"))),
    }
}

fn equip(id: &CmId, setup: &Setup) -> Result<(Pd, Cq, Qp), CmError> {
    let device: Device = id.device().ok_or(CmError::NoQp)?;
    let pd = setup.pd.clone().unwrap_or_else(|| device.alloc_pd());
    let cq = match &setup.cq {
        Some(cq) => cq.clone(),
        None => device.create_cq(setup.cq_depth)?,
    };
    let qp = id.create_qp(&pd, &QpOptions { caps: setup.caps, ..QpOptions::new(QpType::Rc, &cq) })?;
    Ok((pd, cq, qp))
}

fn next(channel: &EventChannel, end: Instant) -> Result<CmEvent, CmError> {
    channel.wait(end.saturating_duration_since(Instant::now())).ok_or(CmError::Timeout)
}
