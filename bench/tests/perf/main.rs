//! The program as people run it: its exit status, what it prints, and what it finds.
//!
//! Each test starts processes of its own, because DPDK starts once per process. The runs are short: they show
//! that things work, not how fast.
#![forbid(unsafe_code)]

mod command_line;
mod ctrl_c;
mod every_operation;
mod failing_checks;
mod impaired;
mod json;
mod program;
mod suite;
mod two_processes;
