//! The ways between two ends: GIDs of the same type and family.

use crate::cli::failure::Failure;
use rockhopper::{Device, RoceVersion};

/// A way.
pub struct Way {
    /// What is spoken on it.
    pub network: &'static str,
    /// Index of the near end's GID.
    pub near: usize,
    /// Index of the far end's.
    pub far: usize,
}

/// All that both ends have.
pub fn all(near: &Device, far: &Device) -> Result<Vec<Way>, Failure> {
    let mut ways = Vec::new();
    for (network, version, v4) in [
        ("IPv4", RoceVersion::V2, true),
        ("IPv6", RoceVersion::V2, false),
        ("RoCE v1, IPv4", RoceVersion::V1, true),
        ("RoCE v1, IPv6", RoceVersion::V1, false),
    ] {
        let of = |device: &Device| -> Result<Option<usize>, Failure> {
            let gids = device.query_port().map_err(Failure::setup)?.gids;
            let fits = gids.into_iter().find(|(_, entry)| {
                entry.gid_type == version && entry.gid.is_v4() == v4 && !entry.gid.is_link_local()
            });
            Ok(fits.map(|(index, _)| index))
        };
        if let (Some(near), Some(far)) = (of(near)?, of(far)?) {
            ways.push(Way { network, near, far });
        }
    }
    match ways.is_empty() {
        true => Err(Failure::setup(
            "the two ports have no addresses of the same family: give each one of IPv4 or IPv6",
        )),
        false => Ok(ways),
    }
}
