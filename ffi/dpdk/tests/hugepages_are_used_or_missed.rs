//! Asked for hugepages, DPDK starts where some are free and says what to do where none are.

use dpdk::eal::Hugepages;
use dpdk::{Eal, EalConfig, EalError, Memory};

#[test]
fn hugepages_are_used_or_missed() {
    let started = Eal::init(EalConfig { memory: Memory::Hugepages, ..EalConfig::default() });
    if Hugepages::detect().free_bytes() > 0 {
        assert_eq!(started.unwrap().memory(), Memory::Hugepages);
    } else {
        let error = started.unwrap_err();
        assert!(matches!(error, EalError::NoHugepages { .. }), "{error:?}");
        assert!(error.to_string().contains("vm.nr_hugepages"), "{error}");
    }
}
