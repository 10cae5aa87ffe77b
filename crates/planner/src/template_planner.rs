//! A planner that uses templates, both for a goal that matches one and for subtasks that name one.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{DynPlanner, PlanError, Planner, PlanningContext, SubTaskStatus, Task, TaskId};

use crate::{
    WorkflowTemplate,
    template::{Replaced, TemplateProblem},
};

/// A registry of templates by name and version.
#[derive(Clone, Debug, Default)]
pub struct TemplateRegistry {
    templates: BTreeMap<String, Vec<Arc<WorkflowTemplate>>>,
}

impl TemplateRegistry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a template. The template replaces one with the same name and version.
    pub fn add(&mut self, template: WorkflowTemplate) {
        let versions = self.templates.entry(template.name.clone()).or_default();
        versions.retain(|known| known.version != template.version);
        versions.push(Arc::new(template));
        versions.sort_by_key(|known| numbers(&known.version));
    }

    /// Returns the newest version of a template.
    pub fn newest(&self, name: &str) -> Option<&Arc<WorkflowTemplate>> {
        self.templates.get(name)?.last()
    }

    /// Returns one version of a template.
    pub fn version(&self, name: &str, version: &str) -> Option<&Arc<WorkflowTemplate>> {
        self.templates.get(name)?.iter().find(|known| known.version == version)
    }

    /// Returns the newest version of each template, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<WorkflowTemplate>> {
        self.templates.values().filter_map(|versions| versions.last())
    }

    /// Returns the best template for a goal. A template matches if all words of one of its phrases are in
    /// the goal; the template with the longest such phrase is the best, and among equals the first by
    /// name.
    pub fn matching(&self, goal: &str) -> Option<&Arc<WorkflowTemplate>> {
        let best = self.all().map(|template| (template.likeness(goal), template));
        let best = best.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.filter(|(likeness, _)| *likeness > 0).map(|(_, template)| template)
    }
}

fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// A planner with templates. A goal that matches a template is planned with it, and the parameters are
/// taken from the initial values. Any other goal goes to another planner, which sees the templates as
/// tools. A subtask that names a template is replaced by the template's steps.
///
/// ```
/// use archon_planner::{ScriptedPlanner, TemplatePlanner, TemplateRegistry, WorkflowTemplate};
/// use archon_types::SubTask;
///
/// # fn main() -> Result<(), serde_json::Error> {
/// let greet = r#"{ "name": "greet", "matches": ["say hello"], "steps": [{ "tool": "send" }] }"#;
/// let mut registry = TemplateRegistry::new();
/// registry.add(serde_json::from_str::<WorkflowTemplate>(greet)?);
/// let otherwise = ScriptedPlanner::new(vec![SubTask::new("answer", "Answer the question.")]);
/// let planner = TemplatePlanner::new(registry).or(otherwise);
/// # Ok(())
/// # }
/// ```
pub struct TemplatePlanner {
    registry: TemplateRegistry,
    otherwise: Option<Arc<dyn DynPlanner>>,
}

impl TemplatePlanner {
    /// Creates a planner that has only templates.
    pub fn new(registry: TemplateRegistry) -> Self {
        Self { registry, otherwise: None }
    }

    /// Sets the planner for goals that match no template, and for replans. Default: none, so these requests fail.
    pub fn or(mut self, planner: impl Planner + 'static) -> Self {
        self.otherwise = Some(Arc::new(planner));
        self
    }

    /// Replaces every subtask that names a template by the template's steps. The subtask's rules apply to the steps:
    /// the first steps get its gate (the question to a person before the start), the result gets its `save_as` name,
    /// and each step gets its maximum number of attempts.
    ///
    /// # Errors
    /// The values of a subtask do not fit its template, or the subtask has rules that several steps
    /// cannot follow.
    pub fn expand(&self, task: Task) -> Result<Task, PlanError> {
        let mut replaced = Replaced::default();
        for subtask in &task.subtasks {
            match subtask.tool_name().and_then(|name| self.registry.newest(name)) {
                Some(template) if subtask.status() != SubTaskStatus::Completed => {
                    replaced.add_steps(subtask, template).map_err(unreadable)?;
                }
                _ => replaced.add(subtask),
            }
        }
        Ok(task.with_subtasks(replaced.subtasks()))
    }

    fn with_templates(&self, context: &PlanningContext) -> PlanningContext {
        let mut context = context.clone();
        context.tools.extend(self.registry.all().map(|template| template.definition()));
        context
    }
}

impl Planner for TemplatePlanner {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        if let Some(template) = self.registry.matching(goal) {
            let is_parameter = |name: &str| template.parameters.iter().any(|p| p.name == name);
            let mut values = context.values.clone();
            values.retain(|name, _| is_parameter(name));
            let id = TaskId::new(context.run.run.as_str());
            return template.instantiate(id, goal, &values).map_err(unreadable);
        }
        match &self.otherwise {
            Some(planner) => self.expand(planner.create_plan(goal, &self.with_templates(context)).await?),
            None => Err(PlanError::Unreadable { problem: format!("no template matches the goal {goal:?}") }),
        }
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        match &self.otherwise {
            Some(planner) => self.expand(planner.replan(task, reason, &self.with_templates(context)).await?),
            None => Err(PlanError::Unreadable { problem: "a template cannot make another plan".to_owned() }),
        }
    }
}

fn unreadable(problems: Vec<TemplateProblem>) -> PlanError {
    let problem = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    PlanError::Unreadable { problem }
}
