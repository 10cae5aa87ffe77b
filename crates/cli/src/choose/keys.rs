//! Which keys are sent, from which variables or kept keys that stand for them, and to which addresses none is.

use archon::{
    providers::{Profile, is_local_address},
    types::Secret,
};

use crate::{app::App, config::Origin, credentials, failure::Failure};

/// The keys to send, the first one first. A service's own keys go to the service's own address only, and a
/// [foreign](is_foreign) address gets no key at all: both would hand them to whoever wrote the address.
pub(super) fn keys(
    app: &App,
    profile: Option<&Profile>,
    url: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Vec<Secret>, Failure> {
    match named_keys(app, url, origin)? {
        Some(keys) => Ok(keys),
        None => own_keys(app, profile, url, origin),
    }
}

/// The keys that the settings name.
pub(super) fn named_keys(
    app: &App,
    url: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Option<Vec<Secret>>, Failure> {
    let Some(name) = app.config.settings.api_key_env.as_ref().filter(|_| !is_foreign(url, origin)) else {
        return Ok(None);
    };
    let missing = || {
        let what = format!("the variable {name} is not set, and api_key_env says that it holds the key");
        Failure::usage(what, format!("set it: export {name}=…"))
    };
    some(secrets(app, name)).map(Some).ok_or_else(missing)
}

/// The keys that the environment holds for a service.
pub(super) fn own_keys(
    app: &App,
    profile: Option<&Profile>,
    url: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Vec<Secret>, Failure> {
    if is_foreign(url, origin) {
        return Ok(Vec::new());
    }
    match (profile.and_then(|p| Some((p.name, p.key_variable?))), url) {
        (Some((service, variable)), None) => some(secrets(app, variable))
            .ok_or_else(|| Failure::usage(format!("{service} needs a key"), how_to_give(variable))),
        (_, Some(_)) => Ok(secrets(app, ANY_KEY)),
        (None, None) => Ok(Vec::new()),
    }
}

/// What the numbered variables of a service hold, if one of `variables` is set.
pub(super) fn further_keys(app: &App, variables: &[&str]) -> Vec<Secret> {
    let set = variables.iter().find(|variable| app.env(variable).is_some());
    set.map_or_else(Vec::new, |variable| secrets(app, variable).split_off(1))
}

/// The variables that are set of `variable`, `variable_2`, `variable_3` and so on, until one is not. Numbered,
/// and not in one value, because other programs read the variable too.
pub(crate) fn key_variables(app: &App, variable: &str) -> Vec<String> {
    let further = (2..).map(|n: u32| format!("{variable}_{n}"));
    std::iter::once(variable.to_owned()).chain(further).take_while(|name| app.env(name).is_some()).collect()
}

/// An address that a project's settings name, or that only the log of a run names: a project's settings may have
/// put it there. Servers of this machine that were found, not named, are not meant.
pub(super) fn is_foreign(url: Option<&str>, origin: Option<&Origin>) -> bool {
    url.is_some_and(|url| match origin {
        Some(Origin::Project(_)) => true,
        Some(_) => false,
        None => !is_local_address(url),
    })
}

/// What to do where a key is missing.
pub(super) fn how_to_give(variable: &str) -> String {
    let set = format!("set it: export {variable}=…");
    match credentials::service_of(variable) {
        Some(service) => format!("{set}, or keep it: archon credentials add {}", service.name),
        None => set,
    }
}

fn some(secrets: Vec<Secret>) -> Option<Vec<Secret>> {
    Some(secrets).filter(|secrets| !secrets.is_empty())
}

fn secrets(app: &App, variable: &str) -> Vec<Secret> {
    let set = key_variables(app, variable);
    set.iter().filter_map(|name| app.env(name)).map(|value| Secret::from(value.to_owned())).collect()
}

/// Holds the key of a service that is known by its address only.
const ANY_KEY: &str = "OPENAI_COMPATIBLE_API_KEY";
