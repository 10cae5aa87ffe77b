//! Agents from files as tools of the agent that a builder builds.

use std::{collections::BTreeMap, sync::Arc};

use archon_react_loop::SubAgentTool;
use archon_skills::{AgentFile, AgentFileProblem, AgentFiles, SkillSet};
use archon_types::{AgentId, Provider, Tool, ToolChoice};

use super::{ArchonBuilder, Model};
use crate::BuildError;

/// The agents that agent files describe, and the models and skills that these files may name. Each agent becomes a
/// [`SubAgentTool`]: see [`ArchonBuilder::file_agents`].
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, FileAgents, providers::ScriptedProvider, skills::{AgentFiles, SkillSet}};
///
/// let small = Arc::new(ScriptedProvider::texts(["All well."]));
/// let agents = FileAgents::new(&AgentFiles::load([".archon/agents"]))
///     .with_model("haiku", small, "scripted")
///     .with_skills(Arc::new(SkillSet::load([".archon/skills"])));
/// let builder = Archon::builder().file_agents(agents);
/// ```
#[derive(Clone, Default)]
pub struct FileAgents {
    files: Vec<Arc<AgentFile>>,
    models: BTreeMap<String, (Arc<dyn Provider>, String)>,
    skills: Arc<SkillSet>,
}

impl FileAgents {
    /// Takes all trusted agents of `files`, and leaves out the untrusted ones.
    pub fn new(files: &AgentFiles) -> Self {
        Self { files: files.iter().cloned().collect(), ..Self::default() }
    }

    /// Defines a model name that a file may use in its field `model`, such as `haiku`, by a provider and its model.
    /// Files may always use `inherit` and, with the feature `named-models`, names of the form `provider:name`.
    pub fn with_model(
        mut self,
        name: impl Into<String>,
        provider: Arc<dyn Provider>,
        model: impl Into<String>,
    ) -> Self {
        self.models.insert(name.into(), (provider, model.into()));
        self
    }

    /// Sets the skills that a file may name. Default none.
    pub fn with_skills(mut self, skills: Arc<SkillSet>) -> Self {
        self.skills = skills;
        self
    }

    /// Returns the model that an agent file names; `None` if the agent uses the model of its caller.
    fn model_of(&self, file: &AgentFile) -> Result<Option<Model>, AgentFileProblem> {
        let Some(name) = &file.model else { return Ok(None) };
        if let Some((provider, model)) = self.models.get(name) {
            return Ok(Some(Model::Given(vec![provider.clone()], model.clone())));
        }
        #[cfg(feature = "named-models")]
        if name.parse::<archon_providers::ModelRef>().is_ok() {
            return Ok(Some(Model::Named(name.clone())));
        }
        let known = self.models.keys().map(|name| format!("`{name}`"));
        let also = cfg!(feature = "named-models").then(|| "`provider:name`".to_owned());
        let known: Vec<String> = known.chain(["`inherit`".to_owned()]).chain(also).collect();
        let text = format!("there is no model `{name}`; write one of: {}", known.join(", "));
        Err(file.problem("model", text))
    }
}

archon_types::debug_fields!(FileAgents: files);

impl ArchonBuilder {
    /// Adds the agents of the files to the tools.
    pub(crate) fn add_file_agents(&mut self) -> Result<(), BuildError> {
        let Some(agents) = self.file_agents.take() else { return Ok(()) };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for file in &agents.files {
            let agent = self.of_file(file, &agents)?.build()?;
            let mut tool = SubAgentTool::new(&file.name, agent).with_description(&file.description);
            if let Some(turns) = file.max_turns {
                tool = tool.with_max_turns(turns);
            }
            tools.push(Arc::new(tool));
        }
        self.tools.extend(tools);
        Ok(())
    }

    /// Returns the builder for the agent of a file: a copy of this builder with fewer tools and other instructions.
    /// The copy has no settings for the caller's answer and memory.
    fn of_file(&self, file: &AgentFile, agents: &FileAgents) -> Result<Self, AgentFileProblem> {
        let mut child = self.clone();
        child.tools.retain(|tool| {
            let spec = tool.spec();
            // Otherwise agents could call each other for ever.
            !spec.annotations.agent && file.has_tool(&spec.name)
        });
        if let Some(model) = agents.model_of(file)? {
            // They are for the caller's model.
            child.keys.clear();
            if matches!(model, Model::Given(..)) && !child.has_named_fallback() {
                child.http = None;
            }
            child.model = Some(model);
            child.options.price = None;
        }
        if !file.has_tool("activate_skill") {
            child.skills = None;
        }
        child.agent_id = Some(AgentId::new(file.name.as_str()));
        (child.run_memory, child.auto_save) = (None, None);
        let options = &mut child.options;
        options.name.clone_from(&file.name);
        options.system = Some(file.system_prompt(&agents.skills)?);
        (options.config_id, options.expected_output) = (None, None);
        (options.goal_check, options.output_check) = (None, None);
        options.request.tool_choice = ToolChoice::default();
        options.request.response_format = None;
        Ok(child)
    }
}
