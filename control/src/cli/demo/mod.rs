//! `rockhopper demo`: two endpoints in this process, joined in memory by `net_ring`.
//!
//! First every operation runs and every byte that it moves is compared; then a table of speed and latency.

mod end;
mod keys;
mod shared;
mod speed;
mod verify;

use super::failure::Failure;
use super::out::say;
use super::{DemoArgs, stop};
use rockhopper::{Device, Endpoint, RingPair};
use serde_json::json;
use std::collections::BTreeMap;

pub fn run(args: &DemoArgs, json: bool) -> Result<(), Failure> {
    let stop = stop::on_signal()?;
    let (near, far) = Endpoint::ring_pair(&RingPair { impair: args.impair.clone(), ..RingPair::default() })?;
    let (near, far) = (device(&near)?, device(&far)?);
    if !json {
        say(format_args!("Two endpoints in one process: {}\n", near.negotiated()));
    }
    let verified = verify::all(&near, &far, args.impair.is_some(), &stop, json)?;
    let good = verified.iter().all(|check| check.fault.is_none());
    let mut table = speed::Table::default();
    let interrupted = if good && !args.no_speed && !stop.is_stopped() {
        speed::measure(&near, &far, &stop, args.each, json, &mut table)
    } else {
        Ok(())
    };
    let done = good && interrupted.is_ok() && !stop.is_stopped();
    if json {
        let impaired = args.impair.as_ref().map(|_| impaired(&[&near, &far]));
        say(json!({
            "verified": good, "complete": done, "operations": verified, "speed": table, "impaired": impaired,
        }));
    } else if done {
        let messages: u64 = verified.iter().map(|check| check.messages).sum();
        say(format_args!(
            "\nEvery operation verified: {} kinds, {messages} messages, every byte compared.",
            verified.len()
        ));
        if args.impair.is_some() {
            let counted = impaired(&[&near, &far]).into_iter().filter(|(_, count)| *count > 0);
            let counted: Vec<_> = counted.map(|(name, count)| format!("{name} {count}")).collect();
            say(format_args!("On the way: {}.", counted.join(", ")));
        }
    }
    match (good, interrupted) {
        (false, _) => Err(Failure::Told),
        (true, Err(why)) => Err(why),
        (true, Ok(())) if stop.is_stopped() => Err(Failure::Interrupted),
        (true, Ok(())) => Ok(()),
    }
}

/// What the plan did, at both ends together.
fn impaired(devices: &[&Device]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, count) in devices.iter().flat_map(|device| device.stats().roce) {
        if name.starts_with("impair_") {
            *sums.entry(name).or_default() += count;
        }
    }
    sums
}

fn device(endpoint: &Endpoint) -> Result<Device, Failure> {
    endpoint.device(0).ok_or_else(|| Failure::setup("the ring pair has no port; report this as a bug"))
}
