//! Summaries without a model: what was done, a line each.

use archon_types::{Content, ConversationRound, Message, WindowItem};

use super::{entries::is_result, truncate::char_end};

/// The opening of a digest of turns.
const TURNS: &str = "[Earlier turns in short]";
/// The opening of a summary of actions and observations.
const SUMMARY: &str = "## Previous Context Summary";
/// Characters of one line's content.
const WIDTH: u64 = 100;

/// One line for each turn; a digest that is among them gives its lines.
pub(crate) fn turns(items: &[WindowItem]) -> String {
    let mut lines = vec![TURNS.to_owned()];
    for turn in split_into_turns(items) {
        match earlier_lines(&turn[0].message) {
            Some(earlier) => lines.extend(earlier.map(str::to_owned)),
            None => lines.push(turn_line(turn)),
        }
    }
    lines.join("\n")
}

/// The last `most` actions and observations.
pub(crate) fn summary(items: &[WindowItem], most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match earlier_lines(&item.message) {
            Some(earlier) => lines.extend(earlier.map(str::to_owned)),
            None => push_activities(&item.message, &mut lines),
        }
    }
    lines.drain(..lines.len().saturating_sub(most));
    lines.insert(0, SUMMARY.to_owned());
    lines.join("\n")
}

/// A round in four lines: what was asked, the tools, the answer.
pub fn round_summary(round: &ConversationRound) -> String {
    let tools: Vec<&str> = round.tool_calls.iter().map(|c| c.name.as_str()).collect();
    let mut lines = vec![
        format!("Round {}:", round.round_id),
        format!("  Request: {}", clip(&round.user_message)),
        format!("  Tools: [{}]", tools.join(", ")),
    ];
    lines.extend(round.final_answer.as_deref().map(|answer| format!("  Answer: {}", clip(answer))));
    lines.join("\n")
}

/// An answer with its results, or a single message.
fn split_into_turns(items: &[WindowItem]) -> impl Iterator<Item = &[WindowItem]> {
    items.chunk_by(|_, next| is_result(&next.message))
}

fn turn_line(turn: &[WindowItem]) -> String {
    let head = &*turn[0].message;
    let speaker = match head {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool",
    };
    let mut line = format!("- {speaker}:");
    let said = head.text();
    if !said.is_empty() {
        line.push_str(&format!(" {}", clip(&said)));
    }
    let mut results = turn[1..].iter();
    for call in head.content().iter().filter_map(Content::as_tool_call) {
        line.push_str(&format!(" [{} {}]", call.name, clip(&call.arguments.to_string())));
        if let Some(result) = results.next() {
            line.push_str(&format!(" -> {}", clip(&result.message.text())));
        }
    }
    for result in results {
        line.push_str(&format!(" -> {}", clip(&result.message.text())));
    }
    line
}

fn push_activities(message: &Message, lines: &mut Vec<String>) {
    if is_result(message) {
        let text = message.text();
        let text = text.strip_prefix("Observation: ").unwrap_or(&text);
        lines.push(format!("- Observation: {}", clip(text)));
    }
    for call in message.content().iter().filter_map(Content::as_tool_call) {
        lines.push(format!("- Action: {}", clip(&format!("{} {}", call.name, call.arguments))));
    }
}

/// The lines of a digest or summary that stands in the window already.
fn earlier_lines(message: &Message) -> Option<impl Iterator<Item = &str>> {
    let Message::User(user) = message else { return None };
    let text = user.content.first()?.as_text()?;
    let mut lines = text.lines();
    let opening = lines.next()?;
    (opening == TURNS || opening == SUMMARY).then_some(lines)
}

/// The text on one line, 100 characters at most.
fn clip(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if let Some(end) = char_end(&line, WIDTH) {
            line.truncate(end);
            line.push_str("...");
            break;
        }
    }
    line
}
