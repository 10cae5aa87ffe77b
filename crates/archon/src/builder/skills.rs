//! Skills, and agents of files, as parts of an agent.

use std::sync::Arc;

use super::{ArchonBuilder, FileAgents};

archon_types::setters! {
impl ArchonBuilder {
    /// Sets the skills. The model reads their names and descriptions after the system text. It loads the instructions
    /// of a skill with the tool `activate_skill`, and these instructions stay in the context window. While a skill
    /// with `allowed-tools` is active in a run, all other calls of the run and of its child runs are denied. If the
    /// model may activate none of the skills, the list and the tool are left out; but limits in the log of a resumed
    /// run still apply.
    ///
    /// The agent trusts the instructions as if the person had written them, so load only folders that the person
    /// trusts.
    ///
    /// ```
    /// use archon::{Archon, skills::SkillSet};
    /// let builder = Archon::builder().skills(SkillSet::load(["company/skills"]));
    /// ```
    pub fn skills(self, skills: archon_skills::SkillSet) -> Self { self.skills = Some(Arc::new(skills)) }

    /// Adds a tool for each agent that an agent file describes. Such an agent has the model, the limits, the guards
    /// and the approver of this agent, unless its file says otherwise. It keeps the tools of this agent that its file
    /// allows, except tools that are agents. [`build`](Self::build) fails if a file names an unknown model or skill.
    ///
    /// ```
    /// use archon::{Archon, FileAgents, skills::AgentFiles};
    /// let files = AgentFiles::load([".archon/agents"]);
    /// let builder = Archon::builder().file_agents(FileAgents::new(&files));
    /// ```
    pub fn file_agents(self, agents: FileAgents) -> Self { self.file_agents = Some(agents) }
}
}
