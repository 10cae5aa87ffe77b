//! `archon triggers add`: the flags of a task, and its trigger in words.

use std::time::Duration;

use archon::{
    SystemClock,
    triggers::{
        EventFilter, Expression, MissedRuns, Schedule, Trigger, TriggerAction, TriggerEngine, TriggerTask,
    },
    types::{AgentId, Clock as _, TaskId, Timestamp},
};
use jiff::tz::TimeZone;

use crate::{
    app::App,
    config::{LOCAL, Money, Span},
    failure::Failure,
    tasks,
};

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    /// The name of the task: letters, digits, - and _
    name: String,
    #[command(flatten)]
    when: When,
    /// The time zone of --cron, and of an --at without one, as in Europe/Berlin [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// With --on: only events for which this expression is true, as in 'data.sum > 100'
    #[arg(long = "if", value_name = "EXPRESSION", requires = "on")]
    condition: Option<String>,
    /// The agent of the settings that works [default: the default agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// A channel of the settings that gets results and questions, or `console`: the output of `archon serve`; may be
    /// given again
    #[arg(long, value_name = "CHANNEL")]
    notify: Vec<String>,
    /// The rule for times that passed while no run could start: skip them, run once for all, or all of them
    #[arg(long, value_name = "RULE", default_value = "once")]
    missed: Missed,
    /// End the task after this number of runs
    #[arg(long, value_name = "N")]
    max_runs: Option<u64>,
    /// Disable the task when all its runs together have cost this much, in dollars
    #[arg(long, value_name = "DOLLARS")]
    max_cost: Option<Money>,
    /// End the task at this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The tenant on whose behalf the runs work
    #[arg(long, value_name = "NAME", default_value = LOCAL)]
    tenant: String,
    /// The instruction for the agent
    #[arg(required = true)]
    instruction: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct When {
    /// At these times: minute, hour, day of the month, month, day of the week, as in '0 8 * * MON-FRI'
    #[arg(long, value_name = "PATTERN")]
    cron: Option<String>,
    /// Again and again, from now: 90s, 20m or 6h
    #[arg(long, value_name = "TIME")]
    every: Option<Span>,
    /// Once: 2026-03-01T08:00, or with a zone 2026-03-01T08:00:00Z
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// For each event whose SOURCE.TYPE matches, as in 'shop.order.*'
    #[arg(long, value_name = "PATTERN")]
    on: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Missed {
    Skip,
    Once,
    All,
}

impl AddArgs {
    /// Adds the task, and returns its id.
    pub(super) async fn run(self, app: &App, engine: &TriggerEngine) -> Result<TaskId, Failure> {
        let trigger = self.trigger()?;
        let agent = self.agent.as_ref().map(|name| find_agent(app, name)).transpose()?;
        let action = TriggerAction::Agent { agent, instruction: self.instruction.join(" ") };
        let mut task =
            TriggerTask::new(self.name.as_str(), trigger, "").action(action).tenant(self.tenant.as_str());
        task.missed = match self.missed {
            Missed::Skip => MissedRuns::Skip,
            Missed::Once => MissedRuns::Once,
            Missed::All => MissedRuns::All,
        };
        task.limits.runs = self.max_runs;
        task.limits.cost_micros = self.max_cost.map(|money| money.0);
        task.limits.until = self.until.as_ref().map(|text| self.time(text, "--until")).transpose()?;
        task.notify = self.notify;
        let id = task.id.clone();
        engine.create_task(task).await?;
        Ok(id)
    }

    fn trigger(&self) -> Result<Trigger, Failure> {
        let When { cron, every, at, on } = &self.when;
        let wrong = |what: String| Failure::usage(what, "`archon triggers add --help` shows the forms");
        if let Some(pattern) = cron {
            return match Schedule::cron(pattern, &self.zone()) {
                Ok(schedule) => Ok(schedule.into()),
                Err(error) => Err(wrong(error.to_string())),
            };
        }
        if let Some(every) = every {
            let schedule = Schedule::every(Duration::from_millis(every.0), SystemClock.now());
            return schedule.map(Trigger::from).map_err(|error| wrong(error.to_string()));
        }
        if let Some(text) = at {
            return Ok(Schedule::Once(self.time(text, "--at")?).into());
        }
        let mut filter = EventFilter::new(on.clone().unwrap_or_default());
        if let Some(condition) = &self.condition {
            filter = filter
                .condition(Expression::new(condition.as_str()).map_err(|error| wrong(error.to_string()))?);
        }
        Ok(filter.into())
    }

    fn zone(&self) -> String {
        let own = || TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
        self.zone.clone().unwrap_or_else(own)
    }

    /// Reads a time: with a zone of its own, or in the zone of the task.
    fn time(&self, text: &str, flag: &str) -> Result<Timestamp, Failure> {
        let failure = |(problem, advice)| Failure::usage(format!("{flag} {text:?} {problem}"), advice);
        tasks::time(text, &self.zone()).map_err(failure)
    }
}

fn find_agent(app: &App, name: &str) -> Result<AgentId, Failure> {
    let agents = app.config.settings.agents.clone().unwrap_or_default();
    match agents.contains_key(name) {
        true => Ok(AgentId::new(name)),
        false => Err(Failure::usage(
            format!("there is no agent {name:?} in the settings"),
            "`archon agents list` shows the agents",
        )),
    }
}

/// Returns a trigger in words.
pub(super) fn in_words(trigger: &Trigger) -> String {
    match trigger {
        Trigger::Schedule(Schedule::Cron(cron)) => format!("at {} ({})", cron.pattern(), cron.zone()),
        Trigger::Schedule(Schedule::Every { every, .. }) => format!("every {} s", every.as_secs()),
        Trigger::Schedule(Schedule::Once(at)) => format!("once at {}", local(*at)),
        Trigger::Event(filter) => match &filter.condition {
            Some(condition) => format!("at events {} if {}", filter.pattern.as_str(), condition.text()),
            None => format!("at events {}", filter.pattern.as_str()),
        },
        Trigger::Condition(condition) => {
            format!("when {} of {}", condition.expression.text(), condition.probe)
        }
        _ => "in a way of a newer version".to_owned(),
    }
}

/// Returns the local date and time of a moment, to the minute.
pub(super) fn local(at: Timestamp) -> String {
    let at = i64::try_from(at.as_millis()).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.map(|at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
}
