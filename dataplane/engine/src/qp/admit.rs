//! Admission: whether a packet that found its QP may be looked at by it. Never answered, only counted.
//!
//! What can be told without a QP (opcode, lengths, TVer, iCRC) the parser has checked before.

use super::{Ctx, Qp, QpState, QpType};
use crate::counters::{Counter, DropReason};
use crate::event::EventKind;
use crate::memory::Memory;
use crate::packet::RxPacket;
use wire::{Deth, Frame, OpcodeInfo, Operation, PKey, QKey, Qpn};

/// The packets that a QP of its type hears in its state: a bit for each [class](OpcodeInfo::class). No congestion notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hears(u16);

impl Hears {
    /// Requests and responses of its own service, where it has that half and its state takes them.
    pub fn of(qp_type: QpType, state: QpState) -> Hears {
        let class = |is_response: bool| 1 << OpcodeInfo::class_of(qp_type.service(), is_response);
        let requests = if has_half(qp_type, false) && state.takes_requests() { class(false) } else { 0 };
        let responses = if has_half(qp_type, true) && state.takes_responses() { class(true) } else { 0 };
        Hears(requests | responses)
    }

    #[inline]
    fn contains(self, info: &OpcodeInfo) -> bool {
        self.0 >> info.class() & 1 != 0
    }
}

fn has_half(qp_type: QpType, is_response: bool) -> bool {
    if is_response { qp_type.has_requester() } else { qp_type.has_responder() }
}

/// The checks in the order of rocev2 facts, wire section 15: service, state, addresses, P_Key, Q_Key. Nothing changes for a packet
/// that is not admitted.
#[inline(always)]
pub(crate) fn admit<M: Memory>(
    qp: &mut Qp,
    ctx: &Ctx<'_, M>,
    packet: &RxPacket<'_>,
) -> Result<(), DropReason> {
    let frame = packet.frame;
    if !qp.hears.contains(frame.info) {
        return Err(not_heard(qp, frame.info));
    }
    if qp.qp_type == QpType::Ud {
        pkey(frame)?;
        qkey(qp, packet)?;
    } else {
        addresses(qp, frame)?;
        pkey(frame)?;
    }

    count(qp, frame, 1);
    if !qp.established {
        established(qp, ctx);
    }
    Ok(())
}

/// Whether a connected QP would admit another packet that is in all of this like one before, with nothing left to do but to count it.
#[inline(always)]
pub(crate) fn admits_like(qp: &Qp, frame: &Frame) -> bool {
    qp.hears.contains(frame.info) && addresses(qp, frame).is_ok() && pkey(frame).is_ok()
}

/// Counts packets like this one as admitted.
#[inline(always)]
pub(crate) fn count(qp: &mut Qp, frame: &Frame, packets: u32) {
    qp.counters.add(Counter::RxPackets, packets.into());
    qp.counters.add(Counter::RxPayloadBytes, u64::from(packets) * frame.payload_len() as u64);
}

/// Why a QP does not hear a packet.
#[cold]
fn not_heard(qp: &Qp, info: &OpcodeInfo) -> DropReason {
    if info.operation == Operation::Cnp {
        DropReason::Cnp
    } else if info.service == qp.qp_type.service() && has_half(qp.qp_type, info.is_response()) {
        DropReason::WrongState
    } else {
        DropReason::WrongService
    }
}

/// A connected QP hears its peer only, on the link that it is on: in another VLAN, the same address is somebody else's. The UDP
/// source port is not looked at: some peers send any.
#[inline(always)]
fn addresses(qp: &Qp, frame: &Frame) -> Result<(), DropReason> {
    let ours = qp.path.as_ref().is_some_and(|path| {
        let vid = frame.vlan.map_or(0, |tag| tag.vid);
        frame.src == path.remote
            && frame.dst == path.local
            && frame.network == path.template.network()
            && vid == path.vid
    });
    if ours { Ok(()) } else { Err(DropReason::WrongAddress) }
}

/// rocev2 facts, wire 5: the P_Key table has one entry, the full member of the default partition.
#[inline(always)]
fn pkey(frame: &Frame) -> Result<(), DropReason> {
    if PKey::DEFAULT.matches(frame.bth().pkey) { Ok(()) } else { Err(DropReason::PKey) }
}

fn qkey(qp: &Qp, packet: &RxPacket<'_>) -> Result<(), DropReason> {
    // rocev2 facts, transport 20: QP 1 has a key of its own, whatever its attributes say.
    let own = if qp.qpn == Qpn::GSI { QKey::GSI } else { qp.attr.qkey };
    let matches = packet.frame.ext::<Deth>(packet.head).is_some_and(|deth| deth.qkey == own);
    if matches { Ok(()) } else { Err(DropReason::QKey) }
}

#[cold]
fn established<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>) {
    qp.established = true;
    // rocev2 facts, transport 6: the first valid packet in RTR raises COMM_EST, once.
    if qp.state == QpState::Rtr || qp.shared.is_first_awaited() {
        ctx.events.raise(EventKind::CommEst, qp.source());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use QpState::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};

    /// By type: its requests come in, its responses do.
    const HALVES: [(QpType, bool, bool); 5] = [
        (QpType::Rc, true, true),
        (QpType::Uc, true, true),
        (QpType::Ud, true, true),
        (QpType::XrcIni, false, true),
        (QpType::XrcTgt, true, false),
    ];

    #[test]
    fn a_qp_hears_the_halves_that_it_has_where_its_state_takes_them() {
        for (qp_type, requests, responses) in HALVES {
            for state in [Reset, Init, Rtr, Rts, Sqd, Sqe, Err] {
                let hears = Hears::of(qp_type, state);
                for info in OpcodeInfo::all() {
                    let own = info.service == qp_type.service();
                    let request = requests && matches!(state, Rtr | Rts | Sqd | Sqe);
                    let response = responses && matches!(state, Rts | Sqd);
                    let expected = own && if info.is_response() { response } else { request };
                    assert_eq!(hears.contains(info), expected, "{qp_type:?} in {state:?}: {info}");
                }
            }
        }
    }
}
