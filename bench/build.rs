//! Tells the program which compiler made it: a report of speed has to say.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&said);
    println!("cargo::rustc-env=ROCKHOPPER_RUSTC={}", version.trim());
    println!("cargo::rustc-env=ROCKHOPPER_PROFILE={}", std::env::var("PROFILE").unwrap_or_default());
}
