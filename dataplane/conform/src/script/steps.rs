//! One line into one step.

use super::fields::{Field, Nak, packet};
use super::value::{Cond, Data, Expr, cond, data, expr, number, number_below, time};
use super::words::{Complaint, Words, check_name, one_of, unknown};
use super::{
    Bend, CompleteSpec, ExpectSpec, Layer, OpcodeSpec, PieceSpec, QpSetup, SendSpec, StepKind, WorkSpec,
};
use crate::device::{QpAttributes, Region, Side};
use std::net::{IpAddr, Ipv4Addr};
use wire::Service;

/// What devices may or may not be able to do.
pub(super) const ABILITIES: &[&str] = &[
    "rc",
    "uc",
    "ud",
    "xrc",
    "ipv6",
    "fast",
    "deregister",
    "flush",
    "post_flush",
    "atomic_write",
    "post_atomic_write",
    "bind",
];

const SERVICES: &[&str] = &["rc", "uc", "ud", "xrc"];
const STATES: &[&str] = &["reset", "init", "rtr", "rts", "sqd", "sqe", "error"];
const RIGHTS: &[&str] = &[
    "local_write",
    "remote_write",
    "remote_read",
    "remote_atomic",
    "flush_global",
    "flush_persistent",
    "mw_bind",
    "zero_based",
];
const STATUSES: &[&str] = &[
    "success",
    "loc_len_err",
    "loc_qp_op_err",
    "loc_prot_err",
    "wr_flush_err",
    "mw_bind_err",
    "bad_resp_err",
    "loc_access_err",
    "rem_inv_req_err",
    "rem_access_err",
    "rem_op_err",
    "retry_exc_err",
    "rnr_retry_exc_err",
    "rem_abort_err",
    "fatal_err",
    "general_err",
];
const OPS: &[&str] = &[
    "send",
    "send_imm",
    "send_inv",
    "write",
    "write_imm",
    "read",
    "cmp_swap",
    "fetch_add",
    "atomic_write",
    "flush",
    "fast_register",
    "local_invalidate",
    "bind",
];
/// The queue pair of a rule that has one only.
const QP: &str = "qp";

/// Names that a rule has given.
#[derive(Default)]
pub(super) struct Names {
    qps: Vec<String>,
    regions: Vec<String>,
}

impl Names {
    /// The queue pair that a line is about.
    fn qp(&self, words: &mut Words, key: &'static str) -> Result<String, Complaint> {
        let name = words.take(key).unwrap_or(QP);
        if self.qps.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        match &self.qps[..] {
            [] => Err(Complaint("there is no queue pair yet: add a line like: qp rc".into())),
            qps => Err(unknown("queue pair", name, &qps.iter().map(String::as_str).collect::<Vec<_>>())),
        }
    }

    fn region(&self, name: &str) -> Result<String, Complaint> {
        if self.regions.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        match &self.regions[..] {
            [] => {
                Err(Complaint(format!("there is no region {name} yet: add a line like: region {name} 4096")))
            }
            regions => Err(unknown("region", name, &regions.iter().map(String::as_str).collect::<Vec<_>>())),
        }
    }

    /// A place in a region: `A+16`.
    fn place(&self, text: &str) -> Result<(String, u64), Complaint> {
        let (name, offset) = text.split_once('+').unwrap_or((text, "0"));
        Ok((self.region(name)?, number(offset)?))
    }

    /// Pieces of regions: `A+0:64,B+16:8`.
    fn pieces(&self, words: &mut Words) -> Result<Vec<PieceSpec>, Complaint> {
        let Some(text) = words.next_if(|word| word.contains(':')) else { return Ok(Vec::new()) };
        let piece = |part: &str| {
            let (place, len) = part.split_once(':').ok_or_else(|| {
                Complaint(format!("{part:?} is no piece of memory: write REGION+OFFSET:LENGTH, like A+0:64"))
            })?;
            let (region, offset) = self.place(place)?;
            Ok(PieceSpec { region, offset, len: number_below(len, 1 << 32)? as u32 })
        };
        text.split(',').map(piece).collect()
    }

