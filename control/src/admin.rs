//! The admin socket: a Unix socket that answers each line of JSON with one. `rockhopper stats` and `rockhopper address` speak
//! to it. Whoever may write to the socket may change addresses.
//!
//! ```text
//! {"get":"stats"}                                                →   {"ports":[…]}     see [`EndpointStats`]
//! {"get":"addresses"}                                            →   {"ok":[…]}        see [`LinkInfo`]
//! {"address":{"add":{"link":"port0","prefix":"192.0.2.1/24"}}}    →   {"ok":{…}}        see [`Changed`]
//! {"address":{"remove":{"link":null,"address":"192.0.2.1"}}}      →   {"ok":{…}}
//! anything else, or what cannot be done                          →   {"error":"…"}
//! ```

mod address;

pub use address::{
    AddressInfo, Changed, ConflictInfo, GidInfo, LinkInfo, add_address, addresses, remove_address,
};

use crate::endpoint::PortCore;
use crate::error::StartError;
use crate::stats::EndpointStats;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest line of a request, bytes.
const MAX_REQUEST: u64 = 4096;
/// Longest answer that a client takes, bytes: thousands of queue pairs.
const MAX_ANSWER: u64 = 64 << 20;
/// How long a client may take to ask or to read.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the server looks whether it is to stop.
const LOOK_MS: u8 = 50;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Get(What),
    Address(address::Change),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    Stats,
    Addresses,
}

/// What an address command comes to, or why it cannot be done.
type Reply<T> = Result<T, String>;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Ok(T),
    Error(String),
}

impl<T> From<Reply<T>> for Answer<T> {
    fn from(reply: Reply<T>) -> Self {
        reply.map_or_else(Answer::Error, Answer::Ok)
    }
}

#[derive(Serialize, Deserialize)]
struct Refusal {
    error: String,
}

/// Why a running endpoint could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// Nobody listens there.
    #[error("no endpoint answers at {}: {why}; start one with [control] socket in its configuration, or name its socket", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The system's reason.
        why: io::Error,
    },
    /// It will not do what was asked.
    #[error("{0}")]
    Refused(String),
    /// The conversation broke off.
    #[error("the endpoint at {} does not answer as expected: {why}", path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Asks a running endpoint for its statistics.
pub fn stats(path: &Path) -> Result<EndpointStats, AdminError> {
    let wrong = |why: String| AdminError::Answer { path: path.to_owned(), why };
    let line = line_from(path, &Request::Get(What::Stats))?;
    if let Ok(Refusal { error }) = serde_json::from_str(&line) {
        return Err(wrong(error));
    }
    serde_json::from_str(&line).map_err(|why| wrong(why.to_string()))
}

/// Asks for something that may be refused.
fn ask<T: DeserializeOwned>(path: &Path, request: &Request) -> Result<T, AdminError> {
    let line = line_from(path, request)?;
    match serde_json::from_str(&line) {
        Ok(Answer::Ok(answer)) => Ok(answer),
        Ok(Answer::Error(why)) => Err(AdminError::Refused(why)),
        Err(why) => Err(AdminError::Answer { path: path.to_owned(), why: why.to_string() }),
    }
}

/// The line that the endpoint answers with.
fn line_from(path: &Path, request: &Request) -> Result<String, AdminError> {
    let mut stream =
        UnixStream::connect(path).map_err(|why| AdminError::Connect { path: path.to_owned(), why })?;
    let talk = |stream: &mut UnixStream| {
        stream.set_read_timeout(Some(10 * PATIENCE))?;
        let mut request = serde_json::to_vec(request)?;
        request.push(b'\n');
        stream.write_all(&request)?;
        let mut line = String::new();
        BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
        Ok::<String, io::Error>(line)
    };
    talk(&mut stream).map_err(|why| AdminError::Answer { path: path.to_owned(), why: why.to_string() })
}

/// The socket's server, on a thread of its own so that a slow client delays nobody else. Dropping it removes the socket.
pub(crate) struct AdminServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    pub fn start(path: &Path, ports: &[Arc<PortCore>]) -> Result<AdminServer, StartError> {
        let refused = |why| StartError::System {
            what: format!("no admin socket at {}", path.display()),
            why,
            remedy: "choose a path in [control] socket whose directory exists and is writable",
        };
        if UnixStream::connect(path).is_ok() {
            return Err(StartError::Config {
                problem: format!("another endpoint answers at {}", path.display()),
                remedy: "stop it, or choose another [control] socket".into(),
            });
        }
        remove_stale(path);
        let listener = UnixListener::bind(path).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, ports) = (Arc::clone(&stop), ports.to_vec());
        let thread = std::thread::Builder::new()
            .name("admin".into())
            .spawn(move || serve(&listener, &ports, &stopped))
            .map_err(refused)?;
        Ok(AdminServer { path: path.to_owned(), stop, thread: Some(thread) })
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that a killed process left; never another kind of file.
fn remove_stale(path: &Path) {
    use std::os::unix::fs::FileTypeExt;
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        let _ = std::fs::remove_file(path);
    }
}

fn serve(listener: &UnixListener, ports: &[Arc<PortCore>], stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(LOOK_MS)).is_ok_and(|ready| ready > 0)
            && let Ok((stream, _)) = listener.accept()
        {
            // A client that goes away in between harms nobody.
            let _ = answer(&stream, ports);
        }
    }
}

/// Answers the lines of one client. One that says nothing for a second is let go.
fn answer(stream: &UnixStream, ports: &[Arc<PortCore>]) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if reader.by_ref().take(MAX_REQUEST).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(Request::Get(What::Stats)) => serde_json::to_vec(&EndpointStats::collect(ports)),
            Ok(Request::Get(What::Addresses)) => serde_json::to_vec(&Answer::Ok(address::show(ports))),
            Ok(Request::Address(change)) => {
                serde_json::to_vec(&Answer::from(address::change(ports, &change)))
            }
            Err(why) => serde_json::to_vec(&Refusal { error: format!("not a request: {why}") }),
        };
        let mut text = answer.map_err(io::Error::from)?;
        text.push(b'\n');
        let mut stream = stream;
        stream.write_all(&text)?;
    }
}
