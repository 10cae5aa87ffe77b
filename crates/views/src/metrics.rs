//! Metrics of conversations: tool calls, tokens and durations, with a report for people. Metrics are a fold
//! over the logs of a session's runs, and are not stored.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    sync::Arc,
};

use archon_types::{
    CallId, Json, OutputLevel, Record, RecordBody, SessionId, Timestamp, TokenCounter as _, TokenEstimate,
    ToolCall, ToolResult, Usage, metadata,
};
use serde::{Deserialize, Serialize};

use crate::report::active;

/// The metrics of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// The name of the tool.
    pub tool_name: String,
    /// The time of the first start of the call, or of its end if it never started.
    pub start_time: Timestamp,
    /// The time of the end of the call.
    pub end_time: Timestamp,
    /// The time between start and end, in milliseconds.
    pub duration_ms: u64,
    /// The estimated number of tokens of the arguments.
    pub input_tokens: u64,
    /// The estimated number of tokens of the result.
    pub output_tokens: u64,
    /// The sum of `input_tokens` and `output_tokens`.
    pub total_tokens: u64,
    /// True if the call succeeded.
    pub success: bool,
    /// The type of the failure; `None` if the result names none.
    pub error_code: Option<String>,
    /// The number of retries.
    pub retry_count: u32,
    /// The level of detail of the result.
    pub output_level: OutputLevel,
}

/// The metrics of one conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConversationMetrics {
    /// The id of the session.
    pub conversation_id: SessionId,
    /// The working time of the session's runs, in milliseconds.
    pub total_duration_ms: u64,
    /// The number of tokens that models read, including those from a cache.
    pub total_input_tokens: u64,
    /// The number of tokens that models wrote.
    pub total_output_tokens: u64,
    /// The sum of `total_input_tokens` and `total_output_tokens`.
    pub total_tokens: u64,
    /// The metrics of the tool calls, in the order in which the calls ended.
    pub tool_calls: Vec<ToolMetrics>,
    /// The number of calls that succeeded.
    pub successful_calls: u64,
    /// The number of calls that did not succeed, including those that were refused.
    pub failed_calls: u64,
    /// The number of calls with more than one attempt.
    pub retried_calls: u64,
    /// The number of skill activations.
    pub skill_activations: u64,
    /// The names of the activated skills.
    pub unique_skills: BTreeSet<String>,
    /// The number of messages: prompts, answers, tool results and notes of the program to the model.
    pub messages_count: u64,
    /// The number of compactions.
    pub compression_events: u64,
}

/// The averages over the calls of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolAverages {
    /// The number of calls.
    pub call_count: u64,
    /// The average duration of a call, in milliseconds.
    pub avg_duration_ms: f64,
    /// The average number of tokens of arguments and result.
    pub avg_tokens: f64,
    /// The share of successful calls, from 0 to 1.
    pub success_rate: f64,
    /// The share of failed calls, from 0 to 1.
    pub error_rate: f64,
}

impl ConversationMetrics {
    /// Creates metrics without any run.
    pub fn new(conversation_id: SessionId) -> Self {
        Self {
            conversation_id,
            total_duration_ms: 0,
            total_input_tokens: 0,
            total_output_tokens: 0,
            total_tokens: 0,
            tool_calls: Vec::new(),
            successful_calls: 0,
            failed_calls: 0,
            retried_calls: 0,
            skill_activations: 0,
            unique_skills: BTreeSet::new(),
            messages_count: 0,
            compression_events: 0,
        }
    }

    /// Adds one run of the conversation, from its records.
    pub fn add_run(&mut self, records: &[Arc<Record>]) {
        self.total_duration_ms = self.total_duration_ms.saturating_add(active(records));
        let mut calls: HashMap<CallId, Call> = HashMap::new();
        for record in records {
            match &record.body {
                RecordBody::MessageAdded { message, .. } => {
                    self.messages_count += u64::from(message.as_llm().is_some());
                }
                RecordBody::HintAdded { .. } | RecordBody::ContextStatus { .. } => self.messages_count += 1,
                RecordBody::ModelCallFinished { command, message, .. } => {
                    self.messages_count += 1;
                    self.add_usage(message.usage);
                    let made = message.tool_calls().map(Call::new);
                    calls.extend((0..).map(|index| CallId::new(*command, index)).zip(made));
                }
                RecordBody::Summarized(summary) => self.add_usage(summary.usage),
                RecordBody::GoalChecked(verdict) => self.add_usage(verdict.usage),
                RecordBody::Compacted(_) => self.compression_events += 1,
                RecordBody::ToolCallStarted { call, attempt, .. } => {
                    if let Some(call) = calls.get_mut(call) {
                        call.started_at.get_or_insert(record.at);
                        call.attempt = *attempt;
                    }
                }
                RecordBody::ToolCallFinished { call, result }
                | RecordBody::ToolCallRefused { call, result } => {
                    self.messages_count += 1;
                    self.tool_calls.extend(calls.remove(call).map(|call| call.ended(result, record.at)));
                }
                _ => {}
            }
        }
        self.count_calls();
    }

    fn add_usage(&mut self, usage: Usage) {
        let read = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        self.total_input_tokens = self.total_input_tokens.saturating_add(read);
        self.total_output_tokens = self.total_output_tokens.saturating_add(usage.output);
        self.total_tokens = self.total_input_tokens.saturating_add(self.total_output_tokens);
    }

