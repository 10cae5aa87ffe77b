//! `--auth FORM` of `archon openapi import`: the credentials of an API. Their secrets are variables, named after the API,
//! which a person sets or stores.

#![cfg_attr(not(feature = "setup"), allow(dead_code, reason = "this build cannot change settings"))]

/// The form of credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthFlag {
    None,
    Bearer,
    Basic,
    Header(String),
    Query(String),
    ClientCredentials,
}

/// Parses a form.
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
            _ => Err("the forms are none, bearer, basic, header=NAME, query=NAME and client-credentials"
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

    use super::AuthFlag;
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
            SecurityKind::Other(other) => format!("{other}, which this command does not have"),
            _ => "another form, which this command does not have".to_owned(),
        }
    }

    impl AuthFlag {
        /// Returns the table `auth` of the settings; `None` without credentials. The variables are named after the API.
        ///
        /// # Errors
        /// [`Failure`] if the address for tokens is missing or cannot be used.
        pub(in super::super) fn table(
            &self,
            name: &str,
            token_url: Option<&str>,
            scopes: &[String],
        ) -> Result<Option<Table>, Failure> {
            if (*self == Self::ClientCredentials) != token_url.is_some() {
                let what = "--auth client-credentials and --token-url belong together";
                return Err(Failure::usage(what, "use both: only you can say which address gets the secret"));
            }
            let name = name.to_uppercase().replace('-', "_");
            let variable = |what: &str| Value::from(format!("${{{name}_{what}}}"));
            let written = |text: &str| Value::from(text.to_owned());
            let mut fields = match self {
                Self::None => return Ok(None),
                Self::Bearer => vec![("bearer", variable("TOKEN"))],
                Self::Basic => vec![("user", variable("USER")), ("password", variable("PASSWORD"))],
                Self::Header(header) => vec![("header", written(header)), ("key", variable("KEY"))],
                Self::Query(query) => vec![("query", written(query)), ("key", variable("KEY"))],
                Self::ClientCredentials => vec![
                    ("token_url", written(token_url.unwrap_or_default())),
                    ("client_id", variable("CLIENT_ID")),
                    ("client_secret", variable("CLIENT_SECRET")),
                ],
            };
            if !scopes.is_empty() {
                fields.push(("scopes", Value::Array(scopes.iter().map(|scope| written(scope)).collect())));
            }
            Ok(Some(fields.into_iter().map(|(field, value)| (field.to_owned(), value)).collect()))
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
        let table =
            |flag: &AuthFlag, url| flag.table("pet-shop", url, &[]).map(|table| table.unwrap_or_default());
        let bearer = table(&AuthFlag::Bearer, None).unwrap();
        assert_eq!(bearer["bearer"].as_str(), Some("${PET_SHOP_TOKEN}"));
        let program = table(&AuthFlag::ClientCredentials, Some("https://id.example.com")).unwrap();
        assert_eq!(program["client_secret"].as_str(), Some("${PET_SHOP_CLIENT_SECRET}"));
        assert!(table(&AuthFlag::ClientCredentials, None).is_err());
        assert!(table(&AuthFlag::Bearer, Some("https://id.example.com")).is_err());
        assert!(AuthFlag::None.table("a", None, &[]).unwrap().is_none());
    }
}
