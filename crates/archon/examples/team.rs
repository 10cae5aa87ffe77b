//! A team of two: one finds out, one writes, and the agent that leads puts the answer together. Without a network: the
//! models and the planner are scripted. `cargo run -p archon-agents --features orchestrator --example team`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::sync::Arc;

use archon::{
    Archon,
    providers::ScriptedProvider,
    types::{Member, PlanError, Planner, PlanningContext, SubTask, SubTaskRules, Task, TaskId, TeamRecord},
};

/// Always the same two steps. With a real model and the feature `planner`: `Arc::new(lead.planner())`.
struct TwoSteps;

impl Planner for TwoSteps {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let step = |id: &str, what: &str, role: &str| {
            let mut rules = SubTaskRules::default();
            rules.role = Some(role.to_owned());
            SubTask::new(id, what).with_rules(rules)
        };
        let find = step("find", "Find the figures", "researcher");
        let write = step("write", "Write one sentence", "writer").after(["find"]);
        let task = Task::new(TaskId::new("task"), goal).with_subtasks(vec![find, write]);
        Ok(task)
    }
}

fn agent(id: &str, says: &'static str) -> Result<Archon, archon::BuildError> {
    Archon::builder().provider(Arc::new(ScriptedProvider::texts([says])), "scripted").agent_id(id).build()
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let lead = agent("lead", "The sea rises by 3.7 mm a year.")?;
    let team = lead
        .team(TwoSteps)
        .member(Member::new("ada", "researcher"), Arc::new(agent("ada", "3.7 mm a year, says NASA")?))
        .member(Member::new("ben", "writer"), Arc::new(agent("ben", "It rises, by 3.7 mm a year.")?));
    let reply = team.run("Does the sea rise?").await?;
    for record in lead.journal().read(reply.run()).await? {
        if let archon::types::RecordBody::Team(said) = &record.body
            && let TeamRecord::Delegated { member, task, .. } = &**said
        {
            println!("{member} does: {task}");
        }
    }
    println!("{}", reply.into_text()?);
    Ok(())
}
