//! The values of the variables in the credentials and headers of an API.

use std::sync::Arc;

use archon::{SystemClock, store::InMemoryCredentials, types::CredentialStore};

use super::entry::{Secrets, place};
use crate::{
    app::App,
    config::{
        ApiSettings,
        variables::{self, Missing},
    },
    credentials,
    failure::Failure,
};

/// Returns a text with the values of its variables: from the environment, and for an API of the user's own settings also
/// from the stored keys. An API of a project gets no key of a model service: the project chose its address.
///
/// # Errors
/// [`Failure`] that names the missing variable.
fn fill(app: &App, name: &str, settings: &ApiSettings, text: &str) -> Result<String, Failure> {
    let is_own = !settings.is_of_project;
    let value = |variable: &str| match is_own {
        true => app.env(variable).map(str::to_owned),
        false if credentials::service_of(variable).is_some() => None,
        false => app.sources.env.get(variable).cloned(),
    };
    variables::expand(text, value).map_err(|missing| match missing {
        Missing::Problem(problem) => {
            Failure::usage(format!("{}: {problem}", place(name)), "correct its settings")
        }
        Missing::Variable(variable) if !is_own && credentials::service_of(&variable).is_some() => {
            let what = format!("{} sends {variable}, which is the key of a model service", place(name));
            Failure::usage(what, "use another variable, or put the API into your own settings")
        }
        Missing::Variable(variable) => {
            let service = credentials::service_of(&variable).map_or(&*variable, |service| service.name);
            let store = if is_own {
                format!("store it: archon credentials add {service}, or ")
            } else {
                String::new()
            };
            Failure::usage(
                format!("{} needs the variable {variable}, which is not set", place(name)),
                format!("{store}set it: export {variable}=…"),
            )
        }
    })
}

/// Calls `work` with the secrets of an API, from the environment and the stored keys.
pub(crate) fn with_secrets<T>(
    app: &App,
    name: &str,
    settings: &ApiSettings,
    work: impl FnOnce(&Secrets<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let fill = |text: &str| fill(app, name, settings, text);
    let store = || credentials::open(&app.data_dir, &app.sources);
    work(&Secrets { fill: &fill, store: &store })
}

/// Returns placeholders in place of all secrets, for a summary of a document whose credentials may not be there yet.
pub(crate) fn placeholders() -> Secrets<'static> {
    Secrets { fill: &placeholder, store: &empty_store }
}

fn placeholder(text: &str) -> Result<String, Failure> {
    Ok(variables::expand(text, |_| Some("value".to_owned())).unwrap_or_default())
}

fn empty_store() -> Result<Arc<dyn CredentialStore>, Failure> {
    Ok(Arc::new(InMemoryCredentials::new(Arc::new(SystemClock))))
}
