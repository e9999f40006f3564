//! Configuration files: the ones we ship are good, and bad ones are refused with file, line, key and remedy.

use rockhopper::config::{Config, DeviceKind};
use std::fmt::Write;
use std::path::Path;

fn refusal(text: &str) -> String {
    match Config::parse(text, Path::new("rockhopper.toml")) {
        Ok(config) => panic!("accepted: {config:#?}"),
        Err(error) => error.to_string(),
    }
}

fn shipped(name: &str) -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(name);
    Config::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_file_in_configs_is_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let config = Config::load(&entry.unwrap().path()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!config.ports.is_empty() && !config.ports[0].addresses.is_empty());
        count += 1;
    }
    assert!(count >= 8, "{count}");
}

#[test]
fn values_reach_their_place() {
    let config = shipped("intel.toml");
    let port = &config.ports[0];
    assert_eq!(port.device, DeviceKind::Pci { address: "0000:18:00.0".into() });
    assert_eq!((port.vlan, port.mtu, port.rx_descriptors), (Some(100), 4200, 2048));
    assert_eq!(port.gateway_v6, Some("2001:db8::ff".parse().unwrap()));
    assert_eq!(config.workers.cores, [2]);
    assert_eq!(config.qos.traffic_class(), 26 << 2);
    assert_eq!(shipped("mlx5.toml").qos.traffic_class(), 26 << 2 | 2);
    assert_eq!(shipped("af_packet.toml").ports[0].mac, Some(rockhopper::Mac([2, 0x52, 0x48, 0, 3, 1])));
}

#[test]
fn payloads_are_lent_unless_the_port_says_otherwise() {
    let zero_copy = |more: &str| {
        Config::parse(&format!("{TAP}{more}"), Path::new("rockhopper.toml")).unwrap().ports[0].zero_copy
    };
    assert_eq!((zero_copy(""), zero_copy("zero_copy = false\n")), (true, false));
}

#[test]
fn an_impairment_plan_reaches_its_port() {
    let text = format!("{TAP}impair = \"drop 1%; reorder 3 every 1000\"\n");
    let config = Config::parse(&text, Path::new("rockhopper.toml")).unwrap();
    let plan = config.ports[0].impair.as_ref().unwrap();
    assert_eq!(plan.to_string(), "drop 1%; reorder 3 every 1000");
}

#[test]
fn gid_types_are_chosen_by_name() {
    use rockhopper::RoceVersion::{V1, V2};
    let types = |line: &str| {
        let config = Config::parse(&format!("{TAP}{line}"), Path::new("rockhopper.toml"))
            .map_err(|why| why.to_string());
        config.map(|config| config.ports[0].gid_types.clone())
    };
    assert_eq!(types(""), Ok(vec![V2]));
    assert_eq!(types("gid_types = [\"v2\", \"roce_v1\"]\n"), Ok(vec![V2, V1]));
    for wrong in ["[]", "[\"v1\", \"v1\"]"] {
        let refused = types(&format!("gid_types = {wrong}\n")).unwrap_err();
        assert!(refused.contains("each type is named once"), "{refused}");
    }
    assert!(types("gid_types = [\"v3\"]\n").unwrap_err().contains("gid_types"));
}

const TAP: &str = "[[port]]\ndriver = \"tap\"\ninterface = \"rh0\"\n";

#[test]
fn errors_name_file_line_key_and_remedy() {
    let cases = [
        "[wokers]\n".to_owned(),
        "[workers]\ncore = [1]\n".into(),
        format!("{TAP}mtuu = 1500\n"),
        format!("{TAP}frobnicate = 1\n"),
        format!("{TAP}mtu = \"big\"\n"),
        format!("{TAP}mtu = 100000\n"),
        format!("{TAP}mtu = 600\n"),
        format!("{TAP}addresses = [\"10.0.0.1/24\", \"10.0.0.2\"]\n"),
        format!("{TAP}addresses = [\"10.0.0.1/33\"]\n"),
        format!("{TAP}addresses = [\"10.0.0.1/24\", \"10.0.0.1/16\"]\n"),
        format!("{TAP}vlan = 4095\n"),
        format!("{TAP}neighbour_timeout_ms = 50\n"),
        format!("{TAP}[[port.vlans]]\nid = 0\n"),
        format!("{TAP}vlan = 5\n[[port.vlans]]\nid = 5\n"),
        format!("{TAP}[[port.vlans]]\nid = 5\naddresses = [\"10.0.0.1\"]\n"),
        format!("{TAP}[[port.vlans]]\naddresses = []\n"),
        format!("{TAP}[[port.vlans]]\nid = 5\nmtu = 1500\n"),
        format!("{TAP}mac = \"02:00\"\n"),
        format!("{TAP}gateway = \"fd00::1\"\n"),
        format!("{TAP}pair = \"x\"\n"),
        format!("{TAP}rx_descriptors = 1\n"),
        "[[port]]\ndriver = \"pcap\"\ninterface = \"eth0\"\nzero_copy = true\n".into(),
        format!("{TAP}impair = \"drop 1%; reorder 3\"\n"),
        format!("{TAP}impair = \"\"\n"),
        format!("{TAP}{TAP}name = \"port0\"\n"),
        "[[port]]\ndriver = \"tab\"\n".into(),
        "[[port]]\nname = \"x\"\n".into(),
        "[[port]]\ndriver = \"ring\"\npair = \"p\"\n".into(),
        "[[port]]\ndriver = \"memif\"\nsocket = \"/tmp/s\"\n".into(),
        "[[port]]\ndriver = \"pci\"\naddress = \"0000:3b:00.0\"\nmac = \"02:00:00:00:00:01\"\n".into(),
        "[[port]]\ndriver = \"pci\"\naddress = \"eth0\"\n".into(),
        "[[port]]\ndriver = \"pci\"\naddress = \"0000:3b:20.0\"\n".into(),
        "[[port]]\ndriver = \"pci\"\naddress = \"00:3b:00:0\"\n".into(),
        "[eal]\nmemory = \"hugepage\"\n".into(),
        "[eal]\nmemory_mb = 512\n".into(),
        "[eal]\nmemory = \"no-huge\"\nmemory_mb = 1\n".into(),
        "[eal]\nfile_prefix = \"a/b\"\n".into(),
        "[workers]\ndrive = \"caller\"\npoll = \"busy\"\n".into(),
        "[workers]\ndrive = \"caller\"\ncores = [1]\n".into(),
        "[workers]\ncores = [1, 1]\n".into(),
        "[qos]\ndscp = 64\n".into(),
        "[qos]\nhop_limit = 0\n".into(),
        "[qos]\npfc = true\n".into(),
        "[congestion]\nalgorithm = \"dcqcn\"\n".into(),
        "[control]\nlisten = \"18591\"\n".into(),
        "[control]\nsocket = \"\"\n".into(),
        "[control\n".into(),
        "[eal]\nlog = \"quiet\"\nlog = \"info\"\n".into(),
    ];
    let mut all = String::new();
    for case in cases {
        writeln!(all, "{}\n    → {}", case.trim_end().replace('\n', " | "), refusal(&case)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_file_that_is_not_there_is_refused_with_a_remedy() {
    let error = Config::load(Path::new("/nonexistent/rockhopper.toml")).unwrap_err().to_string();
    assert!(
        error.starts_with("/nonexistent/rockhopper.toml: cannot be read") && error.contains("configs/"),
        "{error}"
    );
}
