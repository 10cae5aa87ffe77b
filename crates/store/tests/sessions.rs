//! Sessions as files: their shape, who may write them, and what stays usable when one is damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{
    fs::{self, File},
    path::Path,
    time::{Duration, SystemTime},
};

use archon_store::FileSystemSessionStore;
use archon_types::{SessionId, Timestamp};
use archon_views::{Session, SessionError, SessionStore};

fn session(id: &str, agent: &str) -> Session {
    Session::new(id.into(), agent.into(), Timestamp::from_millis(1))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// spec: S-08
#[tokio::test]
async fn a_session_is_one_file_of_indented_json() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("deep/sessions");
    let store = FileSystemSessionStore::new(&place);
    assert_eq!(store.list_ids().await.unwrap(), [], "nothing is made for looking");
    store.save(&session("s1", "a")).await.unwrap();
    let mut again = session("s1", "a");
    again.agent_id = "b".into();
    store.save(&again).await.unwrap();
    assert_eq!(names(&place), ["s1.json"], "no leftovers");
    let text = fs::read_to_string(place.join("s1.json")).unwrap();
    assert!(text.starts_with("{\n  \"session_id\": \"s1\",\n  \"agent_id\": \"b\""), "{text}");
    assert_eq!(store.load(&"s1".into()).await.unwrap(), again);
    store.delete(&"s1".into()).await.unwrap();
    assert_eq!(names(&place), [""; 0]);
    for error in [store.load(&"s1".into()).await.map(|_| ()), store.delete(&"s1".into()).await] {
        assert!(matches!(error, Err(SessionError::Unknown { .. })), "{error:?}");
    }
}

// spec: S-08, S-09
#[tokio::test]
async fn sessions_are_listed_the_newest_first_and_by_agent() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(dir.path());
    for (age, (id, agent)) in [("new", "a"), ("old", "a"), ("middle", "b")].into_iter().enumerate() {
        store.save(&session(id, agent)).await.unwrap();
        let age = Duration::from_secs([10, 1000, 100][age]);
        let file = File::options().write(true).open(store.path(&id.into()).unwrap()).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    for stray in ["notes.txt", "old.json.tmp", ".hidden.json"] {
        fs::write(dir.path().join(stray), "{}").unwrap();
    }
    let listed = store.list_ids().await.unwrap();
    assert_eq!(listed, ["new", "middle", "old"].map(SessionId::new));
    fs::write(dir.path().join("new.json"), "{ torn").unwrap();
    let of_a = store.list_for_agent(&"a".into()).await.unwrap();
    assert_eq!(of_a.iter().map(|s| s.session_id.as_str()).collect::<Vec<_>>(), ["old"]);
    let torn = store.load(&"new".into()).await.unwrap_err();
    assert!(matches!(&torn, SessionError::Corrupt { session, .. } if session.as_str() == "new"), "{torn}");
}

// spec: S-08
#[tokio::test]
async fn ids_that_could_leave_the_directory_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(dir.path().join("sessions"));
    for id in ["../s", "a/b", "a\\b", "", "..", "/etc/passwd"] {
        let errors = [
            store.save(&session(id, "a")).await,
            store.load(&id.into()).await.map(|_| ()),
            store.delete(&id.into()).await,
        ];
        for error in errors {
            assert!(matches!(&error, Err(SessionError::BadId { id: bad }) if bad == id), "{id:?}: {error:?}");
        }
    }
    assert_eq!(names(dir.path()), [""; 0], "nothing was made");
}

// spec: S-09
#[tokio::test]
async fn session_file_of_another_writer_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(dir.path());
    store.save(&session("s", "a")).await.unwrap();
    let other = File::create(dir.path().join("s.lock")).unwrap();
    other.lock().unwrap();
    for error in [store.save(&session("s", "b")).await, store.delete(&"s".into()).await] {
        assert!(
            matches!(&error, Err(SessionError::Locked { session }) if session.as_str() == "s"),
            "{error:?}"
        );
    }
    assert_eq!(store.load(&"s".into()).await.unwrap().agent_id, "a".into(), "reading is allowed");
    store.save(&session("another", "a")).await.unwrap();
    drop(other);
    store.save(&session("s", "b")).await.unwrap();
}

// spec: S-08
#[tokio::test]
async fn a_write_that_fails_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileSystemSessionStore::new(dir.path());
    store.save(&session("s", "a")).await.unwrap();
    // A directory where the new file is to be written cannot be opened as one, by any user.
    fs::create_dir(dir.path().join("s.json.tmp")).unwrap();
    let error = store.save(&session("s", "b")).await.unwrap_err();
    assert!(matches!(error, SessionError::Storage { action: "write", .. }), "{error}");
    assert_eq!(store.load(&"s".into()).await.unwrap().agent_id, "a".into());
}
