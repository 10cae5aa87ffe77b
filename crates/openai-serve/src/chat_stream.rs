//! A chat completion as a stream of chunks.

use archon_types::{Json, OutcomeStatus};
use axum::http::StatusCode;
use serde_json::json;

use crate::{
    completion::{Completion, usage},
    ending::Ending,
    error::ApiError,
    stream::{Writer, failure_of},
    transcript::{Part, Piece},
};

/// The last line of a stream.
const DONE: &str = "data: [DONE]\n\n";

/// Writes the chunks of a completion.
pub(crate) struct ChatWriter {
    completion: Completion,
    with_usage: bool,
    /// True if the next text begins a new part, so that a blank line must come before it.
    is_between: bool,
    has_text: bool,
}

impl ChatWriter {
    pub(crate) fn new(completion: Completion, with_usage: bool) -> Self {
        Self { completion, with_usage, is_between: false, has_text: false }
    }

    fn chunk(&self, choices: &Json, usage: Json) -> String {
        let mut chunk = self.completion.chunk(choices);
        if self.with_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    }

    fn choice(&self, delta: &Json, finish_reason: Option<&str>) -> String {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason });
        self.chunk(&json!([choice]), Json::Null)
    }

    fn text(&mut self, text: &str) -> String {
        let separator = if self.is_between && self.has_text { "\n\n" } else { "" };
        (self.is_between, self.has_text) = (false, true);
        self.choice(&json!({ "content": format!("{separator}{text}") }), None)
    }
}

impl Writer for ChatWriter {
    fn begin(&mut self) -> String {
        self.choice(&json!({ "role": "assistant", "content": "", "refusal": null }), None)
    }

    fn pieces(&mut self, pieces: &[Piece]) -> Result<String, ApiError> {
        let mut written = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => written.push_str(&self.text(text)),
                Piece::Complete(phase) => self.is_between = phase.ends_paragraph(),
                // Nothing takes the text back, and more text would contradict it.
                Piece::BrokenOff => return Err(contradiction()),
            }
        }
        Ok(written)
    }

    fn end(&mut self, pieces: &[Piece], _: &[Part], ending: &Ending) -> Result<String, ApiError> {
        if ending.has_failed() {
            return Err(failure_of(ending));
        }
        let rest = match pieces {
            // A run that was stopped begins no other answer: the text that was sent is a part that is not whole.
            [Piece::BrokenOff, rest @ ..] if ending.outcome.status != OutcomeStatus::Finished => {
                self.is_between = true;
                rest
            }
            pieces => pieces,
        };
        let mut written = self.pieces(rest)?;
        written.push_str(&self.choice(&json!({}), Some(ending.finish_reason())));
        if self.with_usage {
            written.push_str(&self.chunk(&json!([]), usage(ending)));
        }
        written.push_str(DONE);
        Ok(written)
    }

    fn fail(&mut self, error: &ApiError) -> String {
        format!("data: {}\n\n", error.json())
    }
}

fn contradiction() -> ApiError {
    let message = "The answer was interrupted and began again with other words, and the text that was sent is \
                   not part of it. The run goes on: the header x-archon-run names it, and GET \
                   /v1/responses/resp_RUN has its answer.";
    ApiError::new(StatusCode::BAD_GATEWAY, "answer_begun_again", message)
}

#[cfg(test)]
mod tests {
    use archon_types::{LimitReached, Outcome, Timestamp};

    use super::*;
    use crate::transcript::Phase;

    #[test]
    fn chat_writer_writes_a_blank_line_between_parts_but_not_after_a_pause() {
        for (phase, expected) in
            [(Phase::Paused, r#""content":"b""#), (Phase::Commentary, r#""content":"\n\nb""#)]
        {
            let completion = Completion::new(&"run_1".into(), Timestamp::default(), "desk".to_owned());
            let text = |text: &str| Piece::Text(text.to_owned());
            let mut writer = ChatWriter::new(completion, false);
            let written = writer.pieces(&[text("a"), Piece::Complete(phase), text("b")]).unwrap();
            assert!(written.contains(expected), "{written}");
        }
    }

    #[test]
    fn chat_writer_of_a_run_that_was_stopped_writes_its_rest_and_ends_and_of_a_finished_one_fails() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let rest = [Piece::BrokenOff, text("[Stopped.]"), Piece::Complete(Phase::Commentary)];
        let limit = OutcomeStatus::Limit(LimitReached::Turns { max: 3 });
        for status in [limit, OutcomeStatus::Cancelled, OutcomeStatus::Finished] {
            let run = "run_1".into();
            let completion = Completion::new(&run, Timestamp::default(), "desk".to_owned());
            let mut writer = ChatWriter::new(completion, false);
            writer.pieces(&[text("It is")]).unwrap();
            let ending = Ending { outcome: Outcome::new(run, status), notice: None };
            let written = writer.end(&rest, &[], &ending);
            if status == OutcomeStatus::Finished {
                assert_eq!(written.unwrap_err().code, "answer_begun_again");
                continue;
            }
            let written = written.unwrap();
            assert!(written.contains(r#""content":"\n\n[Stopped.]""#), "{written}");
            assert!(written.contains(r#""finish_reason":"length""#) && written.ends_with(DONE), "{written}");
        }
    }
}
