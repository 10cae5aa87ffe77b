//! Memories in SQLite: what every store does, and what is its own: damage, versions, other writers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use archon_store::SqliteMemory;
use archon_testkit::{Chance, all_entries, cases, check_memory_store, first_seed, foreign_memories};
use archon_types::{
    Collection, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    MemorySearch, MemoryStore, Timestamp, Trust, Validity,
};
use archon_vectors::Quantized;

fn open(store: &SqliteMemory) -> impl Fn(&Collection) -> Arc<dyn MemoryStore> + Send + Sync {
    let store = store.clone();
    move |name| Arc::new(store.collection(name.clone()).unwrap())
}

fn database() -> (tempfile::TempDir, SqliteMemory) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteMemory::open(dir.path().join("memory.db")).unwrap();
    (dir, store)
}

fn of(name: &str) -> Collection {
    Collection::new(name).unwrap()
}

fn entry(id: &str, text: &str) -> MemoryEntry {
    MemoryEntry::new(id, text, Timestamp::from_millis(1))
}

// spec: M-07, M-20, M-27, M-28
#[tokio::test]
async fn memory_store_passes_the_shared_checks() {
    let (_dir, store) = database();
    check_memory_store(&open(&store)).await;
}

// spec: M-07
#[tokio::test]
async fn sqlite_memory_reopened_store_gives_equal_results() {
    let (dir, _) = database();
    let path = dir.path().join("memory.db");
    let open = |name: &Collection| -> Arc<dyn MemoryStore> {
        Arc::new(SqliteMemory::open(&path).unwrap().collection(name.clone()).unwrap())
    };
    check_memory_store(&open).await;
}

// spec: M-27
#[tokio::test]
async fn memory_store_random_queries_return_no_foreign_entries() {
    let (_dir, store) = database();
    assert_eq!(foreign_memories(&open(&store), first_seed(), cases(1_000, 20_000)).await, 0);
}

// spec: M-20
#[tokio::test]
async fn a_damaged_entry_is_left_out_and_reported() {
    let (dir, store) = database();
    let user = store.collection(of("user:x")).unwrap();
    let puts = ["one", "two", "three"]
        .map(|id| MemoryChange::put(entry(id, &format!("words of {id}")).with_vector("e:2", vec![1.0, 0.5])));
    user.apply(puts.into()).await.unwrap();
    let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    let changed =
        outside.execute("UPDATE entries SET body = replace(body, 'of two', 'of 2') WHERE id = 'two'", []);
    assert_eq!(changed.unwrap(), 1);
    outside.execute("UPDATE vectors SET vector = zeroblob(8) WHERE position = 3", []).unwrap();
    let page = user.list(&Listing::new(MemoryFilter::all(), MemoryOrder::First, 9)).await.unwrap();
    assert_eq!(page.damaged.len(), 1);
    assert_eq!(
        (page.damaged[0].id.as_str(), page.damaged[0].problem.as_str()),
        ("two", "its checksum does not match")
    );
    assert_eq!(page.entries.iter().map(|e| e.id.as_str()).collect::<Vec<_>>(), ["one", "three"]);
    // Its vector is damaged, so it counts as without one and is made again.
    assert_eq!((page.entries[1].embedding.clone(), page.entries[1].embedder.clone()), (None, None));
    let found = user.candidates(&MemorySearch::words("words", 9).near("e:2", vec![1.0, 0.0])).await.unwrap();
    assert_eq!(found.candidates.len(), 2);
    assert_eq!(found.damaged.len(), 1);
    // And it can be forgotten or written again.
    user.apply(vec![MemoryChange::put(entry("two", "words of two"))]).await.unwrap();
    assert_eq!(all_entries(&user, MemoryFilter::all()).await.len(), 3);
}

