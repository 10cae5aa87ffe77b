//! The access tokens of the settings. Their secrets are in the environment, or in files that only their owner reads.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    Runs,
    server::{AccessToken, Role, Scope, ServeError},
    types::Secret,
};

use crate::{
    app::App,
    config::{RoleName, ServeSettings, TokenSettings},
    failure::Failure,
    own_file,
};

/// The name of the only token, if the settings have no tokens.
const OWNER: &str = "owner";
/// The folder of the files, in the data folder.
const FOLDER: &str = "tokens";
/// The minimum length of a secret in bytes.
const SHORTEST: usize = 16;

/// The tokens of the settings, by their names.
pub(super) struct Tokens(BTreeMap<String, TokenSettings>);

/// A token with its secret.
pub(super) struct Access {
    pub(super) name: String,
    pub(super) role: Role,
    /// The variable or the file that has the secret.
    pub(super) source: Source,
    pub(super) access: AccessToken,
}

/// The variable or the file that has the secret of a token.
pub(super) enum Source {
    Variable(String),
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Tokens {
    /// Returns the tokens of the settings; if there are none, one token for the owner.
    ///
    /// # Errors
    /// [`Failure`] if the name of a token cannot be the name of a file.
    pub(super) fn of(settings: &ServeSettings) -> Result<Self, Failure> {
        let mut tokens = settings.tokens.clone();
        if tokens.is_empty() {
            let owner = TokenSettings { role: RoleName::Admin, tenant: None, variable: None };
            tokens.insert(OWNER.to_owned(), owner);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_name = |name: &str| (1..=64).contains(&name.len()) && name.chars().all(is_plain);
        match tokens.keys().find(|name| !is_name(name)) {
            Some(name) => Err(Failure::usage(
                format!("[serve.tokens] has a token with the name {name:?}"),
                "give it a name of 1 to 64 letters, digits, _ or -",
            )),
            None => Ok(Self(tokens)),
        }
    }

    /// Returns the name of the first token that is limited to the runs of one tenant.
    pub(super) fn first_of_a_tenant(&self) -> Option<&str> {
        self.0.iter().find(|(_, token)| token.tenant.is_some()).map(|(name, _)| name.as_str())
    }

    /// Returns the tenant of each token; a token without one is of the tenant `local`.
    #[cfg(all(feature = "skills", feature = "triggers"))]
    pub(super) fn tenants(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, token)| (name.clone(), token.own_tenant().to_owned())).collect()
    }

    /// Reads the secrets of the tokens from their variables or files. If a token has no variable and its file is
    /// missing, writes the file with a random secret. `add` lets a token reach agents and tasks; it gets the tenant of
    /// the token.
    ///
    /// # Errors
    /// [`Failure`] if a secret is missing, too short, or in a file that others can read.
    pub(super) fn access(
        self,
        app: &App,
        runs: &Runs,
        add: impl Fn(Scope, Option<&str>) -> Scope,
    ) -> Result<Vec<Access>, Failure> {
        let mut tokens = Vec::new();
        for (name, settings) in self.0 {
            let scope = match &settings.tenant {
                Some(tenant) => Scope::new(Arc::new(runs.for_tenant(tenant.clone()))),
                None => Scope::new(Arc::new(runs.clone())),
            };
            let scope = add(scope, settings.tenant.as_deref());
            let role = Role::from(settings.role);
            let (source, access) = match settings.variable {
                Some(variable) => {
                    let secret = from_variable(app, &name, &variable)?;
                    let access =
                        AccessToken::new(&name, secret, role, scope).map_err(|e| no_token(&name, &e))?;
                    (Source::Variable(variable), access)
                }
                None => {
                    let path = app.data_dir.join(FOLDER).join(&name);
                    let access = from_file(&path, &name, role, &scope)?;
                    (Source::File(path), access)
                }
            };
            tokens.push(Access { name, role, source, access });
        }
        Ok(tokens)
    }
}

fn from_variable(app: &App, name: &str, variable: &str) -> Result<Secret, Failure> {
    let set = format!("set it to a random text of {SHORTEST} characters or more: export {variable}=…");
    let secret = app.sources.env.get(variable).map(|secret| secret.trim()).unwrap_or_default();
    match secret.len() {
        0 => Err(Failure::usage(format!("the variable {variable} for the token {name} is not set"), set)),
        length if length < SHORTEST => {
            Err(Failure::usage(format!("the token {name} in the variable {variable} is too short"), set))
        }
        _ => Ok(Secret::from(secret)),
    }
}

fn from_file(path: &Path, name: &str, role: Role, scope: &Scope) -> Result<AccessToken, Failure> {
    let renew = "make the file readable for you alone, or remove it: then a new token is written";
    let Some(text) = own_file::read(path).map_err(|e| Failure::unreadable(path, &e, renew))? else {
        let access = AccessToken::random(name, role, scope.clone()).map_err(|e| no_token(name, &e))?;
        let text = format!("{}\n", access.secret().expose());
        let advice = "make the folder writable, or set `variable` of the token";
        own_file::replace(path, &text).map_err(|e| Failure::unwritable(path, &e, advice))?;
        return Ok(access);
    };
    if is_shared(path) {
        let what = format!("other users can read the token {name} in {}", path.display());
        return Err(Failure::usage(what, "remove the file: then a new token is written"));
    }
    let secret = text.trim();
    if secret.len() < SHORTEST {
        let what = format!("the token {name} in {} is empty or too short", path.display());
        return Err(Failure::usage(what, "remove the file: then a new token is written"));
    }
    AccessToken::new(name, secret, role, scope.clone()).map_err(|e| no_token(name, &e))
}

fn no_token(name: &str, e: &ServeError) -> Failure {
    Failure::failed(format!("the token {name} cannot be created: {e}"), "try again")
}

/// Returns true if users other than the owner of the file can read it.
#[cfg(unix)]
pub(super) fn is_shared(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|there| there.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_shared(_: &Path) -> bool {
    false
}
