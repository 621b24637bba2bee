//! The guest that keeps things (`tests/programs/keeps`), as two plugins whose grants a test chooses.

use std::sync::Arc;

use reqwest::Method;
use tempfile::TempDir;

use super::{Options, Service, build, built};

/// A folder with the component of the plugins `keeps` and `other`, a manifest, and the data of the servers on it.
pub(crate) struct Keeps {
    folder: Arc<TempDir>,
}

impl Keeps {
    /// Serves plugins, each granted what stands beside its name.
    pub(crate) async fn serve(plugins: &[(&str, &str)]) -> (Self, Service) {
        build();
        let house = Self {
            folder: Arc::new(TempDir::new().expect("a folder")),
        };
        for name in ["keeps", "other"] {
            house.write(&format!("{name}.wasm"), &keeps(name));
        }
        house.manifest(plugins);
        let service = house.serve_again().await;
        (house, service)
    }

    /// Another server on the same data.
    pub(crate) async fn serve_again(&self) -> Service {
        let manifest = Some(self.folder.path().join("plugin-manifest.toml"));
        Service::start(Options {
            manifest,
            data: Some(Arc::clone(&self.folder)),
            ..Options::default()
        })
        .await
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).expect("the file is written");
    }

    fn manifest(&self, plugins: &[(&str, &str)]) {
        let entry = |(name, grants): &(&str, &str)| {
            format!(
                "[[plugin]]\nname = \"{name}\"\nsource = \"{name}.wasm\"\ngrants = [{grants}]\n"
            )
        };
        let text: Vec<String> = plugins.iter().map(entry).collect();
        self.write("plugin-manifest.toml", text.concat().as_bytes());
    }

    /// Has a server follow another manifest.
    pub(crate) async fn follow(&self, service: &Service, plugins: &[(&str, &str)]) {
        self.manifest(plugins);
        let answer = service
            .admin(Method::POST, "/admin/v1/manifest/follow", None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// The guest by a name, on routes of its own.
fn keeps(name: &str) -> Vec<u8> {
    let mut component = built("keeps");
    let (known, name) = (b"keeps", name.as_bytes());
    let places: Vec<usize> = component
        .windows(known.len())
        .enumerate()
        .filter(|(_, window)| window == known)
        .map(|(at, _)| at)
        .collect();
    places
        .into_iter()
        .for_each(|at| component[at..at + name.len()].copy_from_slice(name));
    component
}

/// The same, with other bytes.
pub(crate) fn keeps_anew(name: &str) -> Vec<u8> {
    let mut component = keeps(name);
    // A custom section of one byte, without content.
    component.extend_from_slice(b"\0\x02\x01v");
    component
}
