//! Metrics of conversations: what was called, how it went, what it took, and a report that people read.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use archon_types::{Json, OutputLevel, Timestamp, TokenCounter, TokenEstimate, ToolResult, metadata};
use serde::{Deserialize, Serialize};

use crate::guard::Ended;

/// One call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// The tool.
    pub tool_name: String,
    /// When it started.
    pub start_time: Timestamp,
    /// When it ended.
    pub end_time: Timestamp,
    /// Milliseconds between the two.
    pub duration_ms: u64,
    /// Tokens of the arguments, estimated.
    pub input_tokens: u64,
    /// Tokens of the result, estimated.
    pub output_tokens: u64,
    /// Both together.
    pub total_tokens: u64,
    /// It did what was asked.
    pub success: bool,
    /// The kind of failure.
    pub error_code: Option<String>,
    /// How often it was tried again.
    pub retry_count: u32,
    /// How much detail the result has.
    pub output_level: OutputLevel,
}

impl ToolMetrics {
    /// A call that worked at the first try and took no tokens.
    pub fn new(tool_name: impl Into<String>, start_time: Timestamp, end_time: Timestamp) -> Self {
        Self {
            tool_name: tool_name.into(),
            start_time,
            end_time,
            duration_ms: u64::try_from(end_time.since(start_time).as_millis()).unwrap_or(u64::MAX),
            input_tokens: 0,
            output_tokens: 0,
            total_tokens: 0,
            success: true,
            error_code: None,
            retry_count: 0,
            output_level: OutputLevel::default(),
        }
    }
}

/// All that was counted of one conversation. What is not a tool's call the application adds itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConversationMetrics {
    /// The session.
    pub conversation_id: String,
    /// Milliseconds; the time of the tools' calls unless the application knows better.
    pub total_duration_ms: u64,
    /// Tokens that models read.
    pub total_input_tokens: u64,
    /// Tokens that models wrote.
    pub total_output_tokens: u64,
    /// All tokens, those of tools included.
    pub total_tokens: u64,
    /// The calls, in the order in which they ended.
    pub tool_calls: Vec<ToolMetrics>,
    /// Calls that did what was asked.
    pub successful_calls: u64,
    /// The others.
    pub failed_calls: u64,
    /// Calls that were tried more than once.
    pub retried_calls: u64,
    /// Skills that were used, every time counted.
    pub skill_activations: u64,
    /// Their names.
    pub unique_skills: BTreeSet<String>,
    /// Messages of the conversation.
    pub messages_count: u64,
    /// How often it was compacted.
    pub compression_events: u64,
}

/// Means over the calls of one tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolAverages {
    /// How many calls.
    pub call_count: u64,
    /// Milliseconds.
    pub avg_duration_ms: f64,
    /// Tokens of arguments and result.
    pub avg_tokens: f64,
    /// 0 to 1.
    pub success_rate: f64,
    /// 0 to 1.
    pub error_rate: f64,
}

impl ConversationMetrics {
    /// Nothing yet.
    pub fn new(conversation_id: impl Into<String>) -> Self {
        Self { conversation_id: conversation_id.into(), ..Self::default() }
    }

    /// Adds a call.
    pub fn record_tool_call(&mut self, call: ToolMetrics) {
        self.total_duration_ms = self.total_duration_ms.saturating_add(call.duration_ms);
        self.total_tokens = self.total_tokens.saturating_add(call.total_tokens);
        let counter = if call.success { &mut self.successful_calls } else { &mut self.failed_calls };
        *counter += 1;
        self.retried_calls += u64::from(call.retry_count > 0);
        self.tool_calls.push(call);
    }

    /// Means per tool, by name.
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

    /// A text for people; the tools that were called most come first.
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

/// Over all conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalStats {
    /// How many conversations.
    pub total_conversations: u64,
    /// Calls of all of them.
    pub total_tool_calls: u64,
    /// Tokens of all of them.
    pub total_tokens: u64,
    /// Seconds.
    pub total_duration_seconds: f64,
    /// 0 without calls.
    pub avg_tokens_per_call: f64,
}

/// Takes the metrics of every conversation; give it to [`EngineOptions::metrics`](crate::EngineOptions).
///
/// It keeps an entry for each call until [`forget`](Self::forget) is called.
#[derive(Debug, Default)]
pub struct MetricsCollector(Mutex<BTreeMap<String, ConversationMetrics>>);

impl MetricsCollector {
    /// Adds a call of a conversation.
    pub fn record_tool_call(&self, call: ToolMetrics, conversation_id: &str) {
        self.with(conversation_id, |conversation| conversation.record_tool_call(call));
    }

    /// Changes a conversation's metrics, for instance to add what its models used.
    pub fn with<T>(&self, conversation_id: &str, change: impl FnOnce(&mut ConversationMetrics) -> T) -> T {
        let mut conversations = self.lock();
        change(
            conversations
                .entry(conversation_id.to_owned())
                .or_insert_with(|| ConversationMetrics::new(conversation_id)),
        )
    }

    /// A conversation's metrics so far.
    pub fn conversation(&self, conversation_id: &str) -> Option<ConversationMetrics> {
        self.lock().get(conversation_id).cloned()
    }

    /// Keeps no more of a conversation, and returns what there was.
    pub fn forget(&self, conversation_id: &str) -> Option<ConversationMetrics> {
        self.lock().remove(conversation_id)
    }

    /// Sums over all conversations that were not forgotten.
    pub fn global_stats(&self) -> GlobalStats {
        let conversations = self.lock();
        let mut sum =
            GlobalStats { total_conversations: conversations.len() as u64, ..GlobalStats::default() };
        for conversation in conversations.values() {
            sum.total_tool_calls += conversation.tool_calls.len() as u64;
            sum.total_tokens += conversation.total_tokens;
            sum.total_duration_seconds += conversation.total_duration_ms as f64 / 1000.0;
        }
        if sum.total_tool_calls > 0 {
            sum.avg_tokens_per_call = sum.total_tokens as f64 / sum.total_tool_calls as f64;
        }
        sum
    }

    /// Adds a call that an engine has seen the end of.
    pub(crate) fn record_result(&self, ended: &Ended<'_>, result: &ToolResult) {
        let end = ended.context.run.clock.now();
        let mut call = ToolMetrics::new(&ended.tool.spec.name, end, end);
        let start = end.as_millis().saturating_sub(crate::guards::millis(ended.execution));
        call.start_time = Timestamp::from_millis(start);
        call.duration_ms = crate::guards::millis(ended.execution);
        // The estimate of 3.8 characters a token, of what is no longer here to be counted.
        call.input_tokens = (ended.argument_bytes as u64 * 10).div_ceil(38);
        call.output_tokens = TokenEstimate.count(&result.text());
        call.total_tokens = call.input_tokens + call.output_tokens;
        call.success = !result.is_error();
        call.error_code = result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str).map(str::to_owned);
        call.retry_count = ended.attempts.saturating_sub(1);
        call.output_level = result.output_level.unwrap_or_default();
        self.record_tool_call(call, ended.context.run.session.as_str());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ConversationMetrics>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number with a comma after every three digits.
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
