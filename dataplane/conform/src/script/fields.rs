//! The fields of a packet by name, and the names of packets.

use super::OpcodeSpec;
use super::words::{Complaint, unknown};
use wire::{ExtKind, Operation, Position};

/// A field of a packet that a script can set or ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Psn,
    AckReq,
    Se,
    Mig,
    Pad,
    Tver,
    PKey,
    Fecn,
    Becn,
    Resv6,
    Resv7,
    DestQp,
    Va,
    RKey,
    Len,
    Imm,
    Inv,
    QKey,
    SrcQp,
    Swap,
    Compare,
    Original,
    Syndrome,
    Msn,
    Srqn,
    Plt,
    Sel,
    Tos,
    Ttl,
    Sport,
    Flow,
}

/// Each field: name, bits, and the header that it is in (none: BTH or below).
const FIELDS: &[(Field, &str, u32, Option<ExtKind>)] = {
    use ExtKind::*;
    use Field as F;
    &[
        (F::Psn, "psn", 24, None),
        (F::AckReq, "ackreq", 1, None),
        (F::Se, "se", 1, None),
        (F::Mig, "mig", 1, None),
        (F::Pad, "pad", 2, None),
        (F::Tver, "tver", 4, None),
        (F::PKey, "pkey", 16, None),
        (F::Fecn, "fecn", 1, None),
        (F::Becn, "becn", 1, None),
        (F::Resv6, "resv6", 6, None),
        (F::Resv7, "resv7", 7, None),
        (F::DestQp, "dest", 24, None),
        (F::Va, "va", 64, Some(Reth)),
        (F::RKey, "rkey", 32, Some(Reth)),
        (F::Len, "len", 32, Some(Reth)),
        (F::Imm, "imm", 32, Some(ImmDt)),
        (F::Inv, "inv", 32, Some(Ieth)),
        (F::QKey, "qkey", 32, Some(Deth)),
        (F::SrcQp, "src", 24, Some(Deth)),
        (F::Swap, "swap", 64, Some(AtomicEth)),
        (F::Compare, "compare", 64, Some(AtomicEth)),
        (F::Original, "original", 64, Some(AtomicAckEth)),
        (F::Syndrome, "syndrome", 8, Some(Aeth)),
        (F::Msn, "msn", 24, Some(Aeth)),
        (F::Srqn, "srqn", 24, Some(XrcEth)),
        (F::Plt, "plt", 4, Some(Feth)),
        (F::Sel, "sel", 2, Some(Feth)),
        (F::Tos, "tos", 8, None),
        (F::Ttl, "ttl", 8, None),
        (F::Sport, "sport", 16, None),
        (F::Flow, "flow", 20, None),
    ]
};

impl Field {
    /// All, with their names.
    pub fn all() -> impl Iterator<Item = (Field, &'static str)> {
        FIELDS.iter().map(|(field, name, ..)| (*field, *name))
    }

    pub fn name(self) -> &'static str {
        FIELDS[self as usize].1
    }

    pub fn bits(self) -> u32 {
        FIELDS[self as usize].2
    }

    /// Whether a packet of this kind has it. Any opcode byte may.
    pub fn is_in(self, opcode: OpcodeSpec) -> bool {
        let OpcodeSpec::Own(operation, position) = opcode else { return true };
        let Some(kind) = FIELDS[self as usize].3 else { return true };
        // The address and key of an atomic stand in its own header.
        let kinds: &[ExtKind] = match self {
            Field::Va | Field::RKey => &[ExtKind::Reth, ExtKind::AtomicEth],
            _ => &[kind],
        };
        let services = [wire::Service::Rc, wire::Service::Ud, wire::Service::Xrc];
        let mut infos = services.iter().filter_map(|&service| {
            wire::Opcode::of(service, operation, position).and_then(|opcode| opcode.info())
        });
        infos.any(|info| kinds.iter().any(|&kind| info.has(kind)))
    }

    /// Counted from a first PSN when written with a sign.
    pub fn counts_from_first(self) -> bool {
        self == Field::Psn
    }
}

/// Packets by name.
const PACKETS: &[(&str, Operation, Position)] = {
    use Operation::*;
    use Position::*;
    &[
        ("send_first", Send, First),
        ("send_middle", Send, Middle),
        ("send_last", Send, Last),
        ("send_only", Send, Only),
        ("send_last_imm", SendImm, Last),
        ("send_only_imm", SendImm, Only),
        ("send_last_inv", SendInv, Last),
        ("send_only_inv", SendInv, Only),
        ("write_first", Write, First),
        ("write_middle", Write, Middle),
        ("write_last", Write, Last),
        ("write_only", Write, Only),
        ("write_last_imm", WriteImm, Last),
        ("write_only_imm", WriteImm, Only),
        ("read_request", ReadRequest, Only),
        ("read_first", ReadResponse, First),
        ("read_middle", ReadResponse, Middle),
        ("read_last", ReadResponse, Last),
        ("read_only", ReadResponse, Only),
        ("ack", Acknowledge, Only),
        ("nak", Acknowledge, Only),
        ("rnr", Acknowledge, Only),
        ("atomic_ack", AtomicAcknowledge, Only),
        ("cmp_swap", CompareSwap, Only),
        ("fetch_add", FetchAdd, Only),
        ("flush", Flush, Only),
        ("atomic_write", AtomicWrite, Only),
    ]
};

/// A packet by its name, `any`, or `0x..` for an opcode byte.
pub(crate) fn packet(name: &str) -> Result<OpcodeSpec, Complaint> {
    if name == "any" {
        return Ok(OpcodeSpec::Any);
    }
    if name.starts_with("0x") {
        return Ok(OpcodeSpec::Byte(super::value::number_below(name, 256)? as u8));
    }
    let found = PACKETS.iter().find(|(known, ..)| *known == name);
    found.map(|&(_, operation, position)| OpcodeSpec::Own(operation, position)).ok_or_else(|| {
        let names: Vec<&str> = PACKETS.iter().map(|(name, ..)| *name).chain(["any"]).collect();
        unknown("packet", name, &names)
    })
}

/// The NAK codes by name, as `code=` has them.
pub(crate) struct Nak;

impl Nak {
    /// Lowest and highest syndrome of a NAK.
    pub const SYNDROMES: (u64, u64) = (0x60, 0x7F);
    const CODES: [(&'static str, u64); 5] =
        [("sequence", 0x60), ("invalid", 0x61), ("access", 0x62), ("operational", 0x63), ("rd", 0x64)];

    /// The syndrome of a code.
    pub fn syndrome(name: &str) -> Result<u64, Complaint> {
        let found = Self::CODES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, syndrome)| *syndrome)
            .ok_or_else(|| unknown("NAK code", name, &Self::CODES.map(|(name, _)| name)))
    }
}
