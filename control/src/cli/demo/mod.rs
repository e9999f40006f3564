//! `rockhopper demo`: two endpoints in this process, joined in memory by `net_ring`.
//!
//! First every operation runs and every byte that it moves is compared; then a table of speed and latency.

mod end;
mod speed;
mod verify;

use super::failure::Failure;
use super::out::say;
use super::{DemoArgs, stop};
use rockhopper::{Device, Endpoint, RingPair};
use serde_json::json;

pub fn run(args: &DemoArgs, json: bool) -> Result<(), Failure> {
    let stop = stop::on_signal()?;
    let (near, far) = Endpoint::ring_pair(&RingPair::default())?;
    let (near, far) = (device(&near)?, device(&far)?);
    if !json {
        say(format_args!("Two endpoints in one process: {}\n", near.negotiated()));
    }
    let verified = verify::all(&near, &far, &stop, json)?;
    let good = verified.iter().all(|check| check.fault.is_none());
    let mut table = speed::Table::default();
    let interrupted = if good && !args.no_speed && !stop.is_stopped() {
        speed::measure(&near, &far, &stop, args.each, json, &mut table)
    } else {
        Ok(())
    };
    let done = good && interrupted.is_ok() && !stop.is_stopped();
    if json {
        say(json!({ "verified": good, "complete": done, "operations": verified, "speed": table }));
    } else if done {
        let messages: u64 = verified.iter().map(|check| check.messages).sum();
        say(format_args!(
            "\nEvery operation verified: {} kinds, {messages} messages, every byte compared.",
            verified.len()
        ));
    }
    match (good, interrupted) {
        (false, _) => Err(Failure::Told),
        (true, Err(why)) => Err(why),
        (true, Ok(())) if stop.is_stopped() => Err(Failure::Interrupted),
        (true, Ok(())) => Ok(()),
    }
}

fn device(endpoint: &Endpoint) -> Result<Device, Failure> {
    endpoint.device(0).ok_or_else(|| Failure::setup("the ring pair has no port; report this as a bug"))
}
