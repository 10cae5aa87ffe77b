//! A document before tools are made of it: its text to keep, its servers, and the credentials that it asks for.

use std::path::Path;

use archon_types::Json;
use reqwest::Url;

use crate::{
    OpenApiConfig, OpenApiError, OpenApiTools, OperationFilter,
    document::Document,
    hosts::with_variables,
    text::one_line,
    tools::{fetch, read_file},
};

/// An OpenAPI document that was read, for a program that shows it to a person or keeps a copy of it.
///
/// A program that only needs the tools uses [`OpenApiTools`].
///
/// ```
/// use archon_openapi::{OpenApiConfig, OpenApiDocument, OperationFilter, SecurityKind};
///
/// # fn main() -> Result<(), archon_openapi::OpenApiError> {
/// let text = r##"
/// openapi: 3.1.0
/// info: { title: Pets, version: "1" }
/// servers: [{ url: /v1 }]
/// security: [{ token: [] }]
/// components: { securitySchemes: { token: { type: http, scheme: bearer } } }
/// paths:
///   /pets:
///     get: { operationId: listPets }
/// "##;
/// let document = OpenApiDocument::from_text(text, "https://pets.example.com/openapi.yaml")?;
/// assert_eq!((document.title().as_str(), document.servers()), ("Pets", vec!["/v1".to_owned()]));
/// assert_eq!(document.security_schemes()[0].kind, SecurityKind::Bearer);
/// let tools = document.tools(OpenApiConfig::default(), &OperationFilter::All)?;
/// assert_eq!(tools.tools.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OpenApiDocument(Document);

impl OpenApiDocument {
    /// Reads a text that came from a file or from an address, `origin`. Servers without a host are those of the address,
    /// which counts as named by a person.
    ///
    /// # Errors
    /// The text is not an OpenAPI document of version 3 or 2.0.
    pub fn from_text(text: impl Into<String>, origin: &str) -> Result<Self, OpenApiError> {
        let url = Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        Document::read(text.into(), &one_line(origin, 300), url).map(Self)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read; else as [`from_text`](Self::from_text).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, OpenApiError> {
        let (text, place) = read_file(path.as_ref())?;
        Document::read(text, &place, None).map(Self)
    }

    /// Fetches a document of at most 64 MiB.
    ///
    /// # Errors
    /// The document cannot be fetched; else as [`from_text`](Self::from_text).
    pub async fn from_url(address: &str) -> Result<Self, OpenApiError> {
        let (text, place, url) = fetch(address).await?;
        Document::read(text, &place, Some(url)).map(Self)
    }

    /// Returns the text, unchanged.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Returns the address that the document was fetched from, after redirects, or the file.
    pub fn origin(&self) -> &str {
        self.0.url.as_ref().map_or(&self.0.place, Url::as_str)
    }

    /// Returns the title, on one line; empty if there is none. It is untrusted.
    pub fn title(&self) -> String {
        one_line(self.0.root["info"]["title"].as_str().unwrap_or_default(), 100)
    }

    /// Returns the servers of the document as it writes them, with the default values of their variables. They are
    /// untrusted.
    pub fn servers(&self) -> Vec<String> {
        let servers = self.0.root["servers"].as_array().into_iter().flatten();
        let urls = servers.filter_map(|server| Some((server["url"].as_str()?, &server["variables"])));
        urls.map(|(url, variables)| one_line(&with_variables(url, variables), 200)).collect()
    }

    /// Returns the security schemes: those that the whole document requires, then the others.
    pub fn security_schemes(&self) -> Vec<SecurityScheme> {
        let root = &self.0.root;
        let schemes = match &root["components"]["securitySchemes"] {
            // Version 2.0 has them at another place.
            Json::Null => &root["securityDefinitions"],
            schemes => schemes,
        };
        let required = root["security"].as_array().into_iter().flatten().filter_map(Json::as_object);
        let required: Vec<&String> = required.flat_map(|names| names.keys()).collect();
        let schemes = schemes.as_object().into_iter().flatten();
        let mut schemes: Vec<_> = schemes.map(|(name, scheme)| self.scheme(name, scheme)).collect();
        schemes.sort_by_key(|scheme| {
            required.iter().position(|name| **name == scheme.name).unwrap_or(usize::MAX)
        });
        schemes
    }

    fn scheme(&self, name: &str, scheme: &Json) -> SecurityScheme {
        let scheme =
            self.0.resolve(scheme, "#/components/securitySchemes").map_or(scheme, |(scheme, _)| scheme);
        SecurityScheme { name: one_line(name, 100), kind: kind(scheme) }
    }

    /// Makes the tools.
    ///
    /// # Errors
    /// A setting cannot be used.
    pub fn tools(
        &self,
        config: OpenApiConfig,
        filter: &OperationFilter,
    ) -> Result<OpenApiTools, OpenApiError> {
        OpenApiTools::read(&self.0, config, filter)
    }
}

/// A security scheme of a document: the credentials that its operations may need. All texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecurityScheme {
    /// The name in the document.
    pub name: String,
    /// The form of the credentials.
    pub kind: SecurityKind,
}