// spec: M-20
#[tokio::test]
async fn a_row_with_a_damaged_filter_column_is_reported_by_filters_that_it_no_longer_meets() {
    let at = Timestamp::from_millis;
    let notes = || MemoryFilter::all().of(&[MemoryKind::Note]);
    let with = |change: fn(&mut MemoryFilter)| {
        let mut filter = notes();
        change(&mut filter);
        filter
    };
    let table = [
        ("kind = 'turn'", notes()),
        ("trust = 0", with(|filter| filter.trust = Trust::Trusted)),
        ("trust = 0", with(|filter| filter.key = Some("key".to_owned()))),
        ("timestamp = 9", with(|filter| filter.until = Some(Timestamp::from_millis(5)))),
        ("timestamp = 0", with(|filter| filter.from = Some(Timestamp::from_millis(1)))),
        ("valid_from = 9", with(|filter| filter.validity = Validity::At(Timestamp::from_millis(5)))),
        ("valid_to = 4", with(|filter| filter.validity = Validity::At(Timestamp::from_millis(5)))),
        ("valid_to = 4", with(|filter| filter.validity = Validity::Open)),
        ("metadata = '{}'", with(|filter| _ = filter.metadata.insert("color".into(), "red".into()))),
        // An index serves these two, so a list by them cannot see the row, but all others do.
        ("key = 'other'", notes()),
        ("session = 'other'", notes()),
        ("trust = 2", with(|filter| filter.trust = Trust::Untrusted)),
    ];
    for (damage, filter) in table {
        let (dir, store) = database();
        let user = store.collection(of("user:x")).unwrap();
        let put = |id: &str| {
            let mut entry = entry(id, &format!("words of {id}")).with_vector("e:2", vec![1.0, 0.5]);
            (entry.trust, entry.key, entry.valid_from) = (Trust::Trusted, Some("key".into()), Some(at(1)));
            entry.metadata.insert("color".into(), "red".into());
            entry.metadata.insert("session".into(), "s".into());
            if damage == "trust = 2" {
                entry.trust = Trust::Untrusted;
            }
            MemoryChange::put(entry)
        };
        user.apply(["one", "two"].map(put).into()).await.unwrap();
        let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
        let sql = format!("UPDATE entries SET {damage} WHERE id = 'two'");
        assert_eq!(outside.execute(&sql, []).unwrap(), 1);
        let page = user.list(&Listing::new(filter.clone(), MemoryOrder::First, 9)).await.unwrap();
        let ids: Vec<&str> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!((ids.as_slice(), page.damaged.len()), (&["one"][..], 1), "{damage}");
        let problem = &page.damaged[0];
        assert_eq!((&*problem.id, &*problem.problem), ("two", "the checksum of its columns does not match"));
        for mut search in
            [MemorySearch::words("words", 9), MemorySearch::default().near("e:2", vec![1.0, 0.0])]
        {
            (search.filter, search.limit) = (filter.clone(), 9);
            let found = user.candidates(&search).await.unwrap();
            assert_eq!((found.candidates.len(), found.damaged.len()), (1, 1), "{damage}");
        }
        // A change does not take it for what it may not be; by its id it can be forgotten.
        if damage == "kind = 'turn'" {
            assert_eq!(user.apply(vec![MemoryChange::Forget(filter)]).await.unwrap(), 1);
        }
        assert_eq!(user.apply(vec![MemoryChange::forget("two")]).await.unwrap(), 1, "{damage}");
    }
}

#[tokio::test]
async fn open_of_a_foreign_database_as_memory_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str| SqliteMemory::open(dir.path().join(name)).err().unwrap();
    std::fs::write(dir.path().join("text"), "no database at all, but long enough to be looked at").unwrap();
    let error = refused("text");
    assert!(matches!(error, MemoryError::Storage { .. }), "{error}");
    let other = rusqlite::Connection::open(dir.path().join("other")).unwrap();
    other.execute_batch("CREATE TABLE mine (x)").unwrap();
    let error = refused("other").to_string();
    assert!(error.ends_with("it is the database of another program"), "{error}");
    SqliteMemory::open(dir.path().join("newer")).unwrap();
    let newer = rusqlite::Connection::open(dir.path().join("newer")).unwrap();
    newer.execute_batch("INSERT INTO schema_version VALUES (99)").unwrap();
    let error = refused("newer");
    assert!(matches!(error, MemoryError::FutureStore { found: 99, .. }), "{error}");
}

