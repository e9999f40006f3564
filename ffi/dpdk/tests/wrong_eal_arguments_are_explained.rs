//! What EAL refuses comes back as a typed error with what EAL said.

use dpdk::{Eal, EalConfig, EalError, Memory};

#[test]
fn wrong_eal_arguments_are_explained() {
    let memory = Memory::NoHuge { mb: 64 };
    let nul = EalConfig { memory, extra_args: vec!["a\0b".into()], ..EalConfig::default() };
    assert_eq!(Eal::init(nul).unwrap_err(), EalError::NulInArgument("a\0b".into()));
    // That one did not reach DPDK, so this is still the first start.
    let wrong = EalConfig { memory, extra_args: vec!["--vdev=net_nosuch0".into()], ..EalConfig::default() };
    let error = Eal::init(wrong).unwrap_err();
    assert!(!error.to_string().is_empty());
    assert!(error.to_string().contains("net_nosuch0"), "{error}");
}
