//! Tests pulls of the engine against a server on this machine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use flate2::{Compression, write::GzEncoder};

use crate::error::LocalModelError;
use crate::prebuilt::{Pinned, Prebuilt};
use crate::pull::{PullProgress, engine_path, pull_engine};
use crate::pull_tests::{Server, names, noise, sha256};

/// The path of the package for the platform `test` in a registry.
const ADDRESS: &str = "/@node-llama-cpp/test/-/test-3.22.1.tgz";

fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("package/bins/test/{name}"), *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Puts an engine of two libraries on the server, with other files in its package; returns it and the
/// content of the first library.
fn offer(server: &Server) -> (&'static Prebuilt, Vec<u8>) {
    let (engine, kernel) = (noise(9_000, 1), noise(4_000, 2));
    let package = packed(&[("addon.node", b"code"), ("libllama.so", &engine), ("libggml-cpu-x.so", &kernel)]);
    let files = vec![
        Pinned { file: "libllama.so", sha256: sha256(&engine) },
        Pinned { file: "libggml-cpu-x.so", sha256: sha256(&kernel) },
    ];
    let prebuilt = Prebuilt {
        platform: "test",
        version: "1.2",
        commit: "abc",
        bytes: package.len() as u64,
        sha256: sha256(&package),
        files: files.leak(),
    };
    server.put(ADDRESS, package);
    (Box::leak(Box::new(prebuilt)), engine)
}

async fn fetch(server: &Server, prebuilt: &'static Prebuilt, folder: &Path) -> Result<(), LocalModelError> {
    let options = server.options().with_registry(format!("{}/", server.base()));
    pull_engine(prebuilt, folder, &options, |_| {}).await.map(|path| {
        assert_eq!(path, engine_path(folder, prebuilt));
    })
}

#[tokio::test]
async fn pull_engine_unpacks_the_pinned_libraries_and_the_licence_alone() {
    let server = Server::start().await;
    let (prebuilt, engine) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    let mut fetched = 0;
    let options = server.options().with_registry(server.base());
    let path = pull_engine(prebuilt, folder.path(), &options, |progress| {
        if let PullProgress::Fetched { bytes, of } = progress {
            assert_eq!(of, Some(prebuilt.bytes));
            fetched = bytes;
        }
    });
    let path = path.await.unwrap();
    assert_eq!(fetched, prebuilt.bytes);
    assert_eq!(names(&path), ["LICENSE", "libggml-cpu-x.so", "libllama.so"]);
    assert_eq!(std::fs::read(path.join("libllama.so")).unwrap(), engine);
    assert!(std::fs::read_to_string(path.join("LICENSE")).unwrap().contains("ggml authors"));
    assert_eq!(names(folder.path()), [prebuilt.name()], "no parts are left");
}

#[tokio::test]
async fn pull_engine_skips_intact_files_and_replaces_altered_ones() {
    let server = Server::start().await;
    let (prebuilt, engine) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    fetch(&server, prebuilt, folder.path()).await.unwrap();
    server.forget(ADDRESS);
    fetch(&server, prebuilt, folder.path()).await.unwrap();

    let library = engine_path(folder.path(), prebuilt).join("libllama.so");
    std::fs::write(&library, "altered").unwrap();
    assert!(fetch(&server, prebuilt, folder.path()).await.is_err(), "the server has it no more");
    let (prebuilt, _) = offer(&server);
    fetch(&server, prebuilt, folder.path()).await.unwrap();
    assert_eq!(std::fs::read(&library).unwrap(), engine);
}

#[tokio::test]
async fn pull_engine_resumes_an_interrupted_download() {
    let server = Server::start().await;
    let (prebuilt, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    server.cut_after(5_000);
    assert!(fetch(&server, prebuilt, folder.path()).await.is_err());
    fetch(&server, prebuilt, folder.path()).await.unwrap();
    assert_eq!(server.ranges(), [(ADDRESS.to_owned(), 5_000)]);
}

#[tokio::test]
async fn pull_engine_from_a_server_that_sends_more_than_there_is_stops_and_keeps_nothing() {
    let server = Server::start().await;
    let (prebuilt, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    server.put(ADDRESS, noise(1 << 20, 3));
    let refused = fetch(&server, prebuilt, folder.path()).await.unwrap_err();
    assert!(matches!(refused, LocalModelError::TooLarge { most, .. } if most == prebuilt.bytes), "{refused}");
    let parts = folder.path().join(format!("{}.parts", prebuilt.name()));
    assert_eq!(names(&parts), Vec::<String>::new());
}

#[tokio::test]
async fn pull_engine_with_a_damaged_package_from_before_fetches_it_again_the_next_time() {
    let server = Server::start().await;
    let (prebuilt, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join(format!("{}.parts", prebuilt.name()));
    std::fs::create_dir_all(&parts).unwrap();
    std::fs::write(parts.join(format!("{}.tgz", prebuilt.platform)), "no package").unwrap();
    fetch(&server, prebuilt, folder.path()).await.unwrap_err();
    fetch(&server, prebuilt, folder.path()).await.unwrap();
}

#[tokio::test]
async fn pull_engine_with_another_package_under_its_name_is_refused() {
    let server = Server::start().await;
    let (prebuilt, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    server.put(ADDRESS, packed(&[("libllama.so", b"another")]));
    let refused = fetch(&server, prebuilt, folder.path()).await.unwrap_err();
    assert!(matches!(refused, LocalModelError::Checksum { .. }), "{refused}");
    assert!(!engine_path(folder.path(), prebuilt).exists());
}
