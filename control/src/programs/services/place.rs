//! What the connections of one port share, and its datagrams.

use super::super::udaddy::Server;
use super::ProgramError;
use super::conn::REQUESTS;
use crate::cm::DEFAULT_UD_QKEY;
use crate::verbs::{ConnectOptions, Cq, Device, Pd, QpCaps, QpOptions};
use engine::QpType;
use std::time::{Duration, Instant};
use wire::Qpn;

/// Receives for datagrams.
const DATAGRAMS: u32 = 256;
/// Datagrams are looked after closely so long after one came.
const BUSY: Duration = Duration::from_millis(200);
/// Datagrams that are answered before connections get their turn.
const BURST: usize = 64;

/// A port.
pub struct Place {
    pub device: Device,
    pub pd: Pd,
    pub cq: Cq,
    datagrams: Option<Datagrams>,
}

struct Datagrams {
    server: Server,
    cq: Cq,
    qpn: Qpn,
    last: Instant,
}

impl Place {
    /// With room for the completions of so many connections.
    pub fn new(device: &Device, connections: usize) -> Result<Place, ProgramError> {
        let cq = device.create_cq(2 * REQUESTS * connections as u32)?;
        Ok(Place { device: device.clone(), pd: device.alloc_pd(), cq, datagrams: None })
    }

    /// The queue pair that answers datagrams.
    pub fn datagram_qp(&mut self) -> Result<Qpn, ProgramError> {
        if let Some(datagrams) = &mut self.datagrams {
            datagrams.last = Instant::now();
            return Ok(datagrams.qpn);
        }
        let cq = self.device.create_cq(2 * DATAGRAMS)?;
        let caps = QpCaps { max_send_wr: DATAGRAMS, max_recv_wr: DATAGRAMS, ..QpCaps::default() };
        let qp = self.pd.create_qp(&QpOptions { caps, ..QpOptions::new(QpType::Ud, &cq) })?;
        qp.activate(&ConnectOptions { qkey: DEFAULT_UD_QKEY, ..ConnectOptions::default() })?;
        let size = self.device.path_mtu().bytes() as usize;
        let server = Server::new(&self.pd, &qp, DEFAULT_UD_QKEY, DATAGRAMS, size, 0)?;
        let qpn = qp.qpn();
        self.datagrams = Some(Datagrams { server, cq, qpn, last: Instant::now() });
        Ok(qpn)
    }

    /// Whether datagrams came just now.
    pub fn is_busy(&self) -> bool {
        self.datagrams.as_ref().is_some_and(|datagrams| datagrams.last.elapsed() < BUSY)
    }

    /// Answers the datagrams that are there; false when there were none.
    pub fn datagrams(&mut self) -> bool {
        let Some(datagrams) = &mut self.datagrams else { return false };
        let mut worked = false;
        for cqe in std::iter::from_fn(|| datagrams.cq.poll_one()).take(BURST) {
            worked = true;
            // A queue pair that is in error answers nothing more: a new one is made for the next client.
            if datagrams.server.on_completion(&cqe).is_err() {
                self.datagrams = None;
                return true;
            }
        }
        if worked {
            datagrams.last = Instant::now();
        }
        worked
    }
}
