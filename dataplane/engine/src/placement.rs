//! What a FLUSH asks for: how far bytes that were written before have to be, and which bytes (rocev2 facts, wire section 6).

use crate::access::Access;
use wire::Feth;

bitflags::bitflags! {
    /// How far a FLUSH brings bytes. Bit values are those of the wire (FETH, PLT).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Placement: u8 {
        /// Everyone who may read the memory sees them.
        const GLOBAL = 1;
        /// They survive a loss of power.
        const PERSISTENT = 2;
    }
}

impl Placement {
    /// The rights that a FLUSH to here takes, of the queue pair and of the key.
    pub fn rights(self) -> Access {
        let mut rights = Access::empty();
        rights.set(Access::FLUSH_GLOBAL, self.contains(Placement::GLOBAL));
        rights.set(Access::FLUSH_PERSISTENT, self.contains(Placement::PERSISTENT));
        rights
    }
}

/// Which bytes a FLUSH is about. Values are those of the wire (FETH, SEL).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlushLevel {
    /// Address and length of the request.
    Range = 0,
    /// All that the key grants; address and length mean nothing.
    Region = 1,
}

/// The FETH of a FLUSH.
pub(crate) fn to_feth(placement: Placement, level: FlushLevel) -> Feth {
    Feth { plt: placement.bits(), sel: level as u8 }
}

/// What a FETH means. `None` for reserved bits and levels, and for a FLUSH to nowhere: the facts do not say what becomes of
/// those [?]; we answer what could not be done as an operation that we do not offer.
pub(crate) fn from_feth(feth: Feth) -> Option<(Placement, FlushLevel)> {
    let placement = Placement::from_bits(feth.plt).filter(|placement| !placement.is_empty())?;
    let level = match feth.sel {
        0 => FlushLevel::Range,
        1 => FlushLevel::Region,
        _ => return None,
    };
    Some((placement, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else_means_anything() {
        let mut known = 0;
        for plt in 0..16 {
            for sel in 0..4 {
                if let Some((placement, level)) = from_feth(Feth { plt, sel }) {
                    assert_eq!(to_feth(placement, level), Feth { plt, sel });
                    known += 1;
                }
            }
        }
        assert_eq!(known, 6, "global, persistent or both, of a range or a region");
        assert_eq!(from_feth(Feth { plt: 0, sel: 0 }), None);
    }

    #[test]
    fn each_placement_takes_its_right() {
        assert_eq!(Placement::GLOBAL.rights(), Access::FLUSH_GLOBAL);
        assert_eq!(Placement::PERSISTENT.rights(), Access::FLUSH_PERSISTENT);
        assert_eq!(Placement::all().rights(), Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT);
    }
}
