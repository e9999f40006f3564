//! Protocol numbers as types: small, `Copy`, and printed as the field is written.

mod gid;
mod key;
mod mac;
mod mtu;
mod number;

pub use gid::{Gid, ParseGidError};
pub use key::{LKey, PKey, QKey, RKey};
pub use mac::{Mac, ParseMacError};
pub use mtu::{Mtu, packets};
pub use number::{Msn, OutOfRange, Psn, Qpn, Srqn};
