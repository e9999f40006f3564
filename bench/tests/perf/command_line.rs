//! What cannot begin says so in a sentence and exits with 2, before anything is set up.

use crate::program::{run, stderr};

#[test]
fn what_cannot_be_exits_with_2_and_says_why() {
    let cases = [
        ("fly-bw --loopback ring", "no test is called"),
        ("write-bw --loopback ring --size big", "a number of bytes"),
        ("write-bw --loopback ring --duration never", "a time"),
        ("write-bw --loopback ring --iters 1 --duration 1", "cannot be used with"),
        ("write-bw --loopback ring --colour red", "unexpected argument"),
        ("write-bw --loopback ring --tamper 1", "--verify"),
        ("write-bw 192.0.2.1 --loopback ring", "cannot be used with"),
        ("write-bw --loopback ring --qps 0", "qps is 0"),
        ("write-bw --loopback ring --mtu 1500", "1500 is no path MTU"),
        ("write-bw --loopback ring --connection UD", "UD has no write-bw"),
        ("send-bw --loopback ring --connection UD --size 4097", "one packet"),
        ("atomic-bw --loopback ring --size 16", "8 bytes"),
        ("send-lat --loopback ring --bidirectional", "--bidirectional"),
        ("write-bw --loopback ring --cores 0", "two cores"),
        ("write-bw --loopback ring --cores 0,4095", "core 4095 is not there"),
        ("write-bw", "no port"),
        ("write-bw -c /nowhere/at/all.toml", "/nowhere/at/all.toml"),
        ("write-bw --vdev net_null0 --address nonsense", "nonsense"),
        ("write-bw host.invalid --vdev net_null0 --address 192.0.2.1/24", "host.invalid"),
        ("write-bw 127.0.0.1 --port 1 --vdev net_null0 --address 192.0.2.1/24", "no server at 127.0.0.1"),
    ];
    for (line, said) in cases {
        let output = run(line);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(said), "{line}: {text}");
        assert!(!text.contains("panicked"), "{line}: {text}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn help_and_version_are_asked_for_and_given() {
    let help = run("--help");
    assert_eq!(help.status.code(), Some(0));
    let text = crate::program::stdout(&help);
    for word in
        ["--size", "--qps", "--depth", "--verify", "--loopback", "[default: 18591; with --peer 18515]"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(run("--version").status.code(), Some(0));
}
