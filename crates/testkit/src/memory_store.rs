//! Checks of the contract of every `MemoryStore`, for the tests of each store.

#![allow(clippy::expect_used, reason = "a check may panic")]

use std::{collections::BTreeSet, sync::Arc};

use archon_types::{
    Collection, Listing, MemoryCandidates, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind,
    MemoryOrder, MemorySearch, MemoryStore, Timestamp, Trust, Validity,
};
use serde_json::json;

use crate::Chance;

/// Opens the store of one collection. All stores that the function opens share their entries.
pub type OpenMemoryStore<'a> = &'a (dyn Fn(&Collection) -> Arc<dyn MemoryStore> + Send + Sync);

/// Checks that a store, which must be empty, keeps the contract of [`MemoryStore`].
///
/// # Panics
/// If the store breaks the contract.
pub async fn check_memory_store(open: OpenMemoryStore<'_>) {
    entries_come_back_as_they_were(open).await;
    a_batch_is_kept_whole_or_not_at_all(open).await;
    filters_agree_with_their_definition(open).await;
    a_batch_rests_on_what_was_read(open).await;
    words_and_vectors_find(open).await;
    names_are_found_by_their_parts(open).await;
    accents_make_no_difference(open).await;
    names_may_be_long(open).await;
    a_zero_character_is_no_error(open).await;
    pages_follow_each_other(open).await;
    collections_stay_apart(open).await;
    vectors_are_of_the_text_that_is_there(open).await;
    the_longest_texts_are_kept_and_found(open).await;
}

