//! The program `rockhopper`.
//!
//! Exit status: 0 when all that was asked was done and right, 1 when it was not, 2 when it could not begin, 130 when it
//! was interrupted.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
