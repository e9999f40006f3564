//! Raw bindings to the DPDK that is installed on this machine, generated at build time.
//!
//! `shim.h` lists what is bound and why; `build.rs` says how. Names and meaning are DPDK's own, so its
//! documentation applies. The one thing that is ours is the prefix `shim_`/`SHIM_`: constants and functions
//! whose C spelling is a macro or differs between DPDK releases.
//!
//! `rte_mbuf` is deliberately opaque: its fields moved into anonymous unions in DPDK 24.03, so a Rust path to
//! a field would compile against one release only. The `SHIM_MBUF_*` offsets hold for all.
//!
//! Nothing here is safe; the crate `dpdk` is the only intended user.
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, missing_docs)]
#![allow(clippy::all, rustdoc::all)]
#![allow(unnecessary_transmutes, unsafe_op_in_unsafe_fn)]

include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
