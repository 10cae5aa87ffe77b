//! The interface of guards: steps between a model's call and its tool, and between the result and the model.

use std::{sync::Arc, time::Duration};

use archon_types::{
    ApprovalRequest, Context, Json, OutputLevel, Preview, Subject, ToolCall, ToolContext, ToolResult,
};

use crate::{
    CallGuard, EngineOptions, Ruling, ToolRegistry, output, registry::Registered, retry::Tried,
    statistics::Statistics,
};

/// A step that checks each call on its way to the tool, or changes its result on the way back.
///
/// Guards have no side effects on the tool's targets, and do not wait.
pub(crate) trait Guard: Send + Sync {
    /// Checks a call before it runs; `inspection` contains the findings of earlier guards.
    fn before(&self, inspection: &mut Inspection<'_>) -> Verdict {
        let _ = inspection;
        Verdict::Pass
    }

    /// Inspects the tool's result, as earlier guards left it, and may change it.
    fn after(&self, ended: &Ended<'_>, result: &mut ToolResult) {
        let _ = (ended, result);
    }
}

/// A guard's decision about a call.
pub(crate) enum Verdict {
    /// The guard has no objection.
    Pass,
    /// The call does not run; the model reads this result.
    Refuse(Box<ToolResult>),
    /// A person must decide.
    Ask(Box<ApprovalRequest>),
}

/// A call while the guards check it.
pub(crate) struct Inspection<'c> {
    pub(crate) call: &'c ToolCall,
    pub(crate) run: &'c Context,
    pub(crate) registry: &'c ToolRegistry,
    pub(crate) options: &'c EngineOptions,
    /// The guards of the application.
    pub(crate) guards: &'c [Arc<dyn CallGuard>],
    /// The caller's permission level, if the caller set one.
    pub(crate) level: Option<&'c str>,
    /// Arguments that replace the model's: edited by a person, or corrected.
    pub(crate) edited: Option<Json>,
    /// The tool, which the first guard sets.
    pub(crate) tool: Option<Arc<Registered>>,
    /// Size of the arguments as JSON in bytes; measured before anything reads them.
    pub(crate) argument_bytes: usize,
    /// The call's target, such as paths or a command, if a guard needed it.
    pub(crate) subject: Option<Subject>,
    /// The decision of the permission rules.
    pub(crate) ruling: Ruling,
    /// True if the rules of a run above require a question.
    pub(crate) is_asked_above: bool,
    /// True if a person was asked about the call and agreed.
    pub(crate) is_agreed: bool,
    /// The tool's preview of the change.
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

    /// Returns the call's target, or `Unknown`.
    pub(crate) fn subject(&self) -> &Subject {
        self.subject.as_ref().unwrap_or(&Subject::Unknown)
    }

    /// Returns whether the tool's preview has a warning: then a person must approve, whatever the rules say.
    pub(crate) fn is_warned(&self) -> bool {
        self.preview.as_ref().is_some_and(|preview| preview.warning.is_some())
    }

    /// Returns the arguments that the tool would get.
    pub(crate) fn arguments(&self) -> &Json {
        self.edited.as_ref().unwrap_or(&self.call.arguments)
    }
}

/// A call that has run, while the guards see its result.
pub(crate) struct Ended<'e> {
    pub(crate) tool: &'e Registered,
    pub(crate) context: &'e ToolContext,
    pub(crate) options: &'e EngineOptions,
    pub(crate) guards: &'e [Arc<dyn CallGuard>],
    pub(crate) statistics: &'e Statistics,
    /// The used share of the run's context window, from 0 to 1, if known.
    pub(crate) context_usage: Option<f64>,
    /// The caller's options for the result, which override all defaults.
    pub(crate) wanted: Wanted,
    pub(crate) validation: Duration,
    pub(crate) execution: Duration,
    /// Receives a text that was stored in a file, if a summarizer is set.
    pub(crate) to_sum_up: Option<&'e std::sync::OnceLock<String>>,
    /// The attempts; their number is one unless the call was retried.
    pub(crate) tried: &'e Tried,
    /// Number of times that the caller started this call before.
    pub(crate) started_before: u32,
}

/// The caller's options for a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) level: Option<OutputLevel>,
    pub(crate) storage_dir: Option<std::path::PathBuf>,
}

impl Verdict {
    /// Refuses a call with a text for the model and a stable error type.
    pub(crate) fn refuse(reason: &'static str, text: impl Into<String>) -> Self {
        Self::Refuse(Box::new(output::error_of_type(reason, text)))
    }
}
