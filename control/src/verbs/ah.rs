//! An address handle: where a datagram goes.

use super::Pd;
use crate::error::{CreateError, ResolveError};
use engine::AddressHandle;
use std::net::IpAddr;
use std::sync::Arc;
use wire::{Addressing, GRH_AREA_LEN, Gid, GrhArea, HeaderTemplate, Network, RoceVersion};

/// An address handle. Clones are the same handle. Requests that were posted with it keep what they need.
#[derive(Clone, Debug)]
pub struct Ah {
    handle: Arc<AddressHandle>,
    _pd: Pd,
}

/// How to reach a destination, after `ibv_ah_attr`. The defaults are the port's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AhAttr {
    /// Index of the GID to send from; by default the route's address.
    pub sgid_index: Option<usize>,
    /// DSCP in the upper 6 bits, ECN in the lower 2.
    pub traffic_class: Option<u8>,
    /// TTL or hop limit.
    pub hop_limit: Option<u8>,
    /// Flow label, 20 bits. It also chooses the UDP source port, as in Linux; 0 leaves that to the queue pair which sends.
    pub flow_label: u32,
    /// Service level: the priority in the VLAN tag, where the port has one.
    pub sl: u8,
    /// Accepted; nothing is paced by it.
    pub static_rate: u8,
}

impl AhAttr {
    /// For an answer to a datagram: `grh` is the area of 40 bytes in front of it. Gives the sender's address too.
    pub(super) fn of_received(
        pd: &Pd,
        grh: &[u8; GRH_AREA_LEN],
        vlan: Option<u16>,
    ) -> Result<(IpAddr, AhAttr), CreateError> {
        let area = GrhArea::read(grh).ok_or(CreateError::NoGrh)?;
        let gid_type = if area.network == Network::V1 { RoceVersion::V1 } else { RoceVersion::V2 };
        let device = pd.device();
        let own = device.gid_index_on(area.dst, gid_type, vlan);
        // What came to a group is answered from an address of its link that leads to the sender.
        let own = own.or_else(|| device.gid_index_towards(area.src.ip(), gid_type, vlan));
        if own.is_none() {
            return Err(ResolveError::NotOurs(area.dst.ip()).into());
        }
        let attr = AhAttr {
            sgid_index: own,
            traffic_class: Some(area.traffic_class),
            flow_label: area.flow_label,
            ..AhAttr::default()
        };
        Ok((area.src.ip(), attr))
    }
}

impl Ah {
    pub(super) fn with(pd: &Pd, destination: IpAddr, attr: &AhAttr) -> Result<Ah, CreateError> {
        let mut way = pd.device().resolve(destination, attr.sgid_index)?;
        way.traffic_class = attr.traffic_class.unwrap_or(way.traffic_class);
        way.hop_limit = attr.hop_limit.unwrap_or(way.hop_limit);
        way.flow_label = attr.flow_label & FLOW_LABEL;
        if let Some(tag) = &mut way.vlan {
            // rocev2 facts, wire 2: the priority is the service level's low three bits.
            tag.pcp = attr.sl & 7;
        }
        Ah::new(pd, way)
    }

    /// A handle for headers that are known already. A UDP source port of 0 stands for the one of the flow label, or without
    /// one for that of the queue pair which sends.
    pub fn new(pd: &Pd, mut addressing: Addressing) -> Result<Ah, CreateError> {
        if addressing.udp_sport == 0 && addressing.flow_label & FLOW_LABEL != 0 {
            addressing.udp_sport = wire::udp_sport_of_flow_label(addressing.flow_label);
        }
        let template = HeaderTemplate::new(&addressing)?;
        let handle = Arc::new(AddressHandle::new(pd.id(), addressing.dst, template));
        pd.device().port.note_handle(&handle, (addressing.src, addressing.version, addressing.link_vlan()));
        Ok(Ah { handle, _pd: pd.clone() })
    }

    /// Where it leads.
    pub fn dgid(&self) -> Gid {
        self.handle.dgid
    }

    pub(crate) fn handle(&self) -> &Arc<AddressHandle> {
        &self.handle
    }
}

/// A flow label has 20 bits.
const FLOW_LABEL: u32 = 0x000F_FFFF;
