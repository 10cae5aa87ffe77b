//! The security schemes of a document: the credentials that it asks for.

use archon_types::Json;

use crate::{document::Document, text::one_line};

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
    /// OAuth 2 for a person, who signs in with a browser: [`AuthorizationCode`](crate::AuthorizationCode).
    AuthorizationCode {
        /// The address of the sign-in. A person has to agree to it.
        authorize_url: String,
        /// The token endpoint. Secrets go to it only if a person agrees to the address.
        token_url: String,
        /// The scopes that the document names.
        scopes: Vec<String>,
    },
    /// Another form of credentials, described in words.
    Other(String),
}

/// Returns the security schemes: those that the whole document requires, then the others.
pub(crate) fn schemes(document: &Document) -> Vec<SecurityScheme> {
    let root = &document.root;
    let schemes = match &root["components"]["securitySchemes"] {
        // Version 2.0 has them at another place.
        Json::Null => &root["securityDefinitions"],
        schemes => schemes,
    };
    let required = root["security"].as_array().into_iter().flatten().filter_map(Json::as_object);
    let required: Vec<&String> = required.flat_map(|names| names.keys()).collect();
    let schemes = schemes.as_object().into_iter().flatten();
    let mut schemes: Vec<_> = schemes.map(|(name, scheme)| named(document, name, scheme)).collect();
    schemes
        .sort_by_key(|scheme| required.iter().position(|name| **name == scheme.name).unwrap_or(usize::MAX));
    schemes
}

fn named(document: &Document, name: &str, scheme: &Json) -> SecurityScheme {
    let scheme =
        document.resolve(scheme, "#/components/securitySchemes").map_or(scheme, |(scheme, _)| scheme);
    SecurityScheme { name: one_line(name, 100), kind: kind(scheme) }
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

/// Returns the form of an OAuth 2 scheme: client credentials if the scheme has that flow, otherwise an authorization code,
/// otherwise [`SecurityKind::Other`].
fn oauth2(scheme: &Json) -> SecurityKind {
    // Version 2.0 has one flow, in the scheme itself.
    let flow = |name: &str, name_of_2: &str| match &scheme["flows"][name] {
        flow if flow.is_object() => Some(flow),
        _ => (scheme["flow"] == name_of_2).then_some(scheme),
    };
    let address = |flow: &Json, field: &str| one_line(flow[field].as_str().unwrap_or_default(), 200);
    let scopes = |flow: &Json| {
        let scopes = flow["scopes"].as_object().into_iter().flatten();
        scopes.map(|(scope, _)| one_line(scope, 100)).collect()
    };
    if let Some(flow) = flow("clientCredentials", "application") {
        return SecurityKind::ClientCredentials {
            token_url: address(flow, "tokenUrl"),
            scopes: scopes(flow),
        };
    }
    match flow("authorizationCode", "accessCode") {
        Some(flow) => SecurityKind::AuthorizationCode {
            authorize_url: address(flow, "authorizationUrl"),
            token_url: address(flow, "tokenUrl"),
            scopes: scopes(flow),
        },
        None => SecurityKind::Other("OAuth 2 in another form".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schemes(document: &Json) -> Vec<(String, SecurityKind)> {
        let document = Document::new(document.clone(), "pets.json", None, String::new()).unwrap();
        super::schemes(&document).into_iter().map(|scheme| (scheme.name, scheme.kind)).collect()
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
                "implicit": { "type": "oauth2", "flows": { "implicit": {} } },
                "person": { "type": "oauth2", "flows": { "authorizationCode": {
                    "authorizationUrl": "https://id.example.com/authorize", "tokenUrl": "https://id.example.com/token",
                } } },
                "program": { "type": "oauth2", "flows": { "clientCredentials": flow } },
                "query": { "type": "apiKey", "in": "query", "name": "api_key" },
                "same": { "$ref": "#/components/securitySchemes/bearer" },
            } },
        });
        let program = SecurityKind::ClientCredentials {
            token_url: "https://id.example.com/token".to_owned(),
            scopes: vec!["read".to_owned()],
        };
        let person = SecurityKind::AuthorizationCode {
            authorize_url: "https://id.example.com/authorize".to_owned(),
            token_url: "https://id.example.com/token".to_owned(),
            scopes: Vec::new(),
        };
        let expected = [
            ("query", SecurityKind::QueryKey("api_key".to_owned())),
            ("basic", SecurityKind::Basic),
            ("bearer", SecurityKind::Bearer),
            ("cookie", SecurityKind::Other("a key in the cookie".to_owned())),
            ("header", SecurityKind::HeaderKey("X-Key".to_owned())),
            ("implicit", SecurityKind::Other("OAuth 2 in another form".to_owned())),
            ("person", person),
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
}
