//! Rules for a queue pair that is there already: which can be played, and what is left of them.

use conform::{GivenMemory, GivenQp, GivenRule, parse, suite};
use wire::Qpn;

fn given() -> GivenQp {
    GivenQp {
        qpn: Qpn::new(0x12),
        peer_qpn: Qpn::new(0x51),
        psn: 0x1000,
        msn: 0,
        mtu: 1024,
        v6: false,
        rnr_timer: None,
        slots: None,
        memory: None,
    }
}

const MEMORY: Option<GivenMemory> = Some(GivenMemory { addr: 0x1000, rkey: 0x77, len: 4096 });

fn on(script: &str, given: &GivenQp) -> Result<GivenRule, String> {
    let text = format!("rule mine\ntitle Mine\nfact none\n{script}\n");
    parse("mine.rule", &text).unwrap_or_else(|why| panic!("{why}"))[0].on(given)
}

#[test]
fn packets_alone_can_be_played() {
    let script = "qp rc\nsend send_only +0 ackreq\neither told\nexpect rnr +0\nor silence\nsilence 1ms\nend";
    let played = on(script, &given()).unwrap();
    assert_eq!((played.works_on, played.unseen), (None, false));
    assert!(played.rule.needs.is_empty());
}

#[test]
fn states_at_the_end_are_told_by_what_answers() {
    let with = |state: &str| on(&format!("qp rc\nsend write_only +0 ackreq\nstate {state}"), &given());
    assert_eq!(with("error").unwrap().works_on, Some(false));
    assert_eq!(with("rts").unwrap().works_on, Some(true));
    assert!(with("rtr").is_err() && with("rts|error").is_err());
}

#[test]
fn memory_has_to_be_given_and_only_its_emptiness_is_passed_over() {
    let script =
        "qp rc\nregion A 64\nsend write_only +0 ackreq va=A rkey=A payload=data[0..8]\nexpect ack +0";
    assert!(on(script, &given()).unwrap_err().contains("--va"));
    let with = GivenQp { memory: MEMORY, ..given() };
    assert!(!on(script, &with).unwrap().unseen);
    assert!(on(&format!("{script}\nmemory A+8 zero[56]"), &with).unwrap().unseen);
    assert!(on(&format!("{script}\nmemory A+0 data[0..8]"), &with).unwrap_err().contains("memory"));
    assert!(on("qp rc\nregion A 2048\nsend write_only +0", &with).unwrap_err().contains("more memory"));
    for made in ["region A 64 access=remote_read", "region A 64 fill=data[0..8]", "region A 64 pd=1"] {
        assert!(on(&format!("qp rc\n{made}\nsend write_only +0"), &with).is_err(), "{made}");
    }
}

#[test]
fn what_takes_an_agent_or_another_queue_pair_says_so() {
    let cases = [
        ("qp uc\nsend send_only +0", "another service"),
        ("qp rc\nqp rc name=q2\nsend send_only +0", "two queue pairs"),
        ("qp rc mtu=256\nsend send_only +0", "another path MTU"),
        ("qp rc slots=1\nsend send_only +0", "--slots"),
        ("qp rc rnr_timer=1\nsend send_only +0", "--rnr-timer"),
        ("qp rc ip=6\nsend send_only +0", "version of IP"),
        ("qp rc peer_psn=0xFFFFFF\nsend send_only +0", "PSN"),
        ("qp rc state=rtr\nsend send_only +0", "made for it"),
        ("qp rc\nreceive 1\nsend send_only +0", "a receive"),
        ("qp rc\npost send 1\nexpect send_only +0", "device ask"),
        ("qp rc\nsend send_only +0\ncomplete none", "device's side"),
        ("needs flush\nqp rc\nsend flush +0", "only an agent can tell"),
    ];
    for (script, why) in cases {
        let said = on(script, &given()).unwrap_err();
        assert!(said.contains(why), "{script}: {said}");
    }
    let known = GivenQp { slots: Some(1), rnr_timer: Some(1), mtu: 256, ..given() };
    assert!(on("qp rc slots=1 rnr_timer=1 mtu=256 timeout=14\nsend send_only +0", &known).is_ok());
}

#[test]
fn many_rules_of_the_suite_need_no_agent() {
    let with = GivenQp { memory: MEMORY, slots: Some(4), rnr_timer: Some(1), ..given() };
    let rules = suite::rules().unwrap();
    let played = rules.iter().filter(|rule| rule.on(&with).is_ok()).count();
    assert!(played >= 55, "{played}");
}
