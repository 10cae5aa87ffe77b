//! The events of a run that hooks are for, and their JSON.

use std::path::Path;

use archon_types::Json;
use serde_json::json;

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookEvent {
    /// A call passed every guard, and does not run yet.
    BeforeTool,
    /// A call was executed.
    AfterTool,
    /// A person wrote a message, which the model has not read yet.
    Prompt,
    /// A person is about to be asked about a call.
    Permission,
    /// A person has a question to answer.
    Notification,
    /// A run ended.
    Stop,
}

impl HookEvent {
    pub(crate) const ALL: [Self; 6] =
        [Self::BeforeTool, Self::AfterTool, Self::Prompt, Self::Permission, Self::Notification, Self::Stop];

    /// Returns the name of the event in files and in its JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BeforeTool => "PreToolUse",
            Self::AfterTool => "PostToolUse",
            Self::Prompt => "UserPromptSubmit",
            Self::Permission => "PermissionRequest",
            Self::Notification => "Notification",
            Self::Stop => "Stop",
        }
    }

    /// Returns the event with this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns whether a hook without an answer counts as a no. Before a question it does not: the person
    /// decides.
    pub(crate) fn decides(self) -> bool {
        matches!(self, Self::BeforeTool | Self::Prompt)
    }

    /// Returns whether a hook can refuse what the event is about.
    pub(crate) fn can_deny(self) -> bool {
        self.decides() || self == Self::Permission
    }

    /// Returns whether the model reads a text that a hook adds.
    pub(crate) fn takes_context(self) -> bool {
        matches!(self, Self::AfterTool | Self::Prompt)
    }
}

/// One occurrence of an event.
#[derive(Debug)]
pub(crate) struct Occurrence {
    pub(crate) event: HookEvent,
    /// The tool of the call, or the kind of the notification, which matchers are compared with.
    pub(crate) subject: Option<String>,
    /// The fields of the JSON that only this event has; an object.
    pub(crate) fields: Json,
}

impl Occurrence {
    pub(crate) fn new(event: HookEvent, subject: Option<&str>, fields: Json) -> Self {
        Self { event, subject: subject.map(str::to_owned), fields }
    }

    /// Returns the JSON that each hook gets.
    pub(crate) fn json(&self, folder: &Path) -> Json {
        let mut json = json!({ "hook_event_name": self.event.name(), "cwd": folder.display().to_string() });
        if let (Json::Object(json), Json::Object(fields)) = (&mut json, &self.fields) {
            json.extend(fields.clone());
        }
        json
    }
}
