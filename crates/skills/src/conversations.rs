//! The conversations of an agent, one for each session.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{SessionId, ToolResult, metadata};

use crate::{
    RuleMatcher, SkillActivationRequest, SkillActivationResult, SkillConversation, SkillError, SkillMetrics,
    SkillSet, activation_steps,
};

/// The default maximum number of kept conversations. A conversation that is in use is never dropped.
const MOST: usize = 1_000;

/// The skills of an agent, and its conversations, one for each session. At most 1,000 conversations are kept: before
/// another one is added, the least recently used one is dropped, but never one that a run holds. When the session of a
/// dropped conversation continues, the results of the tool `activate_skill` in the session restore the conversation.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{SkillConversations, SkillSet};
/// use archon_types::{RunId, SessionId};
///
/// let conversations = SkillConversations::new(Arc::new(SkillSet::new()));
/// let conversation = conversations.of(&SessionId::new("anna-1"));
/// assert!(conversation.active(&RunId::new("run_1")).is_empty());
/// assert_eq!(conversations.metrics().unique_skills(), 0);
/// ```
pub struct SkillConversations {
    skills: Arc<SkillSet>,
    matcher: Option<Arc<dyn RuleMatcher>>,
    most: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    by_session: HashMap<SessionId, (u64, Arc<SkillConversation>)>,
    /// The number of uses so far, to find the least recently used conversation.
    uses: u64,
    /// The counts of dropped conversations, and of activations for messages.
    counts: SkillMetrics,
}

impl SkillConversations {
    /// Creates the conversations of an agent with these skills.
    pub fn new(skills: Arc<SkillSet>) -> Self {
        Self { skills, matcher: None, most: MOST, held: Mutex::default() }
    }

    /// Returns the skills.
    pub fn skills(&self) -> &Arc<SkillSet> {
        &self.skills
    }

    /// Returns the conversation of a session; a new one if there is none.
    pub fn of(&self, session: &SessionId) -> Arc<SkillConversation> {
        let mut held = self.held();
        held.uses += 1;
        let uses = held.uses;
        if let Some((used, conversation)) = held.by_session.get_mut(session) {
            *used = uses;
            return conversation.clone();
        }
        if held.by_session.len() >= self.most {
            held.drop_oldest();
        }
        let mut conversation = SkillConversation::new(self.skills.clone());
        if let Some(matcher) = &self.matcher {
            conversation = conversation.with_matcher(matcher.clone());
        }
        let conversation = Arc::new(conversation);
        held.by_session.insert(session.clone(), (uses, conversation.clone()));
        conversation
    }

    /// Prepares the activation of a skill by a person's message. The skill is not active yet: put the
    /// [text](SkillActivationResult::text_for_model) and the [mark](SkillActivationResult::mark) of the result into
    /// the message. The skill becomes active in the run that receives the message, in any process, and again when
    /// that run is resumed.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_skills::{SkillActivationRequest, SkillActivator, SkillConversations, SkillSet};
    /// use archon_types::{AgentMessage, Message, Timestamp};
    ///
    /// fn message(skills: &SkillConversations, name: &str, words: &str) -> Option<AgentMessage> {
    ///     let request = SkillActivationRequest::new(name).with_activator(SkillActivator::Person);
    ///     let activation = skills.for_message(&request.with_user_request(words));
    ///     let text = format!("/{name} {words}\n\n{}", activation.text_for_model());
    ///     Some(AgentMessage::from(Message::user(text, Timestamp::default())).with_mark(activation.mark?))
    /// }
    /// let skills = SkillConversations::new(Arc::new(SkillSet::new()));
    /// assert!(message(&skills, "release-notes", "for 1.2").is_none());
    /// ```
    pub fn for_message(&self, request: &SkillActivationRequest) -> SkillActivationResult {
        match self.try_for_message(request) {
            Ok(result) => result,
            Err(error) => {
                self.held().counts.refused += 1;
                SkillActivationResult::failed(error)
            }
        }
    }

    fn try_for_message(&self, request: &SkillActivationRequest) -> Result<SkillActivationResult, SkillError> {
        let skill = activation_steps::check(&self.skills, request)?;
        // Instructions of an earlier message may have been compacted since.
        let result = activation_steps::result(skill, request, false)?;
        self.held().counts.count(&skill.name, false);
        Ok(result)
    }

    /// Restores an active skill, for instance when a session is resumed. `result` is a result of the tool
    /// `activate_skill`, or a result that the run makes from a message's [mark](SkillActivationResult::mark). Other
    /// results change nothing.
    pub fn recall(&self, session: &SessionId, result: &ToolResult) {
        if let Some(seen) = result.metadata.get(metadata::SEEN) {
            self.of(session).restore(seen);
        }
    }

    /// Returns the counts of all conversations.
    pub fn metrics(&self) -> SkillMetrics {
        let held = self.held();
        let mut metrics = held.counts.clone();
        held.by_session.values().for_each(|(_, conversation)| metrics.add(&conversation.metrics()));
        metrics
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

archon_types::setters! {
impl SkillConversations {
    /// Sets the matcher that decides about rules with patterns, such as `bash(git:*)`.
    pub fn with_matcher(self, matcher: Arc<dyn RuleMatcher>) -> Self { self.matcher = Some(matcher) }

    /// Sets the maximum number of conversations that are kept. Default 1,000.
    pub fn with_most(self, most: usize) -> Self { self.most = most }
}
}

impl Held {
    /// Drops the least recently used conversation that nobody else holds.
    fn drop_oldest(&mut self) {
        let idle =
            self.by_session.iter().filter(|(_, (_, conversation))| Arc::strong_count(conversation) == 1);
        let oldest = idle.min_by_key(|(_, (used, _))| *used).map(|(session, _)| session.clone());
        if let Some((_, dropped)) = oldest.and_then(|session| self.by_session.remove(&session)) {
            self.counts.add(&dropped.metrics());
        }
    }
}

archon_types::debug_fields!(SkillConversations: skills, most);
