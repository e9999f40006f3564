//! A packet of the device against a script's line, and against what holds for every packet.

use super::build::opcode;
use super::{Context, QpContext};
use crate::script::{Cond, ExpectSpec, Field, OpcodeSpec};
use wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Feth, Frame, Ieth, ImmDt, Network, PKey, PayloadRule, Psn,
    Reth, XrcEth,
};

/// A packet of the device with its bytes.
pub(crate) struct Arrived<'a> {
    pub frame: Frame,
    pub bytes: &'a [u8],
}

impl<'a> Arrived<'a> {
    /// Parses a frame; `None` when it is no RoCE packet.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        Frame::parse(bytes, bytes.len()).ok().map(|frame| Arrived { frame, bytes })
    }

    pub fn payload(&self) -> &'a [u8] {
        let at = self.frame.payload_offset();
        &self.bytes[at..at + self.frame.payload_len()]
    }

    /// The PSN that it is counted from: responses carry the peer's.
    pub fn first(&self, qp: &QpContext) -> Psn {
        if self.frame.info.is_response() { qp.peer_psn } else { qp.device_psn }
    }

    /// The value of a field; `None` when the packet has no such field.
    pub fn value(&self, field: Field) -> Option<u64> {
        let (frame, bth) = (&self.frame, &self.frame.bth());
        let aeth = || frame.ext::<Aeth>(self.bytes);
        let atomic = || frame.ext::<AtomicEth>(self.bytes);
        let reth = || frame.ext::<Reth>(self.bytes);
        Some(match field {
            Field::Psn => bth.psn.value().into(),
            Field::AckReq => bth.ack_req.into(),
            Field::Se => bth.solicited.into(),
            Field::Mig => bth.mig_req.into(),
            Field::Pad => bth.pad_count.into(),
            Field::Tver => bth.tver.into(),
            Field::PKey => bth.pkey.0.into(),
            Field::Fecn => bth.fecn.into(),
            Field::Becn => bth.becn.into(),
            Field::Resv6 => bth.resv6.into(),
            Field::Resv7 => bth.resv7.into(),
            Field::DestQp => bth.dest_qpn.value().into(),
            Field::Va => reth().map(|reth| reth.va).or_else(|| atomic().map(|atomic| atomic.va))?,
            Field::RKey => {
                reth().map(|reth| reth.rkey).or_else(|| atomic().map(|atomic| atomic.rkey))?.value().into()
            }
            Field::Len => reth()?.dma_len.into(),
            Field::Imm => u32::from_be_bytes(frame.ext::<ImmDt>(self.bytes)?.0).into(),
            Field::Inv => frame.ext::<Ieth>(self.bytes)?.rkey.value().into(),
            Field::QKey => frame.ext::<Deth>(self.bytes)?.qkey.value().into(),
            Field::SrcQp => frame.ext::<Deth>(self.bytes)?.src_qpn.value().into(),
            Field::Swap => atomic()?.swap_or_add,
            Field::Compare => atomic()?.compare,
            Field::Original => frame.ext::<AtomicAckEth>(self.bytes)?.original,
            Field::Syndrome => aeth()?.syndrome.to_byte().into(),
            Field::Msn => aeth()?.msn.value().into(),
            Field::Srqn => frame.ext::<XrcEth>(self.bytes)?.srqn.into(),
            Field::Plt => frame.ext::<Feth>(self.bytes)?.plt.into(),
            Field::Sel => frame.ext::<Feth>(self.bytes)?.sel.into(),
            Field::Tos => frame.traffic_class.into(),
            Field::Ttl => frame.hop_limit.into(),
            Field::Sport => frame.udp_sport.into(),
            Field::Flow => frame.flow_label.into(),
        })
    }
}

