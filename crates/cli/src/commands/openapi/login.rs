//! `archon openapi login` and `archon openapi logout`: a person's sign-in to an API of the settings.

use archon::{SystemClock, openapi::AuthorizationCode};
use serde_json::json;

use crate::{app::App, browser_answer, credentials, exit::Exit, failure::Failure, openapi, output::Look};

/// Shows the address of the sign-in, and stores the tokens once the person has agreed in a browser.
pub(super) async fn login(app: &App, name: &str, tenant: Option<String>) -> Result<Exit, Failure> {
    let tokens = tokens(app, name)?;
    let failed = |e| openapi::wrong(name, &e);
    let sign_in = tokens.begin(credentials::tenant(tenant)).await.map_err(failed)?;
    let finish = async |line: String| sign_in.finish(&line, &SystemClock).await;
    let done = browser_answer::of_sign_in(app, sign_in.url(), sign_in.wait(&SystemClock), finish).await;
    done.map_err(failed)?;
    app.report(&json!({"name": name, "logged_in": true}), format!("signed in to the API '{name}'"));
    Ok(Exit::Finished)
}

/// Deletes the tokens of a sign-in.
pub(super) async fn logout(app: &App, name: &str, tenant: Option<String>) -> Result<Exit, Failure> {
    let any = tokens(app, name)?.sign_out(credentials::tenant(tenant)).await?;
    app.item(&json!({"name": name, "logged_out": any}), || match any {
        true => format!("the tokens of the API '{name}' are deleted"),
        false => format!("there are no tokens of the API '{name}'"),
    });
    app.output.note(Look::Dim, "the authorization server may still know the sign-in: end it there, too");
    Ok(Exit::Finished)
}

fn tokens(app: &App, name: &str) -> Result<AuthorizationCode, Failure> {
    let apis = app.config.settings.openapi.as_ref();
    let Some(settings) = apis.and_then(|apis| apis.get(name)) else {
        let what = format!("the settings have no API {name:?}");
        return Err(Failure::usage(what, "show the APIs: archon openapi list"));
    };
    openapi::with_secrets(app, name, settings, |secrets| openapi::person_tokens(name, settings, secrets))
}
