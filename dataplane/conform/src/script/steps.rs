//! One line into one step.

use super::fields::{Field, Nak, packet};
use super::names::{Names, QP};
use super::value::{Cond, Data, Expr, cond, data, number, number_below, time};
use super::words::{Complaint, Words, check_name, one_of};
use super::{Bend, ExpectSpec, Layer, OpcodeSpec, QpSetup, SendSpec, StepKind, work};
use crate::device::{QpAttributes, Region};
use std::net::{IpAddr, Ipv4Addr};
use wire::Service;

/// What devices may or may not be able to do, by the names that rules need it by.
pub const ABILITIES: &[&str] = &[
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
    "srq",
    "srq_limit",
    "window_1",
    "window_2",
    "window_zero_based",
    "window_key_byte",
];

const SERVICES: &[&str] = &["rc", "uc", "ud", "xrc", "xrc_initiator"];
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
/// Reads a step by its first word.
pub(super) fn read(first: &str, words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    Ok(match first {
        "qp" => qp(words, names)?,
        "region" => region(words, names)?,
        "send" => StepKind::Send(Box::new(send(words, names)?)),
        "expect" => StepKind::Expect(Box::new(expect(words, names)?)),
        "silence" => StepKind::Silence(time(words.next("how long, like 20ms,")?)?),
        "wait" => StepKind::Wait(time(words.next("how long, like 20ms,")?)?),
        "srq" => work::srq(words, names)?,
        "window" => work::window(words, names)?,
        "arm" | "limit" => work::limit(first, words, names)?,
        "receive" => work::receive(words, names)?,
        "post" => work::post(words, names)?,
        "complete" => work::complete(words, names)?,
        "memory" | "fill" => {
            let (region, offset) = names.place(words.next("a place, like A+0,")?)?;
            let data = data(words.next("the bytes, like data[0..64],")?)?;
            match first {
                "fill" => StepKind::Fill { region, offset, data },
                _ => StepKind::Memory { region, offset, data },
            }
        }
        "deregister" => {
            let region = names.region(words.next("a region")?)?;
            StepKind::Deregister { region, refused: words.flag("refused") }
        }
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
        StepKind::Srq(setup) => vec![if setup.domain.is_some() { "xrc" } else { "srq" }],
        StepKind::Arm { .. } | StepKind::Limit { .. } => vec!["srq_limit"],
        StepKind::Window { kind, .. } => vec![if *kind == 1 { "window_1" } else { "window_2" }],
        StepKind::Region(region, _) if region.fast => vec!["fast"],
        StepKind::Deregister { .. } => vec!["deregister"],
        StepKind::Post { work, .. } if work.op == "flush" => vec!["post_flush"],
        StepKind::Post { work, .. } if work.op == "atomic_write" => vec!["post_atomic_write"],
        _ => Vec::new(),
    }
}

/// What is granted unless a line says what.
pub(super) fn all_rights() -> Vec<String> {
    RIGHTS[..4].iter().map(|right| (*right).to_owned()).collect()
}

pub(super) fn rights(text: &str) -> Result<Vec<String>, Complaint> {
    let all = text.split(',').filter(|word| *word != "none");
    all.map(|word| one_of("right", word, RIGHTS).map(str::to_owned)).collect()
}

fn qp(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let kind = one_of("service", words.next("the service, like rc,")?, SERVICES)?;
    let service = match kind {
        "uc" => Service::Uc,
        "ud" => Service::Ud,
        "xrc" | "xrc_initiator" => Service::Xrc,
        _ => Service::Rc,
    };
    let name = words.take("name").unwrap_or(QP).to_owned();
    check_name(&name)?;
    let given = words.names();
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
    let srq = words.take_as("srq", |text| names.srq(text))?;
    let domain = words.take_as("domain", small(4))?.unwrap_or(0);
    names.qps.push(name.clone());
    let initiator = kind == "xrc_initiator";
    Ok(StepKind::Qp(Box::new(QpSetup {
        name,
        service,
        initiator,
        pd,
        srq,
        domain,
        given,
        state,
        v6,
        attributes,
    })))
}

fn region(words: &mut Words, names: &mut Names) -> Result<StepKind, Complaint> {
    let name = words.next("the name of the region")?.to_owned();
    check_name(&name)?;
    let len = number_below(words.next("the length of the region")?, (64 << 20) + 1)?;
    let access = words.take_as("access", rights)?.unwrap_or_else(all_rights);
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