#[tokio::test]
async fn sqlite_memory_sees_writes_of_another_process() {
    let (dir, store) = database();
    let other = SqliteMemory::open(dir.path().join("memory.db")).unwrap();
    let near = MemorySearch::words("", 9).near("e:2", vec![1.0, 0.0]);
    let count = async |store: &SqliteMemory| store.candidates(&near).await.unwrap().candidates.len();
    for n in 1..=3 {
        let put = MemoryChange::put(entry(&n.to_string(), "text").with_vector("e:2", vec![1.0, 0.0]));
        other.apply(vec![put]).await.unwrap();
        assert_eq!((count(&store).await, count(&other).await), (n, n));
    }
    other.apply(vec![MemoryChange::forget("1")]).await.unwrap();
    assert_eq!(count(&store).await, 2);
    other.compact().await.unwrap();
    other.apply(vec![MemoryChange::forget("2")]).await.unwrap();
    assert_eq!(count(&store).await, 1);
}

// spec: M-27
#[tokio::test]
async fn the_number_of_a_collection_is_no_word_of_its_entries() {
    let (_dir, store) = database();
    let put = |id: &str, text: &str| MemoryChange::put(entry(id, text));
    store
        .collection(of("user:x"))
        .unwrap()
        .apply(vec![put("a", "no number"), put("b", "1 2")])
        .await
        .unwrap();
    for scope in [Collection::root(), of("user"), of("user:x")] {
        let store = store.collection(scope).unwrap();
        let found = store.candidates(&MemorySearch::words("1 2 3", 9)).await.unwrap().candidates;
        assert_eq!(found.iter().map(|hit| hit.entry.id.as_str()).collect::<Vec<_>>(), ["b"]);
    }
}

// spec: M-16
#[tokio::test]
async fn a_word_that_is_in_most_entries_costs_little_and_hides_nothing() {
    let (_dir, store) = database();
    let user = store.collection(of("user:x")).unwrap();
    let mut fact = entry("fact", "a common fact");
    (fact.kind, fact.trust) = (MemoryKind::Fact, Trust::Trusted);
    fact.metadata.insert("session".into(), "s".into());
    let straws = (0..25_000).map(|n| {
        let text = if n == 777 { "common needle".to_owned() } else { format!("common straw{n}") };
        let mut straw = entry(&n.to_string(), &text);
        straw.collection = of("user:x:y");
        straw.kind = MemoryKind::Turn;
        straw.valid_from = Some(Timestamp::from_millis(10));
        straw.timestamp = Timestamp::from_millis(10);
        straw
    });
    user.apply(std::iter::once(fact).chain(straws).map(MemoryChange::put).collect()).await.unwrap();
    let find = async |text: &str| {
        let found = user.candidates(&MemorySearch::words(text, 5)).await.unwrap().candidates;
        found.into_iter().map(|hit| hit.entry.id).collect::<Vec<_>>()
    };
    assert_eq!(find("common needle").await, ["777"]);
    assert_eq!(find("common").await.len(), 5);
    assert_eq!(find("common nothing").await.len(), 5, "a word that none has takes no other's place");
    assert_eq!(find("common needle").await, ["777"]);
    // Nor does it where what fits is older than all that is scored.
    let mut session = MemoryFilter::all();
    session.metadata.insert("session".into(), "s".into());
    let mut trusted = MemoryFilter::all();
    trusted.trust = Trust::Trusted;
    let kind = MemoryFilter::all().of(&[MemoryKind::Fact]);
    let (mut then, mut old) = (MemoryFilter::all(), MemoryFilter::all());
    then.validity = Validity::At(Timestamp::from_millis(3));
    old.until = Some(Timestamp::from_millis(5));
    for filter in [session, trusted, kind, then, old, MemoryFilter::all().exactly(&of("user:x"))] {
        for text in ["common", "common needle"] {
            let mut search = MemorySearch::words(text, 5);
            search.filter = filter.clone();
            let found = user.candidates(&search).await.unwrap().candidates;
            let ids: Vec<_> = found.iter().map(|hit| hit.entry.id.as_str()).collect();
            assert_eq!(ids, ["fact"], "{text}: {filter:?}");
        }
    }
}

