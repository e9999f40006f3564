//! Admission: whether a packet that found its QP may be looked at by it. Never answered, only counted.
//!
//! What can be told without a QP (opcode, lengths, TVer, iCRC) the parser has checked before.

use super::{Ctx, Qp, QpState, QpType};
use crate::counters::{Counter, DropReason};
use crate::event::EventKind;
use crate::memory::Memory;
use crate::packet::RxPacket;
use wire::{Deth, Operation, PKey, QKey, Qpn};

/// The checks in the order of rocev2 facts, wire section 15. Nothing changes for a packet that is not
/// admitted.
pub(crate) fn admit<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
) -> Result<(), DropReason> {
    service(qp, packet)?;
    state(qp, packet)?;
    addresses(qp, packet)?;
    // rocev2 facts, wire 5: the P_Key table has one entry, the full member of the default partition.
    if !PKey::DEFAULT.matches(packet.frame.bth.pkey) {
        return Err(DropReason::PKey);
    }
    qkey(qp, packet)?;

    qp.counters.count(Counter::RxPackets);
    qp.counters.add(Counter::RxPayloadBytes, packet.frame.payload_len() as u64);
    if !qp.established {
        qp.established = true;
        // rocev2 facts, transport 6: the first valid packet in RTR raises COMM_EST, once.
        if qp.state == QpState::Rtr || qp.shared.is_first_awaited() {
            ctx.events.raise(EventKind::CommEst, qp.source());
        }
    }
    Ok(())
}

fn service(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    let info = packet.frame.info;
    if info.operation == Operation::Cnp {
        return Err(DropReason::Cnp);
    }
    let has_half = if info.is_response() { qp.qp_type.has_requester() } else { qp.qp_type.has_responder() };
    if info.service == qp.qp_type.service() && has_half { Ok(()) } else { Err(DropReason::WrongService) }
}

fn state(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    let takes =
        if packet.frame.info.is_response() { qp.state.takes_responses() } else { qp.state.takes_requests() };
    if takes { Ok(()) } else { Err(DropReason::WrongState) }
}

/// A connected QP hears its peer only, on the link that it is on: in another VLAN, the same address is somebody else's. The UDP
/// source port is not looked at: some peers send any.
fn addresses(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    if qp.qp_type == QpType::Ud {
        return Ok(());
    }
    let frame = packet.frame;
    let ours = qp.path.as_ref().is_some_and(|path| {
        let vid = frame.vlan.map_or(0, |tag| tag.vid);
        frame.src == path.remote
            && frame.dst == path.local
            && frame.network == path.template.network()
            && vid == path.vid
    });
    if ours { Ok(()) } else { Err(DropReason::WrongAddress) }
}

fn qkey(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    if qp.qp_type != QpType::Ud {
        return Ok(());
    }
    // rocev2 facts, transport 20: QP 1 has a key of its own, whatever its attributes say.
    let own = if qp.qpn == Qpn::GSI { QKey::GSI } else { qp.attr.qkey };
    let matches = packet.frame.ext::<Deth>(packet.head).is_some_and(|deth| deth.qkey == own);
    if matches { Ok(()) } else { Err(DropReason::QKey) }
}