/// Why a packet is none that any device may send, whatever the script says; `None` when nothing is wrong.
pub(crate) fn unlawful(arrived: &Arrived, context: &Context, qp: &QpContext) -> Option<String> {
    let (frame, bth) = (&arrived.frame, &arrived.frame.bth());
    let pad = &arrived.bytes[frame.icrc_offset() - usize::from(bth.pad_count)..frame.icrc_offset()];
    let df = frame.network != Network::V4 || arrived.bytes[frame.l3_offset() + 6] & 0x40 != 0;
    let source = frame.ext::<Deth>(arrived.bytes).is_none_or(|deth| deth.src_qpn == qp.device_qpn);
    let checks = [
        (frame.verify_icrc(arrived.bytes, [arrived.bytes]).is_ok(), "its iCRC is wrong (wire 9)"),
        (
            frame.verify_udp_checksum([arrived.bytes]).is_ok(),
            "its UDP checksum is neither 0 nor right (wire 4)",
        ),
        (
            frame.src == qp.device_gid && frame.dst == qp.peer_gid,
            "it is not from the device to the peer (wire 15)",
        ),
        (frame.dmac == context.peer_mac, "its destination MAC is not the peer's (wire 13)"),
        (df, "IPv4 without DF (wire 3)"),
        (bth.pkey.matches(PKey::DEFAULT), "its P_Key is not that of the default partition (wire 5)"),
        (bth.resv6 == 0 && bth.resv7 == 0, "reserved bits of its BTH are set (wire 5)"),
        (!bth.fecn && !bth.becn, "it carries a congestion bit (wire 5)"),
        (bth.pad_count == Bth::pad_for(frame.payload_len()), "its pad does not end on four bytes (wire 8)"),
        (pad.iter().all(|&byte| byte == 0), "its pad is not zero (wire 8)"),
        (frame.info.service == qp.service, "it is of another service (wire 7)"),
        (fits(frame, qp), "its payload has not the length of its opcode (wire 8)"),
        (source, "its DETH names another queue pair (wire 6)"),
    ];
    checks.iter().find(|(holds, _)| !holds).map(|(_, what)| (*what).to_owned())
}

fn fits(frame: &Frame, qp: &QpContext) -> bool {
    let (len, mtu) = (frame.payload_len(), qp.mtu.bytes() as usize);
    match frame.info.payload {
        PayloadRule::Nothing => len == 0,
        PayloadRule::FullMtu => len == mtu,
        PayloadRule::OneToMtu => (1..=mtu).contains(&len),
        // A datagram's limit is the port's MTU, which the script does not know.
        PayloadRule::UpToMtu => len <= mtu || qp.service == wire::Service::Ud,
        PayloadRule::Exactly(exact) => len == usize::from(exact),
    }
}

/// What differs between a packet and the `n`-th that a line asks for; `None` when it fits.
pub(crate) fn mismatch(
    arrived: &Arrived,
    spec: &ExpectSpec,
    n: u32,
    context: &Context,
    qp: &QpContext,
) -> Option<String> {
    let byte = arrived.frame.bth().opcode;
    if spec.opcode != OpcodeSpec::Any && byte != opcode(spec.opcode, qp.service) {
        return Some(format!("it is no {}", opcode(spec.opcode, qp.service)));
    }
    let first = arrived.first(qp);
    for (field, cond) in &spec.fields {
        let Some(value) = arrived.value(*field) else {
            return Some(format!("it has no {}", field.name()));
        };
        let shifted = match field {
            Field::Psn => Psn::new(value as u32).add(n.wrapping_neg()).value().into(),
            Field::Msn => value.wrapping_sub(qp.first_msn.into()) & 0xFF_FFFF,
            _ => value,
        };
        if !context.holds(*field, cond, first, shifted) {
            return Some(format!(
                "{} is {value:#x}, not {}",
                field.name(),
                context.words(*field, cond, first)
            ));
        }
    }
    payload_mismatch(arrived.payload(), spec, n, context)
}

fn payload_mismatch(payload: &[u8], spec: &ExpectSpec, n: u32, context: &Context) -> Option<String> {
    if let Some(size) = &spec.size
        && !context.holds(Field::Va, size, Psn::new(0), payload.len() as u64)
    {
        return Some(format!("its payload has {} bytes", payload.len()));
    }
    let expected = spec.payload.as_ref()?.piece(n.into()).bytes();
    difference(&expected, payload).map(|what| format!("its payload {what}"))
}

/// Where two pieces of bytes differ, in words.
pub(crate) fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    if expected.len() != found.len() {
        return Some(format!("has {} bytes, not {}", found.len(), expected.len()));
    }
    let at = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
    Some(format!("has {:#04x} at byte {at}, not {:#04x}", found[at], expected[at]))
}

/// A positive ACK of something before what a line asks for.
pub(crate) fn is_earlier_ack(
    arrived: &Arrived,
    spec: &ExpectSpec,
    context: &Context,
    qp: &QpContext,
) -> bool {
    let ack = arrived.value(Field::Syndrome).is_some_and(|syndrome| syndrome < 0x20)
        && arrived.frame.info.operation == wire::Operation::Acknowledge;
    let psn: Option<&Cond> = spec.fields.iter().find(|(field, _)| *field == Field::Psn).map(|(_, cond)| cond);
    let Some(wanted) = psn.and_then(Cond::single) else { return false };
    let wanted = Psn::new(context.value(Field::Psn, wanted, arrived.first(qp)) as u32);
    ack && arrived.frame.bth().psn.is_before(wanted)
}