// spec: M-06
#[tokio::test]
async fn vector_search_with_a_filter_finds_matches_behind_nearer_entries() {
    let (_dir, store) = database();
    let puts = (0..4_000_u16).map(|n| {
        let mut entry = entry(&n.to_string(), "text");
        entry.kind = if n >= 3_990 { MemoryKind::Fact } else { MemoryKind::Turn };
        MemoryChange::put(entry.with_vector("e:2", vec![1.0, f32::from(n) / 4_000.0]))
    });
    store.apply(puts.collect()).await.unwrap();
    let mut search = MemorySearch::words("", 3).near("e:2", vec![1.0, 0.0]);
    search.filter = MemoryFilter::all().of(&[MemoryKind::Fact]);
    search.filter.without = (3_990..3_995).map(|n| n.to_string()).collect();
    let found = store.candidates(&search).await.unwrap().candidates;
    let ids: Vec<_> = found.iter().map(|hit| hit.entry.id.as_str()).collect();
    assert_eq!(ids, ["3995", "3996", "3997"]);
}

/// Returns the entries without a vector of this embedder.
async fn lacking(store: &SqliteMemory, embedder: &str) -> Vec<String> {
    let mut filter = MemoryFilter::all();
    filter.not_embedded_by = Some(embedder.to_owned());
    all_entries(store, filter).await.into_iter().map(|entry| entry.id).collect()
}

