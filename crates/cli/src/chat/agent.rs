//! The agent of a conversation: the settings' agent with more tools, larger limits, and time to answer questions.

use std::time::Duration;

use archon::{
    Archon,
    memory::Memory,
    types::{ExecutionLimits, RunConfig},
};

use crate::{
    app::App,
    assemble::{self, apply_limits},
    choose,
    config::Settings,
    failure::Failure,
    toolset,
};

/// The maximum number of model calls of a run.
const MAX_TURNS: u32 = 200;
/// The maximum number of tokens of a run.
const MAX_TOKENS: u64 = 10_000_000;
/// The maximum active time of a run.
const MAX_DURATION: Duration = Duration::from_secs(2 * 60 * 60);

/// An agent, and its model in the words that people use for it.
pub(crate) struct ConversationAgent {
    pub(crate) archon: Archon,
    pub(crate) model: String,
}

/// Builds the agent of the settings for a conversation. `last` is the configuration of the session's last run.
///
/// # Errors
/// [`Failure`] if there is no model, or a tool or an agent of the settings cannot be used.
pub(crate) async fn build(
    app: &App,
    memory: Option<Memory>,
    last: Option<&RunConfig>,
) -> Result<ConversationAgent, Failure> {
    let picked = toolset::of_conversation(app).await?;
    let chosen = choose::model(app, None).await?;
    let model = chosen.model.clone();
    let builder = assemble::with(app, picked, chosen, memory, last).await?;
    Ok(ConversationAgent { archon: builder.limits(limits(&app.config.settings)).build()?, model })
}

/// Returns the limits of a run: a person sees what it does and can stop it, so they are larger than those of `archon
/// run`, unless the settings have others.
fn limits(settings: &Settings) -> ExecutionLimits {
    let mut limits = ExecutionLimits::default()
        .with_max_turns(MAX_TURNS)
        .with_max_total_tokens(MAX_TOKENS)
        .with_max_duration(MAX_DURATION);
    apply_limits(settings, &mut limits);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_conversation_are_larger_and_give_way_to_the_settings() {
        let limits_of_none = limits(&Settings::default());
        let usual = ExecutionLimits::default();
        assert!(limits_of_none.max_turns > usual.max_turns);
        assert!(limits_of_none.max_duration_ms > usual.max_duration_ms);
        let settings = Settings { max_turns: Some(3), ..Settings::default() };
        assert_eq!(limits(&settings), limits_of_none.with_max_turns(3));
    }
}
