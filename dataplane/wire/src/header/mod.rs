//! Transport headers as values (rocev2 facts, wire 5 and 6): BTH and extension headers.
//!
//! Every header is a fixed number of bytes, so `from_bytes` and `to_bytes` cannot fail; `parse` and `emit` do the same
//! on slices and tell when those are too short. Reserved bits are kept in the BTH, elsewhere they are sent as zero and
//! ignored.

mod aeth;
mod bth;
mod ext;

pub use aeth::{Aeth, CREDITS_UNUSED, NakCode, Syndrome, credit_code, credits, rnr_timer_ns};
pub use bth::Bth;
pub(crate) use bth::BthWords;
pub use ext::{AtomicAckEth, AtomicEth, Deth, Feth, Ieth, ImmDt, Rdeth, Reth, XrcEth};

use crate::opcode::ExtKind;

/// Bytes after the BTH of a CNP: reserved, zero.
pub const CNP_BODY: [u8; 16] = [0; 16];

/// A value of an extension header.
pub trait ExtHeader: Copy {
    /// Which one.
    const KIND: ExtKind;

    /// Reads it from the beginning of `bytes`; `None` when they are too few.
    fn parse(bytes: &[u8]) -> Option<Self>;

    /// Writes it to the beginning of `out` and gives its length; `None`, and nothing written, when there is no room.
    fn emit(&self, out: &mut [u8]) -> Option<usize>;
}

/// Slice forms of `from_bytes` and `to_bytes`; with a kind, as [`ExtHeader`].
macro_rules! slice_forms {
    ($name:ident) => {
        impl $name {
            /// Reads it from the beginning of `bytes`; `None` when they are too few.
            #[inline]
            pub fn parse(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(Self::from_bytes)
            }

            /// Writes it to the beginning of `out` and gives its length; `None`, and nothing written, when there is no
            /// room.
            #[inline]
            pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
                *out.first_chunk_mut()? = self.to_bytes();
                Some(Self::LEN)
            }
        }
    };
    ($name:ident, $kind:ident) => {
        $crate::header::slice_forms!($name);

        impl $crate::header::ExtHeader for $name {
            const KIND: $crate::opcode::ExtKind = $crate::opcode::ExtKind::$kind;

            #[inline]
            fn parse(bytes: &[u8]) -> Option<Self> {
                $name::parse(bytes)
            }

            #[inline]
            fn emit(&self, out: &mut [u8]) -> Option<usize> {
                $name::emit(self, out)
            }
        }
    };
}
use slice_forms;
