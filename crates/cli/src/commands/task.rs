//! Reads the task of a command from its words and from standard input.

use std::io::Read;

use crate::{app::App, failure::Failure, piped};

/// Returns the task: these words, with the text that is piped in, or for `-` the text on standard input.
pub(crate) fn task(app: &App, words: &[String]) -> Result<String, Failure> {
    let text = words_or_stdin(words, "the task")?;
    if text.trim().is_empty() {
        return Err(archon::RunError::EmptyPrompt.into());
    }
    match words {
        [word] if word == "-" => Ok(text),
        _ => piped::add_input(text, &app.output),
    }
}

/// Returns these words joined; for `-`, the text on standard input. `what` is the text's name in errors.
pub(crate) fn words_or_stdin(words: &[String], what: &str) -> Result<String, Failure> {
    let mut text = words.join(" ");
    if text == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).map_err(|e| {
            let advice = format!("pipe text in UTF-8 into the command, or give {what} as an argument");
            Failure::usage(format!("cannot read {what} from standard input: {e}"), advice)
        })?;
    }
    Ok(text)
}
