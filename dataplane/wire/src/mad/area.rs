//! Areas of bytes inside messages that belong to others: applications' private data, additional information.

use std::fmt;

/// `N` bytes that pass through as they are. Short content is followed by zeros: how long it was is not on the wire
/// (rocev2 facts, CM 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Area<const N: usize>(pub [u8; N]);

impl<const N: usize> Area<N> {
    /// Bytes that fit.
    pub const LEN: usize = N;

    /// All zero.
    pub const EMPTY: Self = Area([0; N]);

    /// The area that begins with `bytes`; `None` when they are more than fit.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut area = [0; N];
        area.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Area(area))
    }

    /// All its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> Default for Area<N> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// In hexadecimal, the zeros at the end left out.
impl<const N: usize> fmt::Debug for Area<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        f.write_str("[")?;
        self.0[..len].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "; {N}]")
    }
}
