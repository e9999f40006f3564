//! The player against a device that is a few lines of this test, in virtual time.

use conform::{
    Action, CallError, Completion, DeviceCall, Peer, Player, Reply, RuleReport, Settings, Verdict, parse,
};
use wire::{
    Addressing, Aeth, Bth, ExtHeaders, Frame, Gid, HeaderTemplate, Mac, Msn, NakCode, Opcode, Operation,
    PKey, Position, Psn, Qpn, RoceVersion, Service, Syndrome, build_frame,
};

const PEER: (Mac, [u8; 4]) = (Mac([2, 0, 0, 0, 0, 1]), [10, 0, 0, 1]);
const DEVICE: (Mac, [u8; 4]) = (Mac([2, 0, 0, 0, 0, 2]), [10, 0, 0, 2]);
const MS: u64 = 1_000_000;

fn answer(psn: Psn, syndrome: Syndrome, msn: u32, spoil: impl FnOnce(&mut Bth)) -> Vec<u8> {
    let addressing = Addressing {
        version: RoceVersion::V2,
        smac: DEVICE.0,
        dmac: PEER.0,
        vlan: None,
        src: Gid::from_v4(DEVICE.1),
        dst: Gid::from_v4(PEER.1),
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        udp_sport: 0xC000,
    };
    let opcode = Opcode::of(Service::Rc, Operation::Acknowledge, Position::Only).unwrap();
    let mut bth = Bth::new(opcode, Qpn::new(0xC0_0000), psn);
    spoil(&mut bth);
    let ext = ExtHeaders::EMPTY.with(Aeth { syndrome, msn: Msn::new(msn) });
    let mut frame = Vec::new();
    build_frame(&HeaderTemplate::new(&addressing).unwrap(), &bth, &ext, 0, &[], &mut frame);
    frame
}

/// What the imitation does with a packet: frames to send, and when.
type Device<'a> = &'a mut dyn FnMut(u64, Frame) -> Vec<(u64, Vec<u8>)>;

/// Plays a script's only rule.
fn play(script: &str, device: Device) -> RuleReport {
    play_blind(script, device, 0)
}

/// The same, by one who looks for packets every so often only.
fn play_blind(script: &str, device: Device, blind: u64) -> RuleReport {
    let text = format!("rule mine\ntitle Mine\nfact none\n{script}");
    let rule = parse("mine.rule", &text).unwrap_or_else(|why| panic!("{why}")).remove(0);
    let peer = Peer {
        mac: PEER.0,
        device_mac: DEVICE.0,
        v4: Some((Gid::from_v4(PEER.1), Gid::from_v4(DEVICE.1))),
        v6: None,
        first_qpn: Qpn::new(0xC0_0000),
        first_msn: 0,
    };
    let mut player = Player::new(&rule, &peer, Settings::default());
    let (mut now, mut on_the_way) = (1_000u64, Vec::<(u64, Vec<u8>)>::new());
    for _ in 0..100_000 {
        match player.poll(now) {
            Action::Done => return player.report(),
            Action::Transmit(frame) => {
                if let Ok(parsed) = Frame::parse(&frame, frame.len()) {
                    on_the_way.extend(device(now, parsed));
                }
            }
            Action::Call(call) => player.on_reply(carry_out(&call)),
            Action::Wait(until) => {
                on_the_way.sort_by_key(|(at, _)| *at);
                match on_the_way.first() {
                    Some(&(at, _)) if at <= until => {
                        now = now.max(at);
                        let (_, frame) = on_the_way.remove(0);
                        player.on_packet(now.saturating_sub(blind), now, &frame);
                    }
                    _ => now = until,
                }
            }
        }
    }
    panic!("the player does not come to an end");
}

fn carry_out(call: &DeviceCall) -> Result<Reply, CallError> {
    Ok(match call {
        DeviceCall::Qp { service, .. } if service == "uc" => return Err(CallError::Unsupported("uc".into())),
        DeviceCall::Qp { .. } => Reply::Qp { qpn: 0x77 },
        DeviceCall::Region(_) => Reply::Region { addr: 0x1000, rkey: 0x500 },
        DeviceCall::Poll { .. } => Reply::Completions(Vec::<Completion>::new()),
        DeviceCall::Read { len, .. } => Reply::Bytes("00".repeat(*len as usize)),
        DeviceCall::State { .. } => Reply::State("rts".into()),
        DeviceCall::Receive { .. } => return Err(CallError::Refused("the queue is full".into())),
        _ => Reply::Done,
    })
}

/// Acknowledges everything at once.
fn acks(now: u64, frame: Frame) -> Vec<(u64, Vec<u8>)> {
    vec![(now, answer(frame.bth().psn, Syndrome::ACK, 1, |_| {}))]
}

