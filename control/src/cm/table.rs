//! Ports of port spaces: who is bound to what on an endpoint.

use super::error::CmError;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use wire::mad::PortSpace;

/// Port numbers that are given to those who ask for any: the range that IANA leaves to them, unverified RFC 6335 6.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49152..=65535;
/// Tries to find one at random before looking one by one.
const TRIES: u32 = 32;

/// One who is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bound {
    address: IpAddr,
    owner: u64,
    listens: bool,
    shares: bool,
}

/// Bindings by port space and port.
#[derive(Debug, Default)]
pub(super) struct Bindings(BTreeMap<(PortSpace, u16), Vec<Bound>>);

impl Bindings {
    /// Binds an owner, to a free port when it is 0; the result is the port. The unspecified address stands for all of both
    /// families.
    pub fn bind(
        &mut self,
        space: PortSpace,
        at: SocketAddr,
        owner: u64,
        shares: bool,
    ) -> Result<u16, CmError> {
        let port = if at.port() == 0 { self.free_port(space)? } else { at.port() };
        let others = self.0.entry((space, port)).or_default();
        let clashes =
            |other: &Bound| overlap(other.address, at.ip()) && !(shares && other.shares && !other.listens);
        if others.iter().any(clashes) {
            return Err(CmError::AddrInUse(SocketAddr::new(at.ip(), port)));
        }
        others.push(Bound { address: at.ip(), owner, listens: false, shares });
        Ok(port)
    }

    /// A bound owner listens from now on: it no longer shares its port.
    pub fn listen(&mut self, space: PortSpace, at: SocketAddr, owner: u64) -> Result<(), CmError> {
        let others = self.0.entry((space, at.port())).or_default();
        if others.iter().any(|other| other.owner != owner && overlap(other.address, at.ip())) {
            return Err(CmError::AddrInUse(at));
        }
        others.iter_mut().filter(|bound| bound.owner == owner).for_each(|bound| bound.listens = true);
        Ok(())
    }

    /// An owner is gone, or binds anew.
    pub fn release(&mut self, space: PortSpace, port: u16, owner: u64) {
        if let Some(bound) = self.0.get_mut(&(space, port)) {
            bound.retain(|bound| bound.owner != owner);
            if bound.is_empty() {
                self.0.remove(&(space, port));
            }
        }
    }

    /// Unpredictable, as those who connect prove by nothing else where they are.
    fn free_port(&self, space: PortSpace) -> Result<u16, CmError> {
        let is_free = |port: &u16| !self.0.contains_key(&(space, *port));
        let span = EPHEMERAL.end() - EPHEMERAL.start();
        let any = || EPHEMERAL.start() + rand::random::<u16>() % span;
        let found = (0..TRIES).map(|_| any()).find(is_free).or_else(|| EPHEMERAL.into_iter().find(is_free));
        found.ok_or(CmError::NoPort)
    }
}

fn overlap(one: IpAddr, other: IpAddr) -> bool {
    one == other || one.is_unspecified() || other.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_port_belongs_to_one_unless_addresses_differ() {
        let mut table = Bindings::default();
        let tcp = PortSpace::Tcp;
        assert_eq!(table.bind(tcp, at("10.0.0.1:7"), 1, false).unwrap(), 7);
        assert!(matches!(table.bind(tcp, at("10.0.0.1:7"), 2, false), Err(CmError::AddrInUse(_))));
        assert!(
            matches!(table.bind(tcp, at("[::]:7"), 2, false), Err(CmError::AddrInUse(_))),
            "all addresses"
        );
        table.bind(tcp, at("10.0.0.2:7"), 2, false).unwrap();
        table.bind(PortSpace::Udp, at("10.0.0.1:7"), 3, false).unwrap();
        table.release(tcp, 7, 1);
        table.bind(tcp, at("10.0.0.1:7"), 4, false).unwrap();
    }

    #[test]
    fn a_shared_port_has_one_listener() {
        let mut table = Bindings::default();
        let tcp = PortSpace::Tcp;
        table.bind(tcp, at("10.0.0.1:7"), 1, true).unwrap();
        table.bind(tcp, at("10.0.0.1:7"), 2, true).unwrap();
        assert!(table.listen(tcp, at("10.0.0.1:7"), 1).is_err(), "the other has it, too");
        table.release(tcp, 7, 2);
        table.listen(tcp, at("10.0.0.1:7"), 1).unwrap();
        assert!(table.bind(tcp, at("10.0.0.1:7"), 3, true).is_err());
    }

    #[test]
    fn port_zero_finds_the_last_free_port_and_then_none() {
        let mut table = Bindings::default();
        let mut ports = std::collections::BTreeSet::new();
        for owner in 0..u64::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1 {
            assert!(ports.insert(table.bind(PortSpace::Tcp, at("0.0.0.0:0"), owner, false).unwrap()));
        }
        assert!(matches!(table.bind(PortSpace::Tcp, at("0.0.0.0:0"), 99_999, false), Err(CmError::NoPort)));
        let rising = ports.range(49152..).count();
        assert_eq!(rising, ports.len());
    }
}
