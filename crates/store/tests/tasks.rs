//! The stores of tasks: changes, requests, and the right to serve them.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use archon_store::{InMemoryTaskStore, SqliteTaskStore};
use archon_types::{StoredTask, TaskChange, TaskStore};
use serde_json::json;

async fn check_changes(store: &dyn TaskStore) {
    let task = |state: u64| StoredTask::new("mail", json!({ "at": 8 }), json!({ "runs": state }));
    let (define, request) = (TaskChange::Define(task(0)), TaskChange::Request(json!("first")));
    store.change(vec![define, request, TaskChange::Request(json!("second"))]).await.unwrap();
    let set = TaskChange::SetState { id: "mail".into(), state: json!({ "runs": 1 }) };
    let first = store.list().await.unwrap().requests[0].0;
    store.change(vec![set, TaskChange::Forget(first)]).await.unwrap();
    // The state is the engine's, and the definition a person's.
    store.change(vec![TaskChange::Define(task(7))]).await.unwrap();
    let stored = store.list().await.unwrap();
    assert_eq!(stored.tasks, [task(1)]);
    assert_eq!(stored.requests, [(first + 1, json!("second"))]);
    store.change(vec![TaskChange::Forget(first + 1), TaskChange::Delete("mail".into())]).await.unwrap();
    store.change(vec![TaskChange::Request(json!("third"))]).await.unwrap();
    let stored = store.list().await.unwrap();
    assert!(stored.tasks.is_empty());
    assert_eq!(stored.requests, [(first + 2, json!("third"))]);
}

// spec: TR-11
#[tokio::test]
async fn changes_of_a_store_of_tasks_are_made_in_order() {
    check_changes(&InMemoryTaskStore::new()).await;
    let dir = tempfile::tempdir().unwrap();
    check_changes(&SqliteTaskStore::open(dir.path().join("tasks.db")).unwrap()).await;
}

#[tokio::test]
async fn request_of_another_process_changes_the_version_and_own_changes_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SqliteTaskStore::open(dir.path().join("tasks.db")).unwrap();
    let (serving, other) = (open(), open());
    let before = serving.version().await.unwrap();
    serving.change(vec![TaskChange::Request(json!("own"))]).await.unwrap();
    assert_eq!(serving.version().await.unwrap(), before);
    other.change(vec![TaskChange::Request(json!("other"))]).await.unwrap();
    assert_ne!(serving.version().await.unwrap(), before);
    assert_eq!(serving.list().await.unwrap().requests.len(), 2);
}

// spec: TR-11
#[tokio::test]
async fn tasks_are_served_by_one_store_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SqliteTaskStore::open(dir.path().join("tasks.db")).unwrap();
    let (first, second) = (open(), open());
    let hold = first.hold().await.unwrap();
    assert!(hold.is_some());
    assert!(second.hold().await.unwrap().is_none());
    drop(hold);
    assert!(second.hold().await.unwrap().is_some());
}

#[tokio::test]
async fn database_of_version_1_gets_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tasks.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE tasks (id TEXT NOT NULL PRIMARY KEY, definition TEXT NOT NULL, state TEXT NOT NULL)
             STRICT, WITHOUT ROWID;
         INSERT INTO tasks VALUES ('mail', '{}', '{}');
         PRAGMA application_id = 1095910228; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let store = SqliteTaskStore::open(&path).unwrap();
    store.change(vec![TaskChange::Request(json!(1))]).await.unwrap();
    let stored = store.list().await.unwrap();
    assert_eq!((stored.tasks.len(), stored.requests.len()), (1, 1));
}
