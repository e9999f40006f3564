//! What cannot begin: exit status 2, and one sentence on stderr that says what to do.

use super::support::{Serving, Setup, program, run, text};
use std::net::TcpListener;
use std::process::Output;

fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("rockhopper: "), "{said}");
    said
}

fn refused(config: &str) -> String {
    let setup = Setup::new(config);
    said(&run(&["serve", "-c", &setup.config()]))
}

fn contains(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

const NULL: &str = "[[port]]\ndriver = \"vdev\"\ndevice = \"net_null_0\"\n";

#[test]
fn files_that_are_missing_or_wrong() {
    contains(&said(&run(&["serve", "-c", "/nonexistent.toml"])), &["/nonexistent.toml", "configs/"]);
    contains(
        &refused("[[port]]\ndriver = \"tap\"\ninterfase = \"x\"\n"),
        &["toml:3: port[0].interfase", "interface?"],
    );
    contains(&refused(""), &["there is no port", "[[port]]"]);
}

#[test]
fn devices_that_are_not_there() {
    contains(
        &refused("[[port]]\ndriver = \"af_packet\"\ninterface = \"nosuch0\"\n"),
        &["there is no interface nosuch0", "ip link"],
    );
    contains(
        &refused("[[port]]\ndriver = \"pci\"\naddress = \"0000:7f:1f.7\"\n"),
        &["there is no PCI device 0000:7f:1f.7", "dpdk-devbind.py --status"],
    );
    contains(
        &refused("[[port]]\ndriver = \"memif\"\nrole = \"server\"\nsocket = \"/nonexistent/m.sock\"\n"),
        &["directory of /nonexistent/m.sock", "make it"],
    );
    contains(
        &refused("[[port]]\ndriver = \"vdev\"\ndevice = \"net_nosuch_0\"\n"),
        &["net_nosuch_0", "driver"],
    );
}

#[test]
fn cores_addresses_and_hugepages_that_are_not_there() {
    contains(&refused(&format!("[workers]\ncores = [999]\n{NULL}")), &["core 999", "[workers]"]);
    contains(
        &refused(&format!("{NULL}addresses = [\"10.0.0.1/24\"]\ngateway = \"10.9.9.9\"\n")),
        &["gateway 10.9.9.9", "none of the interface's networks"],
    );
    contains(
        &refused(&format!("{NULL}[control]\nlisten = \"192.0.2.99:4000\"\n")),
        &["192.0.2.99:4000", "--listen"],
    );
    contains(
        &refused(&format!("{NULL}[control]\nsocket = \"/nonexistent/a.sock\"\n")),
        &["/nonexistent/a.sock", "directory"],
    );
}

#[test]
fn hugepages_that_were_not_reserved() {
    // On a machine that has some, a namespace hides them: the program reads what the kernel tells in /sys.
    let setup = Setup::new(&format!("[eal]\nmemory = \"hugepages\"\n{NULL}"));
    let script = "mount -t tmpfs none /sys/kernel/mm/hugepages && exec \"$0\" serve -c \"$1\"";
    let command = program(&[]);
    let output = in_mount_namespace(script).arg(command.get_program()).arg(setup.config()).output().unwrap();
    contains(&said(&output), &["no free hugepages", "sysctl vm.nr_hugepages=512", "no-huge"]);
}

#[test]
fn a_machine_without_tun() {
    let setup = Setup::new("[[port]]\ndriver = \"tap\"\ninterface = \"rhtest0\"\n");
    let script = "mount -t tmpfs none /dev/net && exec \"$0\" serve -c \"$1\"";
    let command = program(&[]);
    let output = in_mount_namespace(script).arg(command.get_program()).arg(setup.config()).output().unwrap();
    contains(&said(&output), &["/dev/net/tun", "modprobe tun"]);
}

#[test]
fn a_user_without_the_privileges_for_taps() {
    let setup = Setup::new("[[port]]\ndriver = \"tap\"\ninterface = \"rhtest1\"\n");
    let command = program(&[]);
    // The user namespace of a new user has no privileges over the network outside.
    let output = std::process::Command::new("setpriv")
        .args(["--bounding-set", "-net_admin,-net_raw", "--inh-caps", "-net_admin,-net_raw"])
        .arg(command.get_program())
        .args(["serve", "-c", &setup.config()])
        .output()
        .unwrap();
    contains(&said(&output), &["permission is missing", "CAP_NET_ADMIN", "run as root"]);
}

/// The script runs with its own mounts. Needs root, as the tests with taps do.
fn in_mount_namespace(script: &str) -> std::process::Command {
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command
}

#[test]
fn ports_and_sockets_that_are_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    contains(
        &refused(&format!("{NULL}[control]\nlisten = \"{address}\"\n")),
        &["another program listens there"],
    );
    let config = format!("{NULL}[control]\nlisten = \"127.0.0.1:0\"\nsocket = \"{{dir}}/admin.sock\"\n");
    let setup = Setup::new(&config);
    let serving = Serving::start(&setup, &[]);
    contains(&said(&run(&["serve", "-c", &setup.config()])), &["another endpoint answers", "stop it"]);
    assert_eq!(serving.interrupt().status.code(), Some(0));
}

#[test]
fn nobody_to_ask_for_counters() {
    contains(
        &said(&run(&["stats", "--socket", "/nonexistent.sock"])),
        &["no endpoint answers at /nonexistent.sock"],
    );
    let setup = Setup::new(NULL);
    contains(&said(&run(&["stats", "-c", &setup.config()])), &["no admin socket", "[control]"]);
}

#[test]
fn a_stale_socket_of_a_killed_process_is_no_obstacle_but_a_file_is() {
    let config = format!("{NULL}[control]\nlisten = \"127.0.0.1:0\"\nsocket = \"{{dir}}/admin.sock\"\n");
    let setup = Setup::new(&config);
    drop(std::os::unix::net::UnixListener::bind(setup.path("admin.sock")).unwrap());
    let output = run(&["serve", "-c", &setup.config(), "--duration", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    std::fs::write(setup.path("admin.sock"), "precious").unwrap();
    contains(&said(&run(&["serve", "-c", &setup.config()])), &["admin.sock"]);
    assert_eq!(std::fs::read_to_string(setup.path("admin.sock")).unwrap(), "precious");
}
