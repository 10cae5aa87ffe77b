//! Logs that another version of Archon wrote: both stores on disk refuse them, say why, and change nothing.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use std::{fs, path::PathBuf};

use archon_store::{JsonlJournal, SqliteJournal};
use archon_types::{Journal, JournalError, OpenMode, RunFilter, RunStatus};
use rusqlite::Connection;
use sample::{block_on, log, run, write};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The place of the records of a journal.
enum Records {
    /// The log of run `r1`.
    File(PathBuf),
    Database(PathBuf),
}

/// A journal with the sample log in the runs `r1` and `r2`.
struct Store {
    journal: Box<dyn Journal>,
    records: Records,
    _dir: TempDir,
}

/// Returns one store of each kind.
fn stores() -> [Store; 2] {
    let [files, database] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let jsonl = JsonlJournal::new(files.path());
    let sqlite = SqliteJournal::open(database.path().join("runs.db")).unwrap();
    let stores = [
        Store {
            records: Records::File(jsonl.path(&run("r1")).unwrap()),
            journal: Box::new(jsonl),
            _dir: files,
        },
        Store { records: Records::Database(sqlite.path()), journal: Box::new(sqlite), _dir: database },
    ];
    for store in &stores {
        for id in ["r1", "r2"] {
            write(&*store.journal, id, &log(id));
        }
    }
    stores
}

impl Store {
    /// Replaces the record of run `r1` with this number, behind the journal's back.
    fn replace(&self, number: usize, record: &Value) {
        let body = record.to_string();
        let crc = crc32fast::hash(&body.as_bytes()[1..]);
        let line = format!("{{\"crc\":\"{crc:08x}\",{}", &body[1..]);
        match &self.records {
            Records::File(log) => {
                let text = fs::read_to_string(log).unwrap();
                let mut lines: Vec<&str> = text.lines().collect();
                lines[number] = &line;
                fs::write(log, lines.join("\n") + "\n").unwrap();
            }
            Records::Database(path) => {
                let update = "UPDATE records SET line = ?1 WHERE place = (1 << 32) + ?2";
                let changed = Connection::open(path).unwrap().execute(update, (line, number as i64));
                assert_eq!(changed.unwrap(), 1);
            }
        }
    }

    /// Replaces the record of run `r1` with this number by a reference to a blob with this body.
    fn replace_by_blob(&self, number: usize, body: &Value) {
        let bytes = body.to_string();
        let hash: String =
            hmac_sha256::Hash::hash(bytes.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        match &self.records {
            Records::File(log) => {
                let dir = log.with_extension("blobs");
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join(&hash), &bytes).unwrap();
            }
            Records::Database(path) => {
                let insert = "INSERT INTO blobs (run, sha256, body) VALUES (1, ?1, ?2)";
                Connection::open(path).unwrap().execute(insert, (&hash, bytes.as_bytes())).unwrap();
            }
        }
        let body = json!({"type": body["type"], "bytes": bytes.len(), "sha256": hash});
        self.replace(number, &json!({"seq": number, "at": 0, "body": body}));
    }

    /// Returns all that is stored of run `r1`.
    fn contents(&self) -> String {
        match &self.records {
            Records::File(log) => fs::read_to_string(log).unwrap(),
            Records::Database(path) => {
                let select = "SELECT group_concat(text, char(10)) FROM (
                    SELECT quote(place) || quote(line) AS text FROM records UNION ALL
                    SELECT quote(id) || quote(run) || quote(noted) || quote(rests) FROM runs ORDER BY 1)";
                Connection::open(path).unwrap().query_row(select, [], |row| row.get(0)).unwrap()
            }
        }
    }

    /// Opens and reads run `r1`, and returns the errors. Checks that nothing was changed, and that the other run can
    /// be read.
    fn errors(&self, modes: &[OpenMode]) -> Vec<JournalError> {
        let before = self.contents();
        let open = |mode: &OpenMode| block_on(self.journal.open(&run("r1"), *mode)).map(drop).unwrap_err();
        let mut errors: Vec<_> = modes.iter().map(open).collect();
        errors.push(block_on(self.journal.read(&run("r1"))).unwrap_err());
        assert_eq!(block_on(self.journal.read(&run("r2"))).unwrap(), log("r2"));
        assert_eq!(self.contents(), before);
        errors
    }
}

