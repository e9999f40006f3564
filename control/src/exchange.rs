//! Exchange of queue pairs over TCP: how two ends connect without connection management.
//!
//! Each message is four bytes of length (big endian) and so many bytes of JSON. Both ends first send a greeting with the
//! version, so that a stranger is told apart from a peer; then they swap whatever values both types describe, usually
//! [`QpInfo`](crate::QpInfo) and [`RemoteMemory`](crate::RemoteMemory). Lengths are bounded, every wait has an end.
//!
//! ```no_run
//! use rockhopper::exchange::{Exchange, Listener};
//! use std::time::Duration;
//!
//! // One end … and the other.
//! let listener = Listener::bind("0.0.0.0:18600".parse()?)?;
//! let mut server = listener.accept(Duration::from_secs(60))?;
//! let mut client = Exchange::connect("192.0.2.1:18600".parse()?, Duration::from_secs(5))?;
//! let theirs: String = client.swap(&"mine".to_string())?;
//! # let _ = (server.swap::<String>(&"yours".to_string())?, theirs);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Version of the greeting; both ends must have the same.
pub const VERSION: u32 = 2;
/// Longest message, bytes.
pub const MAX_MESSAGE: u32 = 256 * 1024;
/// How long an end waits for the other's next message.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The name in the greeting.
const PROTOCOL: &str = "rockhopper-exchange";

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}; {remedy}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        why: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The peer cannot be reached.
    #[error(
        "cannot connect to {address}: {why}; check that the server runs there and that no firewall is between"
    )]
    Connect {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        why: io::Error,
    },
    /// Nobody came, or the peer said nothing.
    #[error("nothing came for {0:?}; check that the peer runs")]
    Silent(Duration),
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// What came is not of this protocol.
    #[error("the peer does not speak this protocol: {0}")]
    Garbled(String),
    /// The peer has another version.
    #[error(
        "the peer speaks version {theirs} of the exchange, this is version {VERSION}; use the same release on both sides"
    )]
    Version {
        /// The peer's.
        theirs: u32,
    },
    /// A message is longer than [`MAX_MESSAGE`].
    #[error("a message of {0} bytes is over the limit of {MAX_MESSAGE}")]
    TooLong(u64),
    /// The system failed.
    #[error("the connection failed: {0}")]
    Io(io::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Greeting {
    protocol: String,
    version: u32,
}

/// Waits for peers.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens on an address; port 0 lets the system choose.
    pub fn bind(address: SocketAddr) -> Result<Listener, ExchangeError> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound.map(Listener).map_err(|why| ExchangeError::Bind { address, remedy: bind_remedy(&why), why })
    }

    /// The address in use.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The next peer that greets properly, waiting up to `timeout`.
    pub fn accept(&self, timeout: Duration) -> Result<Exchange, ExchangeError> {
        let end = Instant::now() + timeout;
        loop {
            match self.0.accept() {
                Ok((stream, _)) => return Exchange::greet(stream),
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
                Err(why) => return Err(ExchangeError::Io(why)),
            }
            if Instant::now() >= end {
                return Err(ExchangeError::Silent(timeout));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn bind_remedy(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::AddrInUse => "another program listens there: stop it or choose another port",
        io::ErrorKind::PermissionDenied => "ports below 1024 are root's: choose a higher one",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: choose one it has, or 0.0.0.0",
        _ => "choose another address",
    }
}

/// A greeted connection to a peer.
#[derive(Debug)]
pub struct Exchange {
    stream: TcpStream,
}

impl Exchange {
    /// Connects to a listening peer.
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<Exchange, ExchangeError> {
        let stream = TcpStream::connect_timeout(&address, timeout)
            .map_err(|why| ExchangeError::Connect { address, why })?;
        Exchange::greet(stream)
    }

    fn greet(stream: TcpStream) -> Result<Exchange, ExchangeError> {
        let prepare = || {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(PATIENCE))
        };
        prepare().map_err(ExchangeError::Io)?;
        let mut exchange = Exchange { stream };
        let theirs: Greeting = exchange.swap(&Greeting { protocol: PROTOCOL.into(), version: VERSION })?;
        if theirs.protocol != PROTOCOL {
            return Err(ExchangeError::Garbled(format!("it greets as {:?}", theirs.protocol)));
        }
        if theirs.version != VERSION {
            return Err(ExchangeError::Version { theirs: theirs.version });
        }
        Ok(exchange)
    }

    /// Sends `ours` and receives the peer's: both ends call this at the same point.
    pub fn swap<T: Serialize + DeserializeOwned>(&mut self, ours: &T) -> Result<T, ExchangeError> {
        self.send(ours)?;
        self.recv()
    }

    /// Sends a value.
    pub fn send(&mut self, value: &impl Serialize) -> Result<(), ExchangeError> {
        let body = serde_json::to_vec(value).map_err(|why| ExchangeError::Garbled(why.to_string()))?;
        let len = u32::try_from(body.len()).ok().filter(|&len| len <= MAX_MESSAGE);
        let len = len.ok_or(ExchangeError::TooLong(body.len() as u64))?;
        let mut message = len.to_be_bytes().to_vec();
        message.extend_from_slice(&body);
        self.stream.write_all(&message).map_err(of_io)
    }

    /// Receives a value, waiting up to [`PATIENCE`] for all of it.
    pub fn recv<T: DeserializeOwned>(&mut self) -> Result<T, ExchangeError> {
        let end = Instant::now() + PATIENCE;
        let mut len = [0; 4];
        self.read(&mut len, end)?;
        let len = u32::from_be_bytes(len);
        if len > MAX_MESSAGE {
            return Err(ExchangeError::TooLong(len.into()));
        }
        let mut body = vec![0; len as usize];
        self.read(&mut body, end)?;
        serde_json::from_slice(&body).map_err(|why| ExchangeError::Garbled(why.to_string()))
    }

    /// Fills `to` before `end`, however the peer spreads its bytes.
    fn read(&mut self, mut to: &mut [u8], end: Instant) -> Result<(), ExchangeError> {
        while !to.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ExchangeError::Silent(PATIENCE));
            }
            self.stream.set_read_timeout(Some(left)).map_err(ExchangeError::Io)?;
            match self.stream.read(to) {
                Ok(0) => return Err(ExchangeError::Closed),
                Ok(count) => to = &mut to[count..],
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(of_io(why)),
            }
        }
        Ok(())
    }
}

fn of_io(why: io::Error) -> ExchangeError {
    match why.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ExchangeError::Silent(PATIENCE),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => ExchangeError::Closed,
        _ => ExchangeError::Io(why),
    }
}
