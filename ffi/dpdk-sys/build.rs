//! Generates the bindings for the installed DPDK and compiles its inline functions.
//!
//! pkg-config finds DPDK and gives the compiler flags (its headers need `-march` and `rte_config.h`), bindgen
//! reads `src/shim.h` with them, and `cc` compiles bindgen's wrappers for the `static inline` functions.

use std::env;
use std::path::{Path, PathBuf};

/// The oldest release with the names we use (`RTE_ETH_*`, `RTE_MBUF_F_*`), in the version that Ubuntu 22.04 has:
/// the first 21.11 crashes when a `net_tap` is closed and mixes up long frames on `net_memif`.
const OLDEST_DPDK: &str = "21.11.9";

const HOW_TO_INSTALL: &str = "Install it with: apt-get install libdpdk-dev libclang-dev pkg-config build-essential\n\
     (or, for a DPDK built from source, point PKG_CONFIG_PATH at the directory of its libdpdk.pc).";

/// Functions bound. Each exists in every release from 21.11 to 25.11.
const FUNCTIONS: &[&str] = &[
    // EAL
    "rte_eal_(init|cleanup|hotplug_add|hotplug_remove)",
    "rte_thread_(register|unregister)",
    "rte_(strerror|version|openlog_stream)",
    "rte_(get_tsc_hz|rdtsc)",
    // Memory
    "rte_pktmbuf_(pool_create|alloc|alloc_bulk|free|chain|copy)",
    "rte_mempool_(avail_count|get_bulk|put)",
    // Rings
    "rte_ring_(create|free|dequeue_burst)",
    "rte_eth_from_rings",
    // Ports: setting up
    "rte_eth_dev_(configure|start|stop|close|info_get|adjust_nb_rx_tx_desc|get_port_by_name|get_name_by_port)",
    "rte_eth_dev_(get_mtu|set_mtu|mac_addr_add|mac_addr_remove|set_mc_addr_list|socket_id|is_valid_port)",
    "rte_eth_(rx|tx)_queue_setup",
    "rte_eth_promiscuous_(enable|disable|get)",
    "rte_eth_allmulticast_(enable|get)",
    "rte_eth_(macaddr_get|find_next)",
    "rte_eth_(stats_get|xstats_get|xstats_get_names)",
    // Ports: packets
    "rte_eth_(rx|tx)_burst",
    // The stream that DPDK's log goes to
    "fopencookie|setvbuf",
    "shim_.*",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/shim.h");
    let dpdk = find_dpdk();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let flags = compiler_flags();
    let wrappers = out.join("wrappers.c");
    generate(&flags, &out.join("bindings.rs"), &wrappers);
    compile(&flags, &wrappers);
    link(&dpdk);
}

fn fail(what: &str) -> ! {
    // Cargo shows a build script's stderr when it fails; a panic would bury the sentence in a backtrace.
    eprintln!("\nerror: {what}\n{HOW_TO_INSTALL}\n");
    std::process::exit(1);
}

fn find_dpdk() -> pkg_config::Library {
    let found = pkg_config::Config::new().atleast_version(OLDEST_DPDK).cargo_metadata(false).probe("libdpdk");
    match found {
        Ok(library) => library,
        Err(pkg_config::Error::ProbeFailure { .. }) => {
            fail(&format!("pkg-config finds no DPDK {OLDEST_DPDK} or newer (libdpdk.pc)."))
        }
        Err(error) => fail(&format!("DPDK {OLDEST_DPDK} or newer was not found: {error}")),
    }
}

/// pkg-config's compiler flags, unparsed: the crate's own parse drops `-include` and `-march`.
fn compiler_flags() -> Vec<String> {
    let pkg_config = env::var_os("PKG_CONFIG").unwrap_or_else(|| "pkg-config".into());
    let output = std::process::Command::new(pkg_config)
        .args(["--cflags", "libdpdk"])
        .output()
        .unwrap_or_else(|error| fail(&format!("pkg-config does not run: {error}.")));
    if !output.status.success() {
        fail(&format!("pkg-config --cflags libdpdk failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let flags = String::from_utf8_lossy(&output.stdout);
    // Thread registration was marked experimental before 22.11; fopencookie is a GNU extension.
    let own = ["-DALLOW_EXPERIMENTAL_API", "-D_GNU_SOURCE"].map(str::to_owned);
    flags.split_whitespace().map(str::to_owned).chain(own).collect()
}

fn generate(flags: &[String], bindings: &Path, wrappers: &Path) {
    let mut builder = bindgen::Builder::default()
        .header("src/shim.h")
        .clang_args(flags)
        .rust_edition(bindgen::RustEdition::Edition2024)
        .wrap_static_fns(true)
        .wrap_static_fns_path(wrappers)
        .allowlist_recursively(true)
        .allowlist_var("SHIM_.*|RTE_MAX_ETHPORTS|RTE_ETH_NAME_MAX_LEN")
        .allowlist_var("RTE_PKTMBUF_HEADROOM|RTE_MAX_LCORE|RTE_MEMPOOL_CACHE_MAX_SIZE")
        .allowlist_var("RING_F_(SP_ENQ|SC_DEQ|EXACT_SZ)|SOCKET_ID_ANY")
        .allowlist_type("rte_eth_xstat|rte_eth_xstat_name|shim_loan")
        .opaque_type("rte_mbuf|rte_mempool|rte_ring|rte_device|_IO_FILE")
        .blocklist_type("rte_mbuf__bindgen_ty.*|_IO_(marker|codecvt|wide_data|lock_t)")
        .derive_default(true)
        .generate_comments(false)
        .layout_tests(true);
    for function in FUNCTIONS {
        builder = builder.allowlist_function(function);
    }
    // bindgen panics where libclang is missing; the message is for its developers, so it is replaced.
    std::panic::set_hook(Box::new(|_| ()));
    let generated = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.generate()))
        .unwrap_or_else(|_| fail("bindgen finds no usable libclang."))
        .unwrap_or_else(|error| {
            fail(&format!("bindgen cannot read the headers of the installed DPDK: {error}"))
        });
    let _ = std::panic::take_hook();
    generated.write_to_file(bindings).expect("cargo's OUT_DIR is writable");
}

fn compile(flags: &[String], wrappers: &Path) {
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let mut build = cc::Build::new();
    build.file(wrappers).include(here).warnings(false);
    // These wrappers sit on the packet path, so they are optimised in every profile.
    build.opt_level(2);
    // A function no header declares would be called with the wrong types.
    build.flag("-Werror=implicit-function-declaration");
    for flag in flags {
        build.flag(flag);
    }
    build.compile("dpdk_shim");
}

/// Links what we call and nothing else; drivers are plugins that EAL loads at run time.
fn link(dpdk: &pkg_config::Library) {
    /// `rte_log` split off `rte_eal` in 24.03, so each is linked only where it exists.
    const CALLED: &[&str] = &["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal", "rte_log"];
    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    // A driver, so not in libdpdk.pc, but rte_eth_from_rings has to be called directly.
    println!("cargo:rustc-link-lib=dylib=rte_net_ring");
    for library in dpdk.libs.iter().filter(|name| CALLED.contains(&name.as_str())) {
        println!("cargo:rustc-link-lib=dylib={library}");
    }
    println!("cargo:version={}", dpdk.version);
}
