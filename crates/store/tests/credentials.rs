//! Credentials: what every store does, and what is its own: what is on the disk, seals, versions.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::{fs, path::Path, sync::Arc, time::Duration};

use archon_store::{InMemoryCredentials, SqliteCredentials};
use archon_testkit::VirtualClock;
use archon_types::{CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId};
use serde_json::json;

const CANARY: &str = "canary-7f3a91";

fn secret(value: Json) -> Secret<Json> {
    Secret::new(value)
}

fn github(tenant: &str) -> CredentialKey {
    CredentialKey::primary(TenantId::new(tenant), "github")
}

fn open(path: &Path) -> Result<SqliteCredentials, CredentialError> {
    SqliteCredentials::open(path, Arc::new(VirtualClock::new()))
}

async fn accounts(store: &dyn CredentialStore, tenant: &str, service: Option<&str>) -> Vec<String> {
    let listed = store.list(&TenantId::new(tenant), service).await.unwrap();
    listed
        .iter()
        .map(|entry| {
            let (created, updated) = (entry.created_at.as_millis(), entry.updated_at.as_millis());
            format!("{}/{} +{}", entry.key.service, entry.key.account, updated - created)
        })
        .collect()
}

/// What every store does.
async fn check(store: &dyn CredentialStore, clock: &VirtualClock) {
    let key = github("ann");
    assert_eq!(key.account, "primary");
    assert_eq!(store.get(&key).await, Ok(None));
    assert_eq!(store.delete(&key).await, Ok(false));
    store.save(&key, secret(json!({ "token": "one" }))).await.unwrap();
    clock.advance(Duration::from_secs(5));
    store.save(&key, secret(json!({ "token": "two", "any": [1, null] }))).await.unwrap();
    store.save(&key.clone().named("work"), secret(json!("w"))).await.unwrap();
    store.save(&CredentialKey::primary("ann".into(), "aws"), secret(json!(1.5))).await.unwrap();
    store.save(&github("bob"), secret(json!("bob's"))).await.unwrap();

    let found = store.get(&key).await.unwrap().unwrap();
    assert_eq!(*found.expose(), json!({ "token": "two", "any": [1, null] }));
    assert_eq!(
        accounts(store, "ann", None).await,
        ["aws/primary +0", "github/primary +5000", "github/work +0"]
    );
    assert_eq!(accounts(store, "ann", Some("github")).await, ["github/primary +5000", "github/work +0"]);
    assert_eq!(accounts(store, "bob", None).await, ["github/primary +0"]);
    assert_eq!(accounts(store, "an", None).await, [""; 0]);
    for stranger in ["an", "ann%", "", "ANN", "ann' OR '1'='1"] {
        assert_eq!(store.get(&github(stranger)).await, Ok(None), "{stranger}");
    }
    assert_eq!(store.delete(&key).await, Ok(true));
    assert_eq!(store.get(&key).await, Ok(None));
    assert_eq!(accounts(store, "ann", None).await, ["aws/primary +0", "github/work +0"]);
    assert_eq!(*store.get(&github("bob")).await.unwrap().unwrap().expose(), json!("bob's"));
}

// spec: CR-01, CR-02, CR-03, CR-05
#[tokio::test]
async fn credential_is_found_only_under_its_own_key() {
    let clock = VirtualClock::new();
    let dir = tempfile::tempdir().unwrap();
    let shared = Arc::new(clock.clone());
    check(&InMemoryCredentials::new(shared.clone()), &clock).await;
    check(&SqliteCredentials::open(dir.path().join("new/c.db"), shared).unwrap(), &clock).await;
}

// spec: CR-03
#[tokio::test]
async fn credential_survives_a_restart_and_is_seen_by_other_connections() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    let (first, second) = (open(&path).unwrap(), open(&path).unwrap());
    first.save(&github("ann"), secret(json!("one"))).await.unwrap();
    assert_eq!(*second.get(&github("ann")).await.unwrap().unwrap().expose(), json!("one"));
    drop((first, second));
    assert_eq!(*open(&path).unwrap().get(&github("ann")).await.unwrap().unwrap().expose(), json!("one"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "its owner's alone");
    }
}

