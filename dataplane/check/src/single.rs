//! One frame by itself: what can be said of it without any other.

use crate::packet::Packet;
use crate::{Note, Rule};
use wire::{
    Aeth, AtomicEth, Bth, Deth, ExtKind, FrameError, Mtu, Network, Operation, PKey, PayloadRule, Position,
    QKey, Qpn, Reth, Service, Syndrome,
};

/// Longest message, in bytes.
const MAX_MESSAGE: u32 = 1 << 31;

/// The rule that a frame breaks which cannot be parsed; `None` when it is no RoCE.
pub fn rule_of(error: FrameError) -> Option<Rule> {
    Some(match error {
        FrameError::EtherType | FrameError::NotUdp | FrameError::OtherPort => return None,
        FrameError::Truncated | FrameError::IpLength => Rule::IpLength,
        FrameError::IpHeader | FrameError::IpOptions => Rule::IpHeader,
        FrameError::Fragment => Rule::IpFragment,
        FrameError::IpChecksum => Rule::IpChecksum,
        FrameError::UdpLength => Rule::UdpLength,
        FrameError::UdpChecksum => Rule::UdpChecksum,
        FrameError::GrhNextHeader => Rule::Grh,
        FrameError::TooShort | FrameError::NegativePayload => Rule::HeaderLength,
        FrameError::UnknownOpcode => Rule::Opcode,
        FrameError::TransportVersion => Rule::Version,
        FrameError::DestQpZero => Rule::DestQp,
        FrameError::BadIcrc => Rule::Icrc,
    })
}

/// Judges what is in every packet, whatever the state of its connection. The path MTU is not known here. `as_sent` says that no
/// network can have changed what the iCRC does not cover.
pub fn judge(packet: &mut Packet<'_>, as_sent: bool) {
    base_header(packet);
    padding(packet);
    payload(packet);
    match packet.frame.info.operation {
        Operation::Cnp => notification(packet, as_sent),
        operation => {
            reserved(packet, as_sent);
            memory_headers(packet, operation);
            syndrome(packet, operation);
        }
    }
    datagram(packet);
    habits(packet);
}

fn base_header(packet: &mut Packet<'_>) {
    let Bth { pkey, dest_qpn, solicited, .. } = packet.frame.bth();
    // One entry in the table of a RoCE port: the default partition, whose member may be a limited one.
    if !PKey::DEFAULT.matches(pkey) {
        packet.broken(Rule::PKey, format_args!("P_Key {pkey} is not the default partition's"));
    }
    let info = packet.frame.info;
    let multicast = packet.frame.dst.is_multicast();
    if (dest_qpn == Qpn::MULTICAST) != multicast {
        packet.broken(Rule::DestQp, format_args!("QP {dest_qpn} at {}", packet.frame.dst.ip()));
    } else if multicast && info.service != Service::Ud {
        packet.broken(Rule::DestQp, format_args!("a multicast packet of {info}"));
    }
    let may_solicit = info.completes_receive_wqe();
    if solicited && !may_solicit && info.operation != Operation::Cnp {
        packet.broken(Rule::Solicited, format_args!("SE is set in {info}"));
    }
}

/// IBA's reserved fields, which senders leave zero (wire facts 5 and 6). The iCRC leaves out the byte with FECN and BECN.
fn reserved(packet: &mut Packet<'_>, as_sent: bool) {
    let Bth { resv6, resv7, fecn, becn, .. } = packet.frame.bth();
    if resv7 != 0 || as_sent && (resv6 != 0 || fecn || becn) {
        packet.broken(
            Rule::Reserved,
            format_args!("BTH bits: FECN {fecn}, BECN {becn}, reserved {resv6:#x} and {resv7:#x}"),
        );
    }
    let (bth, info, bytes) = (packet.frame.bth_offset(), packet.frame.info, packet.bytes);
    let byte = |kind: ExtKind, at: usize| info.offset_of(kind).map_or(0, |offset| bytes[bth + offset + at]);
    let rest = byte(ExtKind::Deth, 4) | byte(ExtKind::Rdeth, 0) | byte(ExtKind::XrcEth, 0);
    let feth = [0, 1, 2].map(|at| byte(ExtKind::Feth, at)) != [0; 3] || byte(ExtKind::Feth, 3) & 0xC0 != 0;
    if rest != 0 || feth {
        packet.broken(Rule::Reserved, format_args!("reserved bits of an extension header are set"));
    }
}

