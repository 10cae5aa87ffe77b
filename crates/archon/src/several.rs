//! The common part of plans and teams: the work behind their methods, the context that their agents read,
//! and storing the prompt and the answer in the memory.

use std::{fmt::Write as _, sync::Arc};

use archon_react_loop::{fold_chain, prompts_and_answer};
use archon_types::{
    AgentMessage, Attributed, Content, Context, ExtensionMessage, Message, Origin, Outcome, OutcomeStatus,
    RecordBody, RunConfig, RunError, RunKind, RunRefused, SessionPlace, Speaker,
};

use crate::Archon;

/// Implements the methods that [`Planning`](crate::Planning) and [`Teamwork`](crate::Teamwork) have in common: the
/// private methods behind their public ones, and [`RunAgent`](archon_types::RunAgent). `$agents` is the field that
/// does the work.
macro_rules! runs_of_several {
    ($type:ident, $agents:ident, $kind:expr) => {
        impl $type {
            async fn run_task(&self, task: String, options: RunOptions) -> Result<Reply, RunError> {
                let (own, context, origin) = self.prepare(&task, options).await?;
                let work = |context| async move { own.begin_with(&task, Vec::new(), origin, &context).await };
                Reply::of(self.archon.work(context, work).await?)
            }

            async fn spawn_task(&self, task: String, options: RunOptions) -> Result<RunHandle, RunError> {
                let (own, context, origin) = self.prepare(&task, options).await?;
                Ok(self.archon.spawn(context, |_, context| async move {
                    own.begin_with(&task, Vec::new(), origin, &context).await
                }))
            }

            async fn spawn_resumed(&self, run: RunId, more: MoreLimits) -> Result<RunHandle, RunError> {
                let (context, own) = (self.archon.context_of(run).await?, self.clone());
                Ok(self
                    .archon
                    .spawn(context, move |_, context| async move { own.resume_run(&more, &context).await }))
            }

            async fn spawn_answered(
                &self,
                run: RunId,
                call: CallId,
                answer: Answer,
            ) -> Result<RunHandle, RunError> {
                let context = self.asking(self.archon.context_of(run).await?);
                let agents = self.$agents.clone();
                Ok(self.archon.spawn(context, |_, context| async move {
                    Ok(agents.answer(call, answer, &context).await?)
                }))
            }

            async fn prepare(
                &self,
                task: &str,
                mut options: RunOptions,
            ) -> Result<(Self, Context, Origin), RunError> {
                if task.trim().is_empty() {
                    return Err(RunError::EmptyPrompt);
                }
                options.refuse_settings()?;
                let own = self.limited(options.settings().limits);
                let (context, origin) = self.archon.prepare(options).await?;
                Ok((own, context, origin))
            }

            /// Returns this agent, with `limits` for the whole run if `limits` are given.
            fn limited(&self, limits: Option<ExecutionLimits>) -> Self {
                let own = self.clone();
                match limits {
                    Some(limits) => own.with(|agents| agents.with_limits(limits)),
                    None => own,
                }
            }

            /// Works on a task. The `extensions` are messages of the application for the log.
            async fn begin_with(
                &self,
                task: &str,
                extensions: Vec<ExtensionMessage>,
                origin: Origin,
                context: &Context,
            ) -> Result<Outcome, RunError> {
                let context = &self.asking(self.archon.own(context));
                let mut place = self.archon.place(origin, task, context).await?;
                place.extensions = extensions;
                let outcome = self.$agents.start_in(place, task, context).await?;
                self.archon.remember(&outcome, context).await?;
                Ok(outcome)
            }

            async fn resume_run(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, RunError> {
                let context = &self.asking(self.archon.own(context));
                let resumed = self.$agents.resume_with(more, context).await.map_err(RunError::from);
                self.archon.remember_ended(resumed, context).await
            }
        }

        impl RunAgent for $type {
            fn kind(&self) -> RunKind {
                $kind
            }

            fn id(&self) -> AgentId {
                self.$agents.options().agent_id.clone()
            }

            fn begin<'a>(
                &'a self,
                prompts: Vec<AgentMessage>,
                origin: Origin,
                settings: RunSettings,
                context: &'a Context,
            ) -> BoxFuture<'a, Result<Outcome, RunError>> {
                Box::pin(async move {
                    settings.refuse_for($kind)?;
                    crate::several::refuse_marks(&prompts, $kind)?;
                    let task = AgentMessage::joined_text(&prompts)?;
                    let extensions = crate::several::extensions(prompts);
                    self.limited(settings.limits).begin_with(&task, extensions, origin, context).await
                })
            }

            fn resume<'a>(
                &'a self,
                more: &'a MoreLimits,
                context: &'a Context,
            ) -> BoxFuture<'a, Result<Outcome, RunError>> {
                Box::pin(self.resume_run(more, context))
            }

            fn check_answer<'a>(
                &'a self,
                pending: &'a PendingApproval,
                answer: &'a Answer,
                context: &'a Context,
            ) -> BoxFuture<'a, Result<(), RunError>> {
                Box::pin(self.check(pending, answer, context))
            }
        }
    };
}
pub(crate) use runs_of_several;

/// Refuses prompts with a [mark](archon_types::ToolMark), because nobody would enforce the limits in it: the agents of
/// such a run work in runs of their own.
///
/// # Errors
/// [`RunError::NotForKind`].
pub(crate) fn refuse_marks(prompts: &[AgentMessage], kind: RunKind) -> Result<(), RunError> {
    match prompts.iter().any(|prompt| prompt.mark().is_some()) {
        true => {
            let what = "a message that activates a skill";
            let instead = "start a loop with it, or let the agents activate the skill themselves";
            Err(RunError::NotForKind { kind, what, instead })
        }
        false => Ok(()),
    }
}

