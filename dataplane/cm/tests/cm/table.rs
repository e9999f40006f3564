//! Every state and everything that can come: what becomes of it. A change of behaviour shows in the snapshot
//! (rocev2 facts, CM 11).

use crate::support::*;
use cm::*;
use std::fmt::Write;
use wire::mad::*;
use wire::{Psn, Qpn};

const THEIR_ID: CommId = CommId(0x7777);
const THEIR_QPN: Qpn = Qpn::new(0xC3);
const THEIR_GUID: u64 = 0x0200_00FF_FE00_00CC;
const OUR_QPN: Qpn = Qpn::new(0xA1);
const TID: u64 = 99;

/// One end of a connection; the other end is played by the test.
struct Subject {
    end: End,
    conn: ConnId,
    our_id: CommId,
}

type Setup = (&'static str, fn() -> Subject);
type Input = (&'static str, fn(&mut Subject));

fn their_req(end: &End, local_id: CommId) -> Req {
    Req {
        local_id,
        service_id: SERVICE,
        local_ca_guid: THEIR_GUID,
        local_qpn: THEIR_QPN,
        starting_psn: Psn::new(5),
        remote_cm_timeout: 20,
        local_cm_timeout: 20,
        max_cm_retries: 15,
        path_mtu: 3,
        primary: PrimaryPath {
            local_gid: end.path.remote,
            remote_gid: end.path.local,
            ack_timeout: 17,
            ..PrimaryPath::default()
        },
        ..Req::default()
    }
}

fn their_rep(remote_id: CommId) -> Rep {
    let (local_ca_guid, local_qpn) = (THEIR_GUID, THEIR_QPN);
    Rep { local_id: THEIR_ID, remote_id, local_ca_guid, local_qpn, ..Rep::default() }
}

impl Subject {
    fn active() -> Subject {
        let mut end = End::passive();
        end.path = path(B, A);
        let conn = end.cm.send_req(0, &ReqParams { qpn: OUR_QPN, ..end.req() }).unwrap();
        let our_id = crate::message!(end.sent_one(), Req).local_id;
        Subject { end, conn, our_id }
    }

    fn passive() -> Subject {
        let mut end = End::passive();
        let req = their_req(&end, THEIR_ID);
        end.take(&CmMad::new(TID, req));
        let Event::ReqReceived { conn, .. } = end.event() else { panic!() };
        end.cm.send_mra(0, conn, 1).unwrap();
        let our_id = crate::message!(end.sent_one(), Mra).local_id;
        Subject { end, conn, our_id }
    }

    fn take(&mut self, message: impl Into<CmMessage>) {
        self.end.take(&CmMad::new(TID, message));
    }

    fn mra(&mut self, message: Answered) {
        let (local_id, remote_id) = (THEIR_ID, self.our_id);
        self.take(Mra { local_id, remote_id, message, service_timeout: 20, private_data: Area::EMPTY });
    }

    fn rej(&mut self, message: Answered, reason: RejectReason, ari: &[u8], remote_id: CommId) {
        let (local_id, ari_area, private_data) = (THEIR_ID, Area::new(ari).unwrap(), Area::EMPTY);
        self.take(Rej {
            local_id,
            remote_id,
            message,
            ari_len: ari.len() as u8,
            reason,
            ari_area,
            private_data,
        });
    }

    fn rep_params(&self) -> RepParams {
        RepParams::new(OUR_QPN, Psn::new(7))
    }

    /// Forgets what was said and told on the way.
    fn quiet(mut self) -> Subject {
        self.end.sent();
        self.end.events();
        self
    }
}

fn replied() -> Subject {
    let mut subject = Subject::active();
    let rep = their_rep(subject.our_id);
    subject.take(rep);
    subject.quiet()
}

fn connected_active() -> Subject {
    let mut subject = replied();
    subject.end.cm.send_rtu(0, subject.conn, b"").unwrap();
    subject.quiet()
}

fn replying() -> Subject {
    let mut subject = Subject::passive();
    let params = subject.rep_params();
    subject.end.cm.send_rep(0, subject.conn, &params).unwrap();
    subject.quiet()
}

fn connected_passive() -> Subject {
    let mut subject = replying();
    subject.end.cm.establish(0, subject.conn).unwrap();
    subject.quiet()
}

fn closing(mut subject: Subject) -> Subject {
    subject.end.cm.send_dreq(0, subject.conn, b"").unwrap();
    subject.quiet()
}

fn closed(mut subject: Subject) -> Subject {
    let (remote_id, remote_qpn) = (subject.our_id, OUR_QPN);
    subject.take(Dreq { local_id: THEIR_ID, remote_id, remote_qpn, private_data: Area::EMPTY });
    subject.quiet()
}

const SETUPS: &[Setup] = &[
    ("ReqSent", || Subject::active().quiet()),
    ("MraReqRcvd", || {
        let mut subject = Subject::active();
        subject.mra(Answered::Req);
        subject.quiet()
    }),
    ("RepRcvd", replied),
    ("MraRepSent", || {
        let mut subject = replied();
        subject.end.cm.send_mra(0, subject.conn, 1).unwrap();
        subject.quiet()
    }),
    ("ReqRcvd", || {
        let mut end = End::passive();
        let req = their_req(&end, THEIR_ID);
        end.take(&CmMad::new(TID, req));
        let Event::ReqReceived { conn, .. } = end.event() else { panic!() };
        // Its ID is the one that the same seed has given before.
        Subject { end, conn, our_id: Subject::passive().our_id }
    }),
    ("MraReqSent", || Subject::passive().quiet()),
    ("RepSent", replying),
    ("MraRepRcvd", || {
        let mut subject = replying();
        subject.mra(Answered::Rep);
        subject.quiet()
    }),
    ("Established, active", connected_active),
    ("Established, passive", connected_passive),
    ("DreqSent, active", || closing(connected_active())),
    ("DreqSent, passive", || closing(connected_passive())),
    ("Timewait, active", || closed(connected_active())),
    ("Timewait, passive", || closed(connected_passive())),
    ("Timewait, REQ given up", || {
        let mut subject = Subject::active();
        subject.end.pass(1_000 * MS);
        subject.quiet()
    }),
    ("Timewait, REQ rejected", || {
        let mut subject = Subject::passive();
        subject.end.cm.send_rej(0, subject.conn, RejectReason::CONSUMER_DEFINED, b"", b"").unwrap();
        subject.quiet()
    }),
    ("Timewait, REP given up", || {
        let mut subject = replying();
        subject.end.pass(1_000 * MS);
        subject.quiet()
    }),
];

const INPUTS: &[Input] = &[
    ("REQ", |subject| {
        let req = their_req(&subject.end, THEIR_ID);
        subject.take(req);
    }),
    ("REQ, new ID, same QP", |subject| {
        let req = their_req(&subject.end, CommId(0x8888));
        subject.take(req);
    }),
    ("MRA of REQ", |subject| subject.mra(Answered::Req)),
    ("MRA of REP", |subject| subject.mra(Answered::Rep)),
    ("REP", |subject| {
        let rep = their_rep(subject.our_id);
        subject.take(rep);
    }),
    ("REP, another ID", |subject| {
        let rep = Rep { local_id: CommId(0x8888), ..their_rep(subject.our_id) };
        subject.take(rep);
    }),
    ("RTU", |subject| {
        let remote_id = subject.our_id;
        subject.take(Rtu { local_id: THEIR_ID, remote_id, private_data: Area::EMPTY });
    }),
    ("REJ of REQ", |subject| {
        let id = subject.our_id;
        subject.rej(Answered::Req, RejectReason::CONSUMER_DEFINED, b"", id);
    }),
    ("REJ of REP", |subject| {
        let id = subject.our_id;
        subject.rej(Answered::Rep, RejectReason::CONSUMER_DEFINED, b"", id);
    }),
    ("REJ timeout, by GUID", |subject| {
        subject.rej(Answered::Req, RejectReason::TIMEOUT, &THEIR_GUID.to_be_bytes(), CommId(0));
    }),
    ("DREQ", |subject| {
        let (remote_id, remote_qpn) = (subject.our_id, OUR_QPN);
        subject.take(Dreq { local_id: THEIR_ID, remote_id, remote_qpn, private_data: Area::EMPTY });
    }),
    ("DREQ, another QP", |subject| {
        let (remote_id, remote_qpn) = (subject.our_id, Qpn::new(1));
        subject.take(Dreq { local_id: THEIR_ID, remote_id, remote_qpn, private_data: Area::EMPTY });
    }),
    ("DREP", |subject| {
        let remote_id = subject.our_id;
        subject.take(Drep { local_id: THEIR_ID, remote_id, private_data: Area::EMPTY });
    }),
    ("LAP", |subject| {
        let remote_id = subject.our_id;
        subject.take(Lap { local_id: THEIR_ID, remote_id, remote_qpn: OUR_QPN, ..Lap::default() });
    }),
    ("deadline", |subject| {
        if let Some(at) = subject.end.cm.next_timeout() {
            subject.end.cm.on_timeout(at);
        }
    }),
    ("send_rep", |subject| {
        let params = subject.rep_params();
        report(subject, |cm, conn| cm.send_rep(0, conn, &params));
    }),
    ("send_rtu", |subject| report(subject, |cm, conn| cm.send_rtu(0, conn, b""))),
    ("send_rej", |subject| {
        report(subject, |cm, conn| cm.send_rej(0, conn, RejectReason::CONSUMER_DEFINED, b"", b""));
    }),
    ("send_mra", |subject| report(subject, |cm, conn| cm.send_mra(0, conn, 1_000 * MS))),
    ("establish", |subject| report(subject, |cm, conn| cm.establish(0, conn))),
    ("send_dreq", |subject| report(subject, |cm, conn| cm.send_dreq(0, conn, b""))),
    ("destroy", |subject| subject.end.cm.destroy(0, subject.conn)),
];

/// A call that the state does not allow changes nothing: checked here for all of them.
fn report(subject: &mut Subject, call: impl FnOnce(&mut Cm, ConnId) -> Result<(), CmError>) {
    let before = subject.end.cm.state(subject.conn);
    if let Err(error) = call(&mut subject.end.cm, subject.conn) {
        assert_eq!(error, CmError::WrongState(before.unwrap()));
        assert_eq!(subject.end.cm.state(subject.conn), before);
        assert_eq!((subject.end.sent(), subject.end.events()), (vec![], vec![]));
    }
}

fn brief(mad: &CmMad) -> String {
    match &mad.message {
        CmMessage::Rej(rej) => format!("REJ {} of {:?}", rej.reason.0, rej.message).replace("Other", "other"),
        CmMessage::Mra(mra) => format!("MRA of {:?}", mra.message),
        CmMessage::Apr(apr) => format!("APR {}", apr.status.0),
        other => format!("{:?}", other.kind()).to_uppercase(),
    }
}

fn told(event: &Event) -> String {
    let full = format!("{event:?}");
    let name = full.split([' ', '{']).next().unwrap_or_default().to_string();
    match event {
        Event::Disconnected { cause, .. } => {
            let cause = format!("{cause:?}");
            format!("{name} ({})", cause.split('(').next().unwrap_or_default())
        }
        _ => name,
    }
}

/// One input in one state, as a line.
fn line((state, setup): &Setup, (input, act): &Input) -> String {
    let mut subject = setup();
    let before = subject.end.cm.state(subject.conn);
    let drops =
        |cm: &Cm| DropReason::ALL.iter().map(|&reason| cm.counters().dropped(reason)).collect::<Vec<_>>();
    let dropped_before = drops(&subject.end.cm);
    act(&mut subject);
    let after = subject.end.cm.state(subject.conn);
    let mut line = format!("{state:<24}{input:<22}");
    let change = match after {
        _ if after == before => String::new(),
        Ok(after) => format!("→ {after:?}"),
        Err(_) => "→ gone".to_string(),
    };
    write!(line, "{change:<14}").unwrap();
    let sent = subject.end.sent();
    assert!(sent.len() <= 2, "at most an answer and a DREQ: {sent:?}");
    sent.iter().for_each(|mad| write!(line, " {}.", brief(mad)).unwrap());
    subject.end.events().iter().for_each(|event| write!(line, " Tells {}.", told(event)).unwrap());
    let dropped = drops(&subject.end.cm).into_iter().zip(dropped_before).zip(DropReason::ALL);
    for ((_, _), reason) in dropped.filter(|((after, before), _)| after != before) {
        write!(line, " Drops: {reason:?}.").unwrap();
    }
    line.trim_end().to_string()
}

#[test]
fn states_and_what_can_come() {
    let lines: Vec<_> =
        SETUPS.iter().flat_map(|setup| INPUTS.iter().map(move |input| line(setup, input))).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// The table has every state.
#[test]
fn every_state_is_in_the_table() {
    let reached: std::collections::BTreeSet<_> = SETUPS
        .iter()
        .map(|(name, setup)| {
            let subject = setup();
            let state = subject.end.cm.state(subject.conn).unwrap();
            assert!(name.starts_with(&format!("{state:?}")), "{name} is {state:?}");
            state
        })
        .collect();
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), State::ALL);
}
