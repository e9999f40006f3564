//! What measurements share: how long, where, on which cores, and what was built for them and stays until the end.

use super::case::Trouble;
use super::child::{Child, Finished, Line};
use super::hosts::{Cable, Guests, PortCable, TapBridge};
use super::runner::Stop;
use crate::failure::Failure;
use crate::loopback::choose_cores;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// What a program may take besides its measurement.
const PATIENCE: Duration = Duration::from_secs(60);

/// Something that is built when it is first wanted. Why it could not be is told to all who want it later.
#[derive(Debug)]
pub struct Built<T>(Option<Result<T, Trouble>>);

impl<T> Built<T> {
    const NOT_YET: Built<T> = Built(None);

    /// It, built if need be.
    pub fn get(&mut self, build: impl FnOnce() -> Result<T, Trouble>) -> Result<&mut T, Trouble> {
        self.0.get_or_insert_with(build).as_mut().map_err(|why| why.clone())
    }
}

/// What measurements share.
pub struct Context {
    /// How long a measurement takes.
    pub duration: Duration,
    /// Asked while something is waited for.
    pub stop: Stop,
    /// Cores of the two ends.
    pub cores: [usize; 2],
    /// This program.
    pub program: PathBuf,
    /// Two namespaces joined by a veth pair with addresses of the kernel's.
    pub cable: Built<Cable>,
    /// One namespace with both ends of a veth pair, for ports.
    pub port_cable: Built<PortCable>,
    /// Two Linux guests on the bridge; they go before it.
    pub guests: Built<Guests>,
    /// One namespace with a bridge that ports' taps join.
    pub taps: Built<TapBridge>,
    // Dropped last: what is above writes into it.
    scratch: TempDir,
}

impl Context {
    /// Nothing built yet.
    pub fn new(duration: Duration, stop: &Stop) -> Result<Context, Failure> {
        let cores = choose_cores(&[])?;
        let program = std::env::current_exe()
            .map_err(|why| Failure::setup(format!("this program cannot be found: {why}")))?;
        let scratch = tempfile::Builder::new().prefix("rockhopper-suite.").tempdir();
        let scratch = scratch.map_err(|why| {
            Failure::setup(format!("no directory for files of a while: {why}; set TMPDIR to another place"))
        })?;
        Ok(Context {
            duration,
            stop: stop.clone(),
            cores,
            program,
            cable: Built::NOT_YET,
            port_cable: Built::NOT_YET,
            taps: Built::NOT_YET,
            guests: Built::NOT_YET,
            scratch,
        })
    }

    /// Where files may lie until the end.
    pub fn scratch(&self) -> PathBuf {
        self.scratch.path().into()
    }

    /// Starts a program.
    pub fn start(&self, line: &Line) -> Result<Child, Trouble> {
        Child::start(self.scratch.path(), line)
    }

    /// Runs a program to its end.
    pub fn finish(&self, line: &Line) -> Result<Finished, Trouble> {
        self.start(line)?.wait(self.limit(), &self.stop)
    }

    /// Longest time that a program may take.
    pub fn limit(&self) -> Duration {
        self.duration * 3 + PATIENCE
    }
}