fn failed(report: RuleReport, what: &str) {
    assert_eq!(report.verdict, Verdict::Failed, "{report:?}");
    assert!(report.why.contains(what), "{what:?} is not in {:?}", report.why);
}

const SEND: &str = "qp rc\nsend send_only +0 ackreq\n";

#[test]
fn what_fits_passes_with_its_packets_in_words() {
    let report = play(&format!("{SEND}expect ack +0 msn=1"), &mut acks);
    assert_eq!((report.verdict, report.why.as_str()), (Verdict::Passed, ""));
    let words: Vec<&str> = report.packets.iter().map(|packet| packet.words.as_str()).collect();
    assert_eq!(
        words,
        [
            "RC SEND Only to 0x000077 PSN +0 (0x123456) AckReq",
            "RC Acknowledge to 0xc00000 PSN +0 (0x123456) ACK msn 0x1"
        ]
    );
}

#[test]
fn what_does_not_fit_fails_with_the_reason() {
    failed(
        play(&format!("{SEND}expect ack +0 msn=2"), &mut acks),
        "line 6: RC Acknowledge psn +0 (0x123456) msn 0x2",
    );
    failed(play(&format!("{SEND}expect ack +0 msn=2"), &mut acks), "msn is 0x1, not 0x2");
    failed(play(&format!("{SEND}expect nak +0"), &mut acks), "syndrome is 0x1f, not 0x60..0x7f");
    failed(play(&format!("{SEND}expect read_only +0"), &mut acks), "it is no RC READ Response Only");
    failed(play(&format!("{SEND}expect ack !+0"), &mut acks), "not anything but +0");
    failed(play(&format!("{SEND}expect ack +0\nexpect ack +1"), &mut acks), "nothing came for 1000 ms");
    failed(play(&format!("{SEND}silence 1ms"), &mut acks), "silence was expected");
    // Every rule ends in silence.
    failed(play(SEND, &mut acks), "silence was expected");
}

#[test]
fn every_packet_is_held_to_what_all_must_obey() {
    type Spoil = fn(&mut Bth);
    let cases: [(Spoil, &str); 3] = [
        (|bth| bth.resv7 = 1, "reserved bits"),
        (|bth| bth.pkey = PKey(0x1234), "P_Key"),
        (|bth| bth.becn = true, "congestion"),
    ];
    for (spoil, what) in cases {
        let mut device = |now, frame: Frame| vec![(now, answer(frame.bth().psn, Syndrome::ACK, 1, spoil))];
        failed(play(&format!("{SEND}expect ack +0"), &mut device), what);
    }
    let mut broken = |now, frame: Frame| {
        let mut bytes = answer(frame.bth().psn, Syndrome::ACK, 1, |_| {});
        *bytes.last_mut().unwrap() ^= 1;
        vec![(now, bytes)]
    };
    failed(play(&format!("{SEND}expect ack +0"), &mut broken), "iCRC is wrong");
}

#[test]
fn times_are_judged() {
    let mut late =
        |now, frame: Frame| vec![(now + 7 * MS, answer(frame.bth().psn, Syndrome::ACK, 1, |_| {}))];
    assert_eq!(
        play(&format!("{SEND}expect ack +0 after=6ms within=8ms"), &mut late).verdict,
        Verdict::Passed
    );
    failed(
        play(&format!("{SEND}expect ack +0 after=8ms"), &mut late),
        "7000 µs after the last packet, not before 8000",
    );
    failed(play(&format!("{SEND}expect ack +0 within=5ms"), &mut late), "nothing came for 5 ms");
    failed(play(&format!("{SEND}silence 8ms\nexpect ack +0"), &mut late), "silence was expected");
    assert_eq!(play(&format!("{SEND}silence 6ms\nexpect ack +0"), &mut late).verdict, Verdict::Passed);
    assert_eq!(play(&format!("{SEND}wait 8ms"), &mut late).verdict, Verdict::Passed);
}