    /// A value that may name a region or a queue pair.
    fn known(&self, value: Expr) -> Result<Expr, Complaint> {
        if let Expr::Named(name, _) = &value
            && !self.qps.contains(name)
        {
            self.region(name)?;
        }
        Ok(value)
    }
}

/// Reads a step by its first word.
pub(super) fn read(first: &str, words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    Ok(match first {
        "qp" => qp(words, names)?,
        "region" => region(words, names)?,
        "send" => StepKind::Send(Box::new(send(words, names)?)),
        "expect" => StepKind::Expect(Box::new(expect(words, names)?)),
        "silence" => StepKind::Silence(time(words.next("how long, like 20ms,")?)?),
        "wait" => StepKind::Wait(time(words.next("how long, like 20ms,")?)?),
        "receive" => {
            let (qp, id) = (names.qp(words, "qp")?, number(words.next("the number of the receive")?)?);
            StepKind::Receive { qp, id, pieces: names.pieces(words)?, refused: words.flag("refused") }
        }
        "post" => post(words, names)?,
        "complete" => complete(words, names)?,
        "memory" | "fill" => {
            let (region, offset) = names.place(words.next("a place, like A+0,")?)?;
            let data = data(words.next("the bytes, like data[0..64],")?)?;
            match first {
                "fill" => StepKind::Fill { region, offset, data },
                _ => StepKind::Memory { region, offset, data },
            }
        }
        "deregister" => StepKind::Deregister { region: names.region(words.next("a region")?)? },
        "state" => {
            let states = words.next("a state")?.split('|');
            let states = states.map(|state| one_of("state", state, STATES).map(str::to_owned));
            StepKind::State { states: states.collect::<Result<_, _>>()?, qp: names.qp(words, "qp")? }
        }
        _ => {
            let state = one_of("state", words.next("a state")?, STATES)?.to_owned();
            StepKind::Modify { state, qp: names.qp(words, "qp")? }
        }
    })
}

/// What a device needs for a step.
pub(super) fn needs(kind: &StepKind) -> Vec<&'static str> {
    match kind {
        StepKind::Qp(setup) => {
            let service = match setup.service {
                Service::Uc => "uc",
                Service::Ud => "ud",
                Service::Xrc => "xrc",
                _ => "rc",
            };
            [service].into_iter().chain(setup.v6.then_some("ipv6")).collect()
        }
        StepKind::Region(region, _) if region.fast => vec!["fast"],
        StepKind::Deregister { .. } => vec!["deregister"],
        StepKind::Post { work, .. } if work.op == "flush" => vec!["post_flush"],
        StepKind::Post { work, .. } if work.op == "atomic_write" => vec!["post_atomic_write"],
        StepKind::Post { work, .. } if work.op == "bind" => vec!["bind"],
        _ => Vec::new(),
    }
}

fn rights(text: &str) -> Result<Vec<String>, Complaint> {
    let all = text.split(',').filter(|word| *word != "none");
    all.map(|word| one_of("right", word, RIGHTS).map(str::to_owned)).collect()
}

