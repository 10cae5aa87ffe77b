//! `/export`: the conversation as a Markdown file.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf};

use archon::types::{Record, RecordBody, SessionId};

use super::Situation;
use crate::{
    chat::history_of_session::{self, History, message_of_person},
    failure::Failure,
    text::visible_path,
    toolset,
};

pub(super) fn run(file: &str, situation: &Situation<'_>) {
    let (app, file, session) = (situation.app.clone(), file.to_owned(), situation.session.cloned());
    situation.spawn(async move {
        let Some(session) = session else {
            return Err(Failure::usage("there is nothing to export", "send a message first"));
        };
        let history = history_of_session::read_all(&app.runs()?, &session).await?;
        let name = match file.is_empty() {
            true => PathBuf::from(format!("{session}.md")),
            false => PathBuf::from(file),
        };
        let path = toolset::folder(&app).unwrap_or_default().join(name);
        let written = OpenOptions::new().write(true).create_new(true).open(&path);
        written.and_then(|mut new| new.write_all(markdown(&session, &history).as_bytes())).map_err(|e| {
            Failure::unwritable(
                &path,
                &e,
                "give the path of another file, which does not exist yet: /export FILE",
            )
        })?;
        app.note(format!("wrote {}", visible_path(&path)));
        match history.damage {
            Some(damage) => Err(damage),
            None => Ok(()),
        }
    });
}

/// Returns the conversation as Markdown: the messages, the answers, and the calls with their results.
fn markdown(session: &SessionId, history: &History) -> String {
    let mut text = format!("# Conversation {session}\n");
    for part in history.records.iter().filter_map(|(_, record)| part(record)) {
        text.push('\n');
        text.push_str(part.trim_end());
        text.push('\n');
    }
    text
}

fn part(record: &Record) -> Option<String> {
    match &record.body {
        RecordBody::MessageAdded { .. } => {
            message_of_person(record).map(|text| format!("## Message\n\n{text}"))
        }
        RecordBody::ModelCallFinished { message, .. } => {
            let text = message.text();
            let calls = message.tool_calls().map(|call| {
                format!("Call of `{}`:\n\n{}", call.name, code_block(&call.arguments.to_string()))
            });
            let parts: Vec<String> =
                Some(text).filter(|text| !text.trim().is_empty()).into_iter().chain(calls).collect();
            (!parts.is_empty()).then(|| format!("## Answer\n\n{}", parts.join("\n\n")))
        }
        RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
            Some(format!("Result:\n\n{}", code_block(&result.text())))
        }
        _ => None,
    }
}

/// Returns a text in a block of code whose fence is longer than every row of backquotes in the text.
fn code_block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_block_has_a_longer_fence_than_its_text() {
        assert_eq!(code_block("a\n"), "```text\na\n```");
        assert_eq!(code_block("```\nb\n```"), "````text\n```\nb\n```\n````");
    }
}
