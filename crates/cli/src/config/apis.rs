//! HTTP APIs in settings.

#![cfg_attr(
    not(all(feature = "openapi", feature = "setup")),
    allow(dead_code, reason = "without APIs only the syntax is checked")
)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{resolve, variables};

/// `[openapi.NAME]` of a settings file: an HTTP API, whose operations the agent gets as tools `NAME__OPERATION`. `archon
/// openapi import` writes it. In the texts of `auth` and `headers` `${VAR}` is replaced by a variable.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApiSettings {
    /// The file or the address of the OpenAPI document. A run never fetches it: it reads the copy that was made at the
    /// import, or the file itself.
    pub(crate) document: String,
    /// The SHA-256 of the document. Another document is not used.
    pub(crate) digest: String,
    /// The address that the paths of the operations are appended to; by default the servers of the document.
    pub(crate) base_url: Option<String>,
    /// The credentials that calls send; by default none.
    pub(crate) auth: Option<ApiAuthSettings>,
    /// The headers of each request.
    pub(crate) headers: BTreeMap<String, String>,
    /// The tags whose operations become tools; by default all.
    pub(crate) tags: Vec<String>,
    /// The operations that become tools, by their `operationId`; by default all.
    pub(crate) operations: Vec<String>,
    /// True names an operation without an `operationId` by its method and its path; by default it is left out.
    pub(crate) name_by_path: bool,
    /// False leaves the API out; by default true.
    pub(crate) enabled: Option<bool>,
    /// True if the API is in a project's file. No stored key is sent to such an API.
    #[serde(skip)]
    pub(crate) is_of_project: bool,
    /// True if a project's file has another API of the same name, which is not used.
    #[serde(skip)]
    pub(crate) hides_one_of_project: bool,
}

/// `[openapi.NAME.auth]` of a settings file: the credentials of an API, in one of seven forms: `bearer`; `account`;
/// `header` and `key`; `query` and `key`; `user` and `password`; `token_url`, `client_id` and `client_secret`;
/// `authorize_url`, `token_url` and `client_id`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApiAuthSettings {
    /// The token of the header `Authorization: Bearer`, as `"${VAR}"`.
    pub(crate) bearer: Option<String>,
    /// The name of the stored key that is the token of the header `Authorization: Bearer`, for each tenant its own: see
    /// `archon credentials add NAME --tenant TENANT`. Only in your own settings.
    pub(crate) account: Option<String>,
    /// The name of the header with the key.
    pub(crate) header: Option<String>,
    /// The name of the query's parameter with the key.
    pub(crate) query: Option<String>,
    /// The key, as `"${VAR}"`.
    pub(crate) key: Option<String>,
    /// The user name (HTTP Basic).
    pub(crate) user: Option<String>,
    /// The password, as `"${VAR}"`.
    pub(crate) password: Option<String>,
    /// The address at which you sign in with a browser, with `archon openapi login` (OAuth 2, authorization code). Only
    /// in your own settings.
    pub(crate) authorize_url: Option<String>,
    /// The address at which this program gets tokens (OAuth 2): your tokens after a sign-in, or its own tokens (client
    /// credentials).
    pub(crate) token_url: Option<String>,
    /// The id of this program at the authorization server.
    pub(crate) client_id: Option<String>,
    /// The secret of this program at the authorization server, as `"${VAR}"`; optional with `authorize_url`.
    pub(crate) client_secret: Option<String>,
    /// The scopes to ask for; by default the server chooses.
    pub(crate) scopes: Vec<String>,
}

