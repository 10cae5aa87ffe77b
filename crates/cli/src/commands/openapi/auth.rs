//! `--auth FORM` of `archon openapi import`: the credentials of an API. Their secrets are variables, named after the API,
//! which a person sets or stores.

#![cfg_attr(not(feature = "setup"), allow(dead_code, reason = "this build cannot change settings"))]

/// The kind of credentials that calls of an API send: the value of `--auth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthFlag {
    None,
    Bearer,
    Basic,
    Header(String),
    Query(String),
    ClientCredentials,
    AuthorizationCode,
}

/// The flags for the forms of OAuth 2.
#[derive(Clone, Debug, Default, clap::Args)]
#[cfg_attr(not(feature = "setup"), allow(dead_code, reason = "this build cannot change settings"))]
pub(crate) struct OAuthFlags {
    /// The address at which you sign in, with `--auth authorization-code`
    #[arg(long, value_name = "URL")]
    authorize_url: Option<String>,
    /// The address for tokens, with `--auth client-credentials` or `authorization-code`
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    /// The id of this program there, with `--auth authorization-code`
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The scopes to ask for, with `--token-url`
    #[arg(long, value_name = "a,b", value_delimiter = ',', requires = "token_url")]
    scope: Vec<String>,
}

/// Parses the value of `--auth`, such as `bearer` or `header=NAME`.
pub(super) fn parse(text: &str) -> Result<AuthFlag, String> {
    match text.split_once('=') {
        Some(("header", name)) if !name.is_empty() => Ok(AuthFlag::Header(name.to_owned())),
        Some(("query", name)) if !name.is_empty() => Ok(AuthFlag::Query(name.to_owned())),
        Some(_) => Err("write header=NAME or query=NAME".to_owned()),
        None => match text {
            "none" => Ok(AuthFlag::None),
            "bearer" => Ok(AuthFlag::Bearer),
            "basic" => Ok(AuthFlag::Basic),
            "client-credentials" => Ok(AuthFlag::ClientCredentials),
            "authorization-code" => Ok(AuthFlag::AuthorizationCode),
            _ => Err("the forms are none, bearer, basic, header=NAME, query=NAME, client-credentials and \
                      authorization-code"
                .to_owned()),
        },
    }
}

#[cfg(feature = "setup")]
pub(super) use with_setup::{chosen, in_words};

#[cfg(feature = "setup")]
mod with_setup {
    use archon::openapi::{SecurityKind, SecurityScheme};
    use toml::{Table, Value};

    use super::{AuthFlag, OAuthFlags};
    use crate::failure::Failure;

    /// Returns the form for the first security scheme of a document that needs no address for tokens, because a person
    /// would have to agree to that address; [`AuthFlag::None`] if there is no such scheme.
    pub(in super::super) fn chosen(schemes: &[SecurityScheme]) -> AuthFlag {
        let form = |scheme: &SecurityScheme| match &scheme.kind {
            SecurityKind::Bearer => Some(AuthFlag::Bearer),
            SecurityKind::Basic => Some(AuthFlag::Basic),
            SecurityKind::HeaderKey(name) if !name.is_empty() => Some(AuthFlag::Header(name.clone())),
            SecurityKind::QueryKey(name) if !name.is_empty() => Some(AuthFlag::Query(name.clone())),
            _ => None,
        };
        schemes.iter().find_map(form).unwrap_or(AuthFlag::None)
    }

    /// Describes a security scheme for people.
    pub(in super::super) fn in_words(kind: &SecurityKind) -> String {
        match kind {
            SecurityKind::Bearer => "a bearer token".to_owned(),
            SecurityKind::Basic => "a user name and a password".to_owned(),
            SecurityKind::HeaderKey(name) => format!("a key in the header {name}"),
            SecurityKind::QueryKey(name) => format!("a key in the query, {name}"),
            SecurityKind::ClientCredentials { token_url, .. } => {
                format!("a token for this program: --auth client-credentials --token-url {token_url}")
            }
            SecurityKind::AuthorizationCode { authorize_url, token_url, .. } => format!(
                "a sign-in of yours: --auth authorization-code --authorize-url {authorize_url} --token-url {token_url} \
                 --client-id ID"
            ),
            SecurityKind::Other(other) => format!("{other}, which this command does not have"),
            _ => "another form, which this command does not have".to_owned(),
        }
    }

