//! `switchbay build` on a toolchain without the target of plugins, before programs that write down what they are asked.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::binary;

/// A plugin crate without dependencies, and a compiler that says that its libraries are in `sysroot`.
fn house() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("it is written");
    };
    // Another process makes the programs: what this one has open for writing while a test beside it starts a child cannot be run.
    let program = |name: &str, text: &str| {
        write("text", text);
        let (text, path) = (folder.path().join("text"), folder.path().join(name));
        let made = Command::new("install")
            .args(["-D", "-m", "755"])
            .args([text, path])
            .status();
        assert!(made.expect("install runs").success());
    };
    // By its path: the one below comes first where programs are looked for.
    let asked = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .expect("rustc runs");
    let rustc = format!(
        "{}/bin/rustc",
        String::from_utf8_lossy(&asked.stdout).trim_end()
    );
    let path = folder.path().display();
    write(
        "plugin-manifest.toml",
        "[[plugin]]\nname = \"empty\"\nsource = \"empty\"\n",
    );
    write(
        "empty/Cargo.toml",
        "[package]\nname = \"empty\"\n\n[lib]\ncrate-type = [\"cdylib\"]\n\n[workspace]\n",
    );
    write("empty/src/lib.rs", "");
    program(
        "bin/rustc",
        &format!(
            "#!/bin/sh\nif [ \"$*\" = '--print sysroot' ]; then echo {path}/sysroot; else exec {rustc} \"$@\"; fi\n"
        ),
    );
    let libraries = format!("{path}/sysroot/lib/rustlib/wasm32-wasip2/lib");
    program(
        "bin/rustup",
        &format!(
            "#!/bin/sh\necho \"rustup $*\" >>{path}/asked\n[ ! -e {path}/offline ] || exit 1\nmkdir -p {libraries}\ntouch {libraries}/libcore-0.rlib\n"
        ),
    );
    folder
}

fn built(house: &Path) -> Output {
    let path = format!(
        "{}:{}",
        house.join("bin").display(),
        std::env::var("PATH").expect("a path")
    );
    let mut command = Command::new(binary());
    // Only what the build asks by itself counts: under rustup every program of the toolchain is a program that asks it.
    command
        .arg("build")
        .current_dir(house)
        .env("PATH", path)
        .env("RUSTC", house.join("bin/rustc"));
    command.output().expect("it runs")
}

#[test]
fn a_build_adds_the_target_or_names_the_command_in_one_line() {
    let house = house();
    let offline = house.path().join("offline");
    std::fs::write(&offline, "").expect("it is written");
    let done = built(house.path());
    let expected = format!(
        "switchbay: plugins cannot be built: the Rust toolchain {}/sysroot has no libraries for \
         the plugin target wasm32-wasip2; run `rustup target add wasm32-wasip2` in the workspace \
         folder\n",
        house.path().display()
    );
    assert_eq!(
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned()
        ),
        (Some(1), expected)
    );

    std::fs::remove_file(offline).expect("it is removed");
    for _ in 0..2 {
        let done = built(house.path());
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    let asked = std::fs::read_to_string(house.path().join("asked")).expect("it was asked");
    assert_eq!(
        asked,
        "rustup target add wasm32-wasip2\n".repeat(2),
        "what is there is not added again"
    );
}