/// The credentials of an API, as the settings write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiAuthForm<'s> {
    Bearer { token: &'s str },
    Account { name: &'s str },
    HeaderKey { name: &'s str, key: &'s str },
    QueryKey { name: &'s str, key: &'s str },
    Basic { user: &'s str, password: &'s str },
    Program { token_url: &'s str, id: &'s str, secret: &'s str },
    Person { authorize_url: &'s str, token_url: &'s str, id: &'s str, secret: Option<&'s str> },
}

impl ApiAuthSettings {
    /// Returns the form; `None` if the fields that are set belong to no form.
    pub(crate) fn form(&self) -> Option<ApiAuthForm<'_>> {
        let fields: Vec<(&str, &str)> = self.fields().collect();
        match fields.as_slice() {
            [("bearer", token)] => Some(ApiAuthForm::Bearer { token }),
            [("account", name)] => Some(ApiAuthForm::Account { name }),
            [("header", name), ("key", key)] => Some(ApiAuthForm::HeaderKey { name, key }),
            [("query", name), ("key", key)] => Some(ApiAuthForm::QueryKey { name, key }),
            [("user", user), ("password", password)] => Some(ApiAuthForm::Basic { user, password }),
            [("token_url", token_url), ("client_id", id), ("client_secret", secret)] => {
                Some(ApiAuthForm::Program { token_url, id, secret })
            }
            [("authorize_url", authorize_url), ("token_url", token_url), ("client_id", id), more @ ..] => {
                let secret = match more {
                    [] => None,
                    [("client_secret", secret)] => Some(*secret),
                    _ => return None,
                };
                Some(ApiAuthForm::Person { authorize_url, token_url, id, secret })
            }
            _ => None,
        }
    }

    fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("bearer", &self.bearer),
            ("account", &self.account),
            ("header", &self.header),
            ("query", &self.query),
            ("key", &self.key),
            ("user", &self.user),
            ("password", &self.password),
            ("authorize_url", &self.authorize_url),
            ("token_url", &self.token_url),
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
        ];
        all.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }

    fn problem(&self) -> Option<String> {
        if self.form().is_none() {
            return Some(
                "`auth` needs `bearer`; or `account`; or `key` with `header` or `query`; or `user` and `password`; or \
                 `token_url`, `client_id` and `client_secret`; or `authorize_url`, `token_url` and `client_id`"
                    .to_owned(),
            );
        }
        if let Some((name, _)) = self.fields().find(|(name, text)| is_secret(name) && !has_variable(text)) {
            return Some(format!(
                "`{name}` has the secret itself; write a variable, as in {name} = \"${{SECRET}}\", and store it: archon \
                 credentials add SECRET"
            ));
        }
        self.fields().find_map(|(name, text)| Some(format!("`auth.{name}`: {}", variables::problem(text)?)))
    }
}

fn is_secret(field: &str) -> bool {
    ["bearer", "key", "password", "client_secret"].contains(&field)
}

fn has_variable(text: &str) -> bool {
    text.contains("${")
}

impl ApiSettings {
    /// Returns the first problem that can be found without the document and without the environment.
    fn problem(&self) -> Option<String> {
        if self.document.is_empty() || self.digest.is_empty() {
            return Some("it needs a `document` and its `digest`; use `archon openapi import`".to_owned());
        }
        if self.digest.len() != 64 || !self.digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Some("its `digest` is not a SHA-256: use 64 digits and letters from a to f".to_owned());
        }
        if !self.tags.is_empty() && !self.operations.is_empty() {
            return Some("it has `tags` and `operations`; remove one of them".to_owned());
        }
        let of_auth = self.auth.as_ref().and_then(ApiAuthSettings::problem);
        let mut headers = self.headers.values();
        of_auth.or_else(|| headers.find_map(|text| Some(format!("`headers`: {}", variables::problem(text)?))))
    }

    /// Returns true if a person signs in with a browser.
    pub(crate) fn has_person_sign_in(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.authorize_url.is_some())
    }

    /// Returns the secrets that calls send: the names of the variables and of the stored key, and the tokens of a sign-in.
    pub(crate) fn secrets_in_words(&self) -> Vec<&str> {
        let tokens = self.has_person_sign_in().then_some("the tokens of your sign-in");
        let account = self.auth.iter().filter_map(|auth| auth.account.as_deref());
        self.variables().into_iter().chain(account).chain(tokens).collect()
    }

    /// Returns the names of the variables that the credentials and the headers need.
    pub(crate) fn variables(&self) -> Vec<&str> {
        let auth = self.auth.iter().flat_map(|auth| auth.fields().map(|(_, text)| text));
        let texts = auth.chain(self.headers.values().map(String::as_str));
        texts.flat_map(variables::names).collect()
    }
}

/// Returns true if `document` is an address, and false if it is the path of a file.
pub(crate) fn is_address(document: &str) -> bool {
    document.starts_with("https://") || document.starts_with("http://")
}

/// APIs by their names.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeMap<String, ApiSettings>")]
pub(crate) struct Apis(BTreeMap<String, ApiSettings>);

impl Apis {
    /// Adds another layer. The user's own API stays if a project has one of the same name: its tools have the rules and
    /// the trust of the person.
    pub(crate) fn and(mut self, more: Self) -> Self {
        for (name, api) in more.0 {
            match self.0.get_mut(&name) {
                Some(own) if api.is_of_project && !own.is_of_project => own.hides_one_of_project = true,
                _ => drop(self.0.insert(name, api)),
            }
        }
        self
    }

