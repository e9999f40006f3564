//! DPDK starts once per process; starting it moves no thread and leaves nothing behind.

mod common;

use common::{eal, pool};
use dpdk::{Eal, EalConfig, EalError};

fn my_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap().to_owned()
}

#[test]
fn a_second_start_is_an_error() {
    let cpus = my_cpus();
    let first = eal();
    assert_eq!(my_cpus(), cpus, "the caller's affinity");
    assert_eq!(Eal::init(EalConfig::default()).unwrap_err(), EalError::AlreadyStarted);
    assert!(dpdk::eal::version().starts_with("DPDK "));
    // A pool keeps DPDK alive; then all goes, and does not come again.
    let pool = pool(&first, 63, 2048);
    drop(first);
    assert_eq!(pool.available(), 63);
    drop(pool);
    assert_eq!(Eal::init(EalConfig::default()).unwrap_err(), EalError::AlreadyStarted);
    let directory = format!("/var/run/dpdk/rockhopper-{}", std::process::id());
    assert!(!std::path::Path::new(&directory).exists(), "{directory} is left behind");
}