// spec: M-18, M-20
#[tokio::test]
async fn a_damaged_vector_waits_for_another_like_one_that_was_never_made() {
    let (dir, store) = database();
    let ids = ["whole", "sum", "short", "nan", "gone", "copy", "never"];
    let put = |id: &str| {
        let entry = entry(id, &format!("words of {id}"));
        MemoryChange::put(if id == "never" { entry } else { entry.with_vector("e:2", vec![1.0, 0.5]) })
    };
    store.apply(ids.map(put).into()).await.unwrap();
    let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    let of = "WHERE position = (SELECT position FROM entries WHERE id =";
    let nan: Vec<u8> = [f32::NAN, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let sum = |bytes: &[u8]| i64::from(crc32fast::hash(bytes));
    let short = 1.0_f32.to_le_bytes();
    let change =
        |sql: &str, values: &[&dyn rusqlite::ToSql]| assert_eq!(outside.execute(sql, values).unwrap(), 1);
    change(&format!("UPDATE vectors SET vector = zeroblob(8) {of} 'sum')"), &[]);
    change(&format!("UPDATE vectors SET vector = ?1, checksum = ?2 {of} 'short')"), &[&short, &sum(&short)]);
    change(&format!("UPDATE vectors SET vector = ?1, checksum = ?2 {of} 'nan')"), &[&nan, &sum(&nan)]);
    change(&format!("DELETE FROM vectors {of} 'gone')"), &[]);
    change(&format!("UPDATE scanned SET bytes = zeroblob(1) {of} 'copy')"), &[]);
    // The first that is scanned may be the damaged one.
    change(&format!("UPDATE scanned SET stamp = 0 {of} 'copy')"), &[]);
    let store = SqliteMemory::open(dir.path().join("memory.db")).unwrap();
    assert_eq!(lacking(&store, "e:2").await, ["sum", "short", "nan", "gone", "copy", "never"]);
    assert_eq!(lacking(&store, "other").await.len(), 7);
    let near = MemorySearch::words("", 9).near("e:2", vec![1.0, 0.0]);
    let found = async || store.candidates(&near).await.unwrap().candidates.len();
    assert_eq!(found().await, 1);
    for id in ids {
        let vector = vec![0.5, 1.0];
        let content = format!("words of {id}");
        let (id, embedder, collection) = (id.to_owned(), "e:2".to_owned(), Collection::root());
        store.apply(vec![MemoryChange::Embed { id, collection, content, embedder, vector }]).await.unwrap();
    }
    assert_eq!(lacking(&store, "e:2").await, [""; 0]);
    assert_eq!(found().await, 7);
}

/// Does something to a row that SQLite's own checks would refuse: the table takes values of any type.
fn damage(path: &std::path::Path, table: &str, sql: &str) {
    let outside = rusqlite::Connection::open(path).unwrap();
    let strictness = |from: &str, to: &str| {
        let sql = "UPDATE sqlite_schema SET sql = replace(sql, ?1, ?2) WHERE name = ?3";
        outside.execute_batch("PRAGMA writable_schema = ON").unwrap();
        assert_eq!(outside.execute(sql, [from, to, table]).unwrap(), 1);
        outside.execute_batch("PRAGMA writable_schema = RESET").unwrap();
    };
    strictness(") STRICT", ") ");
    assert_eq!(outside.execute(sql, []).unwrap(), 1, "{sql}");
    strictness(") ", ") STRICT");
}

// spec: M-18, M-20
#[tokio::test]
async fn sqlite_memory_damaged_row_does_not_hide_other_vectors() {
    let one = "WHERE position = 1";
    let table = [
        ("scanned", format!("UPDATE scanned SET embedder = CAST(x'ff' AS TEXT) {one}")),
        ("scanned", format!("UPDATE scanned SET embedder = 'f:2' {one}")),
        ("scanned", format!("UPDATE scanned SET collection = CAST(x'ff' AS TEXT) {one}")),
        ("scanned", format!("UPDATE scanned SET collection = 'user:y' {one}")),
        ("scanned", format!("UPDATE scanned SET scale = 9e999 {one}")),
        ("scanned", format!("UPDATE scanned SET scale = 'much' {one}")),
        ("scanned", format!("UPDATE scanned SET bytes = 'text' {one}")),
        ("vectors", format!("UPDATE vectors SET vector = 'text' {one}")),
        ("vectors", format!("UPDATE vectors SET checksum = 'text' {one}")),
    ];
    for (name, sql) in table {
        let (dir, store) = database();
        let path = dir.path().join("memory.db");
        let user = store.collection(of("user:x")).unwrap();
        let put = |id: &str| MemoryChange::put(entry(id, "words of it").with_vector("e:2", vec![1.0, 0.5]));
        user.apply(["one", "two"].map(put).into()).await.unwrap();
        damage(&path, name, &sql);
        let near = MemorySearch::words("", 9).near("e:2", vec![1.0, 0.0]);
        let found = async |store: SqliteMemory| {
            let user = store.collection(of("user:x")).unwrap();
            let found = user.candidates(&near).await.expect(&sql).candidates;
            found.into_iter().map(|hit| hit.entry.id).collect::<Vec<_>>()
        };
        let opened = SqliteMemory::open(&path).unwrap();
        assert_eq!(found(opened.clone()).await, ["two"], "{sql}");
        let mut others = MemorySearch::words("", 9).near("f:2", vec![1.0, 0.0]);
        others.filter = MemoryFilter::all();
        assert_eq!(opened.candidates(&others).await.unwrap().candidates, [], "{sql}");
        assert_eq!(all_entries(&user, MemoryFilter::all()).await.len(), 2, "{sql}");
        // It waits for another, and with that it is found again: by who saw the damage, and who did not.
        assert_eq!(lacking(&user, "e:2").await, ["one"], "{sql}");
        let (content, embedder, vector) = ("words of it".to_owned(), "e:2".to_owned(), vec![1.0, 0.0]);
        let embed =
            MemoryChange::Embed { id: "one".to_owned(), collection: of("user:x"), content, embedder, vector };
        user.apply(vec![embed]).await.unwrap();
        for store in [opened, SqliteMemory::open(&path).unwrap()] {
            assert_eq!(found(store).await, ["one", "two"], "{sql}");
        }
    }
}

// spec: M-20
#[tokio::test]
async fn sqlite_memory_damaged_removal_note_does_not_break_search() {
    for value in ["embedder", "collection"] {
        let (dir, store) = database();
        let path = dir.path().join("memory.db");
        let put = |id: &str| MemoryChange::put(entry(id, "words").with_vector("e:2", vec![1.0, 0.5]));
        store.apply(["one", "two", "three"].map(put).into()).await.unwrap();
        let near = MemorySearch::words("", 9).near("e:2", vec![1.0, 0.0]);
        let count = async || store.candidates(&near).await.unwrap().candidates.len();
        assert_eq!(count().await, 3);
        store.apply(["one", "two"].map(MemoryChange::forget).into()).await.unwrap();
        damage(
            &path,
            "removed",
            &format!("UPDATE removed SET {value} = CAST(x'ff' AS TEXT) WHERE position = 1"),
        );
        assert_eq!(count().await, 1, "{value}");
    }
}

// spec: M-29
#[test]
fn many_may_open_a_new_database_at_the_same_time() {
    let dir = tempfile::tempdir().unwrap();
    let ready = std::sync::Barrier::new(8);
    let refused = || {
        let open = |round: i32| {
            ready.wait();
            SqliteMemory::open(dir.path().join(format!("{round}.db"))).err()
        };
        let errors = (0..40).filter_map(open);
        errors.map(|e| format!("{e}: {:?}", std::error::Error::source(&e))).collect::<Vec<_>>()
    };
    let refused: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(refused)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(refused, [""; 0]);
}

// spec: M-29
#[test]
fn sqlite_memory_open_waits_for_the_writer_that_creates_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.db");
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let opened = std::thread::spawn(move || SqliteMemory::open(&path).map(drop));
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!opened.is_finished());
    writer.execute_batch("COMMIT").unwrap();
    opened.join().unwrap().unwrap();
}

