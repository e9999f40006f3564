//! A device agent over TCP: each call is a line of JSON, and so is each answer.

use super::agent::Agent;
use super::run::{Place, Target};
use crate::cli::failure::Failure;
use conform::{CallError, DeviceCall, DeviceInfo, Reply};
use rockhopper::perf::Shared;
use rockhopper::{Device, RawPort};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use wire::Gid;

/// An agent's answer.
type Answer = Result<Reply, CallError>;

/// How long an agent may take for a call.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line that an agent reads, bytes: a region's whole content in hexadecimal digits.
const LONGEST: u64 = 16 << 20;
/// How often a server looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Serves one client after the other until stopped. Whoever connects may use the device and read what it registers here.
pub fn serve(listener: &TcpListener, device: &Device, stop: &Shared) {
    while !stop.is_stopped() {
        match listener.accept() {
            Ok((stream, _)) => {
                // A client that breaks off takes its objects with it; the next one begins anew.
                let _ = session(stream, Agent::new(device.clone()), stop);
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

fn session(stream: TcpStream, mut agent: Agent, stop: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream).take(LONGEST);
    let mut line = Vec::new();
    while !stop.is_stopped() {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(why) if is_again(&why) => continue,
            Err(why) => return Err(why),
        }
        let answer: Answer = match serde_json::from_slice(&line) {
            Ok(call) => agent.call(&call),
            Err(why) => Err(CallError::Refused(format!("no call that is known: {why}"))),
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        writer.write_all(&text)?;
        line.clear();
        reader.set_limit(LONGEST);
    }
    Ok(())
}

fn is_again(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// A device somewhere else, by its agent.
pub struct Remote {
    stream: TcpStream,
    received: Vec<u8>,
    pub info: DeviceInfo,
}

impl Remote {
    /// Connects to an agent and asks who it is.
    pub fn connect(agent: SocketAddr) -> Result<Remote, Failure> {
        let cannot = |why: String| {
            Failure::setup(format!(
                "no device agent answers at {agent}: {why}; start one there: rockhopper serve -c FILE --agent {agent}"
            ))
        };
        let stream = TcpStream::connect_timeout(&agent, Duration::from_secs(5))
            .map_err(|why| cannot(why.to_string()))?;
        stream.set_nodelay(true).map_err(|why| cannot(why.to_string()))?;
        stream.set_nonblocking(true).map_err(|why| cannot(why.to_string()))?;
        let info = DeviceInfo { name: String::new(), addresses: Vec::new(), mtu: 0, offers: Vec::new() };
        let mut remote = Remote { stream, received: Vec::new(), info };
        match remote.call(&DeviceCall::Hello, &mut || std::thread::sleep(Duration::from_micros(50))) {
            Ok(Reply::Device(info)) => remote.info = info,
            other => return Err(cannot(format!("it says {other:?}"))),
        }
        Ok(remote)
    }

    /// Where both ends are: `target` is the device's address on the link of `port`.
    pub fn place(&self, port: &mut RawPort, target: IpAddr) -> Result<Place, Failure> {
        place(port, target, &self.info.addresses)
    }

    fn exchange(&mut self, call: &DeviceCall, idle: &mut dyn FnMut()) -> io::Result<Answer> {
        let mut text = serde_json::to_vec(call)?;
        text.push(b'\n');
        let mut rest = &text[..];
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if !rest.is_empty() {
                match self.stream.write(rest) {
                    Ok(sent) => rest = &rest[sent..],
                    Err(why) if is_again(&why) => idle(),
                    Err(why) => return Err(why),
                }
                continue;
            }
            let mut piece = [0; 16384];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.received.extend_from_slice(&piece[..len]),
                Err(why) if is_again(&why) => idle(),
                Err(why) => return Err(why),
            }
            if self.received.ends_with(b"\n") {
                return Ok(serde_json::from_slice(&std::mem::take(&mut self.received))?);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Target for Remote {
    fn call(&mut self, call: &DeviceCall, idle: &mut dyn FnMut()) -> Answer {
        self.exchange(call, idle)
            .unwrap_or_else(|why| Err(CallError::Refused(format!("the device agent is gone: {why}"))))
    }

    fn drive(&mut self) -> bool {
        false
    }

    fn offers(&self) -> &[String] {
        &self.info.offers
    }
}

/// Where both ends are: `target` is the device's address on the link of `port`, `others` its further ones.
pub fn place(port: &mut RawPort, target: IpAddr, others: &[IpAddr]) -> Result<Place, Failure> {
    let device_mac = port
        .resolve(target, || std::thread::sleep(Duration::from_micros(50)))
        .map_err(|why| Failure::setup(format!("the device is not found: {why}")))?;
    let ours = port.addresses();
    let pair = |v4: bool| {
        let fits = |address: &&IpAddr| address.is_ipv4() == v4 && !Gid::from(**address).is_link_local();
        let theirs = [target].into_iter().chain(others.iter().copied());
        let theirs = theirs.into_iter().find(|address| fits(&address))?;
        Some((Gid::from(*ours.iter().find(fits)?), Gid::from(theirs)))
    };
    Ok(Place { device_mac, v4: pair(true), v6: pair(false) })
}
