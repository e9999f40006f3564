//! A packet of the peer from a script's line, with whatever is wrong with it on purpose.

use super::{Context, QpContext};
use crate::script::{Bend, Data, Expr, Field, Layer, OpcodeSpec, SendSpec};
use wire::{
    Addressing, Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtHeaders, ExtKind, Feth, Gid, HeaderTemplate,
    ICRC_LEN, Icrc, Ieth, ImmDt, Msn, Network, OnesComplement, Opcode, PKey, Psn, QKey, Qpn, RKey, Reth,
    RoceVersion, Service, Syndrome, XrcEth,
};

/// Values of a packet's fields, by the script or by default.
struct Values<'a> {
    spec: &'a SendSpec,
    context: &'a Context,
    first: Psn,
}

impl Values<'_> {
    fn get(&self, field: Field) -> Option<u64> {
        let (_, expr) = self.spec.fields.iter().find(|(known, _)| *known == field)?;
        Some(self.context.value(field, expr, self.first))
    }

    fn or(&self, field: Field, default: u64) -> u64 {
        self.get(field).unwrap_or(default)
    }

    fn is(&self, field: Field) -> bool {
        self.or(field, 0) != 0
    }
}

/// The `n`-th packet of a line: its PSN and its piece of the payload follow those of the one before.
pub(crate) fn frame(spec: &SendSpec, context: &Context, qp: &QpContext, n: u32) -> Vec<u8> {
    let opcode = opcode(spec.opcode, qp.service);
    let response = opcode.info().is_some_and(|info| info.is_response());
    let first = if response { qp.device_psn } else { qp.peer_psn };
    let values = Values { spec, context, first };
    let psn = values.or(Field::Psn, first.value().into()) as u32;
    let payload = spec.payload.piece(n.into());
    let bth = bth(&values, opcode, qp, Psn::new(psn).add(n), &payload);
    let ext =
        if spec.bends.contains(&Bend::Bare) { ExtHeaders::EMPTY } else { extensions(&values, opcode, qp) };
    assemble(&values, &bth, &ext, &payload.bytes(), qp)
}

/// The opcode byte of a packet on a queue pair of this service.
pub(crate) fn opcode(spec: OpcodeSpec, service: Service) -> Opcode {
    match spec {
        OpcodeSpec::Byte(byte) => Opcode(byte),
        // What the service does not have keeps the operation of RC: a script may well send it.
        OpcodeSpec::Own(operation, position) => Opcode::of(service, operation, position)
            .or_else(|| {
                Opcode::of(Service::Rc, operation, position).map(|opcode| Opcode(opcode.0 | service as u8))
            })
            .unwrap_or(Opcode(service as u8 | 0x1F)),
        OpcodeSpec::Any => Opcode(service as u8),
    }
}

fn bth(values: &Values, opcode: Opcode, qp: &QpContext, psn: Psn, payload: &Data) -> Bth {
    Bth {
        solicited: values.is(Field::Se),
        mig_req: values.is(Field::Mig),
        pad_count: values.or(Field::Pad, Bth::pad_for(payload.len() as usize).into()) as u8,
        tver: values.or(Field::Tver, 0) as u8,
        pkey: PKey(values.or(Field::PKey, 0xFFFF) as u16),
        fecn: values.is(Field::Fecn),
        becn: values.is(Field::Becn),
        resv6: values.or(Field::Resv6, 0) as u8,
        ack_req: values.is(Field::AckReq),
        resv7: values.or(Field::Resv7, 0) as u8,
        ..Bth::new(opcode, Qpn::new(values.or(Field::DestQp, qp.device_qpn.value().into()) as u32), psn)
    }
}

fn extensions(values: &Values, opcode: Opcode, qp: &QpContext) -> ExtHeaders {
    let Some(info) = opcode.info() else { return ExtHeaders::EMPTY };
    let mut ext = ExtHeaders::EMPTY;
    let key = |field| RKey::new(values.or(field, 0) as u32);
    // In wire order: the order of the kinds.
    if info.has(ExtKind::Deth) {
        let qkey = QKey::new(values.or(Field::QKey, qp.qkey.into()) as u32);
        ext = ext.with(Deth {
            qkey,
            src_qpn: Qpn::new(values.or(Field::SrcQp, qp.peer_qpn.value().into()) as u32),
        });
    }
    if info.has(ExtKind::XrcEth) {
        ext = ext.with(XrcEth { srqn: values.or(Field::Srqn, 0) as u32 });
    }
    if info.has(ExtKind::Feth) {
        ext = ext.with(Feth { plt: values.or(Field::Plt, 1) as u8, sel: values.or(Field::Sel, 0) as u8 });
    }
    if info.has(ExtKind::Reth) {
        let dma_len = values.or(Field::Len, values.spec.payload.len()) as u32;
        ext = ext.with(Reth { va: values.or(Field::Va, 0), rkey: key(Field::RKey), dma_len });
    }
    if info.has(ExtKind::AtomicEth) {
        ext = ext.with(AtomicEth {
            va: values.or(Field::Va, 0),
            rkey: key(Field::RKey),
            swap_or_add: values.or(Field::Swap, 0),
            compare: values.or(Field::Compare, 0),
        });
    }
    if info.has(ExtKind::Aeth) {
        let syndrome = Syndrome::from_byte(values.or(Field::Syndrome, 0x1F) as u8);
        ext = ext.with(Aeth { syndrome, msn: Msn::new(values.or(Field::Msn, qp.msn.into()) as u32) });
    }
    if info.has(ExtKind::AtomicAckEth) {
        ext = ext.with(AtomicAckEth { original: values.or(Field::Original, 0) });
    }
    if info.has(ExtKind::ImmDt) {
        ext = ext.with(ImmDt((values.or(Field::Imm, 0) as u32).to_be_bytes()));
    }
    if info.has(ExtKind::Ieth) {
        ext = ext.with(Ieth { rkey: key(Field::Inv) });
    }
    ext
}

