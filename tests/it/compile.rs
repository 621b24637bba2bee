//! Compiling in a process with limits of its own: what is refused and how it is told, and the cache of compiled code.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::startup::failure_in;
use crate::support::{Dev, Options, Service, build, built, lend_compiled};

const SPIN: &str = "/api/v1/test/spin";

/// A number as WebAssembly writes it.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id], &leb128(content.len())[..], content].concat()
}

/// A core module with one function of no parameters.
fn core_module(function: &[u8]) -> Vec<u8> {
    let code = [&[1], &leb128(function.len())[..], function].concat();
    [
        b"\0asm\x01\0\0\0",
        &section(1, b"\x01\x60\0\0")[..],
        &section(3, b"\x01\0"),
        &section(10, &code),
    ]
    .concat()
}

/// A valid component of 300 KB: one function of many loops which each change some of many variables, so that the compiler
/// has variables times loops to carry. Unlimited, it takes more than ten seconds and more than two gigabytes.
fn bomb() -> Vec<u8> {
    const VARIABLES: usize = 2_000;
    const LOOPS: usize = 20_000;
    let mut function = [&[1], &leb128(VARIABLES)[..], &[0x7f]].concat();
    for turn in 0..LOOPS {
        let variable = |factor: usize| leb128((turn * factor + factor) % VARIABLES);
        // loop, local.get, local.get, i32.add, local.tee, br_if 0, end
        let turn = [
            &[0x03, 0x40, 0x20],
            &variable(1)[..],
            &[0x20],
            &variable(7),
            &[0x6a, 0x22],
            &variable(13),
        ]
        .concat();
        function.extend(turn);
        function.extend([0x0d, 0x00, 0x0b]);
    }
    function.push(0x0b);
    [
        b"\0asm\x0d\0\x01\0",
        &section(1, &core_module(&function))[..],
    ]
    .concat()
}

/// A folder with a component of these bytes, its manifest and this configuration.
fn folder(component: &[u8], limits: &str) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("it is written");
    };
    write("spin.wasm", component);
    write(
        "plugin-manifest.toml",
        b"[[plugin]]\nname = \"spin\"\nsource = \"spin.wasm\"\n",
    );
    write("config.toml", format!("[limits]\n{limits}\n").as_bytes());
    folder
}

/// The line that a server fails with which should serve this folder. It leaves nothing in its cache.
async fn failure(folder: &TempDir) -> String {
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (manifest, config) = (path("plugin-manifest.toml"), path("config.toml"));
    let line = failure_in(
        folder.path(),
        &["--manifest", &manifest, "--config", &config],
    )
    .await;
    assert_eq!(cached(folder.path()), [] as [PathBuf; 0], "{line}");
    line
}