fn qp(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let service = match one_of("service", words.next("the service, like rc,")?, SERVICES)? {
        "uc" => Service::Uc,
        "ud" => Service::Ud,
        "xrc" => Service::Xrc,
        _ => Service::Rc,
    };
    let name = words.take("name").unwrap_or(QP).to_owned();
    check_name(&name)?;
    let small = |limit| move |text: &str| number_below(text, limit).map(|value| value as u8);
    let psn = |text: &str| number_below(text, 1 << 24).map(|value| value as u32);
    let mtu = words.take_as("mtu", |text| {
        let mtu = number(text)?;
        match wire::Mtu::from_bytes(mtu as u32) {
            Some(mtu) => Ok(mtu.bytes()),
            None => Err(Complaint(format!("{mtu} is no path MTU: 256, 512, 1024, 2048 or 4096"))),
        }
    })?;
    let all = || RIGHTS[1..4].iter().map(|right| (*right).to_owned()).collect();
    let attributes = QpAttributes {
        // The peer's place is known to the player only.
        peer_ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        peer_qpn: 0,
        peer_psn: words.take_as("peer_psn", psn)?.unwrap_or(0x12_3456),
        device_psn: words.take_as("device_psn", psn)?.unwrap_or(0x65_4321),
        mtu: mtu.unwrap_or(1024),
        access: words.take_as("access", rights)?.unwrap_or_else(all),
        slots: words.take_as("slots", small(129))?.unwrap_or(4),
        reads: words.take_as("reads", small(129))?.unwrap_or(4),
        rnr_timer: words.take_as("rnr_timer", small(32))?.unwrap_or(12),
        timeout: words.take_as("timeout", small(32))?.unwrap_or(0),
        retry: words.take_as("retry", small(8))?.unwrap_or(7),
        rnr_retry: words.take_as("rnr_retry", small(8))?.unwrap_or(7),
        qkey: words.take_as("qkey", |text| number_below(text, 1 << 32))?.unwrap_or(0x1111_1111) as u32,
    };
    let v6 = words.take_as("ip", |text| one_of("version of IP", text, &["4", "6"]))? == Some("6");
    let state = words.take_as("state", |text| one_of("state", text, STATES))?.unwrap_or("rts").to_owned();
    let pd = words.take_as("pd", small(4))?.unwrap_or(0);
    let srq = words.take("srq").map(str::to_owned);
    names.qps.push(name.clone());
    Ok(StepKind::Qp(Box::new(QpSetup { name, service, pd, srq, state, v6, attributes })))
}

fn region(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let name = words.next("the name of the region")?.to_owned();
    check_name(&name)?;
    let len = number_below(words.next("the length of the region")?, (64 << 20) + 1)?;
    let all = || RIGHTS[..4].iter().map(|right| (*right).to_owned()).collect();
    let access = words.take_as("access", rights)?.unwrap_or_else(all);
    let pd = words.take_as("pd", |text| number_below(text, 4))?.unwrap_or(0) as u8;
    let fill = words.take_as("fill", data)?;
    let fast = words.flag("fast");
    names.regions.push(name.clone());
    Ok(StepKind::Region(Region { name, len, access, pd, fast }, fill))
}

/// The field values of a packet's line.
fn conditions(words: &mut Words, names: &Names, opcode: OpcodeSpec) -> Result<Vec<(Field, Cond)>, Complaint> {
    let mut fields = Vec::new();
    if let Some(psn) = words.next_if(|word| word.starts_with(['+', '-', '!'])) {
        fields.push((Field::Psn, cond(psn)?));
    }
    for (field, name) in Field::all() {
        let flag = field.bits() == 1 && words.flag(name);
        let value = match words.take_as(name, cond)? {
            Some(value) => value,
            None if flag => Cond::exactly(Expr::Number(1)),
            None => continue,
        };
        if !field.is_in(opcode) {
            return Err(Complaint(format!("this packet has no {name}")));
        }
        for value in value.ranges.iter().flat_map(|(from, to)| [from, to]) {
            check(field, value, names)?;
        }
        fields.push((field, value));
    }
    Ok(fields)
}

/// A value fits its field.
fn check(field: Field, value: &Expr, names: &Names) -> Result<(), Complaint> {
    match value {
        Expr::Number(value) if field.bits() < 64 && value >> field.bits() != 0 => Err(Complaint(format!(
            "{}: {value:#x} is more than its {} bits hold",
            field.name(),
            field.bits()
        ))),
        Expr::FromFirst(_) if !field.counts_from_first() => {
            Err(Complaint(format!("{}: only PSNs are counted with a sign", field.name())))
        }
        named => names.known(named.clone()).map(|_| ()),
    }
}

