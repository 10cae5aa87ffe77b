//! `archon resume`: takes up a run where its log ends.

use std::{path::PathBuf, sync::Arc};

use archon::{
    Archon, ArchonBuilder,
    memory::Memory,
    types::{
        ExecutionLimits, Journal, MoreLimits, Record, RecordBody, RunConfig, RunHead, RunId, RunKind,
        RunStarted, RunStatus, ToolMode,
    },
};

use super::{AllowFlags, MemoryFlags, ModelFlags, ToolFlags, plan, run, which::which_run};
use crate::{
    app::App,
    choose,
    config::{Money, Settings, Span},
    drive::drive,
    exit::Exit,
    failure::Failure,
    output::Look,
    text::visible,
    toolset,
};

/// What `archon resume` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    flags: RecordedFlags,
    #[command(flatten)]
    memory: MemoryFlags,
    #[command(flatten)]
    more: MoreFlags,
    /// The run's id, its beginning or end, or `last`
    run: String,
}

/// Larger limits for a run that is there. Each is for the whole run, what it has used included.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
struct MoreFlags {
    /// Let it ask its model up to N times in all
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    #[command(flatten)]
    budget: MoreBudget,
}

impl MoreFlags {
    fn limits(self) -> MoreLimits {
        let mut more = self.budget.limits();
        more.max_turns = self.max_turns;
        more
    }
}

/// The same without turns, which a team does not have.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct MoreBudget {
    /// Let it use up to N tokens in all
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Let it cost so much in all, in US dollars, as in 0.50
    #[arg(long, value_name = "USD")]
    max_cost: Option<Money>,
    /// Let it work for so long in all: 90s, 20m or 2h
    #[arg(long, value_name = "TIME")]
    max_duration: Option<Span>,
}

impl MoreBudget {
    pub(super) fn limits(self) -> MoreLimits {
        let mut more = MoreLimits::default();
        more.max_total_tokens = self.max_tokens;
        more.max_duration_ms = self.max_duration.map(|span| span.0);
        more.max_cost = self.max_cost.map(|money| money.0);
        more
    }

    /// A limit can only be raised: one that was not there cannot be set any more.
    fn check(self, run: &RunId, records: &[Arc<Record>]) -> Result<(), Failure> {
        let has_limit = |record: &Arc<Record>| matches!(&record.body, RecordBody::RunStarted(started) if started.config.limits.max_cost.is_some());
        match self.max_cost.is_some() && !records.first().is_some_and(has_limit) {
            true => Err(Failure::usage(
                format!("run {run} was begun without --max-cost, so there is no limit to raise"),
                "leave --max-cost out, or limit it with --max-tokens",
            )),
            false => Ok(()),
        }
    }
}

/// Flags for a run that is there: what they do not say, its log does.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RecordedFlags {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    tools: ToolFlags,
    #[command(flatten)]
    allow: AllowFlags,
    /// A file with the project's instructions, read anew before each question
    #[arg(long, value_name = "FILE")]
    project_file: Option<PathBuf>,
}

impl RecordedFlags {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = super::settings(&self.model, &self.tools);
        settings.project_file.clone_from(&self.project_file);
        self.allow.apply(&mut settings);
        settings
    }

    /// The agent that a run was begun with, and the run's records. What it remembers stands in no log.
    pub(super) async fn agent(
        &self,
        app: &App,
        run: &RunId,
        memory: Option<Memory>,
    ) -> Result<(Archon, Vec<Arc<Record>>), Failure> {
        let records = app.journal().read(run).await?;
        let Some(started) = RunStarted::of(&records) else {
            return Err(archon::react_loop::LoopError::NotARun { run: run.clone() }.into());
        };
        if started.kind == RunKind::Team {
            return Err(Failure::usage(
                format!("run {run} is a team's"),
                format!("name its team, too: archon team resume TEAM.toml {run}"),
            ));
        }
        // A run of the loop keeps to its log by itself; the subtasks of a plan that are still to begin do not.
        let mut builder = recorded(app, &started.config, &self.tools, started.kind).await?;
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        Ok((builder.build()?, records))
    }
}

/// The surroundings of a run that was begun in a folder: its tools work there, wherever it is resumed.
fn in_its_folder(app: &App, config: &RunConfig, flags: &ToolFlags) -> Result<App, Failure> {
    let mut app = app.clone();
    let Some(folder) = config.workspace.as_ref().filter(|_| flags.workspace.is_none()) else {
        return Ok(app);
    };
    let folder = PathBuf::from(folder);
    if !folder.is_dir() {
        return Err(Failure::usage(
            format!("the run was begun in '{}', which is no folder any more", folder.display()),
            "name the folder that its tools may see: --workspace DIR",
        ));
    }
    if toolset::folder(&app).as_ref() != Some(&folder) {
        let folder = visible(&folder.display().to_string());
        app.output.note(Look::Plain, format!("its tools work in {folder}, where it was begun"));
    }
    app.config.settings.workspace = Some(folder);
    Ok(app)
}

async fn recorded(
    app: &App,
    config: &RunConfig,
    flags: &ToolFlags,
    kind: RunKind,
) -> Result<ArchonBuilder, Failure> {
    let app = &in_its_folder(app, config, flags)?;
    let tools = match flags.tools {
        Some(_) => toolset::chosen(app)?,
        None => toolset::recorded(config.tools.iter().map(|t| t.name.as_str()), app)?,
    };
    let model = format!("{}:{}", config.provider, config.model);
    let chosen = choose::model(app, Some(&model)).await?;
    let fallbacks = config.failure.as_ref().map_or(&[][..], |policy| &policy.fallbacks);
    let fallbacks = choose::fallbacks(app, Some(fallbacks)).await?;
    let is_plan = kind == RunKind::Plan;
    let limits = if is_plan { config.limits.clone() } else { ExecutionLimits::default() };
    let mut builder = run::assemble(app, chosen, fallbacks, tools, limits)?;
    if is_plan && config.tool_mode == ToolMode::Text {
        builder = builder.tool_mode(ToolMode::Text);
    }
    Ok(builder)
}

impl ResumeArgs {
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = self.flags.settings();
        self.memory.apply(&mut settings);
        settings
    }

    pub(crate) async fn run(self, app: &App) -> Result<Exit, Failure> {
        let run = which_run(app, &self.run).await?;
        let (archon, records) = self.flags.agent(app, &run, self.memory.open(app).await?).await?;
        self.more.budget.check(&run, &records)?;
        if RunStarted::of(&records).is_some_and(|started| started.kind == RunKind::Plan) {
            if self.memory.memory.is_some() {
                let what = format!("run {run} follows a plan, and a plan remembers nothing");
                return Err(Failure::usage(what, "leave --memory out"));
            }
            return plan::resume(app, &archon, run, self.more.limits(), records).await;
        }
        let resume = run::resume_line(app, run.as_str(), self.memory.memory.as_ref());
        let has_ended = RunHead::of(run.clone(), &records).status == RunStatus::Finished;
        let exit = drive(archon.resume_with(run, self.more.limits()).await?, &records, &resume, app).await?;
        if has_ended && self.memory.memory.is_some() {
            app.output.note(Look::Plain, "what was said in the run is in the memory");
        }
        Ok(exit)
    }
}
