//! `archon new`: a whole project or nothing.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::setup::Place;

/// The checkout that these tests belong to.
fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Names in a place, without the data folder.
fn names(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.dir.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn new_with_a_path_writes_a_project_that_depends_on_the_checkout() {
    let place = Place::new();
    std::fs::create_dir(place.path("my-agent")).unwrap();
    let made = place.archon("new my-agent --path", &[checkout().to_str().unwrap()]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(
        Path::new(made.out.trim()).canonicalize().unwrap(),
        place.path("my-agent").canonicalize().unwrap()
    );
    assert!(made.err.contains("next: cd my-agent") && !made.err.contains("warning"), "{made:?}");
    let read = |name: &str| std::fs::read_to_string(place.path("my-agent").join(name)).unwrap();
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let library = checkout().join("crates/archon");
    assert_eq!(manifest["package"]["name"].as_str(), Some("my-agent"));
    assert_eq!(manifest["dependencies"]["archon"]["path"].as_str(), library.to_str());
    for name in ["src/main.rs", "src/tests.rs", "archon.toml", ".gitignore", "README.md"] {
        assert!(!read(name).contains("{{") && !read(name).is_empty(), "{name}");
    }
    assert_eq!(names(&place), ["my-agent"], "nothing else is left, and no data folder is made");
}

#[tokio::test]
async fn new_without_a_path_depends_on_this_version_and_warns_that_it_is_unreleased() {
    let place = Place::new();
    let made = place.archon("new hello", &[]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let version = env!("CARGO_PKG_VERSION");
    assert!(made.err.contains(&format!("warning: Archon {version} is not released")), "{made:?}");
    assert!(made.err.contains("--path DIR"), "{made:?}");
    let manifest = std::fs::read_to_string(place.path("hello/Cargo.toml")).unwrap();
    assert!(
        manifest.contains(&format!("archon = {{ package = \"archon-agents\", version = \"={version}\" }}")),
        "{manifest}"
    );
    let made = place.archon("new second --json", &[]).await;
    let item = made.json().remove(0);
    assert_eq!((&item["name"], &item["files"][0]), (&json!("second"), &json!("Cargo.toml")), "{made:?}");
}

#[tokio::test]
async fn new_inside_a_workspace_warns_that_cargo_refuses_to_build_there() {
    let place = Place::new();
    std::fs::write(place.path("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
    let made = place.archon("new hello --path", &[checkout().to_str().unwrap()]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.err.contains("warning: the project is inside the workspace of "), "{made:?}");
    assert!(made.err.contains("if neither `members` nor `exclude` there has it"), "{made:?}");
    assert!(place.path("hello/Cargo.toml").exists());
}

#[tokio::test]
async fn new_refuses_a_wrong_name_a_full_folder_and_a_wrong_checkout() {
    let place = Place::new();
    std::fs::create_dir(place.path("full")).unwrap();
    std::fs::write(place.path("full/mine.txt"), "mine").unwrap();
    std::fs::write(place.path("file"), "mine").unwrap();
    let before = names(&place);
    for (name, what) in [
        ("2nd", "\"2nd\" cannot be the name of a crate"),
        ("../out", "\"../out\" cannot be the name of a crate"),
        ("has space", "cannot be the name of a crate"),
    ] {
        place.archon("new", &[name]).await.check_refused(
            2,
            what,
            "the letters a to z and A to Z, digits, `-` and `_`",
        );
    }
    place.archon("new match", &[]).await.check_refused(
        2,
        "Rust, cargo or the project itself uses it",
        "match-agent",
    );
    place.archon("new archon-run", &[]).await.check_refused(
        2,
        "names of Archon's own packages begin with `archon-`",
        "archon new my-agent",
    );
    place.archon("new full", &[]).await.check_refused(2, "is not empty", "take another name");
    place.archon("new file", &[]).await.check_refused(2, "exists and is not a folder", "take another name");
    let elsewhere = place.archon("new hello --path", &["."]).await;
    elsewhere.check_refused(2, "is not a checkout of Archon", "--path DIR");
    assert_eq!(names(&place), before);
    assert_eq!(std::fs::read_to_string(place.path("full/mine.txt")).unwrap(), "mine");
}

#[cfg(unix)]
#[tokio::test]
async fn new_in_a_folder_that_cannot_be_written_is_refused_and_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let closed = place.path("closed");
    std::fs::create_dir(&closed).unwrap();
    let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    if std::fs::write(closed.join("probe"), "").is_ok() {
        eprintln!("SKIP: this user may write everywhere");
        return;
    }
    let ran = place.command("new hello", &[]).current_dir(&closed).output().await.unwrap();
    crate::setup::Ran::from(ran).check_refused(
        1,
        "cannot write the project into",
        "a folder that you can write to",
    );
    mode(0o700);
    assert_eq!(std::fs::read_dir(&closed).unwrap().count(), 0);
}
