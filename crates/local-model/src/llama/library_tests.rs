//! Tests with altered engine files, files of another version, and files without a function. The libraries
//! are compiled for the test by the C compiler that Rust links with.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::llama::functions::NAMES;

/// A folder with an engine that does nothing, and its pins.
struct Fake {
    folder: tempfile::TempDir,
    pins: Vec<Pinned>,
}

/// The version, the missing function and the kernels of a fake engine.
struct Says<'a> {
    version: &'a str,
    without: &'a str,
    kernels: &'a [(&'a str, i32)],
}

const USUAL: Says<'_> =
    Says { version: "1.2", without: "", kernels: &[("plain", 1), ("quick", 5), ("other", 0)] };

impl Fake {
    fn new(says: &Says<'_>) -> Self {
        let mut fake = Self { folder: tempfile::tempdir().unwrap(), pins: Vec::new() };
        fake.library("libggml-base.so", "");
        let functions: String = NAMES
            .iter()
            .filter(|name| **name != says.without)
            .map(|name| match *name {
                "llama_version" => {
                    format!("const char *llama_version() {{ return \"{}\"; }}\n", says.version)
                }
                "ggml_commit" => "const char *ggml_commit() { return \"abc\"; }\n".to_owned(),
                name => format!("long {name}() {{ return 1; }}\n"),
            })
            .collect();
        fake.library("libllama.so", &functions);
        for (name, score) in says.kernels {
            let score = format!("int ggml_backend_score() {{ return {score}; }}\n");
            fake.library(&format!("libggml-cpu-{name}.so"), &score);
        }
        fake
    }

    /// Compiles a library that creates a file when it is opened, and pins its hash.
    fn library(&mut self, file: &str, functions: &str) {
        let (source, library) = (self.path("source.c"), self.path(file));
        let mark = self.path(&format!("{file}.opened"));
        let text = format!(
            "#include <stdio.h>\n__attribute__((constructor)) static void opened(void) {{ \
             FILE *f = fopen(\"{}\", \"w\"); if (f) fclose(f); }}\n{functions}",
            mark.display()
        );
        std::fs::write(&source, text).unwrap();
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", "-w", "-o"]).args([&library, &source]).status();
        assert!(compiled.unwrap().success());
        let sha256 = hex(&hash_of(&library).unwrap().finalize());
        self.pins.push(Pinned { file: file.to_owned().leak(), sha256: sha256.leak() });
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn opened(&self, file: &str) -> bool {
        self.path(&format!("{file}.opened")).exists()
    }

    fn prebuilt(&mut self) -> Prebuilt {
        let files = std::mem::take(&mut self.pins).leak();
        Prebuilt { platform: "test", version: "1.2", commit: "abc", bytes: 0, sha256: "", files }
    }

    fn open(&mut self, kernel: Option<&str>) -> Result<String, String> {
        let prebuilt = self.prebuilt();
        let opened = Library::open_first(&prebuilt, kernel, self.folder.path());
        opened.map(|library| library.kernel().to_owned()).map_err(|e| e.to_string())
    }
}

fn append(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.push(0);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn open_takes_the_kernel_with_the_highest_score() {
    let mut fake = Fake::new(&USUAL);
    assert_eq!(fake.open(None).as_deref(), Ok("quick"));
    assert!(fake.opened("libggml-base.so") && fake.opened("libllama.so"));
}

#[test]
fn open_with_a_named_kernel_takes_it_or_lists_the_others() {
    assert_eq!(Fake::new(&USUAL).open(Some("plain")).as_deref(), Ok("plain"));
    for unfit in ["other", "nonesuch"] {
        let error = Fake::new(&USUAL).open(Some(unfit)).unwrap_err();
        assert!(error.contains(&format!("no kernel {unfit} for this processor")), "{error}");
        assert!(error.contains("plain, quick, other"), "{error}");
    }
}

#[test]
fn open_without_a_kernel_for_the_processor_is_refused() {
    let error = Fake::new(&Says { kernels: &[("other", 0)], ..USUAL }).open(None).unwrap_err();
    assert!(error.contains("no kernel for this processor"), "{error}");
}

#[test]
fn open_of_an_altered_library_is_refused() {
    for file in ["libggml-base.so", "libllama.so", "libggml-cpu-quick.so"] {
        let mut fake = Fake::new(&USUAL);
        append(&fake.path(file));
        let error = fake.open(None).unwrap_err();
        assert!(error.contains(file) && error.contains("its SHA-256 is"), "{error}");
        assert!(!fake.opened(file), "{file} was opened");
    }
}

#[test]
fn a_library_of_another_version_is_refused() {
    let error = Fake::new(&Says { version: "1.3", ..USUAL }).open(None).unwrap_err();
    assert!(error.contains("it is version 1.3 (abc) instead of 1.2 (abc)"), "{error}");
}

#[test]
fn a_library_without_a_function_is_refused_by_the_functions_name() {
    let mut fake = Fake::new(&Says { without: "llama_decode", ..USUAL });
    let error = fake.open(None).unwrap_err();
    assert!(error.contains("llama_decode"), "{error}");
    assert!(!fake.opened("libggml-cpu-quick.so"), "no kernel is opened for it");
}

#[test]
fn open_of_a_missing_library_names_its_path() {
    let mut fake = Fake::new(&USUAL);
    std::fs::remove_file(fake.path("libllama.so")).unwrap();
    let error = fake.open(None).unwrap_err();
    assert!(
        error.starts_with("the engine is missing: there is no ") && error.ends_with("libllama.so"),
        "{error}"
    );
}
