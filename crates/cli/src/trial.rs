//! Tests a key and a model with a short question before they are stored.

use std::{sync::Arc, time::Duration};

use archon::{
    SystemClock,
    types::{
        ApiErrorKind, CancellationToken, Clock as _, Message, ModelEvent, ProviderError, Request,
        RequestOptions, Secret,
    },
};
use futures_util::StreamExt as _;

use crate::{
    app::App,
    choose,
    config::{Config, Settings, Sources},
    credentials::{Service, StoredKeys},
    failure::Failure,
};

/// The maximum time for the model's answer to the test question.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of tokens of the answer to the test question: few, and enough for every service.
const TOKENS: u32 = 32;

/// Asks the model a short question, with this key or, without one, with the keys that are set already.
///
/// # Errors
/// [`Failure`] if the service rejects the key or the model, or cannot be reached.
pub(crate) async fn ask(app: &App, key: Option<(Service, &Secret)>, model: &str) -> Result<(), Failure> {
    let app = &with(app, key, model)?;
    let chosen = choose::model(app, None).await?;
    let question = Message::user("Answer with one word: ready", SystemClock.now());
    let mut request = Request::new(chosen.model.clone(), vec![question]);
    let mut options = RequestOptions::default();
    options.max_tokens = Some(TOKENS);
    request.options = Arc::new(options);
    app.output.wait(&format!("trying {model}"));
    let cancel = CancellationToken::new();
    let mut events = chosen.provider.stream(request, cancel.clone());
    let end = async {
        loop {
            match events.next().await {
                Some(Ok(ModelEvent::Done(_))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(e)) => return Err(e),
                None => return Err(ProviderError::Protocol("the answer has no end".into())),
            }
        }
    };
    let late = || ProviderError::Timeout(format!("no answer in {} s", TIMEOUT.as_secs()).into());
    let answered = tokio::time::timeout(TIMEOUT, end).await.unwrap_or_else(|_| Err(late()));
    app.output.stop_waiting();
    answered.map_err(|e| failure(&e, key, model))
}

/// Returns the context that later commands will have, without the settings of the current folder.
fn with(app: &App, key: Option<(Service, &Secret)>, model: &str) -> Result<App, Failure> {
    let mut sources = Sources { project: None, ..app.sources.clone() };
    for name in ["ARCHON_MODEL", "ARCHON_BASE_URL"] {
        sources.env.remove(name);
    }
    let mut app = app.clone();
    if let Some((service, key)) = key {
        // The typed key is tested, even if the environment has another key.
        service.variables.iter().for_each(|name| drop(sources.env.remove(*name)));
        app.stored_keys = Arc::new(StoredKeys::of(service.variable(), key.expose()));
    }
    let settings = Settings { model: Some(model.to_owned()), ..Settings::default() };
    app.config = Config::load(&sources, settings)?;
    app.sources = sources;
    Ok(app)
}

/// Returns the error for a test question that the service did not answer, with advice.
fn failure(e: &ProviderError, key: Option<(Service, &Secret)>, model: &str) -> Failure {
    let mut what = e.to_string();
    // Some services repeat the key.
    if let Some((_, key)) = key {
        what = what.replace(key.expose().as_str(), "****");
    }
    let (problem, advice) = match e {
        ProviderError::Auth(_) => {
            ("rejected the key", "copy the key again, whole and from an account that may use the model")
        }
        ProviderError::Api { kind: ApiErrorKind::NotFound, .. } => {
            ("cannot be used", "choose another model with --model M; `archon models list` shows some")
        }
        ProviderError::Api { kind: ApiErrorKind::Quota, .. } => (
            "cannot be used",
            "raise the limit of the key's account, or store it without this test: --no-check",
        ),
        _ => ("gave no answer", "try again, or store it without this test: --no-check"),
    };
    Failure::failed(format!("{model} {problem}: {what}"), format!("nothing was stored: {advice}"))
}
