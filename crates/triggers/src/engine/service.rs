//! The tasks for servers and commands: all of them, or those of one tenant.

use archon_types::{BoxFuture, Json, TaskCommand, TaskHead, TaskId, TaskService, TaskServiceError, TenantId};
use serde::Deserialize as _;

use super::{ListedTask, TriggerEngine, to_json};
use crate::{error::TriggerError, task::TriggerTask};

/// A [`TaskService`] for the tasks of one tenant. It neither shows nor changes the tasks of other tenants, and a new
/// task gets this tenant.
///
/// ```
/// use archon_triggers::TriggerEngine;
/// use archon_types::{TaskService, TaskServiceError};
///
/// async fn count(engine: &TriggerEngine) -> Result<usize, TaskServiceError> {
///     Ok(engine.for_tenant("anna").list().await?.len())
/// }
/// ```
#[derive(Clone)]
pub struct TenantTasks {
    engine: TriggerEngine,
    tenant: TenantId,
}

impl TriggerEngine {
    /// Returns a service for the tasks of one tenant.
    pub fn for_tenant(&self, tenant: impl Into<TenantId>) -> TenantTasks {
        TenantTasks { engine: self.clone(), tenant: tenant.into() }
    }

    async fn heads(&self, tenant: Option<&TenantId>) -> Result<Vec<TaskHead>, TaskServiceError> {
        let listed = self.list_tasks(tenant).await?;
        listed.into_iter().map(head).collect()
    }

    async fn command(&self, command: TaskCommand) -> Result<(), TriggerError> {
        match command {
            TaskCommand::Create(definition) => self.create_task(definition_of(&definition)?).await,
            TaskCommand::Pause(id) => self.pause_task(&id).await,
            TaskCommand::Resume(id) => self.resume_task(&id).await,
            TaskCommand::Run { task, name } => self.run_task(&task, name).await,
            TaskCommand::Delete(id) => self.delete_task(&id).await,
            _ => Err(TriggerError::Definition("this version does not know the command".to_owned())),
        }
    }
}

impl TaskService for TriggerEngine {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TaskHead>, TaskServiceError>> {
        Box::pin(self.heads(None))
    }

    fn carry_out(&self, command: TaskCommand) -> BoxFuture<'_, Result<(), TaskServiceError>> {
        Box::pin(async move { Ok(self.command(command).await?) })
    }
}

impl TaskService for TenantTasks {
    fn list(&self) -> BoxFuture<'_, Result<Vec<TaskHead>, TaskServiceError>> {
        Box::pin(self.engine.heads(Some(&self.tenant)))
    }

    fn carry_out(&self, command: TaskCommand) -> BoxFuture<'_, Result<(), TaskServiceError>> {
        Box::pin(async move {
            match &command {
                TaskCommand::Create(definition) => {
                    let task = definition_of(definition)?.tenant(self.tenant.clone());
                    return Ok(self.engine.create_task(task).await?);
                }
                TaskCommand::Pause(id)
                | TaskCommand::Resume(id)
                | TaskCommand::Delete(id)
                | TaskCommand::Run { task: id, .. } => self.check(id).await?,
                _ => {}
            }
            Ok(self.engine.command(command).await?)
        })
    }
}

impl TenantTasks {
    /// Refuses a task of another tenant as one that does not exist.
    async fn check(&self, id: &TaskId) -> Result<(), TriggerError> {
        let own = self.engine.list_tasks(Some(&self.tenant)).await?;
        match own.iter().any(|listed| listed.task.id == *id) {
            true => Ok(()),
            false => Err(TriggerError::Unknown(id.clone())),
        }
    }
}

fn definition_of(json: &Json) -> Result<TriggerTask, TriggerError> {
    TriggerTask::deserialize(json).map_err(|error| TriggerError::Definition(error.to_string()))
}

fn head(listed: ListedTask) -> Result<TaskHead, TaskServiceError> {
    let definition = to_json(&listed.task).map_err(TriggerError::from)?;
    let mut head = TaskHead::new(listed.task.id.clone(), listed.task.tenant.clone(), definition);
    (head.status, head.next) = (listed.status(), listed.next);
    let mut state = listed.state;
    head.newest_problem = state.problems.pop();
    (head.runs, head.failures, head.spent_micros) = (state.runs, state.failures, state.spent_micros);
    (head.problem, head.is_busy, head.last_runs) = (state.problem, state.current.is_some(), state.last_runs);
    Ok(head)
}
