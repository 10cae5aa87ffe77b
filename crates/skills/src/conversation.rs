//! The skills of one conversation: which are active, which instructions it already has, and what the active skills
//! allow.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{CLEANUP_TOOL, CommandId, Json, RunId, Subject, TOOL_SEARCH};

use crate::{
    ACTIVATE_SKILL, ActiveSkill, AllowedTools, RuleMatcher, SkillActivationRequest, SkillActivationResult,
    SkillError, SkillSet, activation_steps,
};

/// The skills of one conversation. A skill is active only in the run that activated it, so it is no longer active in
/// the run of the person's next message. Activation is atomic: if one skill is activated twice at the same time, only
/// one of the results contains the instructions.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{SkillActivationRequest, SkillActivator, SkillConversation, SkillSet};
/// use archon_types::RunId;
///
/// # let place = tempfile::tempdir()?;
/// let folder = place.path().join("review");
/// std::fs::create_dir(&folder)?;
/// let text = "---\nname: review\ndescription: Reviews code.\nallowed-tools: Read Grep\n---\nLook for bugs.\n";
/// std::fs::write(folder.join("SKILL.md"), text)?;
/// let skills = Arc::new(SkillSet::load([place.path()]));
///
/// let conversation = SkillConversation::new(skills.clone());
/// // A person wrote `/review the parser`.
/// let (skill, rest) = skills.command("/review the parser").unwrap();
/// let run = RunId::new("run_1");
/// let request = SkillActivationRequest::new(&skill.name).with_activator(SkillActivator::Person);
/// let result = conversation.activate(&request.with_user_request(rest).with_run(run.clone()));
/// assert!(result.success && result.text_for_model().contains("Look for bugs."));
/// assert!(conversation.offers_tool(&run, "read_file") && !conversation.offers_tool(&run, "bash"));
/// // In the run of the person's next message, the tools are back; the instructions are in the conversation.
/// assert!(conversation.offers_tool(&RunId::new("run_2"), "bash"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SkillConversation {
    skills: Arc<SkillSet>,
    matcher: Option<Arc<dyn RuleMatcher>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The active skills of each run, the oldest first.
    active: BTreeMap<RunId, Vec<ActiveSkill>>,
    /// The names of the skills whose instructions the conversation has, with the turn that brought them.
    loaded: BTreeMap<String, Turn>,
    metrics: SkillMetrics,
}

/// A turn: its run and its command. The command is `None` if a person's message or an earlier process brought the
/// instructions.
type Turn = (RunId, Option<CommandId>);

/// The counts of skill activations in one conversation or in several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillMetrics {
    /// The number of activations that succeeded.
    pub activations: u64,
    /// The number of successful activations whose instructions were already in the conversation.
    pub repeated: u64,
    /// The number of activations that were refused or failed.
    pub refused: u64,
    /// The number of successful activations of each skill.
    pub by_skill: BTreeMap<String, u64>,
}

impl SkillMetrics {
    /// Returns the number of different skills that were activated.
    pub fn unique_skills(&self) -> usize {
        self.by_skill.len()
    }

    pub(crate) fn count(&mut self, skill: &str, is_loaded: bool) {
        self.activations += 1;
        self.repeated += u64::from(is_loaded);
        *self.by_skill.entry(skill.to_owned()).or_default() += 1;
    }

    /// Adds the counts of another conversation.
    pub fn add(&mut self, other: &Self) {
        self.activations += other.activations;
        self.repeated += other.repeated;
        self.refused += other.refused;
        for (skill, count) in &other.by_skill {
            *self.by_skill.entry(skill.clone()).or_default() += count;
        }
    }
}

impl SkillConversation {
    /// Creates a conversation in which no skill is active. Rules with patterns, such as `bash(git:*)`, allow nothing
    /// until [`with_matcher`](Self::with_matcher) sets a matcher.
    pub fn new(skills: Arc<SkillSet>) -> Self {
        Self { skills, matcher: None, state: Mutex::default() }
    }

    /// Sets the matcher that decides about rules with patterns, such as `bash(git:*)`.
    pub fn with_matcher(self, matcher: Arc<dyn RuleMatcher>) -> Self {
        Self { matcher: Some(matcher), ..self }
    }

    /// Activates a skill. The messages of the result contain the instructions, unless the conversation already has
    /// them.
    ///
    /// The activation fails and changes nothing if the skill is unknown, if only a person can activate it, if it is
    /// in its own chain, if the chain is too long, if a file cannot be read, or if the folder has changed since a
    /// person trusted it.
    pub fn activate(&self, request: &SkillActivationRequest) -> SkillActivationResult {
        let mut state = self.state();
        match self.try_activate(&mut state, request) {
            Ok(result) => result,
            Err(error) => {
                state.metrics.refused += 1;
                SkillActivationResult::failed(error)
            }
        }
    }

    fn try_activate(
        &self,
        state: &mut State,
        request: &SkillActivationRequest,
    ) -> Result<SkillActivationResult, SkillError> {
        let skill = activation_steps::check(&self.skills, request)?;
        let is_loaded = state.loaded.contains_key(&skill.name);
        let result = activation_steps::result(skill, request, is_loaded)?;
        if result.brings_instructions {
            state.loaded.insert(skill.name.clone(), (request.run.clone(), request.turn));
        }
        state.make_active(request.run.clone(), ActiveSkill::of(skill, request));
        state.metrics.count(&skill.name, is_loaded);
        Ok(result)
    }

