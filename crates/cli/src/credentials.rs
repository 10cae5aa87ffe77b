//! Stored keys of services: encrypted in the data folder, and used if the environment has no key.
//!
//! The keys are in `credentials.db`, encrypted with the key in `credentials.key` next to it, or with the key
//! in the variable [`SEALING_KEY`]. A stored key replaces a variable of its service and is used wherever
//! that variable would be used, so it is sent to the same addresses and no others.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use archon::{
    providers::{PROFILES, PROTOCOLS},
    types::{CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret, TenantId},
};
use serde_json::json;

use crate::{
    config::{LOCAL, Sources},
    failure::Failure,
    name_advice::name_advice,
};

/// The variable with the encryption key of the stored keys: 64 hexadecimal digits.
#[cfg(feature = "credentials")]
pub(crate) const SEALING_KEY: &str = "ARCHON_CREDENTIALS_KEY";

/// The variable with the key of the web search.
pub(crate) const SEARCH_KEY: &str = "BRAVE_API_KEY";

/// The name of the service of `web_search`.
const SEARCH: &str = "brave-search";

/// A service that takes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// The service's name, which is also the prefix of its models, except for the service of `web_search`.
    pub(crate) name: &'static str,
    /// The variables that may have the service's key; a stored key replaces the first.
    pub(crate) variables: &'static [&'static str],
}

impl Service {
    /// Returns the name of the variable that a stored key replaces.
    pub(crate) fn variable(self) -> &'static str {
        self.variables.first().copied().unwrap_or_default()
    }

    /// Returns the service with this name. Services that read the same variable share a key. The name of a
    /// variable that no service reads is its own service, for MCP servers.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        if is_variable(name) {
            // The program stores or removes one key, and ends.
            let name: &'static str = name.to_owned().leak();
            return Ok(service_of(name).unwrap_or(Self { name, variables: vec![name].leak() }));
        }
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.alias == Some(name));
        let name = protocol.map_or(name, |protocol| protocol.name);
        let own = PROTOCOLS.iter().find(|p| p.name == name).and_then(|p| p.key_variables.first());
        let is_meant = |service: &Self| service.name == name || own == Some(&service.variable());
        if let Some(service) = services().find(is_meant) {
            return Ok(service);
        }
        if PROFILES.iter().any(|profile| profile.name == name) {
            return Err(Failure::usage(format!("{name} needs no key"), "use it: --model PROVIDER:MODEL"));
        }
        let names: Vec<_> = services().map(|service| service.name).collect();
        let advice = name_advice(name, "services", names.into_iter());
        Err(Failure::usage(format!("there is no service {name:?}"), advice))
    }
}

/// Returns all services that take a key, one for each variable.
pub(crate) fn services() -> impl Iterator<Item = Service> {
    let profiles = PROFILES.iter().map(|p| Service { name: p.name, variables: p.key_variable.as_slice() });
    let protocols = PROTOCOLS.iter().map(|p| Service { name: p.name, variables: p.key_variables });
    let all: Vec<_> = profiles
        .chain(protocols)
        .chain([Service { name: SEARCH, variables: &[SEARCH_KEY] }])
        .filter(|service| !service.variables.is_empty())
        .collect();
    let is_first = |at: usize, of: &[Service]| of[..at].iter().all(|s| s.variable() != of[at].variable());
    (0..all.len()).filter(|at| is_first(*at, &all)).map(|at| all[at]).collect::<Vec<_>>().into_iter()
}

/// Returns true if a name is the name of a variable and not of a service: it is in capitals.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Returns the service whose stored key replaces this variable.
pub(crate) fn service_of(variable: &str) -> Option<Service> {
    services().find(|service| service.variable() == variable)
}

/// Opens the store, and creates it if needed.
#[cfg(feature = "credentials")]
pub(crate) fn open(data_dir: &Path, sources: &Sources) -> Result<Arc<dyn CredentialStore>, Failure> {
    use archon::{
        SystemClock,
        store::{SealingKey, SqliteCredentials},
    };

    let key = match sources.env.get(SEALING_KEY).filter(|digits| !digits.is_empty()) {
        Some(digits) => SealingKey::from_hex(digits).map_err(|e| {
            Failure::usage(format!("the variable {SEALING_KEY}: {e}"), "correct the variable, or unset it")
        })?,
        None => SealingKey::in_file(data_dir.join("credentials.key"))?,
    };
    Ok(Arc::new(SqliteCredentials::open_sealed(database(data_dir), &key, Arc::new(SystemClock))?))
}

/// Returns the error: this build has no store.
#[cfg(not(feature = "credentials"))]
pub(crate) fn open(_: &Path, _: &Sources) -> Result<Arc<dyn CredentialStore>, Failure> {
    Err(not_built())
}

/// Checks that this build can store keys.
///
/// # Errors
/// [`Failure`] if this build has no store.
pub(crate) fn check_built() -> Result<(), Failure> {
    if cfg!(feature = "credentials") { Ok(()) } else { Err(not_built()) }
}

fn not_built() -> Failure {
    Failure::usage(
        "`archon credentials` is not in this build",
        "set the variable of the service, or build with `--features credentials`",
    )
}

/// Opens the store if it exists; creates no files.
pub(crate) fn open_store(
    data_dir: &Path,
    sources: &Sources,
) -> Result<Option<Arc<dyn CredentialStore>>, Failure> {
    database(data_dir).exists().then(|| open(data_dir, sources)).transpose()
}