    fn count_calls(&mut self) {
        let count = |counts: fn(&ToolMetrics) -> bool| {
            self.tool_calls.iter().filter(|call| counts(call)).count() as u64
        };
        (self.successful_calls, self.retried_calls) = (count(|c| c.success), count(|c| c.retry_count > 0));
        self.failed_calls = self.tool_calls.len() as u64 - self.successful_calls;
    }

    /// Returns the averages of each tool, by its name.
    pub fn tool_stats(&self) -> BTreeMap<String, ToolAverages> {
        let mut stats: BTreeMap<String, ToolAverages> = BTreeMap::new();
        for call in &self.tool_calls {
            let sum = stats.entry(call.tool_name.clone()).or_default();
            sum.call_count += 1;
            sum.avg_duration_ms += call.duration_ms as f64;
            sum.avg_tokens += call.total_tokens as f64;
            sum.success_rate += f64::from(u8::from(call.success));
        }
        for mean in stats.values_mut() {
            let calls = mean.call_count as f64;
            mean.avg_duration_ms /= calls;
            mean.avg_tokens /= calls;
            mean.success_rate /= calls;
            mean.error_rate = 1.0 - mean.success_rate;
        }
        stats
    }

    /// Returns a report for people, in which the tools with the most calls come first.
    pub fn to_report(&self) -> String {
        let mut tools: Vec<_> = self.tool_stats().into_iter().collect();
        tools.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.call_count));
        let mut lines = String::new();
        for (name, stats) in tools {
            // Writing to a string cannot fail.
            let _ = write!(
                lines,
                "\n  {name}:\n    - Calls: {}\n    - Avg Duration: {:.1}ms\n    - Avg Tokens: {:.0}\n    - Success Rate: \
                 {:.1}%\n",
                stats.call_count,
                stats.avg_duration_ms,
                stats.avg_tokens,
                stats.success_rate * 100.0
            );
        }
        let skills: Vec<_> = self.unique_skills.iter().map(String::as_str).collect();
        let skills = if skills.is_empty() { "None".to_owned() } else { skills.join(", ") };
        format!(
            "\nConversation Metrics Report\n============================\nConversation ID: {}\nDuration: {:.1}s\n\n\
             Token Usage:\n  - Input: {}\n  - Output: {}\n  - Total: {}\n\n\
             Tool Calls:\n  - Total: {}\n  - Successful: {}\n  - Failed: {}\n  - Retried: {}\n\n\
             Per-Tool Statistics:\n{lines}\n\
             Skills Activated:\n  - Total: {}\n  - Unique: {}\n  - Skills: {skills}\n\n\
             Context Management:\n  - Messages: {}\n  - Compressions: {}\n",
            self.conversation_id,
            self.total_duration_ms as f64 / 1000.0,
            grouped(self.total_input_tokens),
            grouped(self.total_output_tokens),
            grouped(self.total_tokens),
            self.tool_calls.len(),
            self.successful_calls,
            self.failed_calls,
            self.retried_calls,
            self.skill_activations,
            self.unique_skills.len(),
            self.messages_count,
            self.compression_events,
        )
    }
}

/// A tool call that has not ended.
struct Call {
    call: ToolCall,
    started_at: Option<Timestamp>,
    attempt: u32,
}

impl Call {
    fn new(call: &ToolCall) -> Self {
        Self { call: call.target(), started_at: None, attempt: 0 }
    }

    fn ended(self, result: &ToolResult, end: Timestamp) -> ToolMetrics {
        let start = self.started_at.unwrap_or(end);
        let input_tokens = TokenEstimate.count(&self.call.arguments.to_string());
        let output_tokens = TokenEstimate.count(&result.text());
        ToolMetrics {
            tool_name: self.call.name,
            start_time: start,
            end_time: end,
            duration_ms: end.millis_since(start),
            input_tokens,
            output_tokens,
            total_tokens: input_tokens + output_tokens,
            success: !result.is_error(),
            error_code: result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str).map(str::to_owned),
            retry_count: self.attempt,
            output_level: result.output_level.unwrap_or_default(),
        }
    }
}

/// The sums over several conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalStats {
    /// The number of conversations.
    pub total_conversations: u64,
    /// The number of tool calls.
    pub total_tool_calls: u64,
    /// The number of tokens.
    pub total_tokens: u64,
    /// The total duration in seconds.
    pub total_duration_seconds: f64,
    /// The average number of tokens per tool call; 0 without calls.
    pub avg_tokens_per_call: f64,
}

impl GlobalStats {
    /// Sums up the metrics of conversations.
    pub fn of<'a>(conversations: impl IntoIterator<Item = &'a ConversationMetrics>) -> Self {
        let mut sum = Self::default();
        for conversation in conversations {
            sum.total_conversations += 1;
            sum.total_tool_calls += conversation.tool_calls.len() as u64;
            sum.total_tokens = sum.total_tokens.saturating_add(conversation.total_tokens);
            sum.total_duration_seconds += conversation.total_duration_ms as f64 / 1000.0;
        }
        if sum.total_tool_calls > 0 {
            sum.avg_tokens_per_call = sum.total_tokens as f64 / sum.total_tool_calls as f64;
        }
        sum
    }
}

/// Formats a number with a comma after every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