// spec: CR-05
#[tokio::test]
async fn credential_debug_and_errors_contain_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(VirtualClock::new());
    let (memory, sqlite) = (InMemoryCredentials::new(clock), open(&dir.path().join("c.db")).unwrap());
    for store in [&memory as &dyn CredentialStore, &sqlite] {
        store.save(&github("ann"), secret(json!({ "token": CANARY }))).await.unwrap();
        let (found, listed) = (store.get(&github("ann")).await, store.list(&"ann".into(), None).await);
        let shown = format!("{memory:?} {sqlite:?} {found:?} {listed:?}");
        assert!(!shown.contains(CANARY) && shown.contains("****"), "{shown}");
    }
    let outside = rusqlite::Connection::open(sqlite.path()).unwrap();
    outside.execute("UPDATE credentials SET body = CAST('{' || body AS BLOB)", []).unwrap();
    let error = sqlite.get(&github("ann")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the credentials of 'github' (primary) are damaged: the stored value is not JSON; save them again"
    );
    assert!(!format!("{error:?}").contains(CANARY));
}

// spec: CR-03
#[test]
fn foreign_or_newer_credential_database_is_refused_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    open(&path).unwrap();
    let outside = rusqlite::Connection::open(&path).unwrap();
    outside.pragma_update(None, "user_version", 2).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, CredentialError::FutureStore { found: 2, supported: 1, .. }), "{error}");
    outside.pragma_update(None, "application_id", 7).unwrap();
    assert!(open(&path).unwrap_err().to_string().ends_with("it is the database of another program"));
    fs::write(dir.path().join("text"), "not a database, and long enough to be looked at ".repeat(99))
        .unwrap();
    assert!(matches!(open(&dir.path().join("text")), Err(CredentialError::Storage(_))));
}

#[cfg(feature = "encryption")]
mod sealed {
    use archon_store::SealingKey;

    use super::*;

    fn sealed(path: &Path, byte: u8) -> Result<SqliteCredentials, CredentialError> {
        SqliteCredentials::open_sealed(path, &SealingKey::new([byte; 32]), Arc::new(VirtualClock::new()))
    }

