//! The server of `archon serve`, in settings.

#![cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "without the server only the syntax is checked")
)]

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

/// `[serve]` of a settings file: the address, the access tokens and the agents of the server. Flags of `archon serve`
/// take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServeSettings {
    /// The address to listen at; by default `127.0.0.1:7420`.
    #[schemars(with = "Option<String>")]
    pub(crate) listen: Option<SocketAddr>,
    /// The Unix socket to listen at, in place of an address.
    pub(crate) socket: Option<PathBuf>,
    /// The names by which clients reach the server, besides those of the address, as in `agents.example`.
    pub(crate) hosts: Vec<String>,
    /// The address by which people reach the server, as in `https://agents.example`, for links in notifications; by default
    /// the one that the server prints.
    pub(crate) url: Option<String>,
    /// True if a proxy with TLS is before the server, so that it may listen beyond this machine; by default false.
    pub(crate) behind_proxy: bool,
    /// The PEM file with the certificate of the server, followed by those of the authorities between: then the server
    /// speaks TLS itself, and may listen beyond this machine.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The PEM file with the private key of the certificate.
    pub(crate) tls_key: Option<PathBuf>,
    /// The agents of `[agents.NAME]` that clients may start, besides the default one; by default all of them.
    pub(crate) agents: Option<Vec<String>>,
    /// True if tools that change nothing and the agents are also offered to MCP clients, at `/mcp`; by default false.
    pub(crate) mcp: bool,
    /// The collection in which the default agent stores memories and from which it recalls them, as in `user:anna`.
    pub(crate) memory: Option<String>,
    /// The access tokens by their names; by default one with the name `owner` and the role `admin`.
    pub(crate) tokens: BTreeMap<String, TokenSettings>,
}

/// `[serve.tokens.NAME]` of a settings file: an access token. Its secret is never in a settings file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSettings {
    /// The role: `viewer`, `operator`, `admin` or `auditor`.
    pub(crate) role: RoleName,
    /// The tenant whose runs the token reaches; by default the runs of all tenants.
    pub(crate) tenant: Option<String>,
    /// The environment variable with the secret; by default the secret is in a file in the data folder, which
    /// `archon serve` writes.
    pub(crate) variable: Option<String>,
}

#[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
impl ServeSettings {
    /// Returns the tenants of the tokens. If the settings have no tokens, the server has one token, of the tenant
    /// `local`.
    pub(crate) fn tenants(&self) -> std::collections::BTreeSet<&str> {
        match self.tokens.is_empty() {
            true => [super::LOCAL].into(),
            false => self.tokens.values().map(TokenSettings::own_tenant).collect(),
        }
    }
}

#[cfg(all(feature = "serve", feature = "skills", feature = "triggers"))]
impl TokenSettings {
    /// Returns the tenant of the person who has the token, also if the token reaches the runs of all tenants.
    pub(crate) fn own_tenant(&self) -> &str {
        self.tenant.as_deref().unwrap_or(super::LOCAL)
    }
}

/// The role of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleName {
    /// Sees which runs there are, and what they use
    Viewer,
    /// Also reads logs, and works with runs
    Operator,
    /// Has every right
    Admin,
    /// Sees and reads everything, and changes nothing
    Auditor,
}

#[cfg(feature = "serve")]
impl From<RoleName> for archon::server::Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Operator => Self::Operator,
            RoleName::Admin => Self::Admin,
            RoleName::Auditor => Self::Auditor,
        }
    }
}

#[cfg(feature = "serve")]
impl super::Config {
    /// Returns the same settings, but with flags marked as environment variables. Flags would override the log of a run
    /// that is resumed.
    pub(crate) fn without_flags(mut self) -> Self {
        for origin in self.origins.values_mut() {
            if let super::Origin::Flag(name) = origin {
                *origin = super::Origin::Env(std::mem::take(name));
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "serve")]
    #[test]
    fn role_of_the_settings_has_each_name() {
        use archon::server::Role;

        for role in Role::ALL {
            let token: TokenSettings = toml::from_str(&format!("role = '{role}'")).unwrap();
            assert_eq!(Role::from(token.role), role);
        }
    }

    #[test]
    fn settings_of_the_server_with_another_name_or_value_are_refused() {
        for (text, problem) in [
            ("lisen = '127.0.0.1:1'", "unknown field `lisen`"),
            ("listen = 'localhost'", "invalid socket address"),
            ("[tokens.anna]\nrole = 'owner'", "unknown variant `owner`"),
            ("[tokens.anna]\ntenant = 'anna'", "missing field `role`"),
            ("[tokens.anna]\nrole = 'admin'\nsecret = 'x'", "unknown field `secret`"),
        ] {
            let e = toml::from_str::<ServeSettings>(text).unwrap_err();
            assert!(e.message().contains(problem), "{text}: {e}");
        }
    }
}
