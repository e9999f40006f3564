//! The links of a port: addresses, and the VLANs on it.

use super::load::{Checked, refuse};
use super::port::DEFAULT_NEIGHBOUR_TIMEOUT;
use super::{VlanSettings, raw};
use crate::net::{MAX_ADDRESSES, Prefix};
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;

/// Addresses with their prefixes, each once.
pub(super) fn addresses(given: &[Spanned<String>]) -> Checked<Vec<Prefix>> {
    let mut addresses: Vec<Prefix> = Vec::new();
    for text in given {
        let prefix = Prefix::from_str(text.get_ref()).or_else(|why| {
            refuse(text.span(), why.to_string(), "write it as in \"10.0.0.1/24\" or \"2001:db8::1/64\"")
        })?;
        if addresses.iter().any(|known| known.address() == prefix.address()) {
            return refuse(text.span(), "the address is named twice", "remove one of them");
        }
        if addresses.len() + 1 >= MAX_ADDRESSES {
            let problem = format!("a link has {MAX_ADDRESSES} addresses at most, with its link-local one");
            return refuse(text.span(), problem, "remove some");
        }
        addresses.push(prefix);
    }
    Ok(addresses)
}

/// The VLANs of a port whose own link is in VLAN `own`.
pub(super) fn vlans(own: Option<u16>, given: &[raw::Vlan]) -> Checked<Vec<VlanSettings>> {
    let mut vlans: Vec<VlanSettings> = Vec::new();
    for vlan in given {
        let id = *vlan.id.get_ref();
        if !(1..=4094).contains(&id) {
            return refuse(vlan.id.span(), "there is no such VLAN", "give 1 to 4094");
        }
        if own == Some(id) || vlans.iter().any(|known| known.id == id) {
            return refuse(vlan.id.span(), "the port has this VLAN already", "give each link one of its own");
        }
        vlans.push(VlanSettings {
            id,
            addresses: addresses(&vlan.addresses)?,
            gateway_v4: vlan.gateway.as_ref().map(|gateway| *gateway.get_ref()),
            gateway_v6: vlan.gateway6.as_ref().map(|gateway| *gateway.get_ref()),
        });
    }
    Ok(vlans)
}

/// How long a neighbour may be silent.
pub(super) fn neighbour_timeout(given: Option<&Spanned<u64>>) -> Checked<Duration> {
    match given {
        None => Ok(DEFAULT_NEIGHBOUR_TIMEOUT),
        Some(ms) if (100..=60_000).contains(ms.get_ref()) => Ok(Duration::from_millis(*ms.get_ref())),
        Some(ms) => refuse(ms.span(), "is out of range", "give 100 to 60000 milliseconds; 900 is usual"),
    }
}
