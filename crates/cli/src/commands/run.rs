//! `archon run`: works on a task and prints the answer.

use std::{io::Read, sync::Arc};

use archon::{
    Archon, ArchonBuilder, ProjectFile, RunOptions,
    memory::Memory,
    react_loop::Fallback,
    tools::{Ask, EngineOptions},
    types::{AskLater, Collection, ExecutionLimits, RunStatus, SessionId},
};
use clap::ValueEnum as _;

use super::{AgentFlags, AllowFlags, Asking, MemoryFlags, ModelFlags, ToolFlags};
use crate::{
    app::App,
    ask::Prompt,
    choose::{self, Chosen},
    config::{Origin, Settings},
    drive::drive,
    exit::Exit,
    failure::Failure,
    permissions, piped, toolset,
};

/// What `archon run` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    allow: AllowFlags,
    /// Go on in the session of the last run
    #[arg(long = "continue", conflicts_with = "session")]
    go_on: bool,
    /// Go on in this session, or begin one of this name
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    #[command(flatten)]
    memory: MemoryFlags,
    /// Make a plan first, and follow it; a plan remembers nothing
    #[arg(long, conflicts_with_all = ["go_on", "session", "memory"])]
    plan: bool,
    /// Show the plan and follow it only after a yes
    #[arg(long, requires = "plan")]
    confirm: bool,
    /// What is to be done; `-` reads it from standard input. Text that is piped in beside a task is data for it
    #[arg(required = true, value_name = "TASK")]
    task: Vec<String>,
}

impl RunArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        self.agent.apply(&mut settings);
        self.allow.apply(&mut settings);
        self.memory.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let task = task(app, &self.task)?;
        let archon = remembering(app, self.memory.open(app).await?).await?;
        if self.plan {
            return super::plan::follow(app, &archon, task, super::plan::confirm_if(self.confirm)).await;
        }
        let session = match self.session {
            Some(id) => Some(SessionId::new(id)),
            None if self.go_on => Some(last_session(&archon).await?),
            None => None,
        };
        let mut options = RunOptions::default();
        options.session = session;
        let run = archon.start(task, options).await?;
        let resume = resume_line(app, run.run_id().as_str(), self.memory.memory.as_ref());
        drive(run, &[], &resume, app).await
    }
}

/// The agent that the settings describe, with the model that they lead to.
pub(crate) async fn chosen(app: &App) -> Result<Archon, Failure> {
    remembering(app, None).await
}

/// The same with a memory.
async fn remembering(app: &App, memory: Option<Memory>) -> Result<Archon, Failure> {
    let tools = toolset::chosen(app)?;
    let chosen = choose::model(app, None).await?;
    let fallbacks = choose::fallbacks(app, None).await?;
    let mut builder = assemble(app, chosen, fallbacks, tools, ExecutionLimits::default())?;
    if let Some(memory) = memory {
        builder = builder.memory(memory);
    }
    Ok(builder.build()?)
}

/// The agent that the settings describe; what they leave open of the limits is as `limits` say.
pub(crate) fn assemble(
    app: &App,
    chosen: Chosen,
    fallbacks: Vec<Chosen>,
    tools: toolset::Tools,
    mut limits: ExecutionLimits,
) -> Result<ArchonBuilder, Failure> {
    let settings = &app.config.settings;
    apply_limits(settings, &mut limits);
    check_prices(&limits, std::iter::once(&chosen).chain(&fallbacks))?;
    let mut engine = EngineOptions::default().granting(["code_exec", "fs_write", "shell_exec"]);
    engine.ask = Ask::BeforeChanges;
    engine.permissions = permissions::all(app)?;
    permissions::warn_of_wide(&tools, &engine.permissions, app);
    let has_tools = !tools.is_empty();
    let mut builder = Archon::builder()
        .engine_options(engine)
        .agent_id("archon")
        .provider_with_keys(chosen.provider, chosen.keys, chosen.model)
        .tools(tools)
        .journal(Arc::new(app.open_journal()?))
        .limits(limits);
    for Chosen { provider, keys, model, .. } in fallbacks {
        builder = builder.fallback_provider(Fallback::new(provider, model).with_keys(keys));
    }
    match Asking::of(app) {
        Asking::Here => {
            let prompt = Prompt::new(app.output.clone(), Prompt::keyboard(), permissions::kept(app));
            builder = builder.approver(Arc::new(prompt));
        }
        Asking::Later => builder = builder.approver(Arc::new(AskLater)),
        Asking::Nobody => {}
    }
    if let Some(folder) = has_tools.then(|| toolset::folder(app)).flatten() {
        builder = builder.workspace(folder);
    }
    if let Some(system) = &settings.system {
        builder = builder.system(system);
    }
    if let Some(file) = &settings.project_file {
        builder = builder.project_file(ProjectFile::new(file));
    }
    if let Some(mode) = settings.mode {
        builder = builder.tool_mode(mode.into());
    }
    Ok(builder)
}

