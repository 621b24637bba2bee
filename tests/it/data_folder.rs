//! A data folder that others may change is served from only where that harms nobody: it holds credentials and native code.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use crate::startup::failure_in;
use crate::support::{Options, Service, workspace};

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode is set");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o7777
}

/// The line that a server fails with, the folder's path left out.
async fn refused(data: &Path) -> String {
    let manifest = workspace()
        .join("tests/programs/swapped.toml")
        .display()
        .to_string();
    let line = failure_in(data, &["--manifest", &manifest]).await;
    line.replace(
        &data
            .canonicalize()
            .expect("it is there")
            .display()
            .to_string(),
        "DATA",
    )
}

#[tokio::test]
async fn a_folder_that_others_may_have_put_something_into_is_refused() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("anything"), "").expect("it is written");
    for mode in [0o777, 0o702, 0o1777] {
        set(folder.path(), mode);
        let expected = format!(
            "other users may write to the data folder DATA (mode {mode:04o}) and may have put something into it: \
             check what is there, then `chmod 700` it, or use another one"
        );
        assert_eq!(refused(folder.path()).await, expected);
        assert_eq!(
            self::mode(folder.path()),
            mode,
            "it is left to its operator"
        );
    }
}

#[tokio::test]
async fn a_folder_that_nobody_used_is_made_private() {
    let (data, elsewhere) = (
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    );
    let manifest = elsewhere.path().join("plugin-manifest.toml");
    fs::write(
        &manifest,
        "[[plugin]]\nname = \"none\"\nsource = \"none.wasm\"\n",
    )
    .expect("it is written");
    set(data.path(), 0o777);
    // What fails is what comes after.
    let line = failure_in(data.path(), &["--manifest", &manifest.to_string_lossy()]).await;
    assert!(line.starts_with("plugin `none`: its component"), "{line}");
    assert_eq!(mode(data.path()), 0o700);
}

#[tokio::test]
async fn a_folder_that_a_group_may_write_to_is_made_private_and_told() {
    let data = Arc::new(TempDir::new().expect("a folder"));
    set(data.path(), 0o775);
    let service = Service::start(Options {
        data: Some(Arc::clone(&data)),
        ..Options::default()
    })
    .await;
    assert_eq!(mode(data.path()), 0o700);
    service.log_until(|lines| {
        let told = "other users could write to the data folder; its mode is now 0700";
        lines.iter().any(|line| {
            line["level"] == "WARN" && line["message"] == told && line["mode"] == "0775"
        })
    });
}

#[tokio::test]
async fn a_folder_that_others_may_replace_is_refused() {
    let above = TempDir::new().expect("a folder");
    let data = above.path().join("data");
    fs::create_dir(&data).expect("a folder");
    set(&data, 0o700);
    set(above.path(), 0o777);
    let path = above
        .path()
        .canonicalize()
        .expect("it is there")
        .display()
        .to_string();
    let expected = format!(
        "other users may write to {path} (mode 0777) and so replace the data folder DATA in it: `chmod o-w {path}`, \
         or use a data folder elsewhere"
    );
    assert_eq!(refused(&data).await, expected);
}

#[tokio::test]
async fn a_folder_or_store_of_another_user_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let user = fs::metadata(folder.path()).expect("it is there").uid();
    // Who is root gives it away; nobody else can, and the system's own are not theirs.
    let (foreign, owner) = match user {
        0 => (folder.path(), 65534),
        _ => (Path::new("/usr/share"), 0),
    };
    if user == 0 {
        chown(foreign, Some(owner), None).expect("it is given away");
    }
    let expected = |path: &str| {
        format!(
            "`{path}` belongs to user {owner}, who may change it, and this process runs as user {user}: run it as \
             user {owner}, or use a data folder that belongs to user {user}"
        )
    };
    assert_eq!(refused(foreign).await, expected("DATA"));
    if user == 0 {
        chown(foreign, Some(user), None).expect("it is taken back");
        let store = folder.path().join("switchbay.redb");
        fs::write(&store, "").expect("it is written");
        chown(&store, Some(owner), None).expect("it is given away");
        assert_eq!(refused(foreign).await, expected("DATA/switchbay.redb"));
    }
}

#[tokio::test]
async fn a_store_that_others_may_write_to_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let store = folder.path().join("switchbay.redb");
    fs::write(&store, "").expect("it is written");
    set(&store, 0o666);
    let expected = "other users may write to DATA/switchbay.redb (mode 0666), which holds credentials and what \
        plugins may do: check what is there, then `chmod 600` it";
    assert_eq!(refused(folder.path()).await, expected);
}
