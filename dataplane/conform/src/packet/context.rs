//! What names and signs in a script stand for while a rule is played.

use crate::script::{BEFORE, Cond, Expr, Field};
use std::collections::BTreeMap;
use wire::{Gid, Mac, Mtu, Psn, Qpn, Service};

/// Both ends of a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct QpContext {
    pub service: Service,
    pub device_qpn: Qpn,
    pub peer_qpn: Qpn,
    /// First PSN of what the peer asks and the device answers.
    pub peer_psn: Psn,
    /// First PSN of what the device asks and the peer answers.
    pub device_psn: Psn,
    pub mtu: Mtu,
    pub qkey: u32,
    pub device_gid: Gid,
    pub peer_gid: Gid,
    /// Messages of the device that the peer has seen whole: the MSN of the peer's answers unless the script says another.
    pub msn: u32,
    /// What the device's MSNs are counted from.
    pub first_msn: u32,
    /// The newest PSN of the device that was counted.
    pub newest: Option<Psn>,
}

/// Everything that names stand for.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub device_mac: Mac,
    pub peer_mac: Mac,
    /// Regions: address and key; those before the last registration under names that end in [`BEFORE`].
    pub regions: BTreeMap<String, (u64, u32)>,
    /// Windows: address and key; those before the last bind under names that end in [`BEFORE`].
    pub windows: BTreeMap<String, (u64, u32)>,
    /// Numbers of XRC SRQs.
    pub srqs: BTreeMap<String, u32>,
    pub qps: BTreeMap<String, QpContext>,
}

impl Context {
    /// The value of an expression in a field, in its bits. `first` is the PSN that signs count from.
    pub fn value(&self, field: Field, expr: &Expr, first: Psn) -> u64 {
        let mask = u64::MAX >> (64 - field.bits());
        let value = match expr {
            Expr::Number(value) => *value,
            Expr::FromFirst(offset) => u64::from(first.value()).wrapping_add_signed(*offset),
            Expr::Named(name, offset) => self.named(field, name).wrapping_add_signed(*offset),
        };
        value & mask
    }

    /// A region has been made, or registered under another key.
    pub fn keep_region(&mut self, name: &str, addr: u64, rkey: u32) {
        keep(&mut self.regions, name, (addr, rkey));
    }

    /// A window has been made or bound.
    pub fn keep_window(&mut self, name: &str, addr: u64, rkey: u32) {
        keep(&mut self.windows, name, (addr, rkey));
    }

    fn named(&self, field: Field, name: &str) -> u64 {
        if let (Field::Srqn, Some(srqn)) = (field, self.srqs.get(name)) {
            return (*srqn).into();
        }
        let memory = self.regions.get(name).or_else(|| self.windows.get(name));
        match (memory, self.qps.get(name), field) {
            (_, Some(qp), Field::DestQp) => qp.device_qpn.value().into(),
            (_, Some(qp), _) => qp.peer_qpn.value().into(),
            (Some((_, key)), _, Field::RKey | Field::Inv) => (*key).into(),
            (Some((addr, _)), ..) => *addr,
            // The parser knows the names of a rule.
            (None, None, _) => 0,
        }
    }

    /// Whether a field's value is what a script asks for.
    pub fn holds(&self, field: Field, cond: &Cond, first: Psn, value: u64) -> bool {
        let inside = |(from, to): &(Expr, Expr)| {
            let (from, to) = (self.value(field, from, first), self.value(field, to, first));
            let mask = u64::MAX >> (64 - field.bits());
            // Ranges may wrap, as PSNs do.
            (value.wrapping_sub(from) & mask) <= (to.wrapping_sub(from) & mask)
        };
        cond.ranges.iter().any(inside) != cond.negated
    }

    /// A condition in words, with the numbers that it means.
    pub fn words(&self, field: Field, cond: &Cond, first: Psn) -> String {
        let word = |(from, to): &(Expr, Expr)| {
            let number = |expr: &Expr| match expr {
                Expr::FromFirst(offset) => {
                    format!("{offset:+} ({:#x})", self.value(field, expr, first))
                }
                _ => format!("{:#x}", self.value(field, expr, first)),
            };
            if from == to { number(from) } else { format!("{}..{}", number(from), number(to)) }
        };
        let ranges: Vec<String> = cond.ranges.iter().map(word).collect();
        format!("{}{}", if cond.negated { "anything but " } else { "" }, ranges.join(" or "))
    }
}

fn keep(all: &mut BTreeMap<String, (u64, u32)>, name: &str, new: (u64, u32)) {
    if let Some(old) = all.insert(name.to_owned(), new) {
        all.insert(format!("{name}{BEFORE}"), old);
    }
}
