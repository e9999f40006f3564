//! Names that a rule gives to what it makes, and lines that refer to them.

use super::PieceSpec;
use super::value::{Expr, number, number_below};
use super::words::{Complaint, Words, unknown};

/// Behind the name of a window or region: its key before the last bind or registration.
pub(crate) const BEFORE: &str = "_before";
/// The queue pair of a rule that has one only.
pub(super) const QP: &str = "qp";

/// Names that a rule has given.
#[derive(Default)]
pub(super) struct Names {
    pub qps: Vec<String>,
    pub regions: Vec<String>,
    pub windows: Vec<String>,
    pub srqs: Vec<String>,
}

impl Names {
    /// The queue pair that a line is about.
    pub fn qp(&self, words: &mut Words, key: &'static str) -> Result<String, Complaint> {
        let name = words.take(key).unwrap_or(QP);
        if self.qps.iter().any(|known| known == name) {
            return Ok(name.to_owned());
        }
        match &self.qps[..] {
            [] => Err(Complaint("there is no queue pair yet: add a line like: qp rc".into())),
            qps => Err(unknown("queue pair", name, &qps.iter().map(String::as_str).collect::<Vec<_>>())),
        }
    }

    pub fn region(&self, name: &str) -> Result<String, Complaint> {
        one_known("region", name, &self.regions, "region A 4096")
    }

    pub fn window(&self, name: &str) -> Result<String, Complaint> {
        one_known("window", name, &self.windows, "window W type=2")
    }

    pub fn srq(&self, name: &str) -> Result<String, Complaint> {
        one_known("shared receive queue", name, &self.srqs, "srq S")
    }

    /// A place in a region: `A+16`.
    pub fn place(&self, text: &str) -> Result<(String, u64), Complaint> {
        let (name, offset) = text.split_once('+').unwrap_or((text, "0"));
        Ok((self.region(name)?, number(offset)?))
    }

    /// Pieces of regions: `A+0:64,B+16:8`.
    pub fn pieces(&self, words: &mut Words) -> Result<Vec<PieceSpec>, Complaint> {
        let Some(text) = words.next_if(|word| word.contains(':')) else { return Ok(Vec::new()) };
        let piece = |part: &str| {
            let (place, len) = part.split_once(':').ok_or_else(|| {
                Complaint(format!("{part:?} is no piece of memory: write REGION+OFFSET:LENGTH, like A+0:64"))
            })?;
            let (region, offset) = self.place(place)?;
            Ok(PieceSpec { region, offset, len: number_below(len, 1 << 32)? as u32 })
        };
        text.split(',').map(piece).collect()
    }

    /// A value that may name a region, a window, a shared receive queue or a queue pair.
    pub fn known(&self, value: Expr) -> Result<Expr, Complaint> {
        if let Expr::Named(name, _) = &value {
            let memory = name.strip_suffix(BEFORE).unwrap_or(name);
            let others = self.qps.contains(name) || self.srqs.contains(name);
            if !others && !self.windows.iter().any(|known| known == memory) {
                self.region(memory)?;
            }
        }
        Ok(value)
    }
}

fn one_known(kind: &str, name: &str, known: &[String], example: &str) -> Result<String, Complaint> {
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    match known {
        [] => Err(Complaint(format!("there is no {kind} {name:?} yet: add a line like: {example}"))),
        known => Err(unknown(kind, name, &known.iter().map(String::as_str).collect::<Vec<_>>())),
    }
}
