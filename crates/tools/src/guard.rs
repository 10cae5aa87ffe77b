//! What stands between a model's call and a tool, and between the tool's result and the model: small
//! steps of one kind, in one order.

use std::{sync::Arc, time::Duration};

use archon_types::{
    ApprovalRequest, Context, Json, OutputLevel, Preview, Subject, ToolCall, ToolContext, ToolResult,
};

use crate::{CallGuard, EngineOptions, Ruling, ToolRegistry, registry::Registered, statistics::Statistics};

/// A step that a call passes on its way to the tool, or that its result passes on the way back.
///
/// Guards have no effect on what the tool works on, and do not wait.
pub(crate) trait Guard: Send + Sync {
    /// Looks at a call before it runs, given what earlier guards found.
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let _ = inspection;
        Verdict::Pass
    }

    /// Sees what the tool returned, given what earlier guards made of it.
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let _ = (ended, result);
    }
}

/// What a guard makes of a call.
pub(crate) enum Verdict {
    /// Nothing stands against it.
    Pass,
    /// It will not run; the model reads this.
    Refuse(Box<ToolResult>),
    /// A person decides.
    Ask(Box<ApprovalRequest>),
}

/// A call while guards look at it.
pub(crate) struct Inspection<'c> {
    pub(crate) call: &'c ToolCall,
    pub(crate) run: &'c Context,
    pub(crate) registry: &'c ToolRegistry,
    pub(crate) options: &'c EngineOptions,
    /// Those of the program.
    pub(crate) guards: &'c [Arc<dyn CallGuard>],
    /// What the caller may do, where it said so.
    pub(crate) level: Option<&'c str>,
    /// What a person wants done instead of what the model sent.
    pub(crate) edited: Option<Json>,
    /// Found by the first guard.
    pub(crate) tool: Option<Arc<Registered>>,
    /// Of the arguments, in bytes; measured before anything looks inside them.
    pub(crate) argument_bytes: usize,
    /// What the call works on, where somebody has to know.
    pub(crate) subject: Option<Subject>,
    /// What rules say of it.
    pub(crate) ruling: Ruling,
    /// Those above would have to ask.
    pub(crate) is_asked_above: bool,
    /// A person was asked about it, and agreed.
    pub(crate) is_agreed: bool,
    /// What the tool says that the call would change.
    pub(crate) preview: Option<Preview>,
}

impl<'c> Inspection<'c> {
    pub(crate) fn new(
        call: &'c ToolCall,
        run: &'c Context,
        registry: &'c ToolRegistry,
        (options, guards): (&'c EngineOptions, &'c [Arc<dyn CallGuard>]),
        level: Option<&'c str>,
    ) -> Self {
        Self {
            call,
            run,
            registry,
            options,
            guards,
            level,
            edited: None,
            tool: None,
            argument_bytes: 0,
            subject: None,
            ruling: Ruling::Silent,
            is_asked_above: false,
            is_agreed: false,
            preview: None,
        }
    }

    /// What the call works on, as far as it is known.
    pub(crate) fn subject(&self) -> &Subject {
        self.subject.as_ref().unwrap_or(&Subject::Unknown)
    }

    /// Whether the tool says that a person has to agree to this call, whatever rules say.
    pub(crate) fn is_warned(&self) -> bool {
        self.preview.as_ref().is_some_and(|preview| preview.warning.is_some())
    }

    /// The arguments that the tool would get.
    pub(crate) fn arguments(&self) -> &Json {
        self.edited.as_ref().unwrap_or(&self.call.arguments)
    }
}

/// A call that ran, while guards look at its result.
pub(crate) struct Ended<'e> {
    pub(crate) tool: &'e Registered,
    pub(crate) context: &'e ToolContext,
    pub(crate) options: &'e EngineOptions,
    pub(crate) guards: &'e [Arc<dyn CallGuard>],
    pub(crate) statistics: &'e Statistics,
    /// How full the run's context window is, 0 to 1, where somebody knows.
    pub(crate) context_usage: Option<f64>,
    /// How much detail the caller wants, and where it wants large data, before all defaults.
    pub(crate) wanted: Wanted,
    pub(crate) validation: Duration,
    pub(crate) execution: Duration,
    /// Takes the text that went to a file, if somebody sums such texts up.
    pub(crate) to_sum_up: Option<&'e std::sync::OnceLock<String>>,
    /// How often the tool was called; 1 unless the call was retried.
    pub(crate) attempts: u32,
}

/// What a caller wants of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) level: Option<OutputLevel>,
    pub(crate) storage_dir: Option<std::path::PathBuf>,
}

impl Verdict {
    /// Refuses with a text for the model and a stable name for the reason.
    pub(crate) fn refuse(reason: &'static str, text: impl Into<String>) -> Self {
        Self::Refuse(Box::new(ToolResult::error(text).with_metadata("error_type", reason)))
    }
}
