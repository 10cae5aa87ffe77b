//! Chooses the keys to send: from variables or stored keys, and never to addresses that may belong to an
//! attacker.

use archon::{
    providers::{Profile, is_local_address},
    types::Secret,
};

use crate::{app::App, config::Origin, credentials, failure::Failure};

/// Returns the keys to send, the first one first. A service's own keys are sent only to the service's own
/// address, and a [foreign](is_foreign) address gets no key; otherwise the author of the address would get
/// the keys.
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

/// Returns the keys in the variable that the settings set as `api_key_env`; `None` if they set none, or for a
/// [foreign](is_foreign) address.
pub(super) fn named_keys(
    app: &App,
    url: Option<&str>,
    origin: Option<&Origin>,
) -> Result<Option<Vec<Secret>>, Failure> {
    let Some(name) = app.config.settings.api_key_env.as_ref().filter(|_| !is_foreign(url, origin)) else {
        return Ok(None);
    };
    let missing = || {
        let what = format!("api_key_env sets the variable {name} for the key, but the variable is not set");
        Failure::usage(what, format!("set it: export {name}=…"))
    };
    some(secrets(app, name)).map(Some).ok_or_else(missing)
}

/// Returns the keys of a service, from the environment or stored. An address that is not the service's own
/// gets the keys in [`ANY_KEY`], and a [foreign](is_foreign) address gets none.
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

/// Returns the keys in the numbered variables that belong to the first of `variables` that is set.
pub(super) fn further_keys(app: &App, variables: &[&str]) -> Vec<Secret> {
    let set = variables.iter().find(|variable| app.env(variable).is_some());
    set.map_or_else(Vec::new, |variable| secrets(app, variable).split_off(1))
}

/// Returns the variables that are set among `variable`, `variable_2`, `variable_3` and so on, up to the
/// first one that is not set. Further keys have numbered variables, because other programs read the first
/// variable as one key.
pub(crate) fn key_variables(app: &App, variable: &str) -> Vec<String> {
    let further = (2..).map(|n: u32| format!("{variable}_{n}"));
    std::iter::once(variable.to_owned()).chain(further).take_while(|name| app.env(name).is_some()).collect()
}

/// Returns true if an address comes from a project's settings. An address without an origin may be one in the
/// log of a run, and so from a project's settings: it is foreign unless it is an address of this machine.
pub(super) fn is_foreign(url: Option<&str>, origin: Option<&Origin>) -> bool {
    url.is_some_and(|url| match origin {
        Some(Origin::Project(_)) => true,
        Some(_) => false,
        None => !is_local_address(url),
    })
}

pub(super) fn how_to_give(variable: &str) -> String {
    let set = format!("set it: export {variable}=…");
    match credentials::service_of(variable) {
        Some(service) => format!("{set}, or store it: archon credentials add {}", service.name),
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

/// The variable with the key of a service that is known only by its address.
const ANY_KEY: &str = "OPENAI_COMPATIBLE_API_KEY";
