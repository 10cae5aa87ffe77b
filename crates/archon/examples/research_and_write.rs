//! Research and write: a team of real agents finds out, contradicts itself, loses a member, asks each other, writes, is
//! reviewed, and its editor puts the answer together. Without a network: what the models say is scripted, who does what
//! and what follows is not. `cargo run -p archon-agents --features orchestrator --example research_and_write`

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use archon::{
    Archon, SystemClock,
    orchestrator::{TeamDesk, TeamOptions, sample_roles},
    providers::{ScriptedProvider, Step},
    types::{
        CallId, ConflictStrategy, Heartbeat, Json, Member, Message, PlanError, Planner, PlanningContext,
        Record, RecordBody, Request, SubTask, SubTaskRules, Task, TaskId, TeamRecord,
    },
};
use serde_json::json;

#[allow(dead_code, reason = "a test tells the story, too")]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    print!("{}", story().await?);
    Ok(())
}

/// What the team did, a line for each thing, and its answer.
pub(crate) async fn story() -> anyhow::Result<String> {
    let desk = TeamDesk::new();
    let editor = agent("editor", &desk, edits)?;
    let mut options = TeamOptions::default();
    options.roles = sample_roles();
    options.settings.conflicts.strategy = ConflictStrategy::Arbitration;
    options.settings.reviewer = Some("quality_analyst".to_owned());
    // Whoever says nothing for so long is lost. Three times five seconds by default.
    options.settings.heartbeat = Heartbeat::Events;
    (options.settings.heartbeat_ms, options.settings.missed_heartbeats) = (300, 3);
    let team = editor
        .team_with(Arc::new(Plan), options)
        .with(|team| team.with_desk(desk.clone()))
        .member(Member::new("ada", "researcher").with_max_tasks(1), Arc::new(agent("ada", &desk, measures)?))
        .member(
            Member::new("bob", "researcher").with_max_tasks(1),
            Arc::new(agent("bob", &desk, falls_silent)?),
        )
        .member(Member::new("cal", "researcher"), Arc::new(agent("cal", &desk, reads_a_chart)?))
        .member(Member::new("wil", "writer"), Arc::new(agent("wil", &desk, writes)?))
        .member(Member::new("rex", "quality_analyst"), Arc::new(agent("rex", &desk, reviews)?));
    let reply = team.run("Research how fast the sea rises, and write a summary").await?;
    let mut told = Teller::default();
    for record in editor.journal().read(reply.run()).await? {
        told.record(&record);
    }
    Ok(format!("{}\n{}\n", told.story, reply.into_text()?))
}

/// Always the same plan. With a real model and the feature `planner`: `Arc::new(editor.planner())`.
struct Plan;

impl Planner for Plan {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let step = |id: &str, what: &str, role: &str| {
            let mut rules = SubTaskRules::default();
            rules.role = Some(role.to_owned());
            SubTask::new(id, what).with_rules(rules)
        };
        let steps = vec![
            step("gauges", "Find what tide gauges say", "researcher"),
            step("causes", "Find why the sea rises", "researcher"),
            step("satellites", "Find what satellites say", "researcher"),
            step("report", "Write two sentences", "writer").after(["gauges", "satellites", "causes"]),
        ];
        Ok(Task::new(TaskId::new("task"), goal).with_subtasks(steps))
    }
}

/// An agent with the tools of its team's desk, whose model says what `says` makes of what it reads.
fn agent(id: &str, desk: &TeamDesk, says: fn(&Read) -> Step) -> Result<Archon, archon::BuildError> {
    let step = Step::reply(move |request| says(&Read::of(request)));
    let model = ScriptedProvider::new(vec![step; 16]).with_clock(Arc::new(SystemClock));
    Archon::builder().provider(Arc::new(model), "scripted").agent_id(id).tools(desk.tools()).build()
}

/// What a model reads: its task, and what its tools said.
struct Read {
    task: String,
    results: Vec<String>,
}

impl Read {
    fn of(request: &Request) -> Self {
        let mut messages = request.messages.iter();
        let task = messages.next().map(|first| first.text()).unwrap_or_default();
        let result = |message: &Message| match message {
            Message::ToolResult(_) => Some(message.text()),
            _ => None,
        };
        Self { task, results: messages.filter_map(|message| result(message)).collect() }
    }

    fn says(&self, words: &str) -> bool {
        self.task.contains(words)
    }
}

fn found(result: &str, rate: f64) -> Step {
    Step::text(json!({"result": result, "claims": {"mm a year": rate}, "confidence": 0.8}).to_string())
}

