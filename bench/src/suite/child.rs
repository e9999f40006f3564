//! Programs that the suite runs: in a process group of their own, watched, ended with their children.

use super::case::Trouble;
use super::runner::Stop;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often whoever waits looks again.
const NAP: Duration = Duration::from_millis(10);
/// How long a program may take to end when it is asked to.
const LEAVE: Duration = Duration::from_secs(5);

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line(pub Vec<String>);

impl Line {
    /// From words; those with blanks in them stay whole in `more`.
    pub fn new(words: &str) -> Line {
        Line(words.split_whitespace().map(Into::into).collect())
    }

    /// With further arguments.
    pub fn with<T: Into<String>>(mut self, more: impl IntoIterator<Item = T>) -> Line {
        self.0.extend(more.into_iter().map(Into::into));
        self
    }

    /// As one would type it.
    pub fn shown(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@+%".contains(c);
        let quoted = |word: &String| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        };
        self.0.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }

    fn program(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }
}

/// What a program left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Finished {
    /// The last line that says something: of its complaints, or else of its output.
    pub fn complaint(&self) -> String {
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(str::to_owned);
        let words = last(&self.err).or_else(|| last(&self.out)).unwrap_or_default();
        format!("{} ({})", words.trim(), self.status)
    }
}

/// A running program. It ends when this is dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    name: String,
    out: PathBuf,
    err: PathBuf,
    over: Option<ExitStatus>,
}

impl Child {
    /// Starts it. What it prints goes into files of `scratch` with names of its own.
    pub fn start(scratch: &Path, line: &Line) -> Result<Child, Trouble> {
        use std::os::unix::process::CommandExt;
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (out, err) = (scratch.join(format!("{number}.out")), scratch.join(format!("{number}.err")));
        let file = |path: &Path| File::create(path).map_err(|why| Trouble::Failed(why.to_string()));
        let spawned = Command::new(line.program())
            .args(&line.0[1.min(line.0.len())..])
            .stdin(Stdio::null())
            .stdout(file(&out)?)
            .stderr(file(&err)?)
            .process_group(0)
            .spawn();
        let process = spawned.map_err(|why| match why.kind() {
            std::io::ErrorKind::NotFound => missing(line.program()),
            _ => Trouble::Failed(format!("{} does not start: {why}", line.program())),
        })?;
        Ok(Child { process, name: line.program().into(), out, err, over: None })
    }

    /// Waits for its end.
    pub fn wait(mut self, limit: Duration, stop: &Stop) -> Result<Finished, Trouble> {
        let end = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                return Ok(Finished { status, out: read(&self.out), err: read(&self.err) });
            }
            if stop.is_asked() {
                return Err(Trouble::Stopped);
            }
            if Instant::now() > end {
                return Err(Trouble::Failed(format!("{} took more than {limit:?}", self.name)));
            }
            std::thread::sleep(NAP);
        }
    }

    /// Waits until it has printed these words.
    pub fn wait_for(&mut self, words: &str, limit: Duration, stop: &Stop) -> Result<(), Trouble> {
        let end = Instant::now() + limit;
        loop {
            let (out, err) = (read(&self.out), read(&self.err));
            if out.contains(words) || err.contains(words) {
                return Ok(());
            }
            if let Some(status) = self.ended() {
                let finished = Finished { status, out, err };
                return Err(Trouble::Failed(format!("{} ended first: {}", self.name, finished.complaint())));
            }
            if stop.is_asked() {
                return Err(Trouble::Stopped);
            }
            if Instant::now() > end {
                return Err(Trouble::Failed(format!("{} did not come up within {limit:?}", self.name)));
            }
            std::thread::sleep(NAP);
        }
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self, limit: Duration) -> Result<(), Trouble> {
        self.signal(Signal::SIGINT);
        let end = Instant::now() + limit;
        while self.ended().is_none() {
            if Instant::now() > end {
                return Err(Trouble::Failed(format!("{} did not end within {limit:?}", self.name)));
            }
            std::thread::sleep(NAP);
        }
        Ok(())
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.over.is_none() {
            self.over = self.process.try_wait().ok().flatten();
        }
        self.over
    }

    fn signal(&self, signal: Signal) {
        // Its group is its id.
        let _ = killpg(Pid::from_raw(self.process.id() as i32), signal);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::SIGTERM);
            let end = Instant::now() + LEAVE;
            while self.ended().is_none() && Instant::now() < end {
                std::thread::sleep(NAP);
            }
            if self.over.is_none() {
                self.signal(Signal::SIGKILL);
                let _ = self.process.wait();
            }
        }
        for file in [&self.out, &self.err] {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// A program that is not installed.
pub fn missing(program: &str) -> Trouble {
    Trouble::NotRun(format!("there is no {program} here; `make setup-bench` installs what the suite can use"))
}

/// Whether a program is on the way that the shell looks for it.
pub fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| path.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_as_one_would_type_them() {
        assert_eq!(Line::new("a -b c=1").with(["d e", "it's"]).shown(), r"a -b c=1 'd e' 'it'\''s'");
    }

    #[test]
    fn what_it_prints_and_how_it_ends_is_known() {
        let scratch = tempfile::tempdir().unwrap();
        let line = Line::new("sh -c").with(["echo out; echo err >&2; exit 3"]);
        let child = Child::start(scratch.path(), &line).unwrap();
        let finished = child.wait(Duration::from_secs(10), &Stop::default()).unwrap();
        assert_eq!((finished.status.code(), finished.out.as_str()), (Some(3), "out\n"));
        assert!(finished.complaint().starts_with("err (exit status: 3"), "{}", finished.complaint());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_there_is_not_run_and_what_hangs_is_ended_with_its_children() {
        let scratch = tempfile::tempdir().unwrap();
        let start = |line: &Line| Child::start(scratch.path(), line);
        assert!(matches!(start(&Line::new("no-such-program-at-all")), Err(Trouble::NotRun(_))));
        let line = Line::new("sh -c").with(["sleep 600 & echo $!; wait"]);
        let mut child = start(&line).unwrap();
        child.wait_for("\n", Duration::from_secs(10), &Stop::default()).unwrap();
        let sleeper: i32 = read(&child.out).trim().parse().unwrap();
        let hung = child.wait(Duration::from_millis(50), &Stop::default());
        assert!(matches!(hung, Err(Trouble::Failed(why)) if why.contains("took more than")));
        let end = Instant::now() + Duration::from_secs(10);
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
            !(stat.is_empty() || stat.contains(") Z "))
        };
        while is_there() {
            assert!(Instant::now() < end, "the child of what hung still runs");
            std::thread::sleep(NAP);
        }
    }
}