    impl AuthFlag {
        /// Returns the table `auth` of the settings; `None` without credentials. The variables are named after the API.
        ///
        /// # Errors
        /// [`Failure`] if the form and the flags for OAuth 2 do not fit.
        pub(in super::super) fn table(
            &self,
            name: &str,
            flags: &OAuthFlags,
        ) -> Result<Option<Table>, Failure> {
            flags.check(self)?;
            let name = name.to_uppercase().replace('-', "_");
            let variable = |what: &str| Value::from(format!("${{{name}_{what}}}"));
            let written = |text: &str| Value::from(text.to_owned());
            let flag = |flag: &Option<String>| written(flag.as_deref().unwrap_or_default());
            let mut fields = match self {
                Self::None => return Ok(None),
                Self::Bearer => vec![("bearer", variable("TOKEN"))],
                Self::Basic => vec![("user", variable("USER")), ("password", variable("PASSWORD"))],
                Self::Header(header) => vec![("header", written(header)), ("key", variable("KEY"))],
                Self::Query(query) => vec![("query", written(query)), ("key", variable("KEY"))],
                Self::ClientCredentials => vec![
                    ("token_url", flag(&flags.token_url)),
                    ("client_id", variable("CLIENT_ID")),
                    ("client_secret", variable("CLIENT_SECRET")),
                ],
                Self::AuthorizationCode => vec![
                    ("authorize_url", flag(&flags.authorize_url)),
                    ("token_url", flag(&flags.token_url)),
                    ("client_id", flag(&flags.client_id)),
                ],
            };
            let scopes: Vec<Value> = flags.scope.iter().map(|scope| written(scope)).collect();
            if !scopes.is_empty() {
                fields.push(("scopes", Value::Array(scopes)));
            }
            Ok(Some(fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()))
        }
    }

    impl OAuthFlags {
        /// Checks that the flags are those of the form.
        fn check(&self, form: &AuthFlag) -> Result<(), Failure> {
            let given = [&self.authorize_url, &self.token_url, &self.client_id].map(Option::is_some);
            let (what, fits) = match form {
                AuthFlag::ClientCredentials => {
                    ("--auth client-credentials needs --token-url", given == [false, true, false])
                }
                AuthFlag::AuthorizationCode => (
                    "--auth authorization-code needs --authorize-url, --token-url and --client-id",
                    given == [true, true, true],
                ),
                _ => (
                    "--authorize-url, --token-url and --client-id are for --auth client-credentials or authorization-code",
                    given == [false, false, false],
                ),
            };
            match fits {
                true => Ok(()),
                false => Err(Failure::usage(
                    what,
                    "add what is missing, and leave out the rest: only you can say which addresses get secrets",
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_each_form_and_refuses_others() {
        assert_eq!(parse("header=X-Key"), Ok(AuthFlag::Header("X-Key".to_owned())));
        assert_eq!(parse("query=key"), Ok(AuthFlag::Query("key".to_owned())));
        assert_eq!(parse("client-credentials"), Ok(AuthFlag::ClientCredentials));
        for wrong in ["header", "header=", "bearer=tok", "token"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(feature = "setup")]
    #[test]
    fn table_of_a_form_names_the_variables_after_the_api() {
        let none = OAuthFlags::default();
        let tokens = OAuthFlags { token_url: Some("https://id.example.com".to_owned()), ..none.clone() };
        let person = OAuthFlags {
            authorize_url: Some("https://id.example.com/authorize".to_owned()),
            client_id: Some("me".to_owned()),
            scope: vec!["read".to_owned()],
            ..tokens.clone()
        };
        let table = |form: &AuthFlag, flags| form.table("pet-shop", flags).map(Option::unwrap_or_default);
        let bearer = table(&AuthFlag::Bearer, &none).unwrap();
        assert_eq!(bearer["bearer"].as_str(), Some("${PET_SHOP_TOKEN}"));
        let program = table(&AuthFlag::ClientCredentials, &tokens).unwrap();
        assert_eq!(program["client_secret"].as_str(), Some("${PET_SHOP_CLIENT_SECRET}"));
        let sign_in = table(&AuthFlag::AuthorizationCode, &person).unwrap();
        assert_eq!((sign_in["client_id"].as_str(), sign_in.contains_key("scopes")), (Some("me"), true));
        for (form, flags) in [
            (AuthFlag::ClientCredentials, &none),
            (AuthFlag::ClientCredentials, &person),
            (AuthFlag::AuthorizationCode, &tokens),
            (AuthFlag::Bearer, &tokens),
        ] {
            assert!(table(&form, flags).is_err(), "{form:?}");
        }
        assert!(AuthFlag::None.table("a", &none).unwrap().is_none());
    }
}
