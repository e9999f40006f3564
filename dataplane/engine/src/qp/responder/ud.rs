//! UD: single packets into receives that begin with the GRH area (rocev2 facts, transport section 20, wire
//! section 11).

use super::{length, refuse, resources};
use crate::counters::Counter;
use crate::fault::Fault;
use crate::limits::UD_GRH_BYTES;
use crate::memory::{Memory, PlaceError};
use crate::packet::{Payload, RxPacket};
use crate::qp::{Ctx, Qp};
use crate::status::{Cqe, WcOpcode, WcStatus};
use wire::{Deth, ImmDt, Qpn, grh_area};

pub(super) fn on_request<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    if let Err(fault) = datagram(qp, ctx, packet) {
        refuse(qp, ctx, packet.frame.bth().psn, fault);
    }
}

/// PSNs are not looked at. A receive that is too short for one datagram waits for the next.
fn datagram<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), Fault> {
    length::of_packet(qp, packet, qp.port_mtu)?;
    resources::receive(qp, ctx)?;
    qp.resp.receive.usable()?;
    if UD_GRH_BYTES + packet.frame.payload_len() as u32 > qp.resp.receive.room() {
        return Err(Fault::ReceiveTooShort);
    }
    place(qp, ctx, packet).map_err(|why| why.fault(Fault::ReceiveUnusable))?;
    qp.counters.count(Counter::RxSendRequests);
    complete(qp, ctx, packet);
    Ok(())
}

fn place<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) -> Result<(), PlaceError> {
    let area = grh_area(packet.frame, packet.head);
    qp.resp.receive.place(ctx.memory, &Payload::contiguous(&area), true)?;
    qp.resp.receive.place(ctx.memory, &packet.payload, false)
}

fn complete<M: Memory>(qp: &mut Qp, ctx: &Ctx<'_, M>, packet: &RxPacket<'_>) {
    let frame = packet.frame;
    let byte_len = qp.resp.receive.filled();
    let Some(wr_id) = qp.resp.receive.release() else { return };
    let cqe = Cqe {
        byte_len,
        imm: frame.ext::<ImmDt>(packet.head).map(|imm| imm.0),
        src_qp: frame.ext::<Deth>(packet.head).map_or(Qpn::default(), |deth| deth.src_qpn),
        has_grh: true,
        vlan: frame.vlan.map(|tag| tag.vid).filter(|&vid| vid != 0),
        solicited: frame.bth().solicited,
        ..Cqe::new(wr_id, WcStatus::Success, WcOpcode::Recv, qp.qpn)
    };
    ctx.memory.publish();
    qp.push_recv_cqe(ctx, cqe);
}