    fn holds_canary(dir: &Path) -> bool {
        let mut files = fs::read_dir(dir).unwrap().flatten().map(|entry| fs::read(entry.path()).unwrap());
        files.any(|bytes| bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()))
    }

    // spec: CR-01, CR-02, CR-05
    #[tokio::test]
    async fn sealed_credential_store_passes_the_store_checks() {
        let clock = VirtualClock::new();
        let dir = tempfile::tempdir().unwrap();
        let key = SealingKey::from_hex(&"0aF1".repeat(16)).unwrap();
        let store =
            SqliteCredentials::open_sealed(dir.path().join("c.db"), &key, Arc::new(clock.clone())).unwrap();
        check(&store, &clock).await;
        assert!(!format!("{key:?} {store:?}").contains("10, 241"), "{key:?}");
    }

    // spec: CR-05
    #[tokio::test]
    async fn plain_credentials_are_sealed_on_open_with_a_key_and_no_plain_bytes_remain() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.db");
        let plain = open(&path).unwrap();
        for n in 0..50 {
            let value = json!({ "token": CANARY, "n": n });
            plain.save(&github("ann").named(n.to_string()), secret(value)).await.unwrap();
        }
        assert!(holds_canary(dir.path()), "the test looks where it would be");
        let store = sealed(&path, 1).unwrap();
        assert!(!holds_canary(dir.path()));
        let found = store.get(&github("ann").named("49")).await.unwrap().unwrap();
        assert_eq!(found.expose()["token"], CANARY);
        // Whoever opened it before does not write what is plain beside it.
        let error = plain.save(&github("ann"), secret(json!(CANARY))).await.unwrap_err();
        assert!(matches!(error, CredentialError::Sealed(_)), "{error}");
        store.save(&github("ann"), secret(json!(CANARY))).await.unwrap();
        assert!(!holds_canary(dir.path()));
    }

    // spec: CR-05
    #[tokio::test]
    async fn sealed_credential_store_without_its_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.db");
        sealed(&path, 1).unwrap().save(&github("ann"), secret(json!("x"))).await.unwrap();
        let said = |result: Result<SqliteCredentials, CredentialError>| {
            result.unwrap_err().to_string().replace(path.to_str().unwrap(), "DB")
        };
        assert_eq!(
            said(open(&path)),
            "the credentials cannot be decrypted: this database needs the key that it was sealed with: DB"
        );
        assert_eq!(
            said(sealed(&path, 2)),
            "the credentials cannot be decrypted: this is not the key that the database was sealed with: DB"
        );
        assert_eq!(
            *sealed(&path, 1).unwrap().get(&github("ann")).await.unwrap().unwrap().expose(),
            json!("x")
        );
        let none = SealingKey::from_hex("abc").unwrap_err().to_string();
        let text =
            "the credentials cannot be decrypted: the key must have 64 hexadecimal digits (32 random bytes)";
        assert_eq!(none, text);
        assert!(SealingKey::from_hex(&"+1".repeat(32)).is_err());
    }

    // spec: CR-05
    #[tokio::test]
    async fn sealing_key_in_file_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, file) = (dir.path().join("c.db"), dir.path().join("keys/c.key"));
        for said in ["one", "two"] {
            let key = SealingKey::in_file(&file).unwrap();
            let store = SqliteCredentials::open_sealed(&path, &key, Arc::new(VirtualClock::new())).unwrap();
            store.save(&github("ann"), secret(json!(said))).await.unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        fs::write(&file, "short").unwrap();
        let error = SealingKey::in_file(&file).unwrap_err().to_string();
        assert!(error.contains("c.key: the file is not a key of 32 bytes"), "{error}");
    }

    // spec: CR-05
    #[tokio::test]
    async fn a_row_that_was_changed_or_moved_to_another_tenant_does_not_open() {
        let dir = tempfile::tempdir().unwrap();
        let store = sealed(&dir.path().join("c.db"), 1).unwrap();
        store.save(&github("ann"), secret(json!("ann's"))).await.unwrap();
        store.save(&github("bob"), secret(json!("bob's"))).await.unwrap();
        let bodies = |sql: &str| {
            let outside = rusqlite::Connection::open(store.path()).unwrap();
            outside.execute(sql, []).unwrap()
        };
        bodies(
            "UPDATE credentials SET body = (SELECT body FROM credentials WHERE tenant = 'ann') WHERE tenant = 'bob'",
        );
        let error = store.get(&github("bob")).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "the credentials of 'github' (primary) are damaged: the stored value was changed, or belongs to another account or key; save them again"
        );
        assert_eq!(*store.get(&github("ann")).await.unwrap().unwrap().expose(), json!("ann's"));
        bodies("UPDATE credentials SET body = zeroblob(3)");
        assert!(matches!(store.get(&github("ann")).await, Err(CredentialError::Damaged { .. })));
    }

    // spec: CR-05
    #[tokio::test]
    async fn sealing_the_same_secret_twice_gives_different_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let store = sealed(&dir.path().join("c.db"), 1).unwrap();
        let outside = rusqlite::Connection::open(store.path()).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..20 {
            store.save(&github("ann"), secret(json!("x"))).await.unwrap();
            let body: Vec<u8> =
                outside.query_row("SELECT body FROM credentials", [], |row| row.get(0)).unwrap();
            assert!(seen.insert(body));
        }
    }
}
