//! Checks before a run: input, depth, schema, prices, and the tools that each model supports.

use archon_types::{
    AgentMessage, Content, Context, ContinuationKind, Message, Origin, ResponseFormat, RunConfig, RunStarted,
    ToolMode, TurnTrigger,
};

use super::ReactAgent;
use crate::{Fallback, History, LoopError, Opening, is_paired};

impl ReactAgent {
    pub(super) fn check(&self, opening: &Opening, context: &Context) -> Result<(), LoopError> {
        let limits = self.limits(context);
        if opening.is_empty_prompt() {
            return Err(LoopError::EmptyPrompt);
        }
        if !is_paired(&opening.restored) {
            return Err(LoopError::Unpaired);
        }
        if context.depth > limits.max_depth {
            return Err(LoopError::TooDeep { depth: context.depth, max: limits.max_depth });
        }
        if let Some(problem) = self.options.output_format().and_then(ResponseFormat::schema_problem) {
            return Err(LoopError::InvalidSchema { problem });
        }
        let model = &self.options.model;
        let price = self.options.price.or_else(|| self.driver.provider.capabilities(model).price);
        let others = self.driver.fallbacks.iter().map(|f| (&f.model, f.price()));
        let mut models = [(model, price)].into_iter().chain(others);
        match (limits.max_cost_micros, models.find(|(_, price)| price.is_none())) {
            (Some(max_cost), Some((model, _))) => {
                Err(LoopError::UnknownPrice { model: model.clone(), max_cost_micros: max_cost })
            }
            _ => Ok(()),
        }
    }

    /// Checks that every fallback model supports native tool calling, if `config` needs it.
    pub(super) fn check_tools(&self, config: &RunConfig) -> Result<(), LoopError> {
        let needs_tools = config.tool_mode == ToolMode::Native && !config.tools.is_empty();
        let cannot = |f: &&Fallback| !f.provider.capabilities(&f.model).native_tools;
        match self.driver.fallbacks.iter().find(|f| needs_tools && cannot(f)) {
            Some(Fallback { provider, model, .. }) => Err(LoopError::FallbackWithoutTools {
                provider: provider.id().to_owned(),
                model: model.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Checks that the model, or a tool of the run, reads the media in messages of a person. The media of earlier messages
/// and of tool results are no reason to refuse: the model then reads a text about them.
pub(crate) fn check_media<'m>(
    messages: impl IntoIterator<Item = &'m AgentMessage>,
    config: &RunConfig,
) -> Result<(), LoopError> {
    let prompts = messages.into_iter().filter_map(AgentMessage::as_llm);
    let media = prompts.flat_map(|prompt| prompt.content()).filter_map(Content::as_media);
    let mut needed = media.filter(|media| !config.has_tool_for(media.mime_type));
    match needed.find(|media| !config.reads.may_have(media.kind())) {
        Some(media) => Err(LoopError::UnreadableMedia {
            model: config.model.clone(),
            kind: media.kind(),
            name: media.name().unwrap_or(media.mime_type).to_owned(),
        }),
        None => Ok(()),
    }
}

/// Checks that a run without new input has a message to answer: its conversation must not be empty or end
/// with an answer.
pub(super) fn check_answerable(opening: &Opening, history: &History) -> Result<(), LoopError> {
    let last = opening.restored.last().or_else(|| history.messages().iter().last().map(|last| &**last));
    match last {
        Some(Message::User(_) | Message::ToolResult(_)) => Ok(()),
        _ => Err(LoopError::NothingToAnswer),
    }
}

/// Returns true if a run can never be resumed if its log has only this first record: the run needs a prompt, and no
/// caller gives it the prompt again.
pub(super) fn needs_its_prompt(started: &RunStarted) -> bool {
    let gets_its_prompt_again =
        started.parallel_run.is_some() || matches!(started.origin, Origin::CalledBy { .. });
    let is_fork =
        matches!(started.origin, Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. });
    !gets_its_prompt_again && !is_fork && started.first_trigger != TurnTrigger::Continuation
}
