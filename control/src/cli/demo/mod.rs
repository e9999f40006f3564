//! `rockhopper demo`: two endpoints in this process, joined in memory by `net_ring`, or two ports of one's own that reach each
//! other.
//!
//! First every operation runs and every byte that it moves is compared; then a table of speed and latency.

mod end;
mod keys;
mod shared;
mod speed;
mod verify;
mod way;

use super::failure::Failure;
use super::out::say;
use super::{DemoArgs, stop};
use rockhopper::{Config, Device, Endpoint, RingPair};
use serde_json::json;
use std::collections::BTreeMap;

pub fn run(args: &DemoArgs, json: bool) -> Result<(), Failure> {
    let stop = stop::on_signal()?;
    let (near, far, spoiled) = ends(args)?;
    if !json {
        say(format_args!("Two endpoints in one process: {}\n", near.negotiated()));
    }
    let verified = verify::all(&near, &far, spoiled, &stop, json)?;
    let good = verified.iter().all(|check| check.fault.is_none());
    let mut table = speed::Table::default();
    let interrupted = if good && !args.no_speed && !stop.is_stopped() {
        speed::measure(&near, &far, &stop, args.each, json, &mut table)
    } else {
        Ok(())
    };
    let done = good && interrupted.is_ok() && !stop.is_stopped();
    if json {
        let impaired = spoiled.then(|| impaired(&[&near, &far]));
        say(json!({
            "verified": good, "complete": done, "operations": verified, "speed": table, "impaired": impaired,
        }));
    } else if done {
        let messages: u64 = verified.iter().map(|check| check.messages).sum();
        say(format_args!(
            "\nEvery operation verified: {} kinds, {messages} messages, every byte compared.",
            verified.len()
        ));
        if spoiled {
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

/// Both ends, and whether a link between them is spoiled.
fn ends(args: &DemoArgs) -> Result<(Device, Device, bool), Failure> {
    let Some(file) = &args.config else {
        let settings = RingPair { impair: args.impair.clone(), ..RingPair::default() };
        let (near, far) = Endpoint::ring_pair(&settings)?;
        let device = |endpoint: Endpoint| {
            endpoint
                .device(0)
                .ok_or_else(|| Failure::setup("the ring pair has no port; report this as a bug"))
        };
        return Ok((device(near)?, device(far)?, args.impair.is_some()));
    };
    let mut config = Config::load(file)?;
    config.ports.truncate(2);
    if config.ports.len() < 2 {
        let name = file.display();
        return Err(Failure::Setup(format!(
            "{name} has fewer than two ports: add a [[port]] that the first one reaches"
        )));
    }
    if let Some(plan) = &args.impair {
        config.ports.iter_mut().for_each(|port| port.impair = Some(plan.clone()));
    }
    let spoiled = config.ports.iter().any(|port| port.impair.is_some());
    let [near, far] = <[Device; 2]>::try_from(Endpoint::start(&config)?.devices())
        .map_err(|_| Failure::setup("a port did not become a device; report this as a bug"))?;
    Ok((near, far, spoiled))
}
