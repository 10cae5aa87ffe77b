//! Skills, and agents of files, as parts of an agent.

use std::sync::Arc;

use super::{ArchonBuilder, FileAgents};

archon_types::setters! {
impl ArchonBuilder {
    /// Sets the skills. The model reads their names and descriptions behind the system text, and loads the
    /// instructions of one with the tool `activate_skill`; they stay in the context window. While a skill with
    /// `allowed-tools` is active in a run, other calls of the run and of its child runs are denied. Without skills
    /// that a model may activate, there is neither the list nor the tool; limits that the log of a resumed run has hold
    /// all the same.
    ///
    /// The instructions are trusted as the person's own, so load only folders that a person trusts.
    ///
    /// ```
    /// use archon::{Archon, skills::SkillSet};
    /// let builder = Archon::builder().skills(SkillSet::load(["company/skills"]));
    /// ```
    pub fn skills(self, skills: archon_skills::SkillSet) -> Self { self.skills = Some(Arc::new(skills)) }

    /// Makes tools of the agents of files. Each keeps those tools of this agent that its file names, but no agents; it has
    /// the model, the limits, the guards and the approver of this agent unless its file says otherwise. [`build`](Self::build)
    /// fails if a file names a model or a skill that is not known.
    ///
    /// ```
    /// use archon::{Archon, FileAgents, skills::AgentFiles};
    /// let files = AgentFiles::load([".archon/agents"]);
    /// let builder = Archon::builder().file_agents(FileAgents::new(&files));
    /// ```
    pub fn file_agents(self, agents: FileAgents) -> Self { self.file_agents = Some(agents) }
}
}
