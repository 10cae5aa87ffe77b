//! Runs the hooks of an event, and makes one answer of theirs.

#[cfg(unix)]
use archon_process::ProcessSandbox;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use archon_types::{BoxFuture, Clock, DynHooks, InputFilter, InputVerdict, Message, Timestamp};
use futures_util::future::join_all;
use serde_json::json;

use crate::{
    HookSet,
    answer::{self, Output},
    endpoint,
    event::{HookEvent, Occurrence},
    hook::{Action, OneHook},
    verdict::{Answer, Verdict},
};

/// The hooks of an agent: a command or an endpoint that learns of events of its runs, and may deny a call or a prompt,
/// or ask a person about a call.
///
/// Three parts of an agent call them: a [toolbox](Self::toolbox) before and after calls and before questions, the
/// [`InputFilter`] with each message of a person, and the [`Hooks`](archon_types::Hooks) at the end of a run. Clones
/// share everything.
///
/// A hook that is to decide about a call or a message and gives no answer counts as a no: it took too long, crashed,
/// printed something else, or its script was changed. At other events such a hook is ignored, with a warning in the
/// log of the program (`archon::hooks`).
///
/// ```
/// use std::sync::Arc;
///
/// use archon_hooks::{EventHooks, HookSet};
/// use archon_types::{Clock, InputFilter, Toolbox};
///
/// fn with_hooks(tools: Arc<dyn Toolbox>, clock: Arc<dyn Clock>) -> (Arc<dyn Toolbox>, Arc<dyn InputFilter>) {
///     let text = std::fs::read_to_string("/home/me/hooks.json").unwrap_or_default();
///     let (set, problems) = HookSet::of_person("/home/me/hooks.json".as_ref(), &text);
///     problems.iter().for_each(|problem| eprintln!("{problem}"));
///     let hooks = EventHooks::new(set, "/srv/app", clock);
///     (Arc::new(hooks.toolbox(tools)), Arc::new(hooks))
/// }
/// ```
#[derive(Clone)]
pub struct EventHooks(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    set: HookSet,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    /// Made at the first use: most programs have no endpoints.
    client: OnceLock<Result<reqwest::Client, String>>,
    #[cfg(unix)]
    sandbox: Option<Arc<dyn ProcessSandbox>>,
    /// The program's own hooks.
    own: Vec<Arc<dyn DynHooks>>,
}

impl EventHooks {
    /// Creates the hooks. Their commands start in `folder`, the folder of the project. `clock` measures their time.
    pub fn new(set: HookSet, folder: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Inner {
            set,
            folder: folder.as_ref().to_owned(),
            clock,
            client: OnceLock::new(),
            #[cfg(unix)]
            sandbox: None,
            own: Vec::new(),
        }))
    }

    /// Sets a sandbox for commands from files of a project. Commands from a person's own file never have one: they
    /// run with that person's rights.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_hooks::EventHooks;
    /// use archon_process::ProcessSandbox;
    ///
    /// fn confined(hooks: EventHooks, sandbox: Arc<dyn ProcessSandbox>) -> EventHooks {
    ///     hooks.with_sandbox(sandbox)
    /// }
    /// ```
    #[cfg(unix)]
    pub fn with_sandbox(mut self, sandbox: Arc<dyn ProcessSandbox>) -> Self {
        Arc::make_mut(&mut self.0).sandbox = Some(sandbox);
        self
    }

    /// Adds hooks of the program itself, after those that were added before. As [`Hooks`](archon_types::Hooks), this
    /// value calls them at all of their events, and their decisions count.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_hooks::EventHooks;
    /// use archon_types::FnHooks;
    ///
    /// fn with_a_limit(hooks: EventHooks) -> EventHooks {
    ///     hooks.with_hooks(Arc::new(FnHooks::new().before_turn(|turn| async move { turn < 20 })))
    /// }
    /// ```
    pub fn with_hooks(mut self, own: Arc<dyn DynHooks>) -> Self {
        Arc::make_mut(&mut self.0).own.push(own);
        self
    }

    /// Returns the program's own hooks.
    pub(crate) fn own(&self) -> &[Arc<dyn DynHooks>] {
        &self.0.own
    }

    /// Returns whether a hook is for this event.
    pub(crate) fn has(&self, event: HookEvent, subject: Option<&str>) -> bool {
        self.0.set.hooks.iter().any(|hook| hook.is_for(event, subject))
    }

    /// Runs all hooks of an event at the same time, and returns their answers as one. Warnings are logged.
    pub(crate) async fn run(&self, occurrence: &Occurrence) -> Answer {
        let subject = occurrence.subject.as_deref();
        let input = occurrence.json(&self.0.folder).to_string().into_bytes();
        let mut answers = Vec::new();
        for hook in &self.0.set.hooks {
            if hook.is_for(occurrence.event, subject) {
                answers.push(self.0.answer(hook, input.clone()));
            }
        }
        let answer = Answer::fold(join_all(answers).await);
        for warning in &answer.warnings {
            tracing::warn!(target: "archon::hooks", event = occurrence.event.name(), "{warning}");
        }
        answer
    }
}