fn padding(packet: &mut Packet<'_>) {
    let frame = packet.frame;
    let (count, payload) = (frame.bth().pad_count, frame.payload_len());
    if count != Bth::pad_for(payload) {
        packet.broken(Rule::Pad, format_args!("PadCnt {count} behind {payload} bytes"));
    } else if let Some(pad) = packet.bytes.get(frame.payload_offset() + payload..frame.icrc_offset())
        && pad.iter().any(|&byte| byte != 0)
    {
        packet.broken(Rule::Pad, format_args!("pad bytes {pad:02x?} are not zero"));
    }
}

fn payload(packet: &mut Packet<'_>) {
    let (info, len) = (packet.frame.info, packet.len());
    let largest = Mtu::Mtu4096.bytes();
    let right = match info.payload {
        PayloadRule::FullMtu => Mtu::from_bytes(len).is_some(),
        PayloadRule::OneToMtu => (1..=largest).contains(&len),
        PayloadRule::UpToMtu => len <= largest,
        PayloadRule::Nothing => len == 0,
        PayloadRule::Exactly(exactly) => len == u32::from(exactly),
    };
    if !right {
        packet.broken(Rule::PayloadLength, format_args!("{info} with {len} bytes of payload"));
    }
}

fn memory_headers(packet: &mut Packet<'_>, operation: Operation) {
    let (info, len) = (packet.frame.info, packet.len());
    if let Some(Reth { dma_len, .. }) = packet.ext::<Reth>() {
        let right = match (operation, info.position) {
            (Operation::AtomicWrite, _) => dma_len == 8,
            (Operation::Write | Operation::WriteImm, Position::Only) => dma_len == len,
            (Operation::Write, Position::First) => dma_len > len,
            _ => true,
        };
        if dma_len > MAX_MESSAGE || !right {
            packet.broken(Rule::Reth, format_args!("{info} with {len} bytes names {dma_len}"));
        }
    }
    if let Some(AtomicEth { va, .. }) = packet.ext::<AtomicEth>()
        && va % 8 != 0
    {
        packet.broken(Rule::AtomicAlignment, format_args!("{info} at {va:#x}"));
    }
}

fn syndrome(packet: &mut Packet<'_>, operation: Operation) {
    let Some(Aeth { syndrome, .. }) = packet.ext::<Aeth>() else { return };
    let defined = !matches!(syndrome, Syndrome::Reserved(_) | Syndrome::Nak(wire::NakCode::InvalidRdRequest));
    let data = operation != Operation::Acknowledge;
    if !defined || data && !matches!(syndrome, Syndrome::Ack { .. }) {
        let info = packet.frame.info;
        packet.broken(Rule::Syndrome, format_args!("{info} with syndrome {:#04x}", syndrome.to_byte()));
    }
}

fn notification(packet: &mut Packet<'_>, as_sent: bool) {
    let Bth { becn, fecn, solicited, mig_req, pad_count, ack_req, psn, resv6, resv7, .. } =
        packet.frame.bth();
    let open = !becn || fecn || resv6 != 0;
    let flags = solicited || mig_req || pad_count != 0 || ack_req || resv7 != 0;
    let body = packet.bytes.get(packet.frame.payload_offset()..packet.frame.icrc_offset());
    let zero = body.is_none_or(|body| body.iter().all(|&byte| byte == 0));
    if as_sent && open || flags || psn.value() != 0 || !zero {
        packet.broken(
            Rule::Cnp,
            format_args!("BECN {becn}, FECN {fecn}, other flags {flags}, PSN {psn}, body all zero {zero}"),
        );
    }
}

fn datagram(packet: &mut Packet<'_>) {
    let Some(Deth { qkey, src_qpn }) = packet.ext::<Deth>() else { return };
    let to_gsi = packet.frame.bth().dest_qpn == Qpn::GSI;
    if to_gsi && qkey != QKey::GSI {
        packet.broken(Rule::Datagram, format_args!("Q_Key {qkey} to QP 1"));
    }
    if src_qpn == Qpn::SMI || src_qpn == Qpn::MULTICAST {
        packet.broken(Rule::Datagram, format_args!("a datagram from QP {src_qpn}"));
    }
}

fn habits(packet: &mut Packet<'_>) {
    let frame = packet.frame;
    if frame.network == Network::V4 && frame.network_header(packet.bytes)[6] & 0x40 == 0 {
        packet.note(Note::NotDontFragment);
    }
    if frame.network != Network::V1 && frame.udp_sport < 0xC000 {
        packet.note(Note::SourcePort);
    }
}
