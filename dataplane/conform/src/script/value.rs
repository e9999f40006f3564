//! Values in a line: numbers with symbols, conditions on them, data, times.

use super::words::Complaint;

/// A number, perhaps counted from something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    /// As it is.
    Number(u64),
    /// Counted from the PSN that its side began with.
    FromFirst(i64),
    /// Counted from what a name stands for: a region's address or key, a queue pair's number, as the field asks.
    Named(String, i64),
}

/// A condition: one of some ranges, or none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cond {
    pub ranges: Vec<(Expr, Expr)>,
    pub negated: bool,
}

impl Cond {
    /// Exactly this.
    pub fn exactly(value: Expr) -> Cond {
        Cond { ranges: vec![(value.clone(), value)], negated: false }
    }

    /// From one number to another, both included.
    pub fn range(from: u64, to: u64) -> Cond {
        Cond { ranges: vec![(Expr::Number(from), Expr::Number(to))], negated: false }
    }

    /// The one value that it allows.
    pub fn single(&self) -> Option<&Expr> {
        match (&self.ranges[..], self.negated) {
            ([(from, to)], false) if from == to => Some(from),
            _ => None,
        }
    }
}

/// Bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// From the endless sequence that all scripts share.
    Sequence { from: u64, to: u64 },
    /// So many zeros.
    Zero(u64),
    /// These.
    Bytes(Vec<u8>),
}

impl Data {
    pub const EMPTY: Data = Data::Bytes(Vec::new());

    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Data::Sequence { from, to } => (*from..*to).map(sequence).collect(),
            Data::Zero(len) => vec![0; *len as usize],
            Data::Bytes(bytes) => bytes.clone(),
        }
    }

    pub fn len(&self) -> u64 {
        match self {
            Data::Sequence { from, to } => to - from,
            Data::Zero(len) => *len,
            Data::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// The `n`-th of equal pieces that follow each other.
    pub fn piece(&self, n: u64) -> Data {
        match self {
            Data::Sequence { from, to } => {
                let len = to - from;
                Data::Sequence { from: from + n * len, to: to + n * len }
            }
            other => other.clone(),
        }
    }
}

/// A byte of the sequence: no piece of it looks like another.
fn sequence(at: u64) -> u8 {
    ((at as u32).wrapping_add(1).wrapping_mul(0x9E37_79B1) >> 24) as u8
}

/// Longest data that a script may name, in bytes.
const MAX_DATA: u64 = 16 << 20;

/// A plain number: decimal or 0x.
pub(crate) fn number(text: &str) -> Result<u64, Complaint> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(&digits.replace('_', ""), 16),
        None => text.replace('_', "").parse(),
    };
    parsed.map_err(|_| Complaint(format!("{text:?} is no number: write it like 17 or 0x11")))
}

/// A number that has to lie below a limit.
pub(crate) fn number_below(text: &str, limit: u64) -> Result<u64, Complaint> {
    match number(text)? {
        value if value < limit => Ok(value),
        value => Err(Complaint(format!("{value} is too large here: at most {}", limit - 1))),
    }
}

pub(crate) fn expr(text: &str) -> Result<Expr, Complaint> {
    if let Some(offset) = text.strip_prefix('+') {
        return Ok(Expr::FromFirst(number_below(offset, 1 << 32)? as i64));
    }
    if let Some(offset) = text.strip_prefix('-') {
        return Ok(Expr::FromFirst(-(number_below(offset, 1 << 32)? as i64)));
    }
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return number(text).map(Expr::Number);
    }
    let at = text.find(['+', '-']).unwrap_or(text.len());
    let (name, offset) = text.split_at(at);
    super::words::check_name(name)?;
    let offset = match offset.split_at_checked(1) {
        Some(("-", digits)) => -(number_below(digits, 1 << 32)? as i64),
        Some((_, digits)) => number_below(digits, 1 << 48)? as i64,
        None => 0,
    };
    Ok(Expr::Named(name.to_owned(), offset))
}

/// `5`, `1..3`, `1|4`, `!7`, `+0|+2`.
pub(crate) fn cond(text: &str) -> Result<Cond, Complaint> {
    let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    let range = |part: &str| match part.split_once("..") {
        Some((from, to)) => Ok((expr(from)?, expr(to)?)),
        None => expr(part).map(|value| (value.clone(), value)),
    };
    Ok(Cond { ranges: text.split('|').map(range).collect::<Result<_, _>>()?, negated })
}

/// `data[0..64]`, `zero[64]`, `hex:00ff`, `u64:5` (eight bytes in host order, as atomics leave them).
pub(crate) fn data(text: &str) -> Result<Data, Complaint> {
    let wrong = || {
        Complaint(format!(
            "{text:?} are no bytes: write data[0..64], zero[64], hex:00ff, or u64:5 for eight bytes in host order"
        ))
    };
    if let Some(digits) = text.strip_prefix("hex:") {
        return crate::device::from_hex(digits).map(Data::Bytes).ok_or_else(wrong);
    }
    if let Some(value) = text.strip_prefix("u64:") {
        return Ok(Data::Bytes(number(value)?.to_le_bytes().to_vec()));
    }
    let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']');
    if let Some(len) = inside("zero") {
        return number_below(len, MAX_DATA + 1).map(Data::Zero);
    }
    let (from, to) = inside("data").and_then(|range| range.split_once("..")).ok_or_else(wrong)?;
    let (from, to) = (number(from)?, number(to)?);
    if from > to || to - from > MAX_DATA {
        return Err(wrong());
    }
    Ok(Data::Sequence { from, to })
}

/// `20ms`, `5us`, `2s` in nanoseconds.
pub(crate) fn time(text: &str) -> Result<u64, Complaint> {
    let wrong = || Complaint(format!("{text:?} is no time: write it like 250us, 20ms, 1.28ms or 2s"));
    let at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (value, unit) = text.split_at(at);
    let unit = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let value: f64 = value.parse().map_err(|_| wrong())?;
    if !(0.0..=3600e9).contains(&(value * unit)) {
        return Err(wrong());
    }
    Ok((value * unit) as u64)
}
