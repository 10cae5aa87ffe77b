//! The request to activate a skill, and its result.

use archon_types::{CommandId, Message, RunId, Timestamp, ToolMark};

use crate::{AllowedTools, SkillError, SkillLevel};

/// The name of the tool that activates a skill.
pub const ACTIVATE_SKILL: &str = "activate_skill";

/// The default maximum depth of a chain of skills that activate each other. The first skill of a chain has depth 0.
pub(crate) const MAX_DEPTH: u32 = 3;

/// A request to activate a skill in a conversation.
///
/// ```
/// use archon_skills::{SkillActivationRequest, SkillActivator, SkillLevel};
///
/// // The instructions of `release` ask for `changelog`, which is then at depth 1.
/// let request = SkillActivationRequest::new("changelog")
///     .with_activation_chain(["release"])
///     .with_load_level(SkillLevel::Resources);
/// assert_eq!((request.activation_depth, request.max_depth), (1, 3));
///
/// let by_person = SkillActivationRequest::new("release")
///     .with_activator(SkillActivator::Person)
///     .with_user_request("for version 1.2");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkillActivationRequest {
    /// The name of the skill.
    pub skill_name: String,
    /// The id of the activation, for logs.
    pub activation_id: String,
    /// The id of the conversation, for logs.
    pub conversation_id: String,
    /// The run in which the skill is active. Default: the empty id, for a loop without runs.
    pub run: RunId,
    /// The person's request that the skill is activated for, such as `for version 1.2`; empty if there is none.
    pub user_request: String,
    /// The conversation so far, for programs that check a request before they pass it on. Activation does not read
    /// it.
    pub conversation_history: Vec<Message>,
    /// The parts of the skill to load. Default: level 2, the instructions.
    pub load_level: SkillLevel,
    /// The number of skills that led to this one: 0 if no other skill asks for it.
    pub activation_depth: u32,
    /// The greatest allowed depth. Default: 3, so that a chain has at most four skills.
    pub max_depth: u32,
    /// The names of the skills that led to this one, the outermost first.
    pub activation_chain: Vec<String>,
    /// The party that requests the skill. Default: the model.
    pub activator: SkillActivator,
    /// The time of the request.
    pub at: Timestamp,
    /// The command of the turn whose tool call is this request; `None` if no tool call made the request.
    pub(crate) turn: Option<CommandId>,
}

/// The party that requests a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkillActivator {
    /// The model, with the tool `activate_skill`.
    #[default]
    Model,
    /// A person, with `/` and the skill's name. A person may also activate skills that are hidden from the model.
    Person,
}

impl SkillActivationRequest {
    /// Creates a request of the model for a skill, at depth 0.
    pub fn new(skill_name: impl Into<String>) -> Self {
        Self {
            skill_name: skill_name.into(),
            activation_id: String::new(),
            conversation_id: String::new(),
            run: RunId::new(""),
            user_request: String::new(),
            conversation_history: Vec::new(),
            load_level: SkillLevel::default(),
            activation_depth: 0,
            max_depth: MAX_DEPTH,
            activation_chain: Vec::new(),
            activator: SkillActivator::default(),
            at: Timestamp::default(),
            turn: None,
        }
    }

    /// Sets the names of the skills that led to this one, and sets the depth to their number.
    pub fn with_activation_chain(mut self, chain: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.activation_chain = chain.into_iter().map(Into::into).collect();
        self.activation_depth = u32::try_from(self.activation_chain.len()).unwrap_or(u32::MAX);
        self
    }
}