#[test]
fn open_a_log_of_another_format_is_refused_even_if_it_does_not_parse() {
    let formats = [
        (1, "the log was written before the first release: start the task again"),
        (3, "use the version of archon that wrote it"),
        (99, "use the version of archon that wrote it"),
    ];
    for (format, advice) in formats {
        for store in stores() {
            store.replace(
                0,
                &json!({"seq": 0, "at": 0, "type": "run_started", "format": format, "other": "shape"}),
            );
            let text = format!("run r1 has log format {format}, and this version reads format 2");
            for e in store.errors(&[OpenMode::Existing, OpenMode::Create]) {
                assert!(
                    matches!(e, JournalError::UnsupportedFormat { found, supported: 2, .. } if found == format),
                    "{e}"
                );
                assert!(e.to_string() == text && e.advice().starts_with(advice), "{e}; {}", e.advice());
            }
            let heads = block_on(store.journal.list(&RunFilter::all())).unwrap();
            let of = |id| heads.iter().find(|head| head.run_id == run(id)).unwrap();
            let problem = of("r1").problem.as_deref().unwrap();
            assert!(problem.starts_with(&format!("{text}; {advice}")), "{problem}");
            assert_eq!((of("r1").status, &of("r2").problem), (RunStatus::Unreadable, &None));
        }
    }
}

#[test]
fn open_of_a_log_whose_kind_is_missing_or_unknown_is_refused() {
    for (kind, named) in [(json!(null), "names no kind"), (json!("choir"), "is of kind `choir`")] {
        for store in stores() {
            store.replace(0, &json!({"seq": 0, "at": 0, "type": "run_started", "format": 2, "kind": kind}));
            for e in store.errors(&[OpenMode::Existing]) {
                assert!(
                    matches!(e, JournalError::UnknownKind { .. }) && e.to_string().contains(named),
                    "{e}"
                );
            }
        }
    }
}

/// Checks that run `r1` is refused because of a record of a name that this version does not know.
fn check_unknown(store: &Store, unknown: &str) {
    for e in store.errors(&[OpenMode::Existing]) {
        assert!(
            matches!(&e, JournalError::UnknownRecord { name, format: 2, .. } if name == unknown),
            "{unknown}: {e}"
        );
        assert!(e.to_string().contains(&format!("`{unknown}`")) && e.advice().contains("newer"), "{e}");
    }
}

#[test]
fn open_a_log_with_an_unknown_record_is_refused_with_its_name() {
    for store in stores() {
        let last = log("r1").len() - 1;
        store.replace(last, &json!({"seq": last, "at": 0, "type": "moon_landed", "where": "crater"}));
        check_unknown(&store, "moon_landed");
    }
}

#[test]
fn open_a_log_with_an_unknown_event_of_a_plan_or_a_team_is_refused_with_its_name() {
    for kind in ["plan", "team"] {
        for store in stores() {
            let last = log("r1").len() - 1;
            let record =
                json!({"seq": last, "at": 0, "type": kind, "event": "moon_landed", "where": "crater"});
            store.replace(last, &record);
            check_unknown(&store, &format!("{kind}: moon_landed"));
        }
    }
}

#[test]
fn open_a_log_with_an_unknown_record_in_a_blob_is_refused_with_its_name() {
    for (body, name) in [
        (json!({"type": "moon_landed", "where": "crater"}), "moon_landed"),
        (json!({"type": "plan", "event": "moon_landed", "where": "crater"}), "plan: moon_landed"),
    ] {
        for store in stores() {
            let last = log("r1").len() - 1;
            store.replace_by_blob(last, &body);
            check_unknown(&store, name);
        }
    }
}

#[test]
fn open_a_log_with_a_known_record_that_does_not_parse_reports_damage() {
    for record in [
        json!({"type": "cancel_requested"}),
        json!({"type": "plan", "event": "planned"}),
        json!({"type": "plan"}),
    ] {
        for store in stores() {
            let last = log("r1").len() - 1;
            let mut line = record.clone();
            (line["seq"], line["at"]) = (json!(last), json!(0));
            store.replace(last, &line);
            let in_line = store.errors(&[OpenMode::Existing]);
            store.replace_by_blob(last, &record);
            for e in in_line.into_iter().chain(store.errors(&[OpenMode::Existing])) {
                assert!(matches!(e, JournalError::Corrupt { .. }), "{record}: {e}");
            }
        }
    }
}
