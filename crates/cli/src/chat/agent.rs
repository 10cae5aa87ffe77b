//! The agents of a conversation: the settings' agent with more tools, larger limits, and time to answer questions; and
//! the agent that runs the shell lines of the person.

use std::time::Duration;

use archon::{
    Runs,
    types::{Collection, ExecutionLimits, RunConfig},
};

use super::shell_line;
use crate::{
    app::App,
    assemble::{self, apply_limits},
    choose,
    config::Settings,
    failure::Failure,
    memory,
    person::Person,
    skills::Skills,
    toolset,
};

/// The maximum number of model calls of a run.
const MAX_TURNS: u32 = 200;
/// The maximum number of tokens of a run.
const MAX_TOKENS: u64 = 10_000_000;
/// The maximum active time of a run.
const MAX_DURATION: Duration = Duration::from_secs(2 * 60 * 60);

/// The agents of a conversation.
pub(crate) struct Agents {
    /// The service that runs them.
    pub(crate) runs: Runs,
    /// The provider behind the shell lines that the person runs.
    pub(crate) person: Person,
    /// The reason why this machine cannot run shell lines; `None` if it can.
    pub(crate) line_problem: Option<Failure>,
    /// The skills of the agent, which the person can activate, too.
    pub(crate) skills: Skills,
    /// The name of the model, without its provider.
    pub(crate) model: String,
}

impl Agents {
    /// Builds the agents. `memory` is the collection that memories are stored in and recalled from, and `last` the
    /// configuration of the session's last run.
    ///
    /// # Errors
    /// [`Failure`] if there is no model, or a tool or an agent of the settings cannot be used.
    pub(crate) async fn build(
        app: &App,
        memory: Option<&Collection>,
        last: Option<&RunConfig>,
    ) -> Result<Self, Failure> {
        let memory = match memory {
            Some(collection) => memory::open_for_run(app, collection).await,
            None => None,
        };
        let picked = toolset::of_conversation(app).await?;
        let chosen = choose::model(app, None).await?;
        let model = chosen.model.clone();
        let builder = assemble::with(app, picked, chosen, memory, last).await?;
        let agent = builder.limits(limits(&app.config.settings)).build()?;
        let (skills, own) = (Skills::of(app, &agent), agent.run_agent());
        let (mut runs, person) = (app.open_runs()?.with_agent(own.clone()), Person::default());
        let line_problem = match shell_line::agent(app, &person, own).await {
            Ok(agent) => {
                runs = runs.with_agent(agent);
                None
            }
            // Shown to a person who runs a line.
            Err(failure) => Some(failure),
        };
        Ok(Self { runs, person, line_problem, skills, model })
    }
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
