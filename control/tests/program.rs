//! The program `rockhopper`: what each command prints and ends with.

mod program {
    pub mod bad_setups;
    pub mod checking;
    pub mod commands;
    pub mod conform;
    pub mod impairments;
    pub mod pinging;
    pub mod simulator;
    pub mod support;
    pub mod two_processes;
}
