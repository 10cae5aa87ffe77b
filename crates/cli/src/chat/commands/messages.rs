//! `/back`: the earlier messages of the person, and going back to one.

use super::{Request, Situation};
use crate::{chat::way_back, text::one_line};

/// The maximum number of listed messages.
const LISTED: usize = 20;
/// The maximum number of shown characters of a message.
const SHOWN: usize = 70;

/// Without an argument, lists the earlier messages of the person. With a number, asks the conversation to go back to
/// that message.
///
/// # Errors
/// The text about an argument that is no number.
pub(super) fn back(word: &str, situation: &Situation<'_>) -> Result<(), String> {
    if !word.is_empty() {
        let number = word.parse().map_err(|_| format!("{word:?} is no number: /back lists your messages"))?;
        situation.request(Request::Back(number));
        return Ok(());
    }
    let (app, session) = (situation.app.clone(), situation.session.cloned());
    situation.spawn(async move {
        let earlier = match &session {
            Some(session) => way_back::earlier(&app.runs()?, session).await?,
            None => Vec::new(),
        };
        for message in earlier.iter().take(LISTED) {
            app.note(format!("{:>3}  {}", message.number, one_line(&message.text, SHOWN)));
        }
        match earlier.is_empty() {
            true => app.note("there is no message to go back to"),
            false => app.hint("/back N goes back to a message; what you send then continues from its place"),
        }
        Ok(())
    });
    Ok(())
}