/// The form of the credentials of a [`SecurityScheme`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecurityKind {
    /// A token: [`OpenApiAuth::Bearer`](crate::OpenApiAuth::Bearer).
    Bearer,
    /// A user name and a password: [`OpenApiAuth::Basic`](crate::OpenApiAuth::Basic).
    Basic,
    /// A key in the header with this name: [`OpenApiAuth::ApiKey`](crate::OpenApiAuth::ApiKey).
    HeaderKey(String),
    /// A key in the query, in the parameter with this name: [`OpenApiAuth::QueryKey`](crate::OpenApiAuth::QueryKey).
    QueryKey(String),
    /// OAuth 2 for a program: [`ClientCredentials`](crate::ClientCredentials).
    ClientCredentials {
        /// The token endpoint. Secrets go to it only if a person agrees to the address.
        token_url: String,
        /// The scopes that the document names.
        scopes: Vec<String>,
    },
    /// Another form, in words.
    Other(String),
}

fn kind(scheme: &Json) -> SecurityKind {
    let text = |field: &str| one_line(scheme[field].as_str().unwrap_or_default(), 100);
    match (text("type").as_str(), text("in").as_str()) {
        ("http", _) if text("scheme").eq_ignore_ascii_case("bearer") => SecurityKind::Bearer,
        ("http", _) if text("scheme").eq_ignore_ascii_case("basic") => SecurityKind::Basic,
        ("basic", _) => SecurityKind::Basic,
        ("apiKey", "header") => SecurityKind::HeaderKey(text("name")),
        ("apiKey", "query") => SecurityKind::QueryKey(text("name")),
        ("apiKey", place) => SecurityKind::Other(format!("a key in the {place}")),
        ("http", _) => SecurityKind::Other(format!("HTTP authentication by {}", text("scheme"))),
        ("oauth2", _) => oauth2(scheme),
        ("", _) => SecurityKind::Other("a form that is not named".to_owned()),
        (other, _) => SecurityKind::Other(other.to_owned()),
    }
}

/// Returns the flow for programs if there is one.
fn oauth2(scheme: &Json) -> SecurityKind {
    // Version 2.0 has one flow, in the scheme itself.
    let of_2 = (scheme["flow"] == "application").then_some(scheme);
    let flow = Some(&scheme["flows"]["clientCredentials"]).filter(|flow| flow.is_object()).or(of_2);
    match flow {
        Some(flow) => {
            let scopes = flow["scopes"].as_object().into_iter().flatten();
            SecurityKind::ClientCredentials {
                token_url: one_line(flow["tokenUrl"].as_str().unwrap_or_default(), 200),
                scopes: scopes.map(|(scope, _)| one_line(scope, 100)).collect(),
            }
        }
        None => SecurityKind::Other("OAuth 2 with a sign-in by a person".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemes(document: &Json) -> Vec<(String, SecurityKind)> {
        let document = OpenApiDocument::from_text(document.to_string(), "pets.json").unwrap();
        document.security_schemes().into_iter().map(|scheme| (scheme.name, scheme.kind)).collect()
    }

    // spec: OA-03
    #[test]
    fn security_schemes_of_every_form_are_named_and_the_required_one_comes_first() {
        let flow = json!({ "tokenUrl": "https://id.example.com/token", "scopes": { "read": "Reads." } });
        let document = json!({
            "openapi": "3.1.0",
            "security": [{ "query": [] }],
            "components": { "securitySchemes": {
                "basic": { "type": "http", "scheme": "Basic" },
                "bearer": { "type": "http", "scheme": "bearer" },
                "cookie": { "type": "apiKey", "in": "cookie", "name": "c" },
                "header": { "type": "apiKey", "in": "header", "name": "X-Key" },
                "person": { "type": "oauth2", "flows": { "authorizationCode": {} } },
                "program": { "type": "oauth2", "flows": { "clientCredentials": flow } },
                "query": { "type": "apiKey", "in": "query", "name": "api_key" },
                "same": { "$ref": "#/components/securitySchemes/bearer" },
            } },
        });
        let program = SecurityKind::ClientCredentials {
            token_url: "https://id.example.com/token".to_owned(),
            scopes: vec!["read".to_owned()],
        };
        let expected = [
            ("query", SecurityKind::QueryKey("api_key".to_owned())),
            ("basic", SecurityKind::Basic),
            ("bearer", SecurityKind::Bearer),
            ("cookie", SecurityKind::Other("a key in the cookie".to_owned())),
            ("header", SecurityKind::HeaderKey("X-Key".to_owned())),
            ("person", SecurityKind::Other("OAuth 2 with a sign-in by a person".to_owned())),
            ("program", program),
            ("same", SecurityKind::Bearer),
        ];
        assert_eq!(schemes(&document), expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn security_schemes_of_version_2_are_found_at_their_place() {
        let document = json!({
            "swagger": "2.0",
            "securityDefinitions": {
                "login": { "type": "basic" },
                "program": { "type": "oauth2", "flow": "application", "tokenUrl": "https://id.example.com" },
            },
        });
        let program = SecurityKind::ClientCredentials {
            token_url: "https://id.example.com".to_owned(),
            scopes: vec![],
        };
        let expected = [("login".to_owned(), SecurityKind::Basic), ("program".to_owned(), program)];
        assert_eq!(schemes(&document), expected);
    }

    #[test]
    fn from_text_of_an_address_resolves_servers_at_it_and_keeps_the_text() {
        let text = "openapi: 3.1.0\nservers: [{ url: /v1 }]\npaths: { /a: { get: { operationId: a } } }\n";
        let made = |origin: &str| {
            let document = OpenApiDocument::from_text(text, origin).unwrap();
            assert_eq!((document.text(), document.origin()), (text, origin));
            let made = document.tools(OpenApiConfig::default(), &OperationFilter::All).unwrap();
            (made.tools.len(), made.warnings.len())
        };
        assert_eq!(made("https://pets.example.com/openapi.yaml"), (1, 0));
        assert_eq!(made("pets.yaml"), (0, 1));
    }
}
