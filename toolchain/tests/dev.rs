//! `cargo run -- dev` on a toolchain without the target, before programs that write down what they are asked.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder of programs, each a shell script: a compiler whose toolchain is this folder, cargo, and rustup.
fn programs(rustup: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let sysroot = folder.path().display();
    write(folder.path(), "rustc", &format!("echo {sysroot}"));
    write(folder.path(), "cargo", "echo \"cargo $*\"");
    write(
        folder.path(),
        "rustup",
        &rustup.replace("SYSROOT", &sysroot.to_string()),
    );
    folder
}

/// Another process makes the program: what this one has open for writing while a test beside it starts a child cannot be run.
fn write(folder: &Path, program: &str, script: &str) {
    let text = folder.join(format!("{program}.text"));
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("it is written");
    let made = Command::new("install")
        .args(["-m", "755"])
        .arg(text)
        .arg(folder.join(program))
        .status();
    assert!(made.expect("install runs").success());
}

fn dev(programs: &Path) -> Output {
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_complete"));
    command
        .args(["dev", "--listen", "127.0.0.1:0"])
        .env("PATH", path)
        .env_remove("RUSTC")
        .env_remove("CARGO");
    command.output().expect("it runs")
}

fn told(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn a_missing_target_is_added_before_anything_is_compiled() {
    let libraries = "SYSROOT/lib/rustlib/wasm32-wasip2/lib";
    let adds =
        format!("echo \"rustup $*\" >&2; mkdir -p {libraries}; touch {libraries}/libcore-0.rlib");
    let programs = programs(&adds);
    let first = dev(programs.path());
    assert_eq!(told(&first.stderr), "rustup target add wasm32-wasip2\n");
    assert_eq!(
        told(&first.stdout),
        "cargo run --bin switchbay -- dev --listen 127.0.0.1:0\n"
    );
    let second = dev(programs.path());
    assert_eq!(
        (told(&second.stderr), second.stdout),
        (String::new(), first.stdout),
        "it is added once"
    );
}

#[test]
fn a_target_that_cannot_be_added_is_one_line_and_nothing_is_compiled() {
    let programs = programs("exit 1");
    for _ in ["rustup fails", "there is no rustup"] {
        let done = dev(programs.path());
        let expected = format!(
            "switchbay: the Rust toolchain {} has no libraries for the plugin target \
             wasm32-wasip2; run `rustup target add wasm32-wasip2` in the workspace folder\n",
            programs.path().display()
        );
        assert_eq!(
            (done.status.code(), told(&done.stderr), told(&done.stdout)),
            (Some(1), expected, String::new())
        );
        std::fs::remove_file(programs.path().join("rustup")).ok();
    }
}