/// The limits that the settings set.
pub(crate) fn apply_limits(settings: &Settings, limits: &mut ExecutionLimits) {
    limits.max_turns = settings.max_turns.unwrap_or(limits.max_turns);
    limits.max_total_tokens = settings.max_tokens.unwrap_or(limits.max_total_tokens);
    limits.max_duration_ms = settings.max_duration.map_or(limits.max_duration_ms, |span| span.0);
    limits.max_cost = settings.max_cost.map(|money| money.0).or(limits.max_cost);
}

/// A limit of money holds only where each model's price is known.
pub(crate) fn check_prices<'a>(
    limits: &ExecutionLimits,
    models: impl IntoIterator<Item = &'a Chosen>,
) -> Result<(), Failure> {
    let price = |of: &Chosen| of.provider.capabilities(&of.model).price;
    match (limits.max_cost, models.into_iter().find(|of| price(of).is_none())) {
        (Some(_), Some(of)) => Err(Failure::usage(
            format!(
                "the price of {} from {} is not known, so --max-cost cannot hold",
                of.model,
                of.provider.id()
            ),
            "use --max-tokens, or a model with a price: `archon models list --provider PROVIDER` shows some",
        )),
        _ => Ok(()),
    }
}

/// What is to be done, in these words with what is piped in beside them, or on standard input.
pub(crate) fn task(app: &App, words: &[String]) -> Result<String, Failure> {
    let text = said(words, "the task")?;
    if text.trim().is_empty() {
        return Err(archon::RunError::EmptyPrompt.into());
    }
    match words {
        [word] if word == "-" => Ok(text),
        _ => piped::add_input(text, &app.output),
    }
}

/// These words, or for `-` what standard input says. `what` is what the command takes them for.
pub(crate) fn said(words: &[String], what: &str) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|e| {
            let advice = format!("pipe text in UTF-8 into the command, or say {what} as an argument");
            Failure::usage(format!("cannot read {what} from standard input: {e}"), advice)
        })?;
    }
    Ok(text)
}

async fn last_session(archon: &Archon) -> Result<SessionId, Failure> {
    let head = archon.newest_run(None).await?.ok_or(archon::RunError::NothingToContinue)?;
    if matches!(head.status, RunStatus::Running | RunStatus::Interrupted) {
        let what = format!("the last run, {}, has not ended", head.run_id);
        return Err(Failure::usage(what, format!("take it up first: archon resume {}", head.run_id)));
    }
    head.session.ok_or_else(|| archon::RunError::NothingToContinue.into())
}

/// The command that takes the run up: with the flags that it cannot know from the log. Without its `memory` a run keeps
/// nothing of what its window drops from then on.
pub(crate) fn resume_line(app: &App, run: &str, memory: Option<&Collection>) -> String {
    let settings = &app.config.settings;
    let path = |p: &Option<std::path::PathBuf>| p.as_ref().map(|p| p.display().to_string());
    let mut line = format!("archon resume {run}");
    if let Some(memory) = memory {
        line.push_str(&format!(" --memory {}", quoted(&memory.to_string())));
    }
    let embedder = settings.embedder.and_then(|e| Some(e.to_possible_value()?.get_name().to_owned()));
    for (key, value) in [
        ("embedder", embedder),
        ("workspace", path(&settings.workspace)),
        ("project_file", path(&settings.project_file)),
        ("data_dir", path(&settings.data_dir)),
    ] {
        if let (Some(Origin::Flag(flag)), Some(value)) = (app.config.origin(key), value) {
            line.push_str(&format!(" {flag} {}", quoted(&value)));
        }
    }
    line
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+=,".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Money, Sources, Span};

    #[test]
    fn apply_limits_sets_what_is_given_and_leaves_the_rest() {
        let mut limits = ExecutionLimits::default();
        apply_limits(&Settings::default(), &mut limits);
        assert_eq!(limits, ExecutionLimits::default());
        let settings = Settings {
            max_turns: Some(3),
            max_tokens: Some(4),
            max_cost: Some(Money(5)),
            max_duration: Some(Span(6)),
            ..Settings::default()
        };
        apply_limits(&settings, &mut limits);
        assert_eq!((limits.max_turns, limits.max_total_tokens), (3, 4));
        assert_eq!((limits.max_cost, limits.max_duration_ms), (Some(5), 6));
    }

    #[tokio::test]
    async fn check_prices_refuses_a_limit_of_money_only_where_a_price_is_unknown() {
        let key = [("OPENAI_API_KEY".to_owned(), "sk".to_owned())];
        let mut limits = ExecutionLimits::default();
        for (model, max_cost, is_refused) in [
            ("openai:gpt-5-mini", Some(1), false),
            ("openai:unheard-of", Some(1), true),
            ("openai:unheard-of", None, false),
        ] {
            let app = App {
                sources: Sources { env: key.clone().into(), ..Sources::default() },
                ..App::of(Settings { model: Some(model.to_owned()), ..Settings::default() })
            };
            let chosen = choose::model(&app, None).await.unwrap();
            limits.max_cost = max_cost;
            assert_eq!(check_prices(&limits, [&chosen]).is_err(), is_refused, "{model}");
        }
    }
}