    /// Restores an activation, for instance of an earlier process, from `seen`, the content of its
    /// [mark](SkillActivationResult::mark). The skill is active in its run again, and the conversation counts as
    /// having the instructions. The limits are those at the time of the activation, even if the skill's file has
    /// changed or no longer exists.
    pub fn restore(&self, seen: &Json) {
        let Some((run, active)) = ActiveSkill::of_mark(seen) else { return };
        let mut state = self.state();
        state.loaded.insert(active.name.clone(), (run.clone(), None));
        state.make_active(run, active);
    }

    /// Ends the active skills of a run, so that their limits and models no longer apply to it.
    pub fn end_run(&self, run: &RunId) {
        self.state().active.remove(run);
    }

    /// Records that the instructions of a skill are no longer in the conversation, so that the next activation adds
    /// them again.
    pub fn forget_instructions(&self, skill: &str) {
        self.state().loaded.remove(skill);
    }

    /// Does the same as [`forget_instructions`](Self::forget_instructions), unless a tool call of this turn added the
    /// instructions: the result of such a call is not in the context window yet, but will be.
    pub(crate) fn forget_unless_of(&self, run: &RunId, turn: Option<CommandId>, skill: &str) {
        let is_of_turn = |(of, by): &Turn| of == run && turn.is_some() && *by == turn;
        let mut state = self.state();
        if state.loaded.get(skill).is_some_and(|loaded| !is_of_turn(loaded)) {
            state.loaded.remove(skill);
        }
    }

    /// Returns the active skills of a run, the oldest first.
    pub fn active(&self, run: &RunId) -> Vec<ActiveSkill> {
        self.state().of(run).to_vec()
    }

    /// Returns the activation chain for a skill that the active skill `skill` asks for: the skills that led to
    /// `skill`, then `skill` itself.
    ///
    /// # Errors
    /// [`SkillError::CallerNotActive`] if `skill` is not active in the run.
    pub fn chain_below(&self, run: &RunId, skill: &str) -> Result<Vec<String>, SkillError> {
        let state = self.state();
        let active = state.of(run).iter().rev().find(|active| active.name == skill);
        let active = active.ok_or_else(|| SkillError::CallerNotActive(skill.to_owned()))?;
        Ok(active.activation_chain.iter().cloned().chain([skill.to_owned()]).collect())
    }

    /// Returns the model of the newest active skill of a run that names a model; `None` if no active skill names one.
    pub fn model(&self, run: &RunId) -> Option<String> {
        self.state().of(run).iter().rev().find_map(|active| active.model.clone())
    }

    /// Returns true if the active skills of the run may allow some calls of this tool, so that requests of the run
    /// should define the tool.
    pub fn offers_tool(&self, run: &RunId, tool: &str) -> bool {
        self.blocker_by(run, tool, |tools| tools.names_tool(tool)).is_none()
    }

    /// Returns true if an active skill of a run limits its tools.
    pub fn has_limits(&self, run: &RunId) -> bool {
        self.state().of(run).iter().any(|active| active.allowed_tools.is_some())
    }

    /// Returns the name of the first active skill of a run that does not allow this call; `None` if all of them allow
    /// it. Each active skill with a list of tools must allow a call, so a further active skill never allows more. The
    /// tools `activate_skill`, `tool_search` and `cleanup_tool_call` are never limited, because they only serve the
    /// conversation.
    pub fn blocker(&self, run: &RunId, tool: &str, subject: &Subject) -> Option<String> {
        self.blocker_by(run, tool, |tools| tools.allows(tool, subject, self.matcher.as_deref()))
    }

    fn blocker_by(&self, run: &RunId, tool: &str, allows: impl Fn(&AllowedTools) -> bool) -> Option<String> {
        if [ACTIVATE_SKILL, TOOL_SEARCH, CLEANUP_TOOL].contains(&tool) {
            return None;
        }
        let state = self.state();
        let blocks =
            |active: &&ActiveSkill| active.allowed_tools.as_ref().is_some_and(|tools| !allows(tools));
        state.of(run).iter().find(blocks).map(|active| active.name.clone())
    }

    /// Reads a text file of a skill whose instructions the conversation has.
    ///
    /// # Errors
    /// [`SkillError::Unknown`] if there is no such skill; [`SkillError::NotActive`] if the conversation does not have
    /// its instructions; [`SkillError::Unreadable`] if the file is not UTF-8 text; otherwise the errors of
    /// [`Skill::read_file`](crate::Skill::read_file).
    pub fn read_file(&self, skill: &str, name: &str) -> Result<String, SkillError> {
        let skill = self.skills.find(skill)?;
        if !self.state().loaded.contains_key(&skill.name) {
            return Err(SkillError::NotActive(skill.name.clone()));
        }
        String::from_utf8(skill.read_file(name)?).map_err(|_| SkillError::Unreadable {
            file: skill.folder.join(name),
            problem: "it is not UTF-8 text".to_owned(),
        })
    }

    /// Returns the counts of this conversation.
    pub fn metrics(&self) -> SkillMetrics {
        self.state().metrics.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the active skills of a run.
    fn of(&self, run: &RunId) -> &[ActiveSkill] {
        self.active.get(run).map_or(&[], Vec::as_slice)
    }

    fn make_active(&mut self, run: RunId, skill: ActiveSkill) {
        // The first activation has the shortest chain. A second one with other limits can only narrow.
        let active = self.active.entry(run).or_default();
        if active
            .iter()
            .all(|other| (&other.name, &other.allowed_tools) != (&skill.name, &skill.allowed_tools))
        {
            active.push(skill);
        }
    }
}

archon_types::debug_fields!(SkillConversation: skills);
