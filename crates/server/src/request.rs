//! A request that passed the checks, and how its parts are read: path, query, headers, body.

use std::{pin::pin, sync::Arc};

use archon_types::{MemoryStore, RunId, RunService, TaskService, TenantId};
use axum::{
    body::Body,
    extract::{FromRequestParts, Query, RawPathParams},
    http::{HeaderMap, request::Parts},
};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::{
    access::Token,
    live::LiveChannel,
    problem::{Problem, Rule},
    state::State,
};

/// A request that passed the checks.
pub(crate) struct Call {
    pub(crate) state: Arc<State>,
    pub(crate) token: Arc<Token>,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
}

impl Call {
    pub(crate) fn runs(&self) -> &Arc<dyn RunService> {
        &self.token.scope.runs
    }

    /// Returns the store of memories that the token reaches.
    pub(crate) fn memories(&self) -> Result<&Arc<dyn MemoryStore>, Problem> {
        self.token.scope.memories.as_ref().ok_or_else(|| {
            Problem::new(Rule::NoMemories, "this token reaches no store of memories")
                .advise("give the token a store: `Scope::with_memories`")
        })
    }

    /// Returns the tasks that the token reaches.
    pub(crate) fn tasks(&self) -> Result<&Arc<dyn TaskService>, Problem> {
        self.token.scope.tasks.as_ref().ok_or_else(|| {
            Problem::new(Rule::NoTasks, "this token reaches no tasks")
                .advise("give the token a service of tasks: `Scope::with_tasks`")
        })
    }

    /// Returns the channel and the tenant whose notifications the token gets.
    pub(crate) fn notifications(&self) -> Result<&(LiveChannel, TenantId), Problem> {
        self.token.scope.notifications.as_ref().ok_or_else(|| {
            Problem::new(Rule::NoNotifications, "this token gets no notifications").advise(
                "add a channel of the kind `websocket` for the tenant of this token to the settings, or give the token \
                 one: `Scope::with_notifications`",
            )
        })
    }

    /// Returns the run of the path.
    pub(crate) async fn run(&mut self) -> Result<RunId, Problem> {
        self.parameter("run").await.map(RunId::new)
    }

    /// Returns a parameter of the path.
    pub(crate) async fn parameter(&mut self, name: &str) -> Result<String, Problem> {
        let wrong = |detail: String| Problem::new(Rule::Route, detail);
        let parameters = RawPathParams::from_request_parts(&mut self.parts, &()).await;
        let parameters = parameters.map_err(|rejection| wrong(rejection.to_string()))?;
        let found = parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        found.ok_or_else(|| wrong(format!("the path has no {name}")))
    }

    /// Reads the query.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let query = Query::<T>::try_from_uri(&self.parts.uri);
        query.map(|Query(query)| query).map_err(|rejection| Problem::new(Rule::Query, rejection.body_text()))
    }

    /// Returns a header as text; `None` if the request does not have it.
    pub(crate) fn header(&self, name: &str) -> Result<Option<&str>, Problem> {
        header(&self.parts.headers, name)
    }

    /// Reads the body. An empty body is read as `{}`.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self) -> Result<T, Problem> {
        let body = self.read_body().await?;
        let text: &[u8] = if body.is_empty() { b"{}" } else { &body };
        serde_json::from_slice(text).map_err(|error| {
            let rule = match error.classify() {
                Category::Data => Rule::Body,
                _ => Rule::MalformedBody,
            };
            Problem::new(rule, format!("the body cannot be read: {error}"))
        })
    }

    async fn read_body(&mut self) -> Result<Vec<u8>, Problem> {
        let options = &self.state.options;
        let body = std::mem::take(&mut self.body);
        let read = pin!(collect(body, options.max_body));
        let deadline = self.state.clock.sleep_until(self.state.now() + options.body_time);
        match select(read, deadline).await {
            Either::Left((read, _)) => read,
            Either::Right(_) => Err(Problem::new(Rule::SlowBody, "the body did not arrive in time")
                .advise("send the request again")),
        }
    }
}

/// Returns a header as text.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let wrong = |detail: &str| Problem::new(Rule::Header, format!("{name}: {detail}"));
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(wrong("the header is there twice"));
    }
    value.to_str().map(Some).map_err(|_| wrong("the header is no text in ASCII"))
}

async fn collect(body: Body, most: usize) -> Result<Vec<u8>, Problem> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk
            .map_err(|error| Problem::new(Rule::MalformedBody, format!("the body ended early: {error}")))?;
        if chunk.len() > most - bytes.len() {
            return Err(Problem::new(Rule::BodySize, format!("the body has more than {most} bytes"))
                .advise("send a smaller body"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