impl Inner {
    /// Returns the answer of one hook; a hook without an answer is a no if it was to decide, and a warning otherwise.
    async fn answer(&self, hook: &OneHook, input: Vec<u8>) -> Answer {
        let problem = match self.output(hook, input).await {
            Ok(Some(output)) => match answer::read(hook.event, &output) {
                Ok(answer) => return answer,
                Err(problem) => problem,
            },
            Ok(None) => format!("did not answer within {} s", hook.timeout.as_secs_f64()),
            Err(problem) => problem,
        };
        let text = format!("{} {problem}", hook.label());
        match hook.event.decides() {
            true => {
                Answer { verdict: Verdict::Deny(text.clone()), warnings: vec![text], ..Answer::default() }
            }
            false => Answer { warnings: vec![text], ..Answer::default() },
        }
    }

    /// Runs a hook; returns `None` if it took too long.
    async fn output(&self, hook: &OneHook, input: Vec<u8>) -> Result<Option<Output>, String> {
        if hook.trusted.as_ref().is_some_and(|trusted| !trusted.holds()) {
            return Err(
                "was not run: a script that it names was changed since a person trusted it".to_owned()
            );
        }
        let deadline = self.clock.now() + hook.timeout;
        match &hook.action {
            Action::Command(line) => self.command(line, hook.trusted.is_some(), &input, deadline).await,
            Action::Endpoint { url, headers } => {
                let client = self.client.get_or_init(endpoint::client).as_ref().map_err(Clone::clone)?;
                endpoint::post(client, url, headers, (input, deadline), &*self.clock).await
            }
        }
    }

    #[cfg(unix)]
    async fn command(
        &self,
        line: &str,
        is_of_project: bool,
        input: &[u8],
        deadline: Timestamp,
    ) -> Result<Option<Output>, String> {
        let sandbox = self.sandbox.as_deref().filter(|_| is_of_project);
        crate::command::run(line, &self.folder, input, deadline, (&*self.clock, sandbox)).await
    }

    #[cfg(not(unix))]
    async fn command(&self, _: &str, _: bool, _: &[u8], _: Timestamp) -> Result<Option<Output>, String> {
        Err("cannot run: commands of hooks need a Unix system; use an endpoint".to_owned())
    }
}

impl OneHook {
    fn is_for(&self, event: HookEvent, subject: Option<&str>) -> bool {
        self.event == event && self.matcher.has(subject)
    }
}

impl InputFilter for EventHooks {
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
        Box::pin(async move {
            if !matches!(message, Message::User(_)) || !self.has(HookEvent::Prompt, None) {
                return InputVerdict::Pass;
            }
            let answer = self
                .run(&Occurrence::new(HookEvent::Prompt, None, json!({ "prompt": message.text() })))
                .await;
            match answer.verdict {
                Verdict::Silent if answer.context.is_empty() => InputVerdict::Pass,
                Verdict::Silent => InputVerdict::Warn(context_text(&answer.context)),
                Verdict::Deny(reason) | Verdict::Ask(reason) => {
                    InputVerdict::Reject(format!("A hook refused this message: {reason}"))
                }
            }
        })
    }
}

/// Returns texts of hooks as the model reads them.
pub(crate) fn context_text(context: &[String]) -> String {
    format!("A hook of this machine adds: {}", context.join("\n"))
}

archon_types::debug_fields!(EventHooks);

#[cfg(all(test, unix))]
#[path = "event_hooks_tests.rs"]
mod tests;
