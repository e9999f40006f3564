//! The line between the two ends: TCP, a connection of rdma_cm, or a socket pair when both are in one process.
//!
//! It never blocks for long: while an end waits it may have to drive its worker, and a peer that falls silent
//! must not hold anybody. What is read is bounded.

use super::protocol::{MAX_LINE, Message};
use crate::programs::Line;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a write may wait for the peer to read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one wait lasts when there is nothing to drive.
const NAP: Duration = Duration::from_millis(20);
/// How long to drive the worker between two looks at the line: a look is a system call.
const DRIVE: Duration = Duration::from_micros(200);

/// Why the line is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Closed,
    /// Nothing came in time.
    #[error("the peer said nothing for {0:?}")]
    Silent(Duration),
    /// What came is not ours.
    #[error("the peer does not speak this protocol: {0}")]
    Garbled(String),
    /// The system failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Cm(Line),
}

impl Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(to),
            Stream::Unix(stream) => stream.read(to),
            Stream::Cm(line) => line.read(to),
        }
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
            Stream::Cm(line) => line.write(from),
        }
    }

    fn wait(&mut self, flags: PollFlags, at_most: Duration) {
        let fd = match self {
            Stream::Tcp(stream) => TcpStream::as_fd(stream),
            Stream::Unix(stream) => UnixStream::as_fd(stream),
            Stream::Cm(line) => return line.wait(at_most),
        };
        let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::ZERO);
        // An interrupted or failed wait is a short one: the read or write that follows tells what is wrong.
        let _ = poll(&mut [PollFd::new(fd, flags)], timeout);
    }
}

/// What an end does while it waits.
pub trait Idle {
    /// Does some work; false when there is none to do here, so that the wait may sleep.
    fn drive(&mut self) -> bool;

    /// True when the wait has to end.
    fn stopped(&self) -> bool {
        false
    }
}

/// A line to the other end.
#[derive(Debug)]
pub struct Link {
    stream: Stream,
    /// Received and not yet a whole line.
    received: Vec<u8>,
    /// Bytes of `received` that hold no line end.
    searched: usize,
}

impl Link {
    /// Over a connected TCP socket.
    pub fn tcp(stream: TcpStream) -> io::Result<Link> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Link::over(Stream::Tcp(stream)))
    }

    /// Two ends in one process.
    pub fn pair() -> io::Result<(Link, Link)> {
        let (one, other) = UnixStream::pair()?;
        one.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok((Link::over(Stream::Unix(one)), Link::over(Stream::Unix(other))))
    }

    /// Over a connection of rdma_cm.
    pub(crate) fn cm(line: Line) -> Link {
        Link::over(Stream::Cm(line))
    }

    fn over(stream: Stream) -> Link {
        Link { stream, received: Vec::new(), searched: 0 }
    }

    /// Says something.
    pub fn send(&mut self, message: &Message) -> Result<(), LinkError> {
        let mut line = serde_json::to_vec(message).map_err(io::Error::from)?;
        line.push(b'\n');
        self.send_bytes(&line)
    }

    /// Says something to a program that speaks no JSON.
    pub(super) fn send_bytes(&mut self, mut rest: &[u8]) -> Result<(), LinkError> {
        let deadline = Instant::now() + SEND_TIMEOUT;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(sent) => rest = &rest[sent..],
                Err(why) if is_again(&why) => {
                    if Instant::now() >= deadline {
                        return Err(LinkError::Silent(SEND_TIMEOUT));
                    }
                    self.stream.wait(PollFlags::POLLOUT, NAP);
                }
                Err(why) => return Err(of_io(why)),
            }
        }
        Ok(())
    }

    /// What the peer has said, if a whole line is here. Never waits.
    pub fn try_recv(&mut self) -> Result<Option<Message>, LinkError> {
        loop {
            if let Some(end) = self.received[self.searched..].iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=self.searched + end).collect();
                self.searched = 0;
                let message =
                    serde_json::from_slice(&line).map_err(|why| LinkError::Garbled(why.to_string()))?;
                return Ok(Some(message));
            }
            self.searched = self.received.len();
            if self.searched > MAX_LINE {
                return Err(LinkError::Garbled(format!("a line of more than {MAX_LINE} bytes")));
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(len) => self.received.extend_from_slice(&piece[..len]),
                Err(why) if is_again(&why) => return Ok(None),
                Err(why) => return Err(of_io(why)),
            }
        }
    }

    /// The next `count` bytes, if they are here. Never waits.
    fn try_recv_bytes(&mut self, count: usize) -> Result<Option<Vec<u8>>, LinkError> {
        while self.received.len() < count {
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(len) => self.received.extend_from_slice(&piece[..len]),
                Err(why) if is_again(&why) => return Ok(None),
                Err(why) => return Err(of_io(why)),
            }
        }
        Ok(Some(self.received.drain(..count).collect()))
    }

    /// Sleeps until something comes, or for a few milliseconds.
    pub fn nap(&mut self) {
        self.stream.wait(PollFlags::POLLIN, NAP);
    }

    /// Waits for the peer to say something, doing the worker's work meanwhile. `None`: stopped.
    pub fn recv(&mut self, timeout: Duration, idle: &mut impl Idle) -> Result<Option<Message>, LinkError> {
        self.wait_for(Link::try_recv, timeout, idle)
    }

    /// Waits for so many bytes of a program that speaks no JSON. `None`: stopped.
    pub(super) fn recv_bytes(
        &mut self,
        count: usize,
        timeout: Duration,
        idle: &mut impl Idle,
    ) -> Result<Option<Vec<u8>>, LinkError> {
        self.wait_for(|link| link.try_recv_bytes(count), timeout, idle)
    }

    fn wait_for<T>(
        &mut self,
        mut look: impl FnMut(&mut Link) -> Result<Option<T>, LinkError>,
        timeout: Duration,
        idle: &mut impl Idle,
    ) -> Result<Option<T>, LinkError> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(found) = look(self)? {
                return Ok(Some(found));
            }
            let now = Instant::now();
            if idle.stopped() {
                return Ok(None);
            }
            if now >= deadline {
                return Err(LinkError::Silent(timeout));
            }
            if !idle.drive() {
                self.stream.wait(PollFlags::POLLIN, NAP.min(deadline - now));
                continue;
            }
            while now.elapsed() < DRIVE {
                for _ in 0..32 {
                    idle.drive();
                }
            }
        }
    }
}

