//! Plays seeds from 0 on until one fails, prints it in a line and ends with status 1: `--example seeds -- 2000`.

use sim::{Choices, Plan, play};
use std::process::ExitCode;

fn main() -> ExitCode {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    // A panic of the engine is a finding like others.
    std::panic::set_hook(Box::new(|_| ()));
    let first = (0..count).find_map(|seed| {
        let why = play(&Plan::random(seed, &Choices::default()), false).failure?;
        Some((seed, why))
    });
    let Some((seed, why)) = first else { return ExitCode::SUCCESS };
    println!("seed {seed}: {}", why.lines().next().unwrap_or_default());
    ExitCode::FAILURE
}
