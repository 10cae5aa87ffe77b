//! `archon memory forget`: no byte of what is forgotten is left, and nothing is erased without an agreement.

use std::{fs, path::Path, process::Stdio};

#[cfg(feature = "triggers")]
use archon::{
    memory::HashEmbedder,
    store::SqliteTaskStore,
    types::{Embedder as _, StoredTask, TaskChange, TaskStore as _},
};
use archon::{
    store::SqliteMemory,
    types::{Collection, Listing, MemoryChange, MemoryFilter, MemoryOrder, MemoryStore as _},
};
use archon_testkit::MockServer;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Child};

use crate::{
    setup::{Place, Ran, answer},
    terminal::Terminal,
};

const ANNA: [&str; 2] = ["--memory", "user:anna"];
const SAID: &str = "My passport has the number quagga-4711 and is blue.";

/// Returns the files below a folder that have some bytes.
fn files_with(folder: &Path, part: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files_with(&path, part));
        } else if fs::read(&path).unwrap().windows(part.len()).any(|window| window == part) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn of_memory(files: &[String]) -> Vec<&String> {
    files.iter().filter(|path| path.contains("memory.db")).collect()
}

/// A run of Anna's, which is told what fits.
async fn run(place: &Place, more: &[&str]) -> Ran {
    let flags = ["--tools", "none", "--embedder", "hash"];
    let ran = place.archon("run", &[&flags[..], &ANNA, more].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

async fn forget(place: &Place, more: &[&str]) -> Ran {
    place.archon("memory forget", &[&ANNA[..], more].concat()).await
}

/// The ids of the memories whose text has some words, and the runs that stored them.
async fn with_words(place: &Place, words: &str) -> Vec<(String, String)> {
    let listed = place.archon("memory list --json --limit 10000", &ANNA).await.json();
    let with_words = listed.iter().filter(|entry| entry["content"].as_str().unwrap().contains(words));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    with_words.map(|entry| (text(&entry["id"]), text(&entry["run"]))).collect()
}

/// The runs of a place whose prompt has some words.
async fn runs_about(place: &Place, words: &str) -> usize {
    place.archon("runs list", &["--all"]).await.out.lines().filter(|line| line.contains(words)).count()
}

async fn piped(place: &Place, line: &str, more: &[&str], text: &str) -> Ran {
    let mut child = place.command(line, more).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // A command that refuses does not read.
    let _ = input.write_all(text.as_bytes()).await;
    drop(input);
    child.wait_with_output().await.unwrap().into()
}

/// Starts the command on a terminal, and waits for its question.
async fn forget_at_terminal(place: &Place, id: &str) -> (Terminal, Child) {
    let mut terminal = Terminal::open();
    let mut command = place.command("memory forget", &[&ANNA[..], &[id]].concat());
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let child = command.spawn().unwrap();
    drop(command);
    terminal.read_until("Erase these? [y/N]").await;
    (terminal, child)
}

/// A notification of the outbox.
#[cfg(feature = "triggers")]
fn notification(key: &str, text: &str) -> TaskChange {
    TaskChange::Create(StoredTask::new(key, json!({"text": text}), json!({"channel": "mail"})))
}

/// Puts the text into each other place of the data folder that can have it.
#[cfg(feature = "triggers")]
async fn fill(place: &Place, run: &str) {
    let data = place.data();
    for (file, text) in [
        ("history.jsonl", format!("{}\n{}\n", json!({"text": SAID}), json!({"text": "another"}))),
        ("requests.jsonl", format!("{}\n{}\n", json!({"path": SAID}), json!({"path": "/v1/runs"}))),
        ("summaries.jsonl", format!("{}\n", json!({"run": {"task": SAID}}))),
        ("logs/chat.log", format!("WARN {SAID}\nWARN another\n")),
        ("snapshots/0123/workspace", "/home/anna/notes\n".to_owned()),
        ("snapshots/0123/objects/ab", format!("notes\n{SAID}\n")),
        (format!("runs/{run}.inbox/1.json").as_str(), json!({"text": SAID}).to_string()),
        ("cache/prompts/ab.prompt", "12 3".to_owned()),
    ] {
        fs::create_dir_all(data.join(file).parent().unwrap()).unwrap();
        fs::write(data.join(file), text).unwrap();
    }
    let added = place.archon("triggers add passport --on mail", &["Answer:", SAID]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    place.archon("triggers add other --on mail", &["Answer."]).await;
    let outbox = SqliteTaskStore::open(data.join("outbox.db")).unwrap();
    outbox.change(vec![notification("sent", SAID), notification("other", "Noted.")]).await.unwrap();
}

// spec: M-04
#[cfg(feature = "triggers")]
#[tokio::test]
async fn memory_forget_erases_each_place_of_the_data_folder_after_an_agreement() {
    let server = MockServer::start((0..5).map(|_| answer("Noted."))).await;
    let place = Place::with_server(&server);
    run(&place, &[SAID]).await;
    run(&place, &["What is the number of my passport?"]).await;
    assert!(server.requests()[1].body.to_string().contains("quagga-4711"), "the second run is told");
    run(&place, &["--continue", "Thank you very much."]).await;
    run(&place, &["Sunshine tomorrow?"]).await;
    let long = format!("{SAID} {}", "The rest of the page is only a filler. ".repeat(4_000));
    let flags = [&["--tools", "none", "--embedder", "hash"][..], &ANNA, &["-"]].concat();
    let ran = piped(&place, "run", &flags, &long).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let memories = with_words(&place, "quagga").await;
    fill(&place, &memories[0].1).await;
    let ids: Vec<&str> = memories.iter().map(|(id, _)| id.as_str()).collect();
    let vectors = HashEmbedder.embed(&[SAID.to_owned()]).await.unwrap();
    let vector: Vec<u8> = vectors[0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let parts = [b"quagga".as_slice(), &vector];
    for part in parts {
        assert!(!of_memory(&files_with(&place.data(), part)).is_empty());
    }
    assert!(files_with(&place.data(), b"quagga").iter().any(|path| path.contains(".blobs")));

    // Without a person and without `--yes`, nothing at all is done.
    let ran = forget(&place, &[&["--erase-runs"][..], &ids].concat()).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("nothing was forgotten or erased") && ran.err.contains("--yes"), "{ran:?}");
    assert_eq!(with_words(&place, "quagga").await, memories);

    // Without the flag, only the memory is changed, and the rest is named.
    let before: Vec<_> =
        ["history.jsonl", "requests.jsonl"].map(|f| fs::read(place.data().join(f)).unwrap()).into();
    let ran = forget(&place, &ids).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for named in [
        "history.jsonl  1 line\n",
        "summaries.jsonl  1 line\n",
        "requests.jsonl  1 line\n",
        "logs/chat.log  1 line\n",
        "undo of /home/anna/notes  1 file; all of its steps go\n",
        "task passport  it is deleted, with its times\n",
        "notification sent in the outbox of the server\n",
        "cache/prompts  1 prompt of local models, computed again when needed\n",
        "records  My passport has the number quagga-4711",
        "What is the number of my passport?",
        "it stored the memory, or needs another of these  Thank you very much.",
        "archon memory forget --memory user:anna --erase-runs",
    ] {
        assert!(ran.err.contains(named), "{named}: {ran:?}");
    }
    for other in ["Sunshine", "task other", "notification other", "bytes of deleted rows"] {
        assert!(!ran.err.contains(other), "{other}: {ran:?}");
    }
    let after: Vec<_> =
        ["history.jsonl", "requests.jsonl"].map(|f| fs::read(place.data().join(f)).unwrap()).into();
    assert_eq!(before, after);
    for part in parts {
        assert_eq!(of_memory(&files_with(&place.data(), part)), [""; 0]);
    }
    assert_eq!(runs_about(&place, "").await, 5);

    let ran = forget(&place, &[&["--json", "--erase-runs", "--yes"][..], &ids].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.json()[0]["problems"], json!([]), "{ran:?}");
    for part in parts {
        assert_eq!(files_with(&place.data(), part), [""; 0]);
    }
    assert_eq!((runs_about(&place, "").await, runs_about(&place, "Sunshine").await), (1, 1));
    let history = fs::read_to_string(place.data().join("history.jsonl")).unwrap();
    assert_eq!(history.trim(), json!({"text": "another"}).to_string());
    let tasks = place.archon("triggers list --json", &[]).await.json();
    assert_eq!((tasks.len(), &tasks[0]["task"]["id"]), (1, &json!("other")), "{tasks:?}");
    let outbox = SqliteTaskStore::open(place.data().join("outbox.db")).unwrap().list().await.unwrap();
    assert_eq!(outbox.tasks.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["other"]);
    assert!(!place.data().join("cache/prompts").exists());
    // All of it is done.
    let ran = forget(&place, &["--erase-runs", ids[0]]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("there is no memory"), "{ran:?}");
}

// spec: M-04
#[tokio::test]
async fn memory_forget_whose_erasure_fails_is_completed_by_the_same_command() {
    let server = MockServer::start((0..2).map(|_| answer("Noted."))).await;
    let place = Place::with_server(&server);
    run(&place, &[SAID]).await;
    let (id, by) = with_words(&place, "quagga").await.remove(0);
    // A process that works on the run has this lock.
    let lock = fs::File::create(place.data().join("runs").join(format!("{by}.lock"))).unwrap();
    lock.lock().unwrap();
    let ran = forget(&place, &["--erase-runs", "--yes", &id]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("not everything could be erased") && ran.err.contains(&by), "{ran:?}");
    let left = files_with(&place.data(), b"quagga");
    assert!(!left.is_empty() && of_memory(&left).is_empty(), "{left:?}");
    drop(lock);
    let ran = forget(&place, &["--erase-runs", "--yes", &id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(files_with(&place.data(), b"quagga"), [""; 0]);
    assert_eq!(runs_about(&place, "").await, 0);
}

// spec: M-04
#[tokio::test]
async fn memory_forget_that_is_killed_at_its_question_is_completed_by_the_same_command() {
    let server = MockServer::start((0..2).map(|_| answer("Noted."))).await;
    let place = Place::with_server(&server);
    run(&place, &[SAID]).await;
    let (id, _) = with_words(&place, "quagga").await.remove(0);
    let (_terminal, mut child) = forget_at_terminal(&place, &id).await;
    child.kill().await.unwrap();
    assert_eq!(of_memory(&files_with(&place.data(), b"quagga")), [""; 0]);

    let (mut terminal, mut child) = forget_at_terminal(&place, &id).await;
    terminal.say("y\n");
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    assert_eq!(files_with(&place.data(), b"quagga"), [""; 0]);
}

// spec: M-04
#[cfg(feature = "triggers")]
#[tokio::test]
async fn memory_forget_removes_bytes_of_deleted_rows_after_an_agreement_only() {
    let place = Place::new();
    let id = place.archon("memory add", &[&ANNA[..], &[SAID]].concat()).await.out.trim().to_owned();
    // As long as this is open, the log of the database has the deleted row.
    let outbox = SqliteTaskStore::open(place.data().join("outbox.db")).unwrap();
    outbox.change(vec![notification("sent", SAID)]).await.unwrap();
    outbox.change(vec![TaskChange::Delete("sent".into())]).await.unwrap();
    let log = place.data().join("outbox.db-wal").display().to_string();
    let ran = forget(&place, &[&id]).await;
    assert!(ran.code == Some(0) && ran.err.contains("  outbox.db  bytes of deleted rows\n"), "{ran:?}");
    assert_eq!(files_with(&place.data(), b"quagga"), [log]);
    let ran = forget(&place, &["--erase-runs", "--yes", &id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(files_with(&place.data(), b"quagga"), [""; 0]);
}

// spec: M-04
#[tokio::test]
async fn memory_forget_names_a_note_that_it_cannot_read_and_changes_nothing() {
    let server = MockServer::start([answer("Noted.")]).await;
    let place = Place::with_server(&server);
    run(&place, &[SAID]).await;
    let (id, by) = with_words(&place, "quagga").await.remove(0);
    assert_eq!(forget(&place, &[&id]).await.code, Some(0));
    let other = place.archon("memory add", &[&ANNA[..], &["Anna prefers tea."]].concat()).await.out;
    let store = SqliteMemory::open(place.data().join("memory.db")).unwrap();
    let store = store.collection(Collection::new(ANNA[1]).unwrap()).unwrap();
    let mut filter = MemoryFilter::all();
    filter.ids = vec![id.clone()];
    let mut page = store.list(&Listing::new(filter, MemoryOrder::First, 1)).await.unwrap();
    let mut marker = page.entries.remove(0);
    marker.metadata.insert("still_in".to_owned(), json!({"runs": 7}));
    store.apply(vec![MemoryChange::put(marker)]).await.unwrap();
    let ran = forget(&place, &["--erase-runs", "--yes", &id, other.trim()]).await;
    let what = format!("the note of the places that still have {id} cannot be read");
    ran.check_refused(1, &what, &format!("other ids can be forgotten without {id}"));
    assert_eq!(with_words(&place, "tea").await.len(), 1);
    assert!(place.data().join(format!("runs/{by}.jsonl")).exists());
}

// spec: M-04
#[tokio::test]
async fn memory_forget_of_one_unknown_id_changes_nothing() {
    let place = Place::new();
    let id = place.archon("memory add", &[&ANNA[..], &[SAID]].concat()).await.out.trim().to_owned();
    let ran = forget(&place, &[&id, "mem_unknown"]).await;
    ran.check_refused(2, "there is no memory mem_unknown in user:anna", "archon memory list");
    assert_eq!(with_words(&place, "quagga").await.len(), 1);
}

// spec: M-04
#[tokio::test]
async fn memory_forget_names_only_what_has_the_words_of_the_text() {
    let server = MockServer::start((0..2).map(|_| answer("Noted."))).await;
    let place = Place::with_server(&server);
    for prompt in ["Today I use vimeo.", "What is the weather like today?"] {
        place.archon("run --tools none", &[prompt]).await;
    }
    let add = async |text: &str| place.archon("memory add", &[text]).await.out.trim().to_owned();
    let (id, same, short) = (add("I use vim").await, add("Say: I use vim!").await, add("tea").await);
    let ran = place.archon("memory forget --erase-runs", &[&id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err, format!("other memories have it, too: {same}\n"), "{ran:?}");
    let ran = place.archon("memory forget --erase-runs", &[&short]).await;
    let note = "texts of fewer than 8 bytes were not searched for outside of the memory\n";
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), note), "{ran:?}");
    assert_eq!(runs_about(&place, "").await, 2);
}

// spec: M-04
#[tokio::test]
async fn memory_of_a_text_of_10_megabytes_is_found_and_forgotten_in_all_of_its_parts() {
    let server = MockServer::start([answer("Noted.")]).await;
    let place = Place::with_server(&server);
    let text = "The quagga of page 7 is blue and it eats grass in the evening. ".repeat(160_000);
    assert!(text.len() > 10_000_000);
    let ran = piped(&place, "memory add", &[&ANNA[..], &["-"]].concat(), &text).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("bytes") && ran.err.contains("at most"), "{ran:?}");
    let flags = [&["--tools", "none"][..], &ANNA, &["-"]].concat();
    let ran = piped(&place, "run", &flags, &text).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let memories = with_words(&place, "quagga").await;
    let ids: Vec<&str> = memories.iter().map(|(id, _)| id.as_str()).collect();
    assert!(!ids.is_empty());
    let ran = forget(&place, &[&["--erase-runs", "--yes"][..], &ids].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(files_with(&place.data(), b"quagga"), [""; 0]);
}