fn database(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("credentials.db")
}

/// Returns the tenant of the keys that are stored for no other tenant: the person who uses this program.
pub(crate) fn owner() -> TenantId {
    TenantId::new(LOCAL)
}

/// Returns the tenant that a flag names; without a name, [`owner`].
pub(crate) fn tenant(name: Option<String>) -> TenantId {
    name.map_or_else(owner, TenantId::new)
}

/// Returns the id under which the store keeps a tenant's key for a service. `account` is the name of the key.
pub(crate) fn place(service: Service, account: &str, tenant: TenantId) -> CredentialKey {
    CredentialKey::primary(tenant, service.name).named(account)
}

/// Returns a key in the form in which the store keeps it.
pub(crate) fn sealed(key: &Secret) -> Secret<Json> {
    Secret::new(json!({ FIELD: key.expose() }))
}

const FIELD: &str = "api_key";

/// The stored keys, by the environment variables that they replace.
#[derive(Clone, Default)]
pub(crate) struct StoredKeys(BTreeMap<String, Secret>);

impl StoredKeys {
    /// Loads the stored keys of services without a key in the environment. The `primary` key takes
    /// precedence.
    pub(crate) async fn load(data_dir: &Path, sources: &Sources) -> Result<Self, Failure> {
        let mut keys = Self::default();
        let Some(store) = open_store(data_dir, sources)? else { return Ok(keys) };
        let is_set = |name: &str| sources.env.get(name).is_some_and(|value| !value.trim().is_empty());
        for service in services().filter(|service| !service.variables.iter().any(|name| is_set(name))) {
            let mut entries = store.list(&owner(), Some(service.name)).await?;
            entries.sort_by_key(|entry| entry.key.account != "primary");
            for (at, entry) in entries.iter().enumerate() {
                let variable = match at {
                    0 => service.variable().to_owned(),
                    at => format!("{}_{}", service.variable(), at + 1),
                };
                keys.0.insert(variable, key_of(&*store, entry).await?);
            }
        }
        let others = store.list(&owner(), None).await?.into_iter();
        for entry in others.filter(|entry| is_variable(&entry.key.service) && !is_set(&entry.key.service)) {
            keys.0.insert(entry.key.service.clone(), key_of(&*store, &entry).await?);
        }
        Ok(keys)
    }

    pub(crate) fn get(&self, variable: &str) -> Option<&str> {
        self.0.get(variable).map(|key| key.expose().as_str())
    }

    /// Creates a set with one key, which replaces `variable`.
    #[cfg(any(test, feature = "setup"))]
    pub(crate) fn of(variable: &str, key: &str) -> Self {
        Self([(variable.to_owned(), Secret::from(key.to_owned()))].into())
    }
}

async fn key_of(store: &dyn CredentialStore, entry: &CredentialEntry) -> Result<Secret, Failure> {
    let found = store.get(&entry.key).await?;
    let key = found.as_ref().and_then(|found| found.expose().get(FIELD)?.as_str());
    key.map(|key| Secret::from(key.to_owned())).ok_or_else(|| {
        let (service, account) = (&entry.key.service, &entry.key.account);
        Failure::failed(
            format!("the stored credential of {service} ({account}) is not a key"),
            format!("store it again: archon credentials add {service} --account {account}"),
        )
    })
}

impl fmt::Debug for StoredKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<CredentialError> for Failure {
    fn from(e: CredentialError) -> Self {
        let advice = match &e {
            CredentialError::Sealed(_) => {
                "restore the key with which they were encrypted (credentials.key in the data folder, or \
                 ARCHON_CREDENTIALS_KEY), or remove credentials.db and store them again"
            }
            CredentialError::Damaged { .. } => "store them again: archon credentials add SERVICE",
            CredentialError::FutureStore { .. } => "use the newer version of the program",
            _ => "check that the data folder can be read and written: `archon doctor` shows its path",
        };
        let what = e.to_string();
        let what = what.split("; ").next().unwrap_or(&what);
        Self::failed(what, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: CR-02
    #[test]
    fn service_is_known_by_each_of_its_names_and_by_one_variable() {
        for (name, expected) in [
            ("openai", "openai OPENAI_API_KEY"),
            ("openai-responses", "openai OPENAI_API_KEY"),
            ("anthropic", "anthropic ANTHROPIC_API_KEY"),
            ("google", "gemini GEMINI_API_KEY"),
            ("brave-search", "brave-search BRAVE_API_KEY"),
            ("BRAVE_API_KEY", "brave-search BRAVE_API_KEY"),
            ("GITHUB_TOKEN", "GITHUB_TOKEN GITHUB_TOKEN"),
        ] {
            let service = Service::named(name).unwrap();
            assert_eq!(format!("{} {}", service.name, service.variable()), expected, "{name}");
        }
        assert_eq!(Service::named("ollama").unwrap_err().what(), "ollama needs no key");
        let wrong = Service::named("opnai").unwrap_err();
        assert!(wrong.advice()[0].starts_with("did you mean openai? "), "{wrong:?}");
    }

    // spec: CR-05
    #[test]
    fn stored_keys_are_listed_without_their_value() {
        let keys = StoredKeys::of("OPENAI_API_KEY", "sk-canary");
        assert_eq!(format!("{keys:?}"), r#"{"OPENAI_API_KEY"}"#);
    }
}