#[test]
fn the_device_has_the_benefit_of_the_doubt() {
    let mut late =
        |now, frame: Frame| vec![(now + 7 * MS, answer(frame.bth().psn, Syndrome::ACK, 1, |_| {}))];
    let passed = |report: RuleReport| assert_eq!(report.verdict, Verdict::Passed, "{report:?}");
    // It came between 3 and 7 ms.
    passed(play_blind(&format!("{SEND}expect ack +0 after=7ms"), &mut late, 4 * MS));
    let early = play_blind(&format!("{SEND}expect ack +0 after=8ms"), &mut late, 4 * MS);
    assert!(early.by_time);
    failed(early, "not before 8000");
    // The second came between 2 and 6 ms behind the first, at the earliest 2 ms after the latest that the first can have come.
    let mut two = |now, frame: Frame| {
        let ack = || answer(frame.bth().psn, Syndrome::ACK, 1, |_| {});
        vec![(now + 7 * MS, ack()), (now + 9 * MS, ack())]
    };
    passed(play_blind(&format!("{SEND}expect ack +0\nexpect ack +0 after=6ms"), &mut two, 4 * MS));
    failed(
        play_blind(&format!("{SEND}expect ack +0\nexpect ack +0 after=7ms"), &mut two, 4 * MS),
        "6000 µs after the last packet",
    );
    // What comes when a silence is over belongs to the next step, also when nobody looked in time.
    passed(play(&format!("{SEND}silence 7ms\nexpect ack +0"), &mut late));
    passed(play(&format!("{SEND}wait 7ms\nexpect ack +0"), &mut late));
    let wrong = play(&format!("{SEND}expect nak +0"), &mut acks);
    assert!(!wrong.by_time);
}

#[test]
fn acks_may_be_coalesced_where_the_script_says_so() {
    let two = "qp rc\nsend send_only +0 ackreq\nsend send_only +1 ackreq\n";
    assert_eq!(play(&format!("{two}expect ack +1 coalesced"), &mut acks).verdict, Verdict::Passed);
    failed(play(&format!("{two}expect ack +1"), &mut acks), "psn is 0x123456, not +1");
    let mut last =
        |now, frame: Frame| if frame.bth().psn == Psn::new(0x12_3457) { acks(now, frame) } else { vec![] };
    assert_eq!(play(&format!("{two}expect ack +1 coalesced"), &mut last).verdict, Verdict::Passed);
}

#[test]
fn a_choice_takes_the_branch_that_fits_and_an_open_rule_is_never_passed() {
    let choice =
        "either refused\nexpect nak +0 code=access\nor taken\nexpect ack +0\nor silence\nsilence 5ms\nend\n";
    let open = format!("open nobody knows\n{SEND}{choice}");
    let mut naks = |now, frame: Frame| {
        vec![(now, answer(frame.bth().psn, Syndrome::Nak(NakCode::RemoteAccess), 0, |_| {}))]
    };
    let mut silent = |_, _: Frame| vec![];
    for (device, said) in [
        (&mut acks as Device, "taken; nobody knows"),
        (&mut naks, "refused; nobody knows"),
        (&mut silent, "silence; nobody knows"),
    ] {
        let report = play(&open, device);
        assert_eq!((report.verdict, report.why.as_str()), (Verdict::Open, said));
    }
    let report = play(&format!("{SEND}{choice}"), &mut acks);
    assert_eq!((report.verdict, report.why.as_str()), (Verdict::Passed, "taken"));
    let mut other = |now, frame: Frame| {
        vec![(now, answer(frame.bth().psn, Syndrome::Nak(NakCode::PsnSequence), 0, |_| {}))]
    };
    failed(play(&open, &mut other), "one of these was expected: refused; taken; silence; but");
}

#[test]
fn calls_are_judged() {
    assert_eq!(play("qp uc\n", &mut acks).verdict, Verdict::Skipped);
    failed(play("qp rc\nreceive 1\n", &mut acks), "the device refused: the queue is full");
    assert_eq!(play("qp rc\nreceive 1 refused\n", &mut acks).verdict, Verdict::Passed);
    failed(play("qp rc\npost send 1 refused\n", &mut acks), "should have refused");
    failed(play("qp rc\nstate error\n", &mut acks), "the state is rts, not error");
    failed(play("qp rc\ncomplete send 1 success\n", &mut acks), "the completion 1 success did not come");
    assert_eq!(play("qp rc\nregion A 8\nmemory A+0 zero[8]\n", &mut acks).verdict, Verdict::Passed);
    failed(play("qp rc\nregion A 8\nmemory A+0 hex:0001\n", &mut acks), "A+0 has 0x00 at byte 1, not 0x01");
}

#[test]
fn frames_for_others_are_nobodys_business() {
    let mut device = |now, frame: Frame| {
        let other = answer(frame.bth().psn, Syndrome::ACK, 9, |bth| bth.dest_qpn = Qpn::new(0xC0_0001));
        vec![(now, other), (now, vec![1, 2, 3]), (now, answer(frame.bth().psn, Syndrome::ACK, 1, |_| {}))]
    };
    assert_eq!(play(&format!("{SEND}expect ack +0 msn=1"), &mut device).verdict, Verdict::Passed);
}