/// The bytes of a file.
fn bytes(path: &std::path::Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[tokio::test]
async fn sqlite_memory_open_leaves_a_foreign_database_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs.db");
    for setting in [
        "CREATE TABLE mine (x)",
        "PRAGMA user_version = 7",
        "PRAGMA application_id = 12345",
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE mine (x); INSERT INTO mine VALUES (1)",
    ] {
        _ = std::fs::remove_file(&path);
        let theirs = rusqlite::Connection::open(&path).unwrap();
        // A pragma may answer.
        theirs.execute_batch(setting).unwrap();
        let log = dir.path().join("theirs.db-wal");
        let before = (bytes(&path), log.exists().then(|| bytes(&log)));
        let error = SqliteMemory::open(&path).err().expect(setting).to_string();
        assert!(error.ends_with("it is the database of another program"), "{setting}: {error}");
        assert!(before == (bytes(&path), log.exists().then(|| bytes(&log))), "{setting}");
        drop(theirs);
        // Nor when nobody else has it open.
        let before = bytes(&path);
        SqliteMemory::open(&path).err().expect(setting);
        assert!(before == bytes(&path), "{setting}");
    }
}

/// A database that somebody died in while changing it, after it was made by `sql`: pages are written, and the journal
/// that takes them back is beside them.
fn interrupted(dir: &std::path::Path, name: &str, sql: &str) -> std::path::PathBuf {
    let (path, dead) = (dir.join(format!("{name}-living")), dir.join(name));
    let living = rusqlite::Connection::open(&path).unwrap();
    living.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    living.execute_batch(sql).unwrap();
    // More than the cache may hold, so that it is written before the end.
    let fill = "PRAGMA cache_size = 5; BEGIN IMMEDIATE; CREATE TABLE half (x); \
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) \
                INSERT INTO half SELECT randomblob(1000) FROM n";
    living.execute_batch(fill).unwrap();
    for end in ["", "-journal"] {
        let of = |path: &std::path::Path| format!("{}{end}", path.display());
        std::fs::copy(of(&path), of(&dead)).unwrap();
    }
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let reader = rusqlite::Connection::open_with_flags(&dead, flags).unwrap();
    let error = reader.query_row("PRAGMA schema_version", [], |_| Ok(())).unwrap_err();
    assert!(matches!(error, rusqlite::Error::SqliteFailure(e, _) if e.extended_code == 776), "{error}");
    dead
}