fn assemble(values: &Values, bth: &Bth, ext: &ExtHeaders, payload: &[u8], qp: &QpContext) -> Vec<u8> {
    let bends = &values.spec.bends;
    let addressing = addressing(values, qp);
    // Both addresses of a rule are of one family; if they were not, nothing could be sent.
    let Ok(template) = HeaderTemplate::new(&addressing) else { return Vec::new() };
    let mut transport = bth.to_bytes().to_vec();
    transport.extend_from_slice(ext.as_bytes());
    transport.extend_from_slice(payload);
    transport.extend(std::iter::repeat_n(0, bth.pad_count.into()));
    let mut frame = vec![0; HeaderTemplate::MAX_LEN];
    let lower = template.emit(&mut frame, 7, transport.len() + ICRC_LEN);
    frame.truncate(lower);
    frame.extend_from_slice(&transport);
    let l3 = lower - template.network().header_len() - template.network().udp_len();
    if bends.contains(&Bend::IpOptions) {
        // Four no-operations behind the header, counted in its lengths.
        frame.splice(l3 + 20..l3 + 20, [1, 1, 1, 0]);
        frame[l3] = 0x46;
        let total = u16::from_be_bytes([frame[l3 + 2], frame[l3 + 3]]) + 4;
        frame[l3 + 2..l3 + 4].copy_from_slice(&total.to_be_bytes());
    }
    finish(frame, l3, template.network(), bends)
}

/// Patches, checksums, iCRC, and what is spoiled after them.
fn finish(mut frame: Vec<u8>, l3: usize, network: Network, bends: &[Bend]) -> Vec<u8> {
    for bend in bends {
        if let Bend::Patch(layer, offset, bytes) = bend {
            put(&mut frame, place(*layer, l3, network) + offset, bytes);
        }
    }
    if network == Network::V4 {
        let header = usize::from(frame[l3] & 0xF).clamp(5, 15) * 4;
        frame[l3 + 10..l3 + 12].fill(0);
        let mut sum = OnesComplement::default();
        sum.bytes(&frame[l3..(l3 + header).min(frame.len())]);
        let sum = sum.checksum() ^ if bends.contains(&Bend::BadIpChecksum) { 0x1010 } else { 0 };
        frame[l3 + 10..l3 + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let mut icrc = Icrc::before(network, &frame[l3..]);
    icrc.update(&frame[l3..]);
    let wrong = u8::from(bends.contains(&Bend::BadIcrc));
    frame.extend(icrc.to_wire().map(|byte| byte ^ wrong));
    if let Some(Bend::UdpChecksum { right }) =
        bends.iter().find(|bend| matches!(bend, Bend::UdpChecksum { .. }))
    {
        udp_checksum(&mut frame, l3, network, *right);
    }
    for bend in bends {
        match bend {
            Bend::Spoil(layer, offset, bytes) => put(&mut frame, place(*layer, l3, network) + offset, bytes),
            Bend::Trail(bytes) => frame.extend_from_slice(bytes),
            Bend::Cut(count) => frame.truncate(frame.len().saturating_sub(*count)),
            _ => {}
        }
    }
    frame
}

fn udp_checksum(frame: &mut [u8], l3: usize, network: Network, right: bool) {
    let udp = l3 + network.header_len();
    let addresses = if network == Network::V4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
    let mut sum = OnesComplement::default();
    sum.bytes(&frame[addresses]);
    sum.word(17);
    sum.word((frame.len() - udp) as u16);
    sum.bytes(&frame[udp..]);
    // A sum of zero is sent as ones: zero says that there is none.
    let checksum = match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    };
    let checksum = if right { checksum } else { checksum ^ 0x0101 };
    frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
}

/// Where a layer begins in a frame without IPv4 options.
fn place(layer: Layer, l3: usize, network: Network) -> usize {
    let udp = l3 + network.header_len();
    match layer {
        Layer::Ip => l3,
        Layer::Udp => udp,
        Layer::Bth => udp + network.udp_len(),
        Layer::Ext => udp + network.udp_len() + Bth::LEN,
    }
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in frame.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

fn addressing(values: &Values, qp: &QpContext) -> Addressing {
    let bends = &values.spec.bends;
    let source = if bends.contains(&Bend::FromStranger) { stranger(qp.peer_gid) } else { qp.peer_gid };
    let target = if bends.contains(&Bend::ToStranger) { stranger(qp.device_gid) } else { qp.device_gid };
    Addressing {
        version: RoceVersion::V2,
        smac: values.context.peer_mac,
        dmac: values.context.device_mac,
        vlan: None,
        src: source,
        dst: target,
        traffic_class: values.or(Field::Tos, 0) as u8,
        flow_label: values.or(Field::Flow, 0) as u32,
        hop_limit: values.or(Field::Ttl, 64) as u8,
        udp_sport: values.or(Field::Sport, wire::udp_sport(0, qp.peer_qpn, qp.device_qpn).into()) as u16,
    }
}

/// An address of the same network that is neither end's.
fn stranger(gid: Gid) -> Gid {
    let mut octets = gid.octets();
    octets[15] ^= 0x70;
    Gid(octets)
}

/// The values of a script that a send needs before it is a packet.
impl Context {
    /// A plain value outside of any packet: an address, or a key.
    pub fn plain(&self, field: Field, expr: Option<&Expr>) -> u64 {
        expr.map_or(0, |expr| self.value(field, expr, Psn::new(0)))
    }
}