fn is_again(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A peer that went away shows as one of several errors.
fn of_io(why: io::Error) -> LinkError {
    match why.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            LinkError::Closed
        }
        _ => LinkError::Io(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::protocol::VERSION;

    const SOON: Duration = Duration::from_millis(100);

    struct Nothing;

    impl Idle for Nothing {
        fn drive(&mut self) -> bool {
            false
        }
    }

    fn raw() -> (UnixStream, Link) {
        let (raw, end) = UnixStream::pair().unwrap();
        end.set_nonblocking(true).unwrap();
        (raw, Link::over(Stream::Unix(end)))
    }

    #[test]
    fn what_one_end_says_the_other_hears_in_order() {
        let (mut one, mut other) = Link::pair().unwrap();
        let hello = Message::Hello { version: VERSION, program: "x".repeat(10_000) };
        one.send(&hello).unwrap();
        one.send(&Message::Bye).unwrap();
        assert_eq!(other.recv(SOON, &mut Nothing).unwrap(), Some(hello));
        assert_eq!(other.try_recv().unwrap(), Some(Message::Bye));
        assert_eq!(other.try_recv().unwrap(), None);
    }

    #[test]
    fn half_a_line_waits_for_its_end() {
        let (mut raw, mut link) = raw();
        raw.write_all(br#"{"say":"#).unwrap();
        assert_eq!(link.try_recv().unwrap(), None);
        raw.write_all(b"\"go\"}\n{\"say\":\"bye\"}\n").unwrap();
        assert_eq!(link.try_recv().unwrap(), Some(Message::Go));
        assert_eq!(link.try_recv().unwrap(), Some(Message::Bye));
    }

    #[test]
    fn silence_closing_and_noise_are_told_apart() {
        let (mut raw, mut link) = raw();
        assert!(matches!(link.recv(SOON, &mut Nothing), Err(LinkError::Silent(_))));
        raw.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(matches!(link.recv(SOON, &mut Nothing), Err(LinkError::Garbled(_))));
        drop(raw);
        assert!(matches!(link.recv(SOON, &mut Nothing), Err(LinkError::Closed)));
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let (mut raw, mut link) = raw();
        let writer = std::thread::spawn(move || {
            let piece = [b'x'; 65536];
            while raw.write_all(&piece).is_ok() {}
        });
        assert!(matches!(link.recv(Duration::from_secs(10), &mut Nothing), Err(LinkError::Garbled(_))));
        assert!(link.received.len() < MAX_LINE + 8192);
        drop(link);
        writer.join().unwrap();
    }

    #[test]
    fn a_wait_drives_the_worker_and_can_be_stopped() {
        struct Count(u32);
        impl Idle for Count {
            fn drive(&mut self) -> bool {
                self.0 += 1;
                true
            }
            fn stopped(&self) -> bool {
                self.0 > 1000
            }
        }
        let (mut one, _other) = Link::pair().unwrap();
        let mut count = Count(0);
        assert_eq!(one.recv(Duration::from_secs(10), &mut count).unwrap(), None);
        assert!(count.0 > 1000);
    }
}