/// What the name of a packet says of its syndrome, and its own words for it.
fn syndrome(name: &str, words: &mut Words) -> Result<Option<Cond>, Complaint> {
    let codes = words.take_as("code", |text| {
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let codes = text.split('|').map(Nak::syndrome).collect::<Result<Vec<_>, _>>()?;
        let ranges = codes.into_iter().map(|code| (Expr::Number(code), Expr::Number(code))).collect();
        Ok(Cond { ranges, negated })
    })?;
    let timer = words.take_as("timer", |text| number_below(text, 32))?;
    Ok(match name {
        "nak" => Some(codes.unwrap_or(Cond::range(Nak::SYNDROMES.0, Nak::SYNDROMES.1))),
        "rnr" => Some(match timer {
            Some(timer) => Cond::range(0x20 | timer, 0x20 | timer),
            None => Cond::range(0x20, 0x3F),
        }),
        "ack" | "atomic_ack" | "read_first" | "read_last" | "read_only" => Some(Cond::range(0, 0x1F)),
        _ => None,
    })
}

fn send(words: &mut Words, names: &Names) -> Result<SendSpec, Complaint> {
    let name = words.next("the packet, like send_only,")?;
    let opcode = packet(name)?;
    if opcode == OpcodeSpec::Any {
        return Err(Complaint("any packet can be expected, but not sent: name one, like send_only".into()));
    }
    let qp = names.qp(words, "to")?;
    let said = syndrome(name, words)?;
    let mut fields = Vec::new();
    for (field, value) in conditions(words, names, opcode)? {
        let single = value.single().cloned();
        let value =
            single.ok_or_else(|| Complaint(format!("{}: a packet to send has one value", field.name())))?;
        fields.push((field, value));
    }
    if let Some(said) = said.filter(|_| !fields.iter().any(|(field, _)| *field == Field::Syndrome)) {
        // An ACK without credits; of a NAK or RNR NAK the one that was named.
        let value = match said.single() {
            Some(value) => value.clone(),
            None if name == "nak" => return Err(Complaint("which NAK? Add code=sequence or another".into())),
            None if name == "rnr" => {
                return Err(Complaint("which delay? Add timer=1 or another code".into()));
            }
            None => Expr::Number(0x1F),
        };
        fields.push((Field::Syndrome, value));
    }
    let payload = words.take_as("payload", data)?.unwrap_or(Data::EMPTY);
    let times = words.take_as("times", |text| number_below(text, 1 << 20))?.unwrap_or(1) as u32;
    Ok(SendSpec { qp, opcode, fields, payload, times, bends: bends(words)? })
}

fn bends(words: &mut Words) -> Result<Vec<Bend>, Complaint> {
    let mut bends = Vec::new();
    for text in words.take_all("patch") {
        let (layer, offset, bytes) = place(text)?;
        bends.push(Bend::Patch(layer, offset, bytes));
    }
    for text in words.take_all("spoil") {
        let (layer, offset, bytes) = place(text)?;
        bends.push(Bend::Spoil(layer, offset, bytes));
    }
    let bytes = |text: &str| data(text).map(|data| data.bytes());
    bends.extend(words.take_as("trail", bytes)?.map(Bend::Trail));
    bends.extend(
        words.take_as("cut", |text| number_below(text, 1500))?.map(|count| Bend::Cut(count as usize)),
    );
    let sum = words.take_as("udpsum", |text| one_of("checksum", text, &["right", "wrong"]))?;
    bends.extend(sum.map(|sum| Bend::UdpChecksum { right: sum == "right" }));
    let flags = [
        ("bad_icrc", Bend::BadIcrc),
        ("bad_ipsum", Bend::BadIpChecksum),
        ("bare", Bend::Bare),
        ("ip_options", Bend::IpOptions),
        ("from_stranger", Bend::FromStranger),
        ("to_stranger", Bend::ToStranger),
    ];
    for (name, bend) in flags {
        if words.flag(name) {
            bends.push(bend);
        }
    }
    Ok(bends)
}