archon_types::setters! {
impl SkillActivationRequest {
    /// Sets the id of the activation, for logs.
    pub fn with_activation_id(self, id: impl Into<String>) -> Self { self.activation_id = id.into() }

    /// Sets the id of the conversation, for logs.
    pub fn with_conversation_id(self, id: impl Into<String>) -> Self { self.conversation_id = id.into() }

    /// Sets the run in which the skill is active. Default: the empty id, for a loop without runs.
    pub fn with_run(self, run: impl Into<RunId>) -> Self { self.run = run.into() }

    /// Sets the person's request that the skill is activated for.
    pub fn with_user_request(self, request: impl Into<String>) -> Self { self.user_request = request.into() }

    /// Sets the parts of the skill to load. Default: level 2, the instructions.
    pub fn with_load_level(self, level: SkillLevel) -> Self { self.load_level = level }

    /// Sets the greatest allowed depth of a chain of skills. Default: 3.
    pub fn with_max_depth(self, depth: u32) -> Self { self.max_depth = depth }

    /// Sets the party that requests the skill. Default: the model.
    pub fn with_activator(self, activator: SkillActivator) -> Self { self.activator = activator }

    /// Sets the time of the request.
    pub fn with_time(self, at: Timestamp) -> Self { self.at = at }

    pub(crate) fn with_turn(self, turn: Option<CommandId>) -> Self { self.turn = turn }
}
}

/// The result of an activation: the messages for the conversation, and what changes while the skill is active.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_skills::{SkillActivationRequest, SkillConversation, SkillSet};
///
/// let conversation = SkillConversation::new(Arc::new(SkillSet::new()));
/// let result = conversation.activate(&SkillActivationRequest::new("release"));
/// assert!(!result.success && result.messages.is_empty());
/// assert_eq!(result.error.unwrap().to_string(), "there is no skill `release`; no skills are loaded");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SkillActivationResult {
    /// The messages for the conversation, in order. Add either all of them or none.
    pub messages: Vec<SkillMessage>,
    /// The effects while the skill is active; `None` after an error.
    pub context_modifier: Option<SkillModifier>,
    /// True if the activation succeeded. The skill is active now, except after
    /// [`SkillConversations::for_message`](crate::SkillConversations::for_message): then it becomes active in the run
    /// that receives the message.
    pub success: bool,
    /// The reason why the activation failed; `None` after a success.
    pub error: Option<SkillError>,
    /// The mark to put on a person's message: it activates the skill in the run that receives the message. `None`
    /// after an error. See [`SkillConversations::for_message`](crate::SkillConversations::for_message).
    pub mark: Option<ToolMark>,
    /// True if the messages contain the instructions, because the conversation did not have them before.
    pub(crate) brings_instructions: bool,
}

impl SkillActivationResult {
    pub(crate) fn failed(error: SkillError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }

    /// Returns all messages as one text for the model.
    pub fn text_for_model(&self) -> String {
        let texts: Vec<&str> = self.messages.iter().map(|message| message.content.as_str()).collect();
        texts.join("\n\n")
    }

    /// Returns the visible messages as one text for a person.
    pub fn text_for_person(&self) -> String {
        let is_visible = |message: &&SkillMessage| message.visibility == SkillVisibility::Visible;
        let texts: Vec<&str> =
            self.messages.iter().filter(is_visible).map(|message| message.content.as_str()).collect();
        texts.join("\n")
    }
}

/// A message of an activated skill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillMessage {
    /// The part of the skill that the message contains.
    pub kind: SkillMessageKind,
    /// The text.
    pub content: String,
    /// The readers of the message.
    pub visibility: SkillVisibility,
}

impl SkillMessage {
    pub(crate) fn new(kind: SkillMessageKind, content: impl Into<String>) -> Self {
        let visibility = match kind {
            SkillMessageKind::Instruction => SkillVisibility::Hidden,
            SkillMessageKind::Metadata | SkillMessageKind::Permissions => SkillVisibility::Visible,
        };
        Self { kind, content: content.into(), visibility }
    }
}

/// The part of a skill that a message contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillMessageKind {
    /// The name of the skill, and the person's request that the skill is activated for.
    Metadata,
    /// The instructions.
    Instruction,
    /// The tools that may be called and the model that is used while the skill is active.
    Permissions,
}

/// The readers of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillVisibility {
    /// The model and the person.
    Visible,
    /// The model only.
    Hidden,
}

/// The effects of a skill while it is active.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillModifier {
    /// The tools that may be called; `None` for no limit. If several skills are active, each of them must allow a
    /// call.
    pub allowed_tools: Option<AllowedTools>,
    /// The model to use; `None` for no change.
    pub model: Option<String>,
    /// True if only a person can activate the skill.
    pub disable_model_invocation: bool,
}
