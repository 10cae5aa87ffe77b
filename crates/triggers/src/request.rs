//! The requests of a task's runs.

use archon_types::{
    AgentMessage, Content, ExtensionMessage, Json, Message, RunKind, Speaker, StartRun, TRIGGER_KEYS,
    TRIGGER_MESSAGE, Timestamp, UserMessage,
};
use serde_json::json;

use crate::{
    code_model::CODE_AGENT,
    event::TriggerEvent,
    occurrence::Occurrence,
    task::{Trigger, TriggerAction, TriggerTask},
};

impl TriggerTask {
    /// Returns the idempotency key of the run that the task starts for an occurrence. The key is the same in each
    /// process, so the occurrence starts one run.
    pub fn run_key(&self, occurrence: &Occurrence) -> String {
        let task = format!("{TRIGGER_KEYS}{}/{}", self.id, self.created_at.as_millis());
        match occurrence {
            Occurrence::Time(at) => format!("{task}/at/{}", at.as_millis()),
            Occurrence::Event(event) => format!("{task}/event/{}", json!([event.source, event.id])),
            Occurrence::Edge(number) => format!("{task}/edge/{number}"),
            Occurrence::Person(name) => format!("{task}/by/{name}"),
        }
    }

    /// Returns the request that starts the run of the task for an occurrence.
    ///
    /// An agent gets its instruction, and the data of an event as an attached file, which is untrusted. For
    /// [`TriggerAction::Code`] the message is the tool call, which a [`CodeModel`](crate::CodeModel) reads.
    pub fn run_request(&self, occurrence: &Occurrence) -> StartRun {
        let mark = json!({
            "source": "trigger",
            "trigger_type": self.trigger_type(occurrence),
            "task_id": self.id,
            "key": self.run_key(occurrence),
        });
        let (agent, message) = match &self.action {
            TriggerAction::Agent { agent, instruction } => {
                (agent.clone(), self.instruction_for(occurrence, instruction))
            }
            TriggerAction::Code { executor, arguments } => {
                let call = json!({ "tool": executor, "arguments": arguments, "event": event_of(occurrence).map(data_of) });
                let text = call.to_string();
                (Some(CODE_AGENT.into()), UserMessage::new(vec![Content::text(text)], Timestamp::default()))
            }
        };
        let message = AgentMessage::from(Message::User(message)).with_speaker(Speaker::Program);
        let prompts = vec![ExtensionMessage::new(TRIGGER_MESSAGE, mark).into(), message];
        let mut request = StartRun::with_messages(prompts)
            .kind(RunKind::Loop)
            .key(self.run_key(occurrence))
            .tenant(self.tenant.clone());
        request.agent = agent;
        request.settings.limits.clone_from(&self.limits.each_run);
        request
    }

    fn trigger_type(&self, occurrence: &Occurrence) -> &'static str {
        match (occurrence, &self.trigger) {
            (Occurrence::Person(_), _) => "person",
            (_, Trigger::Schedule(_)) => "schedule",
            (_, Trigger::Event(_)) => "event",
            (_, Trigger::Condition(_)) => "condition",
        }
    }

    fn instruction_for(&self, occurrence: &Occurrence, instruction: &str) -> UserMessage {
        let text = match (occurrence, &self.trigger) {
            // The pattern is the person's; the type comes from outside, and is in the attached file.
            (Occurrence::Event(_), Trigger::Event(filter)) => {
                format!("[Event Trigger] {}: {instruction}", filter.pattern.as_str())
            }
            (Occurrence::Edge(_), Trigger::Condition(condition)) => {
                format!("[Condition Trigger] Condition met: {}\n{instruction}", condition.expression.text())
            }
            _ => format!("[Scheduled Task] {instruction}"),
        };
        let mut message = UserMessage::new(vec![Content::text(text)], Timestamp::default());
        if let Some(event) = event_of(occurrence) {
            message.attach("the event", Content::text(pretty(&data_of(event))));
        }
        message
    }
}

fn event_of(occurrence: &Occurrence) -> Option<&TriggerEvent> {
    match occurrence {
        Occurrence::Event(event) => Some(event),
        _ => None,
    }
}

/// Returns the parts of an event that a run reads. Its time is left out: an event may arrive again with another one.
fn data_of(event: &TriggerEvent) -> Json {
    json!({ "source": event.source, "type": event.kind, "data": event.data })
}

fn pretty(data: &Json) -> String {
    serde_json::to_string_pretty(data).unwrap_or_default()
}