/// The files of compiled code below a data folder.
fn cached(data: &Path) -> Vec<PathBuf> {
    let list = |folder: PathBuf| {
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect::<Vec<_>>()
    };
    let mut files: Vec<PathBuf> = list(data.join("compiled"))
        .into_iter()
        .flat_map(list)
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_component_that_takes_too_much_to_compile_is_refused_by_the_limit_it_meets() {
    for (limits, expected) in [
        (
            "compile_cpu_seconds = 1",
            "more than 1 s of processor time, the limit in `limits.compile_cpu_seconds`",
        ),
        (
            "compile_memory = 134217728",
            "more than 134217728 bytes of memory, the limit in `limits.compile_memory`",
        ),
        (
            "compile_wall_ms = 10",
            "longer than 10 ms, the limit in `limits.compile_wall_ms`",
        ),
    ] {
        let line = failure(&folder(&bomb(), limits)).await;
        assert_eq!(
            line,
            format!("plugin `spin`: compiling it takes {expected}")
        );
    }
}

#[tokio::test]
async fn what_is_no_component_is_told_as_such() {
    let module = core_module(&[0x00, 0x0b]);
    let truncated = &bomb()[..1000];
    for (component, expected) in [
        (&b""[..], "/spin.wasm is empty"),
        (
            b"no component at all",
            "/spin.wasm does not start with a component's header",
        ),
        (
            &module,
            "/spin.wasm is a core module; make a component of it with `wasm-tools component new`",
        ),
        (truncated, "out of bounds"),
    ] {
        let line = failure(&folder(component, "")).await;
        let why = line.strip_prefix("plugin `spin`: it is not a WebAssembly component: ");
        assert!(why.is_some_and(|why| why.contains(expected)), "{line}");
    }
}

#[tokio::test]
async fn a_bomb_among_the_sources_leaves_the_running_revision() {
    build();
    let folder = folder(&built("spin"), "compile_memory = 268435456");
    let dev = Dev::start_with(folder.path(), &["--config", "config.toml"]).await;
    std::fs::write(folder.path().join("spin.wasm"), bomb()).expect("the component is replaced");
    let line = dev.line_with("Not reloaded").await;
    assert_eq!(
        line,
        "Not reloaded: plugin `spin`: compiling it takes more than 268435456 bytes of memory, the limit in \
         `limits.compile_memory`. The running revision keeps serving."
    );
    let answer = dev
        .request(Method::POST, SPIN)
        .json(&json!({ "milliseconds": 0 }))
        .send()
        .await
        .expect("it answers");
    assert_eq!(answer.status(), 200);
}

/// No component compiles in ten milliseconds, so a server that starts within them has compiled none.
#[tokio::test]
async fn code_in_the_cache_is_not_compiled_again() {
    let service = Service::with_limits("compile_wall_ms = 10").await;
    assert_eq!(
        service
            .post(SPIN, &json!({ "milliseconds": 0 }))
            .await
            .status,
        200
    );
    assert_eq!(
        cached(service.data.path()).len(),
        cached(Service::shared().data.path()).len()
    );
}

#[tokio::test]
async fn code_in_the_cache_that_is_not_this_engines_is_compiled_again() {
    let first = Service::start(Options::default()).await;
    let good: Vec<Vec<u8>> = contents(first.data.path());
    let data = TempDir::new().expect("a temporary folder");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(first.data.path().join("compiled"))
        .arg(data.path())
        .status();
    assert!(copied.expect("cp runs").success());
    let damaged = cached(data.path());
    for (index, file) in damaged.iter().enumerate() {
        let bytes = match index % 3 {
            0 => b"no compiled code".to_vec(),
            1 => Vec::new(),
            _ => foreign(&good[index]),
        };
        std::fs::write(file, bytes).expect("the cache is damaged");
    }
    let left = damaged[0].with_file_name("left-behind.partial");
    std::fs::write(&left, "half").expect("the file is written");

    let second = Service::start(Options {
        data: Some(Arc::new(data)),
        ..Options::default()
    })
    .await;
    assert_eq!(
        second
            .post(SPIN, &json!({ "milliseconds": 0 }))
            .await
            .status,
        200
    );
    let again = |lines: &[Value]| {
        let told = "cached code is unusable; compiling again";
        lines.iter().filter(|line| line["message"] == told).count()
    };
    second.log_until(|lines| again(lines) == good.len());
    assert!(
        contents(second.data.path()) == good,
        "the same code stands in the cache again, and nothing else"
    );
}

/// Code that this engine takes, written where another's was.
#[tokio::test]
async fn code_in_the_cache_that_was_changed_is_not_loaded_but_compiled_again() {
    let first = Service::start(Options::default()).await;
    let good = contents(first.data.path());
    let data = TempDir::new().expect("a temporary folder");
    lend_compiled(&first.data.path().join("compiled"), data.path());
    let files = cached(data.path());
    std::fs::write(&files[0], &good[1]).expect("it is changed");
    std::fs::write(&files[1], &good[0]).expect("it is changed");

    let second = Service::start(Options {
        data: Some(Arc::new(data)),
        ..Options::default()
    })
    .await;
    assert_eq!(
        second
            .post(SPIN, &json!({ "milliseconds": 0 }))
            .await
            .status,
        200
    );
    let told = |line: &&Value| line["message"] == "cached code is unusable; compiling again";
    let lines = second.log_until(|lines| lines.iter().filter(told).count() == 2);
    for line in lines.iter().filter(told) {
        let error = line["error"].as_str().expect("a reason");
        assert!(
            error.ends_with(
                "is not what was written there: its digest in the store differs or is missing"
            ),
            "{error}"
        );
    }
    assert!(
        contents(second.data.path()) == good,
        "what was written there before stands there again"
    );
    drop(second);
}

/// The code of an engine for another system, which its head names.
fn foreign(code: &[u8]) -> Vec<u8> {
    let at = code
        .windows(5)
        .position(|window| window == b"linux")
        .expect("the target's name");
    let mut code = code.to_vec();
    code[at..at + 5].copy_from_slice(b"haiku");
    code
}

fn contents(data: &Path) -> Vec<Vec<u8>> {
    cached(data)
        .iter()
        .map(|file| std::fs::read(file).expect("the file is read"))
        .collect()
}