    /// Returns the APIs, ordered by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &ApiSettings)> {
        self.0.iter()
    }

    /// Returns the API with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&ApiSettings> {
        self.0.get(name)
    }

    /// Marks the APIs as those of a project.
    pub(super) fn mark_as_of_project(&mut self) {
        self.0.values_mut().for_each(|api| api.is_of_project = true);
    }

    /// Makes the paths of documents relative to the settings file.
    pub(super) fn resolve_paths(&mut self, file: &Path) {
        for api in self.0.values_mut().filter(|api| !is_address(&api.document)) {
            let mut path = Some(PathBuf::from(&api.document));
            resolve(file, &mut path);
            api.document = path.map(|path| path.display().to_string()).unwrap_or_default();
        }
    }
}

impl TryFrom<BTreeMap<String, ApiSettings>> for Apis {
    type Error = String;

    fn try_from(apis: BTreeMap<String, ApiSettings>) -> Result<Self, String> {
        let problem =
            apis.iter().find_map(|(name, api)| Some(format!("[openapi.{name}]: {}", api.problem()?)));
        match problem {
            Some(problem) => Err(problem),
            None => Ok(Self(apis)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_an_api_is_named_with_its_setting() {
        let digest = "a".repeat(64);
        let complete = format!("document = 'a.yaml'\ndigest = '{digest}'\n");
        for (text, expected) in [
            ("", None),
            ("auth = { bearer = '${A}' }", None),
            ("auth = { account = 'SHOP_TOKEN' }", None),
            ("auth = { account = 'SHOP_TOKEN', bearer = '${A}' }", Some("`auth` needs `bearer`; or")),
            ("auth = { key = '${A}', header = 'X-Key' }", None),
            (
                "auth = { token_url = 'https://a', client_id = 'b', client_secret = '${A}', scopes = ['c'] }",
                None,
            ),
            ("auth = { authorize_url = 'https://a', token_url = 'https://b', client_id = 'c' }", None),
            (
                "auth = { authorize_url = 'https://a', token_url = 'https://b', client_id = 'c', client_secret = '${A}' }",
                None,
            ),
            ("auth = { authorize_url = 'https://a', client_id = 'c' }", Some("`auth` needs `bearer`; or")),
            ("auth = { key = '${A}' }", Some("`auth` needs `bearer`; or")),
            ("auth = { bearer = '${A}', user = 'b' }", Some("`auth` needs `bearer`; or")),
            ("auth = { bearer = 'tok' }", Some("`bearer` has the secret itself; write a variable")),
            ("auth = { bearer = '${A' }", Some("`auth.bearer`: `${` has no `}`")),
            ("headers = { X = '${' }", Some("`headers`: `${` has no `}`")),
            ("tags = ['a']\noperations = ['b']", Some("it has `tags` and `operations`")),
        ] {
            let api: ApiSettings = toml::from_str(&format!("{complete}{text}")).unwrap();
            let problem = api.problem().unwrap_or_default();
            assert!(problem.starts_with(expected.unwrap_or_default()), "{text}: {problem}");
            assert_eq!(problem.is_empty(), expected.is_none(), "{text}: {problem}");
        }
        let without = |text: &str| toml::from_str::<ApiSettings>(text).unwrap().problem().unwrap();
        assert!(without("document = 'a.yaml'").contains("use `archon openapi import`"));
        assert!(without("document = 'a.yaml'\ndigest = '12'").contains("is not a SHA-256"));
        assert!(toml::from_str::<ApiSettings>("is_of_project = false").is_err());
    }

    #[test]
    fn own_api_stays_if_a_project_has_one_of_its_name() {
        let apis = |names: &[&str], document: &str| {
            let api = |name: &&str| {
                let api = ApiSettings { document: document.to_owned(), ..ApiSettings::default() };
                ((*name).to_owned(), api)
            };
            Apis(names.iter().map(api).collect())
        };
        let mut of_project = apis(&["shop", "theirs"], "theirs.yaml");
        of_project.mark_as_of_project();
        let all = apis(&["shop", "mine"], "mine.yaml").and(of_project);
        let found: Vec<_> = all
            .iter()
            .map(|(name, api)| (name.as_str(), api.document.as_str(), api.hides_one_of_project))
            .collect();
        let expected =
            [("mine", "mine.yaml", false), ("shop", "mine.yaml", true), ("theirs", "theirs.yaml", false)];
        assert_eq!(found, expected);
    }

    #[test]
    fn variables_are_those_of_the_credentials_and_headers() {
        let text = "auth = { user = '${NAME}', password = '${WORD}' }\nheaders = { A = 'b', C = 'x ${KEY}' }";
        let api: ApiSettings = toml::from_str(text).unwrap();
        assert_eq!(api.variables(), ["NAME", "WORD", "KEY"]);
    }
}
