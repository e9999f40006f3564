//! Running the program, and files for it.

use assert_cmd::cargo::cargo_bin;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Two ports that are wired to each other, `left` and `right`, and a socket for commands.
pub const RING: &str = r#"
[[port]]
name = "left"
driver = "ring"
pair = "p"
addresses = ["10.1.0.1/24"]

[[port]]
name = "right"
driver = "ring"
pair = "p"
addresses = ["10.1.0.2/24"]

[control]
socket = "{dir}/admin.sock"
listen = "127.0.0.1:0"
"#;

pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin!("rockhopper"));
    command.args(arguments);
    command
}

pub fn run(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

/// A directory with a configuration file; `{dir}` in the text is the directory.
pub struct Setup {
    pub dir: TempDir,
}

impl Setup {
    pub fn new(config: &str) -> Setup {
        let dir = tempfile::tempdir().unwrap();
        let text = config.replace("{dir}", dir.path().to_str().unwrap());
        std::fs::write(dir.path().join("rockhopper.toml"), text).unwrap();
        Setup { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn config(&self) -> String {
        self.path("rockhopper.toml").to_str().unwrap().to_owned()
    }
}

/// A running `serve`, ended by SIGINT or, should that fail, killed.
pub struct Serving {
    child: Option<Child>,
}

impl Serving {
    /// Starts it and waits until its admin socket is there.
    pub fn start(setup: &Setup, more: &[&str]) -> Serving {
        let config = setup.config();
        let arguments = [&["serve", "-c", &config][..], more].concat();
        let child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let serving = Serving { child: Some(child) };
        wait_for(&setup.path("admin.sock"));
        serving
    }

    /// Presses Ctrl-C and waits for the end.
    pub fn interrupt(mut self) -> Output {
        interrupt(self.child.take().unwrap())
    }
}

/// Presses Ctrl-C and waits for the end.
pub fn interrupt(child: Child) -> Output {
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait_with_output().unwrap()
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn wait_for(path: &Path) {
    let end = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        assert!(Instant::now() < end, "{} did not appear", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
