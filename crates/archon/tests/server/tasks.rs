//! Tasks over HTTP: their list, and the commands for them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use archon::{
    server::{AccessToken, AllowedHosts, Role, Scope, Server, ServerOptions},
    types::{BoxFuture, Json, TaskCommand, TaskHead, TaskService, TaskServiceError, TaskStatus},
};
use serde_json::json;

use crate::world::{Ask, HOST, World};

/// Tasks in memory, which notes the commands.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<(Vec<TaskHead>, Vec<TaskCommand>)>);

impl TaskService for Tasks {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TaskHead>, TaskServiceError>> {
        let heads = self.0.lock().unwrap().0.clone();
        Box::pin(std::future::ready(Ok(heads)))
    }

    fn carry_out(&self, command: TaskCommand) -> BoxFuture<'_, Result<(), TaskServiceError>> {
        let mut tasks = self.0.lock().unwrap();
        tasks.1.push(command.clone());
        let done = match command {
            TaskCommand::Create(definition) => match definition["id"].as_str() {
                Some("full") => Err(TaskServiceError::Full("too much waits".to_owned())),
                Some(id) => {
                    tasks.0.push(TaskHead::new(id, "local", definition.clone()));
                    Ok(())
                }
                None => Err(TaskServiceError::Refused("the definition has no id".to_owned())),
            },
            TaskCommand::Pause(id) | TaskCommand::Resume(id) | TaskCommand::Delete(id) => {
                match tasks.0.iter_mut().find(|task| task.id == id) {
                    Some(task) => {
                        task.status = TaskStatus::Paused;
                        Ok(())
                    }
                    None => Err(TaskServiceError::Unknown(id)),
                }
            }
            _ => Ok(()),
        };
        Box::pin(std::future::ready(done))
    }
}

/// A definition as a client writes it.
pub(crate) fn definition(id: &str) -> Json {
    json!({
        "id": id,
        "trigger": { "schedule": { "cron": "0 8 * * *", "zone": "Asia/Shanghai" } },
        "action": { "agent": { "instruction": "Summarize unread emails" } },
    })
}

// spec: TR-01
#[tokio::test]
async fn tasks_are_created_listed_started_paused_and_deleted() {
    let site = World::new().site();
    assert_eq!(site.get("/v1/tasks").await.refusal(), (404, "no-tasks"));
    let tasks = Arc::new(Tasks::default());
    let scope = Scope::new(Arc::new(site.runs.clone())).with_tasks(tasks.clone());
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap();
    let clock = Arc::new(site.clock.clone());
    let site = site.with(&Server::new(AllowedHosts::new([HOST]), [token], clock, ServerOptions::default()));

    let created = site.post("/v1/tasks", definition("mail")).await;
    assert_eq!((created.status.as_u16(), &created.body), (201, &json!({ "task": "mail" })));
    let run = Ask::post("/v1/tasks/mail/run", &json!({})).with("idempotency-key", "once");
    assert_eq!(site.send(run).await.status.as_u16(), 200);
    site.post("/v1/tasks/mail/run", json!({})).await;
    site.post("/v1/tasks/mail/pause", json!({})).await;
    site.post("/v1/tasks/mail/resume", json!({})).await;
    let listed = site.get("/v1/tasks").await.body;
    assert_eq!(
        (&listed["tasks"][0]["id"], &listed["tasks"][0]["status"]),
        (&json!("mail"), &json!("paused"))
    );
    let names = |object: &Json| object.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let document = site.get("/v1/openapi.json").await.body;
    assert_eq!(
        names(&listed["tasks"][0]),
        names(&document["components"]["schemas"]["Task"]["properties"]),
        "the document describes the task"
    );
    assert_eq!(
        site.send(Ask::new("DELETE", "/v1/tasks/mail").with("content-type", "application/json"))
            .await
            .status
            .as_u16(),
        200
    );
    let commands = std::mem::take(&mut tasks.0.lock().unwrap().1);
    let name = |command: &TaskCommand| match command {
        TaskCommand::Run { task, name } => (task.to_string(), name.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(name(&commands[1]), ("mail".to_owned(), "once".to_owned()));
    assert_eq!(name(&commands[2]).1.len(), 32, "a start without a key has a name of its own");
    let id = || "mail".into();
    assert_eq!(
        commands[3..],
        [TaskCommand::Pause(id()), TaskCommand::Resume(id()), TaskCommand::Delete(id())]
    );

    assert_eq!(site.post("/v1/tasks", json!({})).await.refusal(), (422, "refused"));
    assert_eq!(site.post("/v1/tasks", definition("full")).await.refusal(), (429, "tasks-full"));
    assert_eq!(site.post("/v1/tasks/lunch/pause", json!({})).await.refusal(), (404, "unknown-task"));
}
