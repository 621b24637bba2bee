//! Looks for the target that plugins are compiled for before the host itself is compiled, which takes minutes. It runs no
//! cargo, uses no network and changes nothing.

use std::path::Path;

use switchbay_toolchain::{Toolchain, told_to_cargo};

fn main() {
    let named = |variable: &str| std::env::var_os(variable).unwrap_or_default();
    let toolchain = Toolchain::of(&named("RUSTC"), Path::new("."));
    print!(
        "{}",
        told_to_cargo(toolchain, &named("PROFILE").to_string_lossy())
    );
}