/// Returns the extension messages of a prompt, which no model reads.
pub(crate) fn extensions(prompts: Vec<AgentMessage>) -> Vec<ExtensionMessage> {
    let extension = |message| match message {
        AgentMessage::Extension(extension) => Some(extension),
        AgentMessage::Llm(_) => None,
    };
    prompts.into_iter().filter_map(extension).collect()
}

/// The maximum number of characters of the conversation that the agents read. If the conversation is longer,
/// the agents read its end.
const LONGEST: usize = 12_000;

impl Archon {
    /// Creates the [`SessionPlace`] of a run whose agents work on `goal`. The background in it has the
    /// project's instructions, this agent's memories, and the conversation so far.
    pub(crate) async fn place(
        &self,
        origin: Origin,
        goal: &str,
        context: &Context,
    ) -> Result<SessionPlace, RunError> {
        let earlier = fold_chain(&**context.journal(&self.journal), &origin).await?;
        let mut parts = Vec::new();
        if let Some(instructions) = &self.parts.instructions {
            match instructions.read().await {
                Ok(text) => parts.extend(text.map(|text| format!("The project says:\n{}", text.trim()))),
                Err(error) => {
                    tracing::warn!(run = %context.run, error, "the project's instructions are not read");
                }
            }
        }
        let window = earlier.history.in_full();
        if let Some(memory) = self.run_memory() {
            let prompt = Message::user(goal, context.clock.now());
            let recalled = context.cancel.run_until_cancelled(memory.recall(context, &prompt, &window)).await;
            parts.extend(recalled.flatten().map(|recalled| recalled.text));
        }
        parts.extend(history_text(&window));
        let mut place = SessionPlace::new(origin);
        (place.earlier, place.background) = (earlier.runs, parts.join("\n\n"));
        Ok(place)
    }

    /// Stores the prompt and the answer of a run that has ended in the memory. Turns that were already stored
    /// stay unchanged.
    pub(crate) async fn remember(&self, outcome: &Outcome, context: &Context) -> Result<(), RunError> {
        let Some(memory) = self.run_memory() else { return Ok(()) };
        if matches!(outcome.status, OutcomeStatus::Suspended) {
            return Ok(());
        }
        let records = context.journal(&self.journal).read(&context.run).await?;
        memory.keep(context, prompts_and_answer(&records), None).await;
        Ok(())
    }

    /// Stores the turns of a run in the memory and returns the outcome of the run. This also works for a run that has
    /// ended and cannot be resumed, because its process may have died before it stored the turns.
    pub(crate) async fn remember_ended(
        &self,
        resumed: Result<Outcome, RunError>,
        context: &Context,
    ) -> Result<Outcome, RunError> {
        let outcome = match resumed {
            Err(error @ RunError::Refused(RunRefused::Ended { .. })) if self.run_memory().is_some() => {
                let records = context.journal(&self.journal).read(&context.run).await?;
                match records.last().map(|record| &record.body) {
                    Some(RecordBody::RunFinished(outcome)) => (**outcome).clone(),
                    _ => return Err(error),
                }
            }
            resumed => resumed?,
        };
        self.remember(&outcome, context).await?;
        Ok(outcome)
    }

    fn run_memory(&self) -> Option<&Arc<dyn archon_types::RunMemory>> {
        self.parts.run_memory.as_ref()
    }

    /// Returns the configuration for the first record of a plan or team: this agent's configuration, its
    /// memory and its project files.
    pub(crate) fn lead_config(&self) -> RunConfig {
        let mut config = archon_types::Agent::config(&self.agent).unwrap_or_default();
        config.memory = self.run_memory().and_then(|memory| memory.config());
        config.project_files = self.parts.instructions.as_ref().map(|i| i.files()).unwrap_or_default();
        config
    }
}

/// Returns the end of a conversation as text; `None` if the conversation is empty.
fn history_text(window: &[Attributed]) -> Option<String> {
    let mut lines = Vec::new();
    for said in window.iter().rev() {
        let who = match (said.by, &*said.message) {
            (Speaker::Tool | Speaker::Program, _) | (_, Message::ToolResult(_)) => continue,
            (_, Message::Assistant(_)) => "assistant",
            (_, Message::User(_)) => "user",
        };
        let texts =
            said.message.own_content().iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n");
        if !texts.trim().is_empty() {
            lines.push(format!("{who}: {}", texts.trim()));
        }
    }
    let mut text = "The conversation so far:".to_owned();
    let mut room = LONGEST;
    let fits = lines.iter().take_while(|line| {
        let length = line.chars().count();
        room = room.saturating_sub(length);
        room > 0
    });
    let count = fits.count().max(1).min(lines.len());
    lines.truncate(count);
    for line in lines.iter().rev() {
        // The end of a single message that is too long.
        let skipped = line.chars().count().saturating_sub(LONGEST);
        let _ = write!(text, "\n{}", line.chars().skip(skipped).collect::<String>());
    }
    (!lines.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use archon_types::Timestamp;

    use super::*;

    #[test]
    fn session_history_text_of_a_long_conversation_is_its_end() {
        let at = Timestamp::from_millis(0);
        let say = |text: String| Attributed::new(Message::user(text, at), Speaker::Person);
        assert_eq!(history_text(&[]), None);
        let window = [say("old".repeat(LONGEST)), say("middle".to_owned()), say("new".to_owned())];
        let text = history_text(&window).unwrap();
        assert_eq!(text, "The conversation so far:\nuser: middle\nuser: new");
        let text = history_text(&window[..1]).unwrap();
        assert!(text.ends_with("oldold") && text.len() < LONGEST + 100);
    }
}
