//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Mac = Mac([0xFF; 6]);

    /// The six bytes.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// A group address, broadcast among them.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// Text that is no MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMacError;

impl fmt::Display for ParseMacError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a MAC address like 02:00:00:00:00:0a")
    }
}

impl std::error::Error for ParseMacError {}

impl FromStr for Mac {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(ParseMacError)?;
            // from_str_radix alone would take a sign.
            let plain = matches!(part.len(), 1 | 2) && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            *octet = u8::from_str_radix(part, 16).ok().filter(|_| plain).ok_or(ParseMacError)?;
        }
        if parts.next().is_some() { Err(ParseMacError) } else { Ok(Mac(octets)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mac({self})")
    }
}