// spec: M-20
#[tokio::test]
async fn an_interrupted_change_is_taken_back_by_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let theirs = [
        "CREATE TABLE mine (x)",
        "PRAGMA user_version = 7; CREATE TABLE mine (x)",
        "PRAGMA application_id = 9; CREATE TABLE mine (x)",
    ];
    for (n, sql) in theirs.into_iter().enumerate() {
        let path = interrupted(dir.path(), &format!("theirs{n}"), sql);
        let journal = dir.path().join(format!("theirs{n}-journal"));
        let before = (bytes(&path), bytes(&journal));
        let error = SqliteMemory::open(&path).err().expect(sql).to_string();
        assert!(error.ends_with("it is the database of another program"), "{sql}: {error}");
        assert!(before == (bytes(&path), bytes(&journal)), "{sql}");
    }
    // Ours, after somebody put its write-ahead log away.
    let living = dir.path().join("ours-living");
    SqliteMemory::open(&living).unwrap().apply(vec![MemoryChange::put(entry("one", "words"))]).await.unwrap();
    let ours = SqliteMemory::open(interrupted(dir.path(), "ours", "")).unwrap();
    assert_eq!(all_entries(&ours, MemoryFilter::all()).await[0].content, "words");
    ours.apply(vec![MemoryChange::put(entry("two", "more words"))]).await.unwrap();
    // Nobody's: it was empty, and is again.
    let empty = SqliteMemory::open(interrupted(dir.path(), "empty", "")).unwrap();
    assert!(all_entries(&empty, MemoryFilter::all()).await.is_empty());
    // Ours, of a newer version: its owner's death is undone, and nothing else is.
    SqliteMemory::open(dir.path().join("newer-living")).unwrap();
    let newer = interrupted(dir.path(), "newer", "INSERT INTO schema_version VALUES (99)");
    let error = SqliteMemory::open(&newer).err().unwrap();
    assert!(matches!(error, MemoryError::FutureStore { found: 99, .. }), "{error}");
    let mode: String = rusqlite::Connection::open(&newer)
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete");
}

// spec: M-12, M-16
#[tokio::test]
async fn search_of_a_long_query_uses_its_first_words() {
    let (_dir, store) = database();
    let user = store.collection(of("user:x")).unwrap();
    let texts = ["The red key hangs in the hall", "Nobody knows"];
    let put = texts.iter().enumerate().map(|(n, text)| MemoryChange::put(entry(&n.to_string(), text)));
    user.apply(put.collect()).await.unwrap();
    let around: String = (0..40).map(|n| format!(" surroundings{n}")).collect();
    let found = user.candidates(&MemorySearch::words(format!("red key{around}"), 5)).await.unwrap();
    assert_eq!(found.candidates.len(), 1);
}

#[tokio::test]
async fn sqlite_memory_foreign_triggers_do_not_run() {
    let (dir, store) = database();
    let path = dir.path().join("memory.db");
    drop(store);
    let outside = rusqlite::Connection::open(&path).unwrap();
    let trigger = "CREATE TRIGGER planted AFTER INSERT ON entries BEGIN DELETE FROM entries; END";
    outside.execute_batch(trigger).unwrap();
    drop(outside);
    let user = SqliteMemory::open(&path).unwrap().collection(of("user:x")).unwrap();
    user.apply(vec![MemoryChange::put(entry("one", "kept"))]).await.unwrap();
    assert_eq!(all_entries(&user, MemoryFilter::all()).await.len(), 1);
}

#[cfg(unix)]
#[test]
fn the_folder_of_a_new_database_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    SqliteMemory::open(dir.path().join("data/memory.db")).unwrap();
    let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/memory.db")), (0o700, 0o600));
}

