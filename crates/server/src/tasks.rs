//! Tasks that start runs without a person: their list, and the commands for them.

use archon_types::{Json, TaskCommand, TaskId};
use axum::http::StatusCode;
use serde_json::json;

use crate::{
    cookie::hex,
    problem::{Problem, Rule},
    reply::{Reply, json},
    request::Call,
};

/// The header with the name of a start, so that a request that is sent again starts nothing.
const KEY: &str = "idempotency-key";

pub(crate) async fn list(call: Call) -> Reply {
    let tasks = call.tasks()?.list().await?;
    json(StatusCode::OK, &json!({ "tasks": tasks }))
}

pub(crate) async fn create(mut call: Call) -> Reply {
    let definition: Json = call.json().await?;
    let id = definition["id"].clone();
    call.tasks()?.carry_out(TaskCommand::Create(definition)).await?;
    json(StatusCode::CREATED, &json!({ "task": id }))
}

pub(crate) async fn start(call: Call) -> Reply {
    let name = match call.header(KEY)? {
        Some(key) => key.to_owned(),
        None => random().map_err(|error| Problem::new(Rule::Internal, error.to_string()))?,
    };
    command(call, |task| TaskCommand::Run { task, name }).await
}

/// Carries out a command for the task of the path.
pub(crate) async fn command(mut call: Call, command: impl FnOnce(TaskId) -> TaskCommand) -> Reply {
    let task = TaskId::new(call.parameter("task").await?);
    call.tasks()?.carry_out(command(task.clone())).await?;
    json(StatusCode::OK, &json!({ "task": task }))
}

fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}
