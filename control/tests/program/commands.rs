//! Commands that do what they are asked.

use super::support::{RING, Serving, Setup, interrupt, program, run, text};
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|why| panic!("{why}: {}", text(bytes)))
}

/// What the demo verifies: the operations of each transport over IPv4 and IPv6.
const CHECKS: usize = 2 * (15 + 4 + 3);

#[test]
fn demo_verifies_every_operation_and_measures() {
    let output = run(&["demo", "--json", "--each", "10"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let report = json(&output.stdout);
    assert_eq!((&report["verified"], &report["complete"]), (&Value::from(true), &Value::from(true)));
    let operations = report["operations"].as_array().unwrap();
    assert_eq!(operations.len(), CHECKS);
    assert!(operations.iter().all(|check| check["fault"].is_null() && check["messages"].as_u64() > Some(0)));
    for (transport, network, count) in
        [("RC", "IPv4", 15), ("RC", "IPv6", 15), ("UC", "IPv6", 4), ("UD", "IPv4", 3)]
    {
        let of = |check: &&Value| check["transport"] == transport && check["network"] == network;
        assert_eq!(operations.iter().filter(of).count(), count, "{transport} {network}");
    }
    assert_eq!(report["speed"]["bandwidth"].as_array().unwrap().len(), 15);
    assert_eq!(report["speed"]["latency"].as_array().unwrap().len(), 9);
    assert!(report["speed"]["bandwidth"][0]["bandwidth_gbps"].as_f64() > Some(0.0));
}

#[test]
fn demo_verifies_between_two_ports_of_ones_own_over_every_type_of_gid() {
    let setup = Setup::new(&RING.replace("[[port]]", "[[port]]\ngid_types = [\"v1\", \"v2\"]"));
    let output = run(&["demo", "--json", "--no-speed", "-c", &setup.config()]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let report = json(&output.stdout);
    let networks: std::collections::BTreeSet<_> = report["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["network"].as_str().unwrap())
        .collect();
    assert_eq!(networks.into_iter().collect::<Vec<_>>(), ["IPv4", "RoCE v1, IPv4"]);
    assert!(report["impaired"].is_null());

    let one =
        Setup::new("[[port]]\ndriver = \"tap\"\ninterface = \"rh-none\"\naddresses = [\"10.1.0.1/24\"]\n");
    let output = run(&["demo", "-c", &one.config()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("has fewer than two ports: add a [[port]]"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn demo_says_each_operation_in_words() {
    let output = run(&["demo", "--no-speed"]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert_eq!(said.lines().filter(|line| line.starts_with('✓')).count(), CHECKS, "{said}");
    assert!(said.ends_with("messages, every byte compared.\n"), "{said}");
}

#[test]
fn serve_can_be_asked_for_its_counters_and_cleans_up_on_ctrl_c() {
    let setup = Setup::new(RING);
    let serving = Serving::start(&setup, &["--json"]);
    let socket = setup.path("admin.sock");
    let stats = run(&["stats", "--socket", socket.to_str().unwrap(), "--json"]);
    assert_eq!((stats.status.code(), text(&stats.stderr)), (Some(0), String::new()));
    let stats = json(&stats.stdout);
    assert_eq!(stats["ports"][0]["name"], "left");
    assert_eq!(stats["ports"][1]["gids"]["1"], "10.1.0.2");
    let shown = run(&["stats", "-c", &setup.config(), "--all"]);
    assert!(text(&shown.stdout).contains("out_of_sequence"));
    let output = serving.interrupt();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events: Vec<Value> = text(&output.stdout).lines().map(|line| json(line.as_bytes())).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["up", "up", "down", "down"]);
    assert_eq!(events[0]["path_mtu"], 4096);
    assert!(!socket.exists(), "the socket is left behind");
}

#[test]
fn the_admin_socket_answers_what_it_understands_and_refuses_the_rest() {
    use std::io::{BufRead, BufReader, Write};
    let setup = Setup::new(RING);
    let serving = Serving::start(&setup, &[]);
    let mut stream = std::os::unix::net::UnixStream::connect(setup.path("admin.sock")).unwrap();
    stream.write_all(b"{\"get\":\"everything\"}\nhello\n{\"get\":\"stats\"}\n").unwrap();
    let lines: Vec<Value> =
        BufReader::new(&stream).lines().take(3).map(|line| json(line.unwrap().as_bytes())).collect();
    assert!(lines[0]["error"].is_string() && lines[1]["error"].is_string());
    assert_eq!(lines[2]["ports"].as_array().unwrap().len(), 2);
    assert_eq!(serving.interrupt().status.code(), Some(0));
}

#[test]
fn addresses_are_shown_added_and_removed_while_an_endpoint_runs() {
    let right = "[[port]]\nname = \"right\"";
    let vlan = "[[port.vlans]]\nid = 5\naddresses = [\"10.5.0.1/24\"]\n\n";
    let with_vlan = RING.replacen(right, &format!("{vlan}{right}"), 1);
    let setup = Setup::new(&with_vlan);
    let serving = Serving::start(&setup, &[]);
    let config = setup.config();
    let address = |arguments: &[&str]| run(&[&["address"], arguments, &["-c", &config]].concat());
    let shown = json(&address(&["show", "--json"]).stdout);
    let names: Vec<&str> =
        shown["links"].as_array().unwrap().iter().map(|link| link["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["left", "left.5", "right"], "{shown}");
    assert_eq!(shown["links"][1]["addresses"][1]["prefix"], "10.5.0.1/24");
    assert_eq!(shown["links"][1]["addresses"][1]["gids"][0]["index"], 3);
    // Which link is meant has to be said when there are several.
    let vague = address(&["add", "10.5.0.2/24"]);
    assert_eq!(vague.status.code(), Some(2));
    assert!(text(&vague.stderr).contains("left, left.5, right"), "{}", text(&vague.stderr));
    let added = json(&address(&["add", "10.5.0.2/24", "--link", "left.5", "--json"]).stdout);
    assert_eq!((&added["index"], &added["link"]), (&Value::from(4), &Value::from("left.5")));
    let words = text(&address(&["show"]).stdout);
    assert!(words.contains("10.5.0.2/24") && words.contains("GID 4 RoCE v2"), "{words}");
    let gone = address(&["remove", "10.5.0.2"]);
    assert_eq!(text(&gone.stdout), "10.5.0.2 is gone from left.5\n");
    for (arguments, why) in [
        (&["remove", "10.5.0.2"][..], "no link has that address"),
        (&["remove", "10.5.0.2", "--link", "left"], "left has no address 10.5.0.2"),
        (&["remove", "10.5.0.1", "--link", "middle"], "there is no link middle; name one of left"),
        (&["add", "10.5.0.9", "--link", "left"], "expected ADDRESS/BITS"),
        (&["add", "224.0.0.1/24", "--link", "left"], "not an address that an interface can have"),
        (&["remove", "ten"], "is no address"),
    ] {
        let refused = address(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(why), "{arguments:?}: {}", text(&refused.stderr));
    }
    assert_eq!(serving.interrupt().status.code(), Some(0));
}

#[test]
fn doctor_checks_the_machine_and_a_configuration() {
    let setup = Setup::new(RING);
    let output = run(&["doctor", "-c", &setup.config(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let report = json(&output.stdout);
    let names: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    for expected in ["DPDK", "hugepages", "cores", "clock", "taps", "privileges", "port left", "marks"] {
        assert!(names.contains(&expected), "{expected} in {names:?}");
    }
    let bad = Setup::new("[workers]\ncores = [999]\n[[port]]\ndriver = \"tap\"\ninterface = \"lo\"\n");
    let output = run(&["doctor", "-c", &bad.config()]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stdout);
    assert!(said.contains("✗ worker cores") && said.contains("→ name cores of"), "{said}");
    assert!(said.contains("an interface lo exists already"), "{said}");
}

#[test]
fn ctrl_c_ends_a_demo_with_what_was_measured_so_far() {
    let child = program(&["demo", "--json", "--each", "60000"]).stdout(Stdio::piped()).spawn().unwrap();
    // Verification takes less than this; the first line of the table takes a minute.
    std::thread::sleep(Duration::from_secs(4));
    let output = interrupt(child);
    assert_eq!(output.status.code(), Some(130));
    let report = json(&output.stdout);
    assert_eq!((&report["verified"], &report["complete"]), (&Value::from(true), &Value::from(false)));
    assert_eq!(report["operations"].as_array().unwrap().len(), CHECKS);
}

#[test]
fn a_reader_that_goes_away_is_no_panic_and_no_success() {
    let mut child =
        program(&["demo", "--no-speed"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), String::new()));
}
