//! Converts the settings of an API into the configuration of its tools.

use std::sync::Arc;

use archon::{
    openapi::{
        AuthorizationCode, ClientCredentials, OpenApiAuth, OpenApiConfig, OpenApiError, OperationFilter,
        StoredToken,
    },
    types::{CredentialStore, Secret},
};

use crate::{
    config::{ApiAuthForm, ApiSettings},
    failure::Failure,
};

/// The functions that supply the secrets of an API.
pub(crate) struct Secrets<'s> {
    /// Replaces the variables in a text by their values.
    pub(crate) fill: &'s dyn Fn(&str) -> Result<String, Failure>,
    /// Opens the store with the tokens of sign-ins.
    pub(crate) store: &'s dyn Fn() -> Result<Arc<dyn CredentialStore>, Failure>,
}

/// Returns the configuration with which the API's tools are built.
///
/// # Errors
/// [`Failure`] if a variable is missing, or a setting cannot be used.
pub(crate) fn config(
    name: &str,
    settings: &ApiSettings,
    secrets: &Secrets<'_>,
) -> Result<OpenApiConfig, Failure> {
    let fill = secrets.fill;
    let mut config = OpenApiConfig::default().with_name_prefix(name);
    config.base_url.clone_from(&settings.base_url);
    config.name_by_path = settings.name_by_path;
    for (header, text) in &settings.headers {
        config = config.with_header(header, Secret::from(fill(text)?));
    }
    let Some(auth) = &settings.auth else { return Ok(config) };
    let secret = |text: &str| fill(text).map(Secret::from);
    let auth = match auth.form() {
        None => OpenApiAuth::None,
        Some(ApiAuthForm::Bearer { token }) => OpenApiAuth::Bearer(secret(token)?),
        Some(ApiAuthForm::Account { .. }) if settings.is_of_project => {
            let what = format!("{} of the project sends a stored key", place(name));
            return Err(Failure::usage(
                what,
                "import its document into your own settings: archon openapi import",
            ));
        }
        Some(ApiAuthForm::Account { name }) => OpenApiAuth::Token(Arc::new(StoredToken::new(name))),
        Some(ApiAuthForm::HeaderKey { name, key }) => {
            OpenApiAuth::ApiKey { header: name.to_owned(), value: secret(key)? }
        }
        Some(ApiAuthForm::QueryKey { name, key }) => {
            OpenApiAuth::QueryKey { name: name.to_owned(), value: secret(key)? }
        }
        Some(ApiAuthForm::Basic { user, password }) => {
            OpenApiAuth::Basic { user: fill(user)?, password: secret(password)? }
        }
        Some(ApiAuthForm::Program { token_url, id, secret: text }) => {
            let tokens = ClientCredentials::new(&fill(token_url)?, fill(id)?, secret(text)?);
            let mut tokens = tokens.map_err(|e| wrong(name, &e))?;
            if !auth.scopes.is_empty() {
                tokens = tokens.with_scope(auth.scopes.join(" "));
            }
            OpenApiAuth::Token(Arc::new(tokens))
        }
        Some(ApiAuthForm::Person { .. }) => {
            OpenApiAuth::Token(Arc::new(person_tokens(name, settings, secrets)?))
        }
    };
    Ok(config.with_auth(auth))
}

/// Returns the source of the tokens of a person who signs in with a browser.
///
/// # Errors
/// [`Failure`] if the settings have no such sign-in, belong to a project, or cannot be used.
pub(crate) fn person_tokens(
    name: &str,
    settings: &ApiSettings,
    Secrets { fill, store }: &Secrets<'_>,
) -> Result<AuthorizationCode, Failure> {
    let auth = settings.auth.as_ref().and_then(|auth| Some((auth.form()?, &auth.scopes)));
    let Some((ApiAuthForm::Person { authorize_url, token_url, id, secret }, scopes)) = auth else {
        let advice = "import its document again, with --auth authorization-code and --replace";
        return Err(Failure::usage(format!("{} has no sign-in with a browser", place(name)), advice));
    };
    if settings.is_of_project {
        // The tokens are a person's, and the project chose the address that gets them.
        let what = format!("{} of the project has a sign-in with a browser", place(name));
        return Err(Failure::usage(
            what,
            "import its document into your own settings: archon openapi import",
        ));
    }
    let (authorize, token) = (fill(authorize_url)?, fill(token_url)?);
    let tokens = AuthorizationCode::new(store()?, "openapi", &authorize, &token, fill(id)?);
    let mut tokens = tokens.map_err(|e| wrong(name, &e))?.with_account(name);
    if let Some(secret) = secret {
        tokens = tokens.with_secret(Secret::from(fill(secret)?));
    }
    if !scopes.is_empty() {
        tokens = tokens.with_scope(scopes.join(" "));
    }
    Ok(tokens.with_advice(format!("sign in: archon openapi login {name}")))
}

/// Returns the filter that selects the operations that become tools.
pub(crate) fn filter(settings: &ApiSettings) -> OperationFilter {
    match (settings.tags.is_empty(), settings.operations.is_empty()) {
        (false, _) => OperationFilter::ByTag(settings.tags.clone()),
        (true, false) => OperationFilter::ByOperationId(settings.operations.clone()),
        (true, true) => OperationFilter::All,
    }
}

/// Returns the description of an API in messages.
pub(super) fn place(name: &str) -> String {
    format!("API '{name}'")
}

/// Returns the error for the document or a setting of an API.
pub(crate) fn wrong(name: &str, e: &OpenApiError) -> Failure {
    unusable(e).at(&place(name))
}

/// Returns the error for a document or a setting that cannot be used.
pub(crate) fn unusable(e: &OpenApiError) -> Failure {
    let advice = match e {
        OpenApiError::Unreadable { .. } => "check the file or the address",
        OpenApiError::Syntax { .. } | OpenApiError::NotOpenApi { .. } => {
            "correct the document, or import another one: archon openapi import FILE|URL"
        }
        OpenApiError::SeveralServers { .. } => {
            "name the one that may have them: archon openapi import … --base-url URL (`base_url` of the settings); or choose \
             operations of one: --tag"
        }
        _ => "correct the settings of the API, or give another name: --name NAME",
    };
    Failure::usage(e.to_string(), advice)
}