fn collection(name: &str) -> Collection {
    Collection::new(name).expect("a name")
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn entry(id: &str, text: &str, ms: u64) -> MemoryEntry {
    MemoryEntry::new(id, text, at(ms))
}

async fn put(store: &dyn MemoryStore, entries: Vec<MemoryEntry>) {
    let count = entries.len();
    let changes = entries.into_iter().map(MemoryChange::put).collect();
    assert_eq!(store.apply(changes).await.expect("kept"), count);
}

/// Returns all entries that the filter admits, in the order in which they were first written.
///
/// # Panics
/// If the store cannot be read.
pub async fn all_entries(store: &dyn MemoryStore, filter: MemoryFilter) -> Vec<MemoryEntry> {
    let page = store.list(&Listing::new(filter, MemoryOrder::First, usize::MAX >> 1)).await.expect("a page");
    assert_eq!(page.damaged, []);
    page.entries
}

async fn everything(store: &dyn MemoryStore) -> Vec<MemoryEntry> {
    all_entries(store, MemoryFilter::all()).await
}

async fn search_entries(store: &dyn MemoryStore, search: &MemorySearch) -> Vec<MemoryEntry> {
    entries_of(store.candidates(search).await.expect("an answer"))
}

fn entries_of(found: MemoryCandidates) -> Vec<MemoryEntry> {
    found.candidates.into_iter().map(|candidate| candidate.entry).collect()
}

fn ids(entries: &[MemoryEntry]) -> Vec<&str> {
    entries.iter().map(|e| e.id.as_str()).collect()
}

fn filter(change: impl FnOnce(&mut MemoryFilter)) -> MemoryFilter {
    let mut filter = MemoryFilter::all();
    change(&mut filter);
    filter
}

fn embed(id: &str, own: &Collection, content: &str, embedder: &str, vector: Vec<f32>) -> MemoryChange {
    let (id, collection, content) = (id.into(), own.clone(), content.into());
    MemoryChange::Embed { id, collection, content, embedder: embedder.into(), vector }
}

async fn entries_come_back_as_they_were(open: OpenMemoryStore<'_>) {
    let own = collection("check:whole");
    let store = open(&own);
    let mut full = entry("full", "Zürich has 434 335 inhabitants 🏔", 1_700_000_000_123);
    full.metadata.extend([("session".to_owned(), json!("s1")), ("n".to_owned(), json!({"a": [1, null]}))]);
    (full.embedding, full.embedder) = (Some(vec![0.25, -1.0, 1e-7]), Some("e:3".into()));
    (full.kind, full.trust) = (MemoryKind::Fact, Trust::Trusted);
    (full.run, full.key) = (Some("run_1".into()), Some("zürich\u{1f}inhabitants".into()));
    (full.valid_from, full.valid_to) = (Some(at(5)), Some(at(9)));
    (full.importance, full.used) = (Some(0.75), Some(at(11)));
    put(&*store, vec![full.clone(), entry("bare", "x", 0)]).await;
    let mut expected = vec![full, entry("bare", "x", 0)];
    let mut found = everything(&*store).await;
    assert!(0 < found[0].position && found[0].position < found[1].position);
    for (expected, found) in expected.iter_mut().zip(&mut found) {
        expected.collection = own.clone();
        found.position = 0;
    }
    assert_eq!(found, expected);
    // A second write of an id keeps its position and replaces the text.
    put(&*store, vec![entry("full", "other", 7)]).await;
    let found = everything(&*store).await;
    assert_eq!((ids(&found), found[0].content.as_str()), (vec!["full", "bare"], "other"));
    assert_eq!(store.apply(vec![MemoryChange::Use { id: "bare".into(), at: at(50) }]).await.unwrap_or(0), 1);
    assert_eq!(everything(&*store).await[1].used, Some(at(50)));
    assert_eq!(store.apply(vec![MemoryChange::forget("full")]).await.unwrap_or(0), 1);
    assert_eq!(store.apply(vec![MemoryChange::forget("full")]).await.unwrap_or(9), 0);
    assert_eq!(ids(&everything(&*store).await), ["bare"]);
}

async fn a_batch_is_kept_whole_or_not_at_all(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:batch"));
    put(&*store, vec![entry("v", "with a vector", 1).with_vector("batch:2", vec![1.0, 0.0])]).await;
    let long = "x".repeat(MemoryEntry::MAX_NAME_BYTES + 1);
    for (bad, problem) in invalid_entries(&long) {
        let changes = [entry("good", "good", 1), bad].map(MemoryChange::put).into();
        let error = store.apply(changes).await.expect_err(problem).to_string();
        assert!(error.ends_with(problem), "{error}");
    }
    for (embedder, vector) in [("batch:2", vec![1.0, 2.0, 3.0]), (long.as_str(), vec![1.0])] {
        let other = embed("v", store.scope(), "with a vector", embedder, vector);
        let error = store.apply(vec![MemoryChange::forget("v"), other]).await.expect_err("a wrong length");
        assert!(matches!(error, MemoryError::Invalid { .. }), "{error}");
    }
    assert_eq!(ids(&everything(&*store).await), ["v"]);
    for vector in [vec![f32::NAN, 1.0], vec![1.0, 2.0, 3.0]] {
        let asked = store.candidates(&MemorySearch::words("vector", 3).near("batch:2", vector)).await;
        assert!(matches!(asked, Err(MemoryError::Question { .. })), "{asked:?}");
    }
}

/// Returns entries that every store must refuse, each with the expected problem. `long` is a name with too
/// many bytes.
fn invalid_entries(long: &str) -> Vec<(MemoryEntry, &'static str)> {
    let with = |change: &dyn Fn(&mut MemoryEntry)| {
        let mut bad = entry("bad", "text", 1).with_vector("batch:2", vec![1.0, 0.0]);
        change(&mut bad);
        bad
    };
    vec![
        (with(&|e| e.content = " \n".into()), "its text is empty"),
        (with(&|e| e.id.clear()), "it has no id"),
        (
            with(&|e| e.content = "x".repeat(10 << 20)),
            "its text has 10485760 bytes, at most 1048576 are kept; split it",
        ),
        (with(&|e| e.embedding = Some(vec![f32::NAN, 0.0])), "its vector has a value that is not a number"),
        (
            with(&|e| e.embedding = Some(vec![f32::INFINITY, 0.0])),
            "its vector has a value that is not a number",
        ),
        (with(&|e| e.embedding = Some(vec![])), "its vector is empty"),
        (
            with(&|e| e.embedding = Some(vec![1.0])),
            "its vector has 1 dimensions, those of batch:2 here have 2",
        ),
        (
            with(&|e| e.collection = collection("check:elsewhere")),
            "collection `check:elsewhere` is not within `check:batch`",
        ),
        (
            with(&|e| (e.valid_from, e.valid_to) = (Some(at(2)), Some(at(1)))),
            "its valid_to is earlier than its valid_from",
        ),
        (with(&|e| e.importance = Some(f32::NAN)), "its importance is not between 0 and 1"),
        (with(&|e| e.id = long.into()), "its id has 2049 bytes, at most 2048 are kept"),
        (with(&|e| e.key = Some(long.into())), "its key has 2049 bytes, at most 2048 are kept"),
        (with(&|e| e.embedder = Some(long.into())), "its embedder has 2049 bytes, at most 2048 are kept"),
        (
            with(&|e| _ = e.metadata.insert("session".into(), json!(long))),
            "its session has 2049 bytes, at most 2048 are kept",
        ),
        (
            with(&|e| _ = e.metadata.insert("page".into(), json!(long.repeat(512)))),
            "its metadata has 1049099 bytes as JSON, at most 1048576 are kept",
        ),
    ]
}

/// Checks that texts of the maximum size are kept and found, with few and with many distinct words.
async fn the_longest_texts_are_kept_and_found(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:longest"));
    let fillers: [fn(usize) -> String; 4] = [
        |_| "plain words ".into(),
        |n| format!("w{n:x} "),
        |n| format!("https://a{n:x}.example/b{n:x}?c={n:x}-{n:x} "),
        |_| "x".into(),
    ];
    for filler in fillers {
        let mut text = "okapi ".to_owned();
        for n in 0.. {
            text.push_str(&filler(n));
            if text.len() >= MemoryEntry::MAX_BYTES {
                break;
            }
        }
        text.truncate(MemoryEntry::MAX_BYTES);
        put(&*store, vec![entry("long", &text, 1)]).await;
        let found = search_entries(&*store, &MemorySearch::words("okapi", 3)).await;
        assert!(found.len() == 1 && found[0].content == text);
    }
}

fn different_entries() -> Vec<MemoryEntry> {
    let mut entries = Vec::new();
    for (i, n) in (0..48_u64).zip(0_usize..) {
        let mut e = entry(&format!("e{i}"), "the same words", i);
        e.kind = MemoryKind::ALL[n % 5];
        e.trust = [Trust::Untrusted, Trust::Model, Trust::Trusted][n % 3];
        e.key = (i % 4 == 0).then(|| format!("k{}{}", i % 8, ["", "\u{1f}x", "%\u{10ffff}"][n / 4 % 3]));
        e.metadata.insert("session".into(), json!(format!("s{}", i % 6)));
        e.metadata.insert("deep".into(), json!({"n": i % 2, "o": [true, 1.5]}));
        e.valid_from = (i % 3 != 0).then(|| at(i));
        e.valid_to = (i % 5 == 0).then(|| at(i + 10));
        if i % 2 == 0 {
            e = e.with_vector(["f:2", "g:2"][n / 2 % 2], vec![1.0, 1.0]);
        }
        entries.push(e);
    }
    entries
}

async fn filters_agree_with_their_definition(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:filters"));
    put(&*store, different_entries()).await;
    let all = everything(&*store).await;
    assert_eq!(all.len(), 48);
    let mut filters = vec![MemoryFilter::default(), MemoryFilter::all()];
    let mut with = |change: &dyn Fn(&mut MemoryFilter)| {
        for base in [MemoryFilter::default(), MemoryFilter::all()] {
            let mut filter = base;
            change(&mut filter);
            filters.push(filter);
        }
    };
    with(&|f| f.ids = vec!["e3".into(), "e4".into(), "nobody".into()]);
    with(&|f| f.without = ["e3", "e4", "nobody"].map(str::to_owned).into());
    with(&|f| f.kinds = vec![MemoryKind::Note, MemoryKind::Fact]);
    with(&|f| f.key = Some("k4".into()));
    for prefix in ["k4", "k4\u{1f}", "k4%", "k4%\u{10ffff}", "_", "", "\u{10ffff}", "K"] {
        with(&|f| f.key_prefix = Some(prefix.into()));
    }
    with(&|f| _ = f.metadata.insert("session".into(), json!("s2")));
    with(&|f| _ = f.metadata.insert("deep".into(), json!({"n": 1, "o": [true, 1.5]})));
    with(&|f| _ = f.metadata.insert("nothing".into(), json!(null)));
    with(&|f| f.trust = Trust::Model);
    with(&|f| (f.from, f.until) = (Some(at(10)), Some(at(20))));
    with(&|f| f.validity = Validity::At(at(12)));
    with(&|f| f.not_embedded_by = Some("f:2".into()));
    with(&|f| {
        f.trust = Trust::Trusted;
        f.kinds = vec![MemoryKind::Turn];
        f.validity = Validity::At(at(40));
    });
    for filter in filters {
        let expected: Vec<&str> = all.iter().filter(|e| filter.fits(e)).map(|e| e.id.as_str()).collect();
        assert_eq!(ids(&all_entries(&*store, filter.clone()).await), expected, "{filter:?}");
        let mut search = MemorySearch::words("words", 100).near("f:2", vec![1.0, 1.0]);
        search.filter = filter.clone();
        let found = search_entries(&*store, &search).await;
        assert_eq!(BTreeSet::from_iter(ids(&found)), expected.into_iter().collect(), "{filter:?}");
    }
    let old = filter(|f| f.until = Some(at(47)));
    assert_eq!(store.apply(vec![MemoryChange::Forget(old)]).await.unwrap_or(0), 47);
    assert_eq!(ids(&everything(&*store).await), ["e47"]);
}

async fn a_batch_rests_on_what_was_read(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:expect"));
    let inner = open(&collection("check:expect:inner"));
    assert_eq!(store.scope().as_str(), "check:expect");
    let facts = || MemoryFilter::all().of(&[MemoryKind::Fact]);
    let fact = |id: &str, text: &str| {
        let mut fact = entry(id, text, 1).with_vector("x:2", vec![1.0, 0.5]);
        fact.kind = MemoryKind::Fact;
        fact
    };
    let expect = |filter, entries: &[_]| MemoryChange::Expect { filter, entries: entries.to_vec() };
    // An empty expectation holds on an empty store; the entries of the batch itself do not count.
    let write = |entry: MemoryEntry, expected: &[MemoryEntry]| {
        store.apply(vec![MemoryChange::put(entry), expect(facts(), expected)])
    };
    assert_eq!(write(fact("a", "first"), &[]).await.unwrap_or(9), 1);
    let refused = async |expected: &[MemoryEntry]| {
        let error = write(fact("mine", "not to be kept"), expected).await.expect_err("it changed");
        assert!(matches!(error, MemoryError::Changed), "{error}");
    };
    refused(&[]).await;
    put(&*store, vec![entry("note", "of another kind", 1)]).await;
    let read = all_entries(&*store, facts()).await;
    assert_eq!(write(fact("b", "second"), &read).await.unwrap_or(9), 1);
    refused(&read).await;
    let read = all_entries(&*store, facts()).await;
    // Changed texts, removed entries and entries of nested collections are changes; changed vectors are not.
    put(&*store, vec![fact("a", "not the first")]).await;
    refused(&read).await;
    let mut other = fact("a", "first");
    other.embedding = Some(vec![0.5, 1.0]);
    put(&*store, vec![other]).await;
    let use_it = MemoryChange::Use { id: "a".into(), at: at(9) };
    assert_eq!(store.apply(vec![use_it, expect(facts(), &read)]).await.unwrap_or(9), 1);
    assert_eq!(store.apply(vec![expect(facts(), &read)]).await.unwrap_or(9), 0);
    put(&*inner, vec![fact("c", "third")]).await;
    refused(&read).await;
    let own = facts().exactly(store.scope());
    let all = all_entries(&*store, facts()).await;
    assert_eq!(store.apply(vec![expect(own, &read), expect(facts(), &all)]).await.unwrap_or(9), 0);
    assert_eq!(store.apply(vec![MemoryChange::forget("b")]).await.unwrap_or(9), 1);
    refused(&read).await;
    assert_eq!(ids(&all_entries(&*store, facts()).await), ["a", "c"]);
}

async fn words_and_vectors_find(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:find"));
    let entries = vec![
        entry("cat", "The cat sleeps on the warm roof", 1).with_vector("w:2", vec![1.0, 0.0]),
        entry("dog", "A dog barks at the postman", 2).with_vector("w:2", vec![0.6, 0.8]),
        entry("car", "The car needs new tyres", 3).with_vector("w:2", vec![-1.0, 0.0]),
        entry("odd", "tyres tyres tyres", 4).with_vector("other:2", vec![1.0, 0.0]),
        entry("none", "no vector, postman", 5),
        entry("zero", "nothing", 6).with_vector("w:2", vec![0.0, 0.0]),
    ];
    put(&*store, entries).await;
    let find = async |text: &str, vector: Option<Vec<f32>>, limit: usize| {
        let mut search = MemorySearch::words(text, limit);
        search.vector = vector.map(|vector| ("w:2".to_owned(), vector));
        let found = store.candidates(&search).await.expect("candidates");
        assert_eq!(found.damaged, []);
        found.candidates
    };
    let by_words = |mut found: Vec<archon_types::Candidate>| {
        found.sort_by(|a, b| b.lexical.partial_cmp(&a.lexical).expect("no NaN"));
        found.into_iter().map(|c| c.entry.id).collect::<Vec<_>>()
    };
    assert_eq!(by_words(find("tyres", None, 9).await), ["odd", "car"]);
    assert_eq!(by_words(find("tyres", None, 1).await), ["odd"]);
    assert_eq!(by_words(find("TYRES, new?", None, 9).await), ["car", "odd"]);
    // Query syntax of a database counts as plain words, and a query without words finds nothing.
    for text in
        ["\"tyres", "tyres*", "tyres NOT", "(tyres", "tyres:", "NEAR(tyres", "-tyres", "'; DROP tyres"]
    {
        assert!(by_words(find(text, None, 9).await).contains(&"odd".to_owned()), "{text}");
    }
    for text in ["", " ", "\"", "*", "!?", "\0", "🏔"] {
        assert_eq!(find(text, None, 9).await, [], "{text}");
    }
    let mut near = find("", Some(vec![2.0, 0.1]), 9).await;
    near.sort_by(|a, b| b.vector.partial_cmp(&a.vector).expect("no NaN"));
    let found: Vec<_> = near.iter().map(|c| (c.entry.id.as_str(), c.lexical)).collect();
    assert_eq!(found, [("cat", None), ("dog", None), ("car", None)]);
    assert!((near[0].vector.expect("compared") - 0.998_75).abs() < 1e-4, "{:?}", near[0].vector);
    let both = find("postman", Some(vec![0.6, 0.8]), 1).await;
    let dog = both.iter().find(|c| c.entry.id == "dog").expect("the nearest");
    assert!(dog.vector.is_some_and(|v| v > 0.999) && both.len() <= 2);
}

/// Checks names of the maximum length, with random letters that cannot be compressed.
async fn names_may_be_long(open: OpenMemoryStore<'_>) {
    let mut chance = Chance(9);
    let mut name = |bytes: usize| -> String {
        (0..bytes).map(|_| char::from(b"0123456789abcdefghijklmnopqrstuv"[small(&mut chance, 32)])).collect()
    };
    let store = open(&collection(&name(Collection::MAX_BYTES)));
    let mut long = entry(&name(MemoryEntry::MAX_NAME_BYTES), "of long names", 1);
    long.key = Some(name(MemoryEntry::MAX_NAME_BYTES));
    long.metadata.insert("session".into(), json!(name(MemoryEntry::MAX_NAME_BYTES)));
    let long = long.with_vector(name(MemoryEntry::MAX_NAME_BYTES), vec![1.0, 0.5]);
    let mut other = entry("other", "of another session", 2);
    // A session value that is no string is compared like any other value, and its length is not bounded.
    other.metadata.insert("session".into(), json!(vec![1e300; 200]));
    put(&*store, vec![long.clone(), other.clone()]).await;
    for (filter, id) in [
        (filter(|f| f.ids = vec![long.id.clone()]), long.id.as_str()),
        (filter(|f| f.key.clone_from(&long.key)), &long.id),
        (filter(|f| f.metadata.clone_from(&long.metadata)), &long.id),
        (filter(|f| f.metadata = other.metadata), "other"),
    ] {
        assert_eq!(ids(&all_entries(&*store, filter).await), [id]);
    }
}

/// Checks that a zero character is no error, also in a store that cannot keep zero characters.
async fn a_zero_character_is_no_error(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:zero"));
    let mut zero = entry("zero", "a text", 1).with_vector("z:2", vec![1.0, 0.0]);
    zero.metadata.extend([
        ("session".to_owned(), json!("a\0b")),
        ("de\0ep".to_owned(), json!(["\0", "\\\0"])),
        ("\\u0000".to_owned(), json!("\\u0000")),
    ]);
    put(&*store, vec![zero.clone(), entry("plain", "a text", 2)]).await;
    let asked = async |change: &dyn Fn(&mut MemoryFilter)| {
        let listed = all_entries(&*store, filter(change)).await;
        let mut search = MemorySearch::words("text", 9).near("z\0:2", vec![1.0, 0.0]);
        search.filter = filter(change);
        assert_eq!(search_entries(&*store, &search).await.len(), listed.len());
        listed.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    for (name, value) in &zero.metadata {
        let found = asked(&|f| _ = f.metadata.insert(name.clone(), value.clone())).await;
        assert_eq!(found, ["zero"], "{name:?}");
    }
    assert_eq!(asked(&|f| _ = f.metadata.insert("session".into(), json!("a\0"))).await, [""; 0]);
    assert_eq!(asked(&|f| f.ids = vec!["ze\0ro".into()]).await, [""; 0]);
    assert_eq!(asked(&|f| f.ids = vec!["ze\0ro".into(), "plain".into()]).await, ["plain"]);
    assert_eq!(asked(&|f| f.without = ["ze\0ro", "plain"].map(str::to_owned).into()).await, ["zero"]);
    assert_eq!(asked(&|f| f.key = Some("\0".into())).await, [""; 0]);
    assert_eq!(asked(&|f| f.key_prefix = Some("\0".into())).await, [""; 0]);
    assert_eq!(asked(&|f| f.not_embedded_by = Some("z:2\0".into())).await, ["zero", "plain"]);
    let embed = embed("ze\0ro", store.scope(), "a text", "z:2", vec![0.0, 1.0]);
    let use_it = MemoryChange::Use { id: "ze\0ro".into(), at: at(9) };
    let changes = vec![embed, use_it, MemoryChange::forget("ze\0ro")];
    assert_eq!(store.apply(changes).await.unwrap_or(9), 0);
}

/// Checks that letters match with and without accents, in composed and decomposed form.
async fn accents_make_no_difference(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:accents"));
    put(&*store, vec![entry("city", "Zürich lies at a lake", 1), entry("dish", "A bowl of pho", 2)]).await;
    for (asked, id) in [("zurich", "city"), ("ZÜRICH", "city"), ("Zu\u{308}rich", "city"), ("phở", "dish")]
    {
        let found = search_entries(&*store, &MemorySearch::words(asked, 9)).await;
        assert_eq!(ids(&found), [id], "{asked}");
    }
}

/// Checks that a name written without spaces is found by each of its words and by the whole name.
async fn names_are_found_by_their_parts(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:parts"));
    let names = [
        ("path", "crates/okapi/Main.rs", "crates okapi main rs"),
        ("address", "anna.smith@mail.example.com", "anna smith mail example com"),
        ("date", "2024-05-17T08:30", "2024 17t08 30"),
        ("version", "v12.34.56-beta+78", "v12 34 56 beta 78"),
        ("decimal", "-1234.9876", "1234 9876"),
        (
            "url",
            "https://docs.zebra.io/guide/intro?lang=de&page=71#top",
            "docs zebra guide intro lang 71 top",
        ),
        ("hash", "7e8f9a", ""),
        ("joined", "snake_case/kebab-lion", "snake case kebab lion"),
    ];
    let entries = names.iter().map(|(id, name, _)| entry(id, &format!("It says {name}, again."), 1));
    put(&*store, entries.collect()).await;
    for (id, name, parts) in names {
        for asked in parts.split_whitespace().chain([name]) {
            let found = search_entries(&*store, &MemorySearch::words(asked, 9)).await;
            assert!(ids(&found).contains(&id), "{asked} of {name}: {found:?}");
        }
    }
}

async fn pages_follow_each_other(open: OpenMemoryStore<'_>) {
    let store = open(&collection("check:pages"));
    put(&*store, (0..10).map(|i| entry(&format!("p{i}"), "page", 100 - i)).collect()).await;
    for (order, first) in [(MemoryOrder::First, "p0"), (MemoryOrder::Latest, "p9")] {
        let (mut seen, mut listing) = (Vec::new(), Listing::new(MemoryFilter::all(), order, 4));
        loop {
            let page = store.list(&listing).await.expect("a page");
            seen.extend(page.entries.into_iter().map(|e| e.id));
            listing.after = page.next;
            if listing.after.is_none() {
                break;
            }
        }
        assert_eq!((seen.len(), seen[0].as_str()), (10, first));
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 10);
    }
}

async fn collections_stay_apart(open: OpenMemoryStore<'_>) {
    let names = ["apart:eng", "apart:eng:alice", "apart:engine", "apart:eng;x", "apart"];
    for name in names {
        let mut e = entry("same-id", "the secret word", 1).with_vector("a:2", vec![1.0, 0.0]);
        e.metadata.insert("of".into(), json!(name));
        put(&*open(&collection(name)), vec![e]).await;
    }
    let looked = async |name: &str, within: Option<&str>, exact: bool| {
        let mut search = MemorySearch::words("secret", 99).near("a:2", vec![1.0, 0.0]);
        (search.filter.collection, search.filter.exact) = (within.map(collection), exact);
        let store = open(&collection(name));
        let collections = |entries: Vec<MemoryEntry>| {
            let mut names: Vec<String> = entries.iter().map(|e| e.collection.to_string()).collect();
            names.sort();
            names
        };
        let found = collections(search_entries(&*store, &search).await);
        assert_eq!(found, collections(all_entries(&*store, search.filter).await));
        found
    };
    let seen = async |name: &str, within: Option<&str>| looked(name, within, false).await;
    assert_eq!(seen("apart:eng", None).await, ["apart:eng", "apart:eng:alice"]);
    assert_eq!(seen("apart:eng:alice", None).await, ["apart:eng:alice"]);
    assert_eq!(seen("apart:engine", None).await, ["apart:engine"]);
    assert_eq!(seen("apart", None).await.len(), 5);
    assert_eq!(seen("apart", Some("apart:eng")).await, ["apart:eng", "apart:eng:alice"]);
    assert_eq!(seen("apar", None).await, [""; 0]);
    // A filter can ask for one collection without those nested in it.
    assert_eq!(looked("apart:eng", None, true).await, ["apart:eng"]);
    assert_eq!(looked("apart", None, true).await, ["apart"]);
    assert_eq!(looked("apart", Some("apart:eng"), true).await, ["apart:eng"]);
    assert_eq!(looked("apar", None, true).await, [""; 0]);
    let within = open(&collection("apart:mine:inner"));
    put(&*within, vec![entry("same-id", "inner", 1)]).await;
    let mine = open(&collection("apart:mine"));
    put(&*mine, vec![entry("same-id", "outer", 1)]).await;
    let own = MemoryFilter::all().exactly(&Collection::default());
    assert_eq!(mine.apply(vec![MemoryChange::Forget(own)]).await.unwrap_or(9), 1);
    assert_eq!(everything(&*mine).await[0].content, "inner");
    assert_eq!(within.apply(vec![MemoryChange::forget("same-id")]).await.unwrap_or(9), 1);
    let alice = open(&collection("apart:eng:alice"));
    for foreign in ["apart:eng", "apart:engine", "apart:eng:alicia"] {
        let filter = filter(|f| f.collection = Some(collection(foreign)));
        let mut search = MemorySearch::words("secret", 9);
        search.filter = filter.clone();
        let out = |e: Result<(), MemoryError>| assert!(matches!(e, Err(MemoryError::OutOfScope { .. })));
        out(alice.candidates(&search).await.map(drop));
        out(alice.list(&Listing::new(filter.clone(), MemoryOrder::First, 9)).await.map(drop));
        out(alice.apply(vec![MemoryChange::Forget(filter)]).await.map(drop));
    }
    // Changes by id affect entries of the store's own collection only.
    let use_it = MemoryChange::Use { id: "same-id".into(), at: at(3) };
    assert_eq!(alice.apply(vec![use_it]).await.unwrap_or(9), 1);
    assert_eq!(alice.apply(vec![MemoryChange::forget("same-id")]).await.unwrap_or(9), 1);
    assert_eq!(seen("apart", None).await, ["apart", "apart:eng", "apart:eng;x", "apart:engine"]);
}

async fn vectors_are_of_the_text_that_is_there(open: OpenMemoryStore<'_>) {
    let own = collection("check:embed");
    let store = open(&own);
    put(&*store, vec![entry("a", "first", 1), entry("b", "second", 2).with_vector("old:2", vec![0.0, 1.0])])
        .await;
    let embed = |id: &str, content: &str| embed(id, &own, content, "new:3", vec![1.0, 0.0, 0.0]);
    let changes = vec![embed("a", "first"), embed("b", "was changed meanwhile"), embed("gone", "first")];
    assert_eq!(store.apply(changes).await.unwrap_or(9), 1);
    let lacking = filter(|f| f.not_embedded_by = Some("new:3".into()));
    assert_eq!(ids(&all_entries(&*store, lacking).await), ["b"]);
    assert_eq!(store.apply(vec![embed("b", "second")]).await.unwrap_or(9), 1);
    let search = MemorySearch::words("", 9).near("old:2", vec![0.0, 1.0]);
    assert_eq!(search_entries(&*store, &search).await, []);
    let search = MemorySearch::words("", 9).near("new:3", vec![1.0, 0.0, 0.0]);
    assert_eq!(search_entries(&*store, &search).await.len(), 2);
    // A new text has no vector until one is embedded.
    put(&*store, vec![entry("b", "third", 2)]).await;
    assert_eq!(search_entries(&*store, &search).await.len(), 1);
}

/// Runs `queries` random searches of 50 tenants with nested and nearly equal names, and returns the number
/// of hits that belonged to another tenant.
///
/// # Panics
/// If the store fails, or if at least 100 searches together find nothing.
pub async fn foreign_memories(open: OpenMemoryStore<'_>, seed: u64, queries: u64) -> u64 {
    let mut chance = Chance(seed);
    let names: Vec<Collection> = (0..50).map(|i| collection(&tenant(i))).collect();
    for (i, name) in names.iter().enumerate() {
        let mut entries = Vec::new();
        for n in 0..8 {
            let text = format!("{} tenant{i}", two_words(&mut chance));
            let mut e = entry(&format!("m{n}"), &text, n);
            e.metadata.insert("owner".into(), json!(name.as_str()));
            entries.push(e.with_vector("fuzz:4", vector(&mut chance)));
        }
        put(&*open(name), entries).await;
    }
    let stores: Vec<_> = names.iter().map(open).collect();
    let (mut foreign, mut hits) = (0, 0);
    for _ in 0..queries {
        let who = small(&mut chance, 50);
        let text = match chance.below(4) {
            0 => format!("tenant{}", small(&mut chance, 50)),
            1 => "m0 OR tenant1 * \" : team:eng".to_owned(),
            _ => two_words(&mut chance),
        };
        let mut search = MemorySearch::words(text, 1 + small(&mut chance, 20));
        if chance.below(2) == 0 {
            search = search.near("fuzz:4", vector(&mut chance));
        }
        if chance.below(8) == 0 {
            search.filter.metadata.insert("owner".into(), json!(names[small(&mut chance, 50)].as_str()));
        }
        if chance.below(8) == 0 {
            search.filter.collection = Some(names[small(&mut chance, 50)].clone());
        }
        if chance.below(8) == 0 {
            search.filter.ids = vec!["m1".into(), "m2".into()];
        }
        let asked = match chance.below(4) {
            0 => listed(&*stores[who], search).await,
            _ => stores[who].candidates(&search).await.map(entries_of),
        };
        match asked {
            Ok(found) => {
                hits += found.len();
                let owner = |e: &MemoryEntry| e.metadata["owner"].as_str().map(|o| o.to_owned());
                let strange = found.iter().filter(|entry| {
                    !names[who].contains(&entry.collection)
                        || owner(entry).as_deref() != Some(entry.collection.as_str())
                });
                foreign += strange.count() as u64;
            }
            Err(MemoryError::OutOfScope { collection, .. }) => {
                assert!(!names[who].contains(&collection), "{collection} is within {}", names[who]);
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(hits > 0 || queries < 100, "no question found anything, so nothing was checked");
    foreign
}

/// Lists the oldest and the newest entries that the filter of a search admits. The words of the search are
/// ignored.
async fn listed(store: &dyn MemoryStore, search: MemorySearch) -> Result<Vec<MemoryEntry>, MemoryError> {
    let mut listing = Listing::new(search.filter, MemoryOrder::First, search.limit);
    let mut entries = store.list(&listing).await?.entries;
    listing.order = MemoryOrder::Latest;
    entries.extend(store.list(&listing).await?.entries);
    Ok(entries)
}

fn two_words(chance: &mut Chance) -> String {
    let words = ["alpha", "beta", "gamma", "delta", "secret", "plan", "budget", "launch"];
    format!("{} {}", words[small(chance, 8)], words[small(chance, 8)])
}

/// Returns the name of tenant `i`. Some names contain another name, and some only have the same beginning.
fn tenant(i: usize) -> String {
    let end = ["", ":alice", ":alice:notes", "x", ";alice"][i % 5];
    format!("team:t{}{end}", i / 5)
}

fn small(chance: &mut Chance, n: u64) -> usize {
    usize::try_from(chance.below(n)).unwrap_or(0)
}

fn vector(chance: &mut Chance) -> Vec<f32> {
    (0..4).map(|_| if chance.percent(50) { 1.0 } else { -0.5 }).collect()
}
