//! The performance of runs: calls, failures and durations of each tool, the durations of turns, and what is too slow or
//! fails too often. It is computed from the logs of runs, and not stored.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use archon_types::{CallId, CommandId, Record, RecordBody, RunId, RunStarted, Timestamp, ToolResult};
use serde::Serialize;

/// The share of failed calls of a tool above which there is an alert, in percent.
const MOST_FAILED: u64 = 20;
/// The duration of a turn above which there is an alert, in milliseconds.
const LONGEST_TURN: u64 = 30_000;

/// The performance of several runs. Add each run with [`add_run`](Self::add_run), then call [`summary`](Self::summary).
///
/// ```
/// use archon_views::Performance;
///
/// let mut performance = Performance::default();
/// performance.add_run(&[]);
/// assert_eq!(performance.summary().alerts, []);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Performance {
    tools: BTreeMap<String, Tool>,
    turns: Vec<u64>,
    slow: Vec<Alert>,
}

#[derive(Clone, Debug, Default)]
struct Tool {
    failures: u64,
    refused: u64,
    durations: Vec<u64>,
}

/// The performance of several runs in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PerformanceSummary {
    /// The tools, the one with the most calls first.
    pub tools: Vec<ToolPerformance>,
    /// The durations of turns. The duration of a turn is the time of the model call with its retries, plus the time of
    /// the longest tool call that the answer asked for. The time in which a person is asked does not count. If a tool
    /// call asks a person while it runs, its time before the question does not count either.
    pub turns: Durations,
    /// Tools that fail in more than 20 % of their calls, and for each run its longest turn, if it took more than 30
    /// seconds.
    pub alerts: Vec<Alert>,
}

/// The performance of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolPerformance {
    /// The name of the tool.
    pub tool: String,
    /// The number of calls that started and ended.
    pub calls: u64,
    /// The number of these calls that failed.
    pub failures: u64,
    /// The number of calls that a guard or a person refused; they did not start.
    pub refused: u64,
    /// The durations of the calls, with retries, without the time in which a person is asked.
    pub durations: Durations,
}

/// Durations in milliseconds; all 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Durations {
    /// The number of durations.
    pub count: u64,
    /// The median: half of the durations do not exceed it.
    pub p50_ms: u64,
    /// The 95th percentile: 95 % of the durations do not exceed it.
    pub p95_ms: u64,
    /// The longest duration.
    pub max_ms: u64,
}

/// Something that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "alert", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Alert {
    /// A tool fails in more than 20 % of its calls.
    ToolFailures {
        /// The name of the tool.
        tool: String,
        /// The number of calls.
        calls: u64,
        /// The number of failed calls.
        failures: u64,
    },
    /// A turn took more than 30 seconds. Only the longest turn of each run is reported.
    SlowTurn {
        /// The run.
        run: RunId,
        /// The number of the turn, from 0.
        turn: u32,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
}

impl Performance {
    /// Adds a run from its records.
    pub fn add_run(&mut self, records: &[Arc<Record>]) {
        let Some(started) = RunStarted::of(records) else { return };
        let mut fold = Fold::default();
        for record in records {
            if let Some((tool, end)) = fold.apply(record) {
                let tool = self.tools.entry(tool).or_default();
                match end {
                    End::Ended { duration_ms, has_failed } => {
                        tool.durations.push(duration_ms);
                        tool.failures += u64::from(has_failed);
                    }
                    End::Refused => tool.refused += 1,
                }
            }
        }
        fold.end_turn();
        self.turns.extend(fold.turns.iter().map(|(_, duration)| *duration));
        let longest = fold.turns.into_iter().max_by_key(|(turn, duration)| (*duration, Reverse(*turn)));
        if let Some((turn, duration_ms)) = longest.filter(|(_, duration)| *duration > LONGEST_TURN) {
            self.slow.push(Alert::SlowTurn { run: started.run.clone(), turn, duration_ms });
        }
    }

