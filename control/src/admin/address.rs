//! Addresses over the admin socket: shown, added, removed while the endpoint runs.

use super::{AdminError, Reply, ask};
use crate::endpoint::PortCore;
use crate::net::{Interface, Prefix, Stack};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use wire::RoceVersion;

/// One link of a running endpoint: a port's own, or a VLAN of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Its name: the port's, or `PORT.VLAN`.
    pub name: String,
    /// Its VLAN.
    pub vlan: Option<u16>,
    /// The port's Ethernet address.
    pub mac: String,
    /// Its addresses.
    pub addresses: Vec<AddressInfo>,
    /// Other stations that use an address of ours.
    pub conflicts: Vec<ConflictInfo>,
}

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressInfo {
    /// With its prefix.
    pub prefix: String,
    /// Its GIDs.
    pub gids: Vec<GidInfo>,
}

/// A GID of an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidInfo {
    /// Its index.
    pub index: usize,
    /// `v1` or `v2`.
    pub gid_type: String,
}

/// Another station has one of our addresses, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictInfo {
    /// The address.
    pub address: IpAddr,
    /// The other station.
    pub mac: String,
    /// How often it was heard.
    pub count: u64,
}

/// What a client asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// Adds an address.
    Add {
        /// The link; it may be left out when there is one only.
        link: Option<String>,
        /// With its prefix.
        prefix: String,
    },
    /// Removes an address.
    Remove {
        /// The link; it may be left out when only one has the address.
        link: Option<String>,
        /// The address.
        address: IpAddr,
    },
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The link.
    pub link: String,
    /// The address that was added or removed.
    pub address: IpAddr,
    /// Its GID index, when it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

/// The links and addresses of a running endpoint.
pub fn addresses(socket: &Path) -> Result<Vec<LinkInfo>, AdminError> {
    ask(socket, &super::Request::Get(super::What::Addresses))
}

/// Adds an address to a link of a running endpoint.
pub fn add_address(socket: &Path, link: Option<&str>, prefix: Prefix) -> Result<Changed, AdminError> {
    let add = Change::Add { link: link.map(str::to_owned), prefix: prefix.to_string() };
    ask(socket, &super::Request::Address(add))
}

/// Removes an address from a link of a running endpoint, and ends what uses it.
pub fn remove_address(socket: &Path, link: Option<&str>, address: IpAddr) -> Result<Changed, AdminError> {
    let remove = Change::Remove { link: link.map(str::to_owned), address };
    ask(socket, &super::Request::Address(remove))
}

/// The server's side.
pub(super) fn show(ports: &[Arc<PortCore>]) -> Vec<LinkInfo> {
    let mut links = Vec::new();
    for port in ports {
        let stack = port.network.lock();
        links.extend(stack.links().iter().map(|link| info(port, &stack, link)));
    }
    links
}

fn info(port: &PortCore, stack: &Stack, link: &Interface) -> LinkInfo {
    let gids_of = |own: &Prefix| {
        let of_link = stack.gids().iter().filter(|(_, entry)| entry.vlan == link.vlan());
        let of_address = of_link.filter(|(_, entry)| entry.address == own.address());
        let gid_type = |gid_type| if gid_type == RoceVersion::V1 { "v1" } else { "v2" };
        of_address
            .map(|(index, entry)| GidInfo { index, gid_type: gid_type(entry.gid_type).into() })
            .collect()
    };
    let addresses = link.addresses().iter();
    let conflicts = link.conflicts();
    LinkInfo {
        name: port.link_name(stack, link.vlan()),
        vlan: link.vlan(),
        mac: link.mac().to_string(),
        addresses: addresses.map(|own| AddressInfo { prefix: own.to_string(), gids: gids_of(own) }).collect(),
        conflicts: conflicts
            .map(|(address, conflict)| ConflictInfo {
                address,
                mac: conflict.mac.to_string(),
                count: conflict.count,
            })
            .collect(),
    }
}

/// Does what a client asks for, or says why not.
pub(super) fn change(ports: &[Arc<PortCore>], change: &Change) -> Reply<Changed> {
    match change {
        Change::Add { link, prefix } => {
            let prefix: Prefix = prefix.parse().map_err(|why| format!("{prefix}: {why}"))?;
            let (port, vlan, name) = one_link(ports, link.as_deref(), |_| true)?;
            let index = port.add_address(vlan, prefix).map_err(|why| why.to_string())?;
            Ok(Changed { link: name, address: prefix.address(), index: Some(index) })
        }
        Change::Remove { link, address } => {
            let has = |link: &Interface| link.addresses().iter().any(|own| own.address() == *address);
            let (port, vlan, name) = one_link(ports, link.as_deref(), has)?;
            match port.remove_address(vlan, *address).map_err(|why| why.to_string())? {
                true => Ok(Changed { link: name, address: *address, index: None }),
                false => Err(format!(
                    "{name} has no address {address}; `rockhopper address show` lists what there is"
                )),
            }
        }
    }
}

type Found<'a> = (&'a PortCore, Option<u16>, String);

/// The link that was named, or the only one that fits.
fn one_link<'a>(
    ports: &'a [Arc<PortCore>],
    name: Option<&str>,
    fits: impl Fn(&Interface) -> bool,
) -> Result<Found<'a>, String> {
    let mut all: Vec<(Found<'a>, bool)> = Vec::new();
    for port in ports {
        let stack = port.network.lock();
        let found = |link: &Interface| (&**port, link.vlan(), port.link_name(&stack, link.vlan()));
        all.extend(stack.links().iter().map(|link| (found(link), fits(link))));
    }
    let names = all.iter().map(|((.., name), _)| name.clone()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = name {
        let named = all.into_iter().find(|((.., name), _)| name == wanted);
        return named
            .map(|(found, _)| found)
            .ok_or_else(|| format!("there is no link {wanted}; name one of {names}"));
    }
    let mut fitting = all.into_iter().filter(|(_, fits)| *fits).map(|(found, _)| found);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(format!("no link has that address; there are {names}")),
        (Some(_), Some(_)) => Err(format!("which link is meant? Name one of {names} by --link")),
    }
}