/// `ip+6:20ff`: a layer, an offset in it, bytes.
fn place(text: &str) -> Result<(Layer, usize, Vec<u8>), Complaint> {
    let wrong = || {
        Complaint(format!("{text:?}: write LAYER+OFFSET:BYTES, like ip+6:2000; layers are ip, udp, bth, ext"))
    };
    let (at, bytes) = text.split_once(':').ok_or_else(wrong)?;
    let (layer, offset) = at.split_once('+').ok_or_else(wrong)?;
    let layer = match layer {
        "ip" => Layer::Ip,
        "udp" => Layer::Udp,
        "bth" => Layer::Bth,
        "ext" => Layer::Ext,
        _ => return Err(wrong()),
    };
    Ok((layer, number_below(offset, 4096)? as usize, crate::device::from_hex(bytes).ok_or_else(wrong)?))
}

fn expect(words: &mut Words, names: &Names) -> Result<ExpectSpec, Complaint> {
    let name = words.next("the packet, like ack,")?;
    let opcode = packet(name)?;
    let qp = names.qp(words, "from")?;
    let said = syndrome(name, words)?;
    let mut fields = conditions(words, names, opcode)?;
    if let Some(said) = said.filter(|_| !fields.iter().any(|(field, _)| *field == Field::Syndrome)) {
        fields.push((Field::Syndrome, said));
    }
    Ok(ExpectSpec {
        qp,
        opcode,
        fields,
        payload: words.take_as("payload", data)?,
        size: words.take_as("size", cond)?,
        times: words.take_as("times", |text| number_below(text, 1 << 20))?.unwrap_or(1) as u32,
        within_ns: words.take_as("within", time)?,
        after_ns: words.take_as("after", time)?.unwrap_or(0),
        coalesced: words.flag("coalesced"),
    })
}

fn post(words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    let qp = names.qp(words, "qp")?;
    let op = one_of("operation", words.next("the operation, like send,")?, OPS)?.to_owned();
    let id = number(words.next("the number of the request")?)?;
    let refused = words.flag("refused");
    let value = |text: &str| names.known(expr(text)?);
    let small = |text: &str| number_below(text, 1 << 32).map(|value| value as u32);
    let work = WorkSpec {
        op,
        id,
        pieces: names.pieces(words)?,
        at: words.take_as("at", value)?,
        key: words.take_as("key", value)?,
        imm: words.take_as("imm", small)?.unwrap_or(0),
        swap: words.take_as("swap", number)?.or(words.take_as("add", number)?).unwrap_or(0),
        compare: words.take_as("compare", number)?.unwrap_or(0),
        region: words.take_as("region", |text| names.region(text))?,
        fence: words.flag("fence"),
        solicited: words.flag("solicited"),
        unsignaled: words.flag("unsignaled"),
        qkey: words.take_as("qkey", small)?.unwrap_or(0x1111_1111),
    };
    Ok(StepKind::Post { qp, work: Box::new(work), refused })
}

fn complete(words: &mut Words, names: &Names) -> Result<StepKind, Complaint> {
    let qp = names.qp(words, "qp")?;
    let side = one_of("side", words.next("send, recv or none")?, &["send", "recv", "none"])?;
    if side == "none" {
        return Ok(StepKind::NoCompletion { qp });
    }
    let id = number(words.next("the number of the request")?)?;
    let statuses = words.next("the status, like success,")?.split('|');
    let statuses = statuses.map(|status| one_of("status", status, STATUSES).map(str::to_owned));
    Ok(StepKind::Complete(Box::new(CompleteSpec {
        qp,
        side: if side == "send" { Side::Send } else { Side::Recv },
        id,
        statuses: statuses.collect::<Result<_, _>>()?,
        len: words.take_as("len", number)?,
        imm: words.take_as("imm", |text| number_below(text, 1 << 32))?.map(|imm| imm as u32),
        invalidated: words.take_as("invalidated", |text| names.known(expr(text)?))?,
        within_ns: words.take_as("within", time)?,
    })))
}