fn measures(read: &Read) -> Step {
    match read {
        read if read.says("by which method") => Step::text("The mean of 200 gauges, 1993 to 2023."),
        read if read.says("Another member asks") => Step::text("NASA, satellite altimetry, 2024."),
        // It has bob's work now, and what bob had shared.
        read if read.says("why the sea rises") => match read.says("water that warms expands") {
            true => Step::text("Water that warms expands, and ice on land melts."),
            false => Step::text("Ice on land melts."),
        },
        _ => found("Gauges: 3.7 mm a year.", 3.7),
    }
}

fn falls_silent(read: &Read) -> Step {
    match read.results.len() {
        0 => Step::call("s", "share", json!({"key": "causes", "value": "water that warms expands"})),
        // Its model never answers.
        _ => Step::text("").after(Duration::from_secs(3_600)),
    }
}

fn reads_a_chart(read: &Read) -> Step {
    match read {
        read if read.says("by which method") => Step::text("Read off a chart, of 1993 to 2003."),
        read if read.says("with what was settled") => found("Satellites: 3.7 mm a year, too.", 3.7),
        _ => found("Satellites: 3.1 mm a year.", 3.1),
    }
}

fn writes(read: &Read) -> Step {
    match read.results.first() {
        None => Step::call("a", "ask_member", json!({"to": "ada", "task": "Which source may I name?"})),
        Some(source) => {
            Step::text(format!("The sea rises by 3.7 mm a year ({source}) It warms, and ice melts."))
        }
    }
}

fn reviews(read: &Read) -> Step {
    let result = match read.says("since 1993") {
        true => json!({"approved": true}),
        false => json!({"approved": false, "notes": "Say since when."}),
    };
    Step::text(json!({ "result": result }).to_string())
}

fn edits(read: &Read) -> Step {
    match read {
        read if read.says("which of these claims holds") => {
            Step::text(json!({"result": {"winner": "ada"}}).to_string())
        }
        read if read.says("A reviewer wants") => Step::text(
            "The sea has risen by 3.7 mm a year since 1993 (NASA): water that warms expands, and ice on land melts.",
        ),
        read => {
            // All contributions reach whoever puts the answer together.
            let all = ["Gauges: 3.7", "Satellites: 3.7", "ice on land melts", "The sea rises by 3.7"];
            match all.iter().find(|part| !read.says(part)) {
                Some(missing) => Step::text(format!("I was not told: {missing}")),
                None => Step::text("The sea rises by 3.7 mm a year (NASA): it warms, and ice melts."),
            }
        }
    }
}

/// The log of a team's run, told.
#[derive(Default)]
struct Teller {
    story: String,
    hands: BTreeMap<CallId, String>,
}

impl Teller {
    fn line(&mut self, who: &str, what: impl AsRef<str>) {
        let _ = writeln!(self.story, "{who:>7}  {}", what.as_ref());
    }

    fn record(&mut self, record: &Record) {
        match &record.body {
            RecordBody::Team(team) => self.team(team),
            RecordBody::ToolCallFinished { call, result } => {
                let who = self.who(*call);
                let text = result.text();
                let said = serde_json::from_str::<Json>(&text).ok().map(|json| plain(&json["result"]));
                self.line(&who, format!("says: {}", said.unwrap_or(text)));
            }
            _ => {}
        }
    }

    fn team(&mut self, record: &TeamRecord) {
        match record {
            TeamRecord::Delegated { call, member, task, .. } => {
                self.hands.insert(*call, member.to_string());
                self.line(member.as_str(), format!("gets: {task}"));
            }
            TeamRecord::ValueShared { writer: by, key, value, .. } => {
                self.line(&self.who(*by), format!("shares {key}: {}", plain(value)));
            }
            TeamRecord::DelegationRevoked { call, .. } => {
                self.line(&self.who(*call), "fell silent, and loses its work")
            }
            TeamRecord::DelegationRequested { requester: by, task, assignee: to } => {
                self.line(&self.who(*by), format!("asks {to}: {task}"))
            }
            TeamRecord::ConflictFound { key, claims, .. } => {
                let all: Vec<_> =
                    claims.iter().map(|claim| format!("{} says {}", claim.by, claim.value)).collect();
                self.line("team", format!("finds a contradiction about {key}: {}", all.join(", ")));
            }
            TeamRecord::ConflictResolved { value, resolution: how, .. } => {
                self.line("team", format!("settles it: {value} ({how})"))
            }
            _ => {}
        }
    }

    fn who(&self, call: CallId) -> String {
        self.hands.get(&call).cloned().unwrap_or_default()
    }
}

fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