/// Returns the bytes of the database and of its log.
fn raw_bytes(path: &std::path::Path) -> Vec<u8> {
    ["", "-wal"]
        .iter()
        .flat_map(|end| std::fs::read(format!("{}{end}", path.display())).unwrap_or_default())
        .collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == part[0]) {
        if rest[at..].starts_with(part) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// A random text among many with common words: its rare word, the text and the vector.
fn rare(chance: &mut Chance, id: u64) -> (String, MemoryEntry, [Vec<u8>; 2]) {
    let letters: String =
        (0..9).map(|_| char::from(b'b' + u8::try_from(chance.below(12)).unwrap())).collect();
    let length = [3, 30, 300, 3_000][usize::try_from(chance.below(4)).unwrap()];
    let common: Vec<String> =
        (0..chance.below(length)).map(|_| format!("w{}", chance.below(3_000))).collect();
    let text = format!("{} q{letters} {}", common.join(" "), chance.below(1_000));
    let vector: Vec<f32> = (0..48).map(|_| chance.below(1_000_000) as f32 / 1e6 - 0.5).collect();
    let exact = vector.iter().take(8).flat_map(|x| x.to_le_bytes()).collect();
    let scanned = Quantized::of(&vector).values.iter().take(24).map(|x| x.to_le_bytes()[0]).collect();
    let entry = entry(&id.to_string(), &text).with_vector("e:48", vector);
    (letters, entry, [exact, scanned])
}

// spec: M-04
#[tokio::test]
async fn sqlite_memory_forgotten_text_words_and_vectors_are_in_no_file() {
    let (dir, store) = database();
    let path = dir.path().join("memory.db");
    let user = store.collection(of("user:x")).unwrap();
    let mut chance = Chance(first_seed());
    let mut kept = Vec::new();
    let mut found_before = 0;
    for id in 0..cases(120, 3_000) {
        let (word, entry, vectors) = rare(&mut chance, id);
        user.apply(vec![MemoryChange::put(entry)]).await.unwrap();
        kept.push((id, word, vectors));
        if chance.percent(25) {
            let at = usize::try_from(chance.below(kept.len() as u64)).unwrap();
            let (id, word, vectors) = kept.swap_remove(at);
            // A prefix of a word in the index is shared with the word before it.
            let parts = [word.as_bytes(), &word.as_bytes()[2..], &vectors[0], &vectors[1]];
            let before = raw_bytes(&path);
            found_before += parts.iter().filter(|part| holds(&before, part)).count();
            let again = MemoryEntry::new(id.to_string(), "replaced", Timestamp::from_millis(1));
            let change = match chance.percent(30) {
                true => MemoryChange::put(again),
                false => MemoryChange::forget(id.to_string()),
            };
            assert_eq!(user.apply(vec![change]).await.unwrap(), 1);
            user.erase_deleted().await.unwrap();
            let after = raw_bytes(&path);
            for part in parts {
                assert!(!holds(&after, part), "{id}: {:?}", String::from_utf8_lossy(part));
            }
        }
    }
    assert!(found_before > 40, "{found_before}: the search finds what is there");
    for (id, word, _) in kept.iter().take(20) {
        let found = user.candidates(&MemorySearch::words(format!("q{word}"), 2)).await.unwrap().candidates;
        assert_eq!(found.iter().map(|hit| hit.entry.id.clone()).collect::<Vec<_>>(), [id.to_string()]);
    }
}

// spec: M-04, M-20
#[tokio::test]
async fn sqlite_memory_words_of_a_forgotten_damaged_entry_are_in_no_file() {
    let (dir, store) = database();
    let path = dir.path().join("memory.db");
    store
        .apply(vec![
            MemoryChange::put(entry("one", "the zebrafish swims")),
            MemoryChange::put(entry("two", "the quagga runs")),
        ])
        .await
        .unwrap();
    let outside = rusqlite::Connection::open(&path).unwrap();
    outside
        .execute("UPDATE entries SET body = replace(body, 'zebrafish', 'mule') WHERE id = 'one'", [])
        .unwrap();
    drop(outside);
    assert_eq!(store.apply(vec![MemoryChange::forget("one")]).await.unwrap(), 1);
    store.erase_deleted().await.unwrap();
    let bytes = raw_bytes(&path);
    assert!(!holds(&bytes, b"zebrafish") && !holds(&bytes, b"mule"));
    assert_eq!(store.candidates(&MemorySearch::words("quagga", 2)).await.unwrap().candidates.len(), 1);
}

#[tokio::test]
async fn sqlite_memory_log_that_another_program_reads_is_an_error_of_the_erasure() {
    let (dir, store) = database();
    store.apply(vec![MemoryChange::put(entry("one", "kept"))]).await.unwrap();
    let outside = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    outside.execute_batch("BEGIN; SELECT count(*) FROM entries").unwrap();
    store.apply(vec![MemoryChange::forget("one")]).await.unwrap();
    let error = store.erase_deleted().await.unwrap_err();
    assert!(error.to_string().contains("empty the log of"), "{error}");
    outside.execute_batch("COMMIT").unwrap();
    store.erase_deleted().await.unwrap();
}