    /// Sums up the runs.
    pub fn summary(&self) -> PerformanceSummary {
        let sum = |(name, tool): (&String, &Tool)| ToolPerformance {
            tool: name.clone(),
            calls: tool.durations.len() as u64,
            failures: tool.failures,
            refused: tool.refused,
            durations: Durations::of(&tool.durations),
        };
        let mut tools: Vec<ToolPerformance> = self.tools.iter().map(sum).collect();
        tools.sort_by_key(|tool| Reverse(tool.calls));
        let fails = |tool: &&ToolPerformance| tool.failures * 100 > tool.calls * MOST_FAILED;
        let alert = |tool: &ToolPerformance| Alert::ToolFailures {
            tool: tool.tool.clone(),
            calls: tool.calls,
            failures: tool.failures,
        };
        let alerts = tools.iter().filter(fails).map(alert).chain(self.slow.iter().cloned()).collect();
        PerformanceSummary { tools, turns: Durations::of(&self.turns), alerts }
    }
}

impl Durations {
    fn of(durations: &[u64]) -> Self {
        let mut sorted = durations.to_vec();
        sorted.sort_unstable();
        // The nearest rank: a duration that was measured, and not one between two.
        let percentile = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self {
            count: sorted.len() as u64,
            p50_ms: percentile(50),
            p95_ms: percentile(95),
            max_ms: sorted.last().copied().unwrap_or_default(),
        }
    }
}

/// The end of a call.
enum End {
    Ended { duration_ms: u64, has_failed: bool },
    Refused,
}

/// The turns of one run so far.
#[derive(Default)]
struct Fold {
    /// The numbers and the durations of the turns that have ended.
    turns: Vec<(u32, u64)>,
    /// The number of the turn whose model call is under way, with the time of the first attempt.
    asked: Option<(u32, Timestamp)>,
    /// The turn that has its answer: its number, and the durations of the model call and of the longest tool call.
    turn: Option<(u32, u64, u64)>,
    /// The tool calls that have not ended, each with its tool and its start. The start is `None` if the call has not
    /// started, or if its duration does not count.
    calls: HashMap<CallId, (String, Option<Timestamp>)>,
}

impl Fold {
    /// Applies a record. Returns the tool of a call that ended.
    fn apply(&mut self, record: &Record) -> Option<(String, End)> {
        let at = record.at;
        match &record.body {
            RecordBody::ModelCallStarted { turn, .. }
                if self.asked.is_none_or(|(asked, _)| asked != *turn) =>
            {
                self.end_turn();
                self.asked = Some((*turn, at));
            }
            RecordBody::ModelCallFinished { command, message, .. } => {
                let names = message.tool_calls().map(|call| call.target().name);
                self.add_calls(*command, names);
                if let Some((turn, since)) = self.asked.take() {
                    self.turn = Some((turn, at.millis_since(since), 0));
                }
            }
            RecordBody::ToolCallStarted { call, .. } => {
                if let Some((_, started)) = self.calls.get_mut(call) {
                    started.get_or_insert(at);
                }
            }
            RecordBody::ToolCallFinished { call, result } => return self.end_call(*call, result, at),
            RecordBody::ToolCallRefused { call, .. } => {
                return self.calls.remove(call).map(|(tool, _)| (tool, End::Refused));
            }
            // Nobody worked on the run, or a person was asked: the time of such a call is not its own.
            RecordBody::ApprovalRequested { call, .. } => {
                if let Some((_, started)) = self.calls.get_mut(call) {
                    *started = None;
                }
            }
            body if body.is_resumption() => {
                self.asked = None;
                self.calls.values_mut().for_each(|(_, started)| *started = None);
            }
            _ => {}
        }
        None
    }

    fn add_calls(&mut self, command: CommandId, names: impl Iterator<Item = String>) {
        self.calls.clear();
        let calls = (0..).zip(names).map(|(index, name)| (CallId::new(command, index), (name, None)));
        self.calls.extend(calls);
    }

    /// Ends a call. A call that never started, such as one that a person answered, counts for no tool.
    fn end_call(&mut self, call: CallId, result: &ToolResult, at: Timestamp) -> Option<(String, End)> {
        let (tool, started) = self.calls.remove(&call)?;
        let duration_ms = at.millis_since(started?);
        if let Some((_, _, longest)) = &mut self.turn {
            *longest = (*longest).max(duration_ms);
        }
        Some((tool, End::Ended { duration_ms, has_failed: result.is_error() }))
    }

    fn end_turn(&mut self) {
        self.turns.extend(self.turn.take().map(|(turn, model, calls)| (turn, model.saturating_add(calls))));
    }
}
