//! A process of its own with a run service over every kind of agent, for tests that need another process.
//!
//! `service_process DIR start KIND AGENT` starts a run, prints its id, and works until it rests. `service_process DIR
//! answer RUN` says yes to the first question, and `service_process DIR resume RUN` resumes the run; both wait until it
//! rests. Each prints how the run stands then, as JSON. Each effect of the tool is a line in `DIR/effects`. With a file
//! `DIR/asks` the tool asks a person first; with a file `DIR/gate` it prints `entered` and waits for ever.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use archon::{
    Archon, RunId, Runs, ToolContext, ToolError,
    react_loop::PickFirst,
    store::SqliteJournal,
    tools::FnTool,
    types::{
        Answer, AnswerRuns, AskLater, BoxFuture, Effect, Json, Member, Message, MoreLimits, Outcome, Request,
        RunKind, StartRun, StartRuns, SubTask, SubTaskRules, TeamRole, ToolAnnotations, ToolCall, ToolResult,
        ToolSpec,
    },
};
use archon_assistant::AgentTool;
use archon_orchestrator::TeamOptions;
use archon_planner::ScriptedPlanner;
use archon_testkit::FnProvider;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let [dir, mode, rest @ ..] = &words[..] else {
        bail!("usage: service_process DIR start|answer|resume …")
    };
    let world = World { dir: PathBuf::from(dir), asks: Path::new(dir).join("asks").exists() };
    let runs = world.runs()?;
    let run = match (*mode, rest) {
        ("start", [kind, agent]) => {
            let kind = RunKind::of_name(kind).context("no such kind")?;
            let started = runs.start(StartRun::new("Take a step").kind(kind).agent(*agent)).await?;
            println!("{}", started.run);
            started.run
        }
        ("answer", [run]) => {
            let open = runs.questions(None).await?;
            let question = open.first().context("nothing is asked")?;
            if !runs.answer(&question.request.request_id, Answer::Approve).await? {
                bail!("it was answered before");
            }
            RunId::new(*run)
        }
        ("resume", [run]) => runs.resume(&RunId::new(*run), &MoreLimits::default()).await?.run,
        _ => bail!("usage: service_process DIR start|answer|resume …"),
    };
    let outcome = Outcome::of_result(runs.reply(&run).await)?;
    println!("{}", serde_json::to_string(&outcome.status)?);
    Ok(())
}

struct World {
    dir: PathBuf,
    asks: bool,
}

impl World {
    fn runs(&self) -> Result<Runs> {
        let journal = Arc::new(SqliteJournal::open(self.dir.join("runs.db"))?);
        let builder = |id: &str| {
            Archon::builder()
                .provider(Arc::new(FnProvider::new(|_, request| reply(request))), "test")
                .agent_id(id)
                .approver(Arc::new(AskLater))
                .journal(journal.clone())
        };
        let agent = |id: &str| builder(id).tool(self.tool()).build();
        let own = agent("agent")?;
        let planning = own.planning(Arc::new(ScriptedPlanner::new(vec![SubTask::new("one", "Step")])));
        let parallel = own.parallel([agent("left")?, agent("right")?], Arc::new(PickFirst))?;
        let mut rules = SubTaskRules::default();
        rules.role = Some("stepper".to_owned());
        let steps = vec![SubTask::new("one", "Step").with_rules(rules)];
        let mut options = TeamOptions::default();
        options.roles = vec![TeamRole::new("stepper", "Takes steps.")];
        let team = builder("lead")
            .build()?
            .team_with(Arc::new(ScriptedPlanner::new(steps)), options)
            .member(Member::new("ann", "stepper"), Arc::new(agent("ann")?));
        let desk = AgentTool::new("clerk", "Steps.", Arc::new(agent("clerk")?));
        let caller = builder("caller").tool(desk).build()?;
        Ok(Runs::new(own)
            .with_agent(planning.run_agent())
            .with_agent(parallel.run_agent())
            .with_agent(team.run_agent())
            .with_agent(caller.run_agent()))
    }

    fn tool(&self) -> FnTool<impl Fn(Json, ToolContext) -> ToolWork + use<>> {
        let mut annotations = ToolAnnotations::default();
        annotations.effect = Effect::Idempotent;
        annotations.requires_confirmation = self.asks;
        let spec = ToolSpec::new("step", "Takes a step.", json!({ "type": "object" }));
        let dir = self.dir.clone();
        FnTool::new(spec.with_annotations(annotations), move |_, _| -> ToolWork {
            let dir = dir.clone();
            Box::pin(async move { step(&dir).await })
        })
    }
}

type ToolWork = BoxFuture<'static, Result<ToolResult, ToolError>>;

async fn step(dir: &Path) -> Result<ToolResult, ToolError> {
    if dir.join("gate").exists() {
        println!("entered");
        std::future::pending::<()>().await;
    }
    let file = OpenOptions::new().create(true).append(true).open(dir.join("effects"));
    file.and_then(|mut file| file.write_all(b"step\n"))?;
    Ok(ToolResult::success("stepped"))
}

/// A model that takes one step, or calls the clerk, and then says that it is done.
fn reply(request: &Request) -> Vec<Result<archon::types::ModelEvent, archon::types::ProviderError>> {
    let is_told = request.messages.iter().any(|m| matches!(&**m, Message::ToolResult(_)));
    let tool =
        request.tools.iter().map(|tool| tool.name.as_str()).find(|name| ["step", "clerk"].contains(name));
    match tool {
        Some(name) if !is_told => FnProvider::calls(vec![ToolCall::new("c", name, json!({}))]),
        _ => FnProvider::text("done"),
    }
}
