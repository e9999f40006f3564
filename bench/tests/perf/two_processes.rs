//! Client and server as two processes: QPs exchanged over TCP, packets over shared memory.

use crate::program::{command, object, run, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The configurations of two ends of a memif link, which live as long as this.
struct Link {
    directory: TempDir,
}

impl Link {
    fn new() -> Link {
        let directory = TempDir::new().unwrap();
        let link = Link { directory };
        for (role, host) in [("server", 1), ("client", 2)] {
            let socket = link.directory.path().join("memif.sock");
            let text = format!(
                "[[port]]\nname = \"memif0\"\ndriver = \"memif\"\nsocket = \"{}\"\nrole = \"{role}\"\nid = 0\n\
                 mac = \"02:52:48:00:00:0{host}\"\n\
                 addresses = [\"192.0.2.{host}/24\", \"2001:db8::{host}/64\"]\n",
                socket.display()
            );
            std::fs::write(link.config(role), text).unwrap();
        }
        link
    }

    fn config(&self, role: &str) -> PathBuf {
        self.directory.path().join(format!("{role}.toml"))
    }

    fn line(&self, role: &str, rest: &str) -> String {
        format!("{rest} -c {}", path(&self.config(role)))
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A server process; killed when the test ends before it.
struct Server(Option<Child>);

impl Server {
    fn start(line: &str) -> Server {
        let child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Server(Some(child))
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a client, again while its server is not up yet.
fn client(line: &str) -> Output {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let output = run(line);
        if !stderr(&output).contains("no server at") || Instant::now() > end {
            return output;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_client_runs_against_a_server_and_both_report() {
    let link = Link::new();
    for (port, op, flags) in [
        (18601, "write-bw", "--size 4096 --qps 2"),
        (18602, "send-lat", "--size 64 --ipv6"),
        (18603, "send-bw", "--size 64 --connection UD --depth 8"),
    ] {
        let server = Server::start(&link.line("server", &format!("{op} --port {port} --once --json")));
        let line =
            link.line("client", &format!("{op} 127.0.0.1 --port {port} --iters 100 --verify --json {flags}"));
        let output = client(&line);
        assert!(output.status.success(), "{line}: {}{}", stdout(&output), stderr(&output));
        let near = object(&line, &output);
        assert_eq!(near["verify"]["faults"], 0, "{near}");
        assert_eq!(near["driver"], "net_memif", "{near}");
        let served = server.output();
        assert!(served.status.success(), "{op}: {}", stderr(&served));
        let far = object(op, &served);
        assert_eq!(far["messages"], near["messages"], "{near} {far}");
        assert_eq!(far["server"]["counters"], near["server"]["counters"], "{near} {far}");
    }
}

#[test]
fn a_server_refuses_in_words_and_serves_the_next() {
    let link = Link::new();
    let _server = Server::start(&link.line("server", "read-bw --port 18604"));
    let refused = client(&link.line("client", "write-bw 127.0.0.1 --port 18604 --iters 10"));
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("this server was started for read-bw, not write-bw"),
        "{}",
        stderr(&refused)
    );
    let served = client(&link.line("client", "read-bw 127.0.0.1 --port 18604 --iters 10 --verify"));
    assert!(served.status.success(), "{}", stderr(&served));
}

#[test]
fn a_peer_that_dies_does_not_keep_the_other() {
    let link = Link::new();
    let mut server = Server::start(&link.line("server", "write-bw --port 18605"));
    let line = link.line("client", "write-bw 127.0.0.1 --port 18605 --duration 10m");
    // Reached once with a short run, so that the long one below begins at once.
    let first = client(&line.replace("--duration 10m", "--iters 10"));
    assert!(first.status.success(), "{}", stderr(&first));
    let child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    if let Some(server) = &mut server.0 {
        server.kill().unwrap();
    }
    let begin = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    assert!(begin.elapsed() < Duration::from_secs(20), "it took {:?}", begin.elapsed());
    assert!(stderr(&output).contains("closed the connection"), "{}", stderr(&output));
}
