//! The text of a notification, as lines for a person.

use archon_types::{Notification, NotificationKind, visible};

/// The most characters of a text that a message has.
const MOST_CHARACTERS: usize = 2000;

/// The beginning of the line with the link of a question.
const LINK: &str = "Answer here: ";

/// Returns the link in a message of a subject and a body. A text of a model or of an event, behind `> `, has none.
pub(crate) fn link_in(message: &str) -> Option<&str> {
    message.lines().skip(1).take_while(|line| !line.starts_with('>')).find_map(|line| line.strip_prefix(LINK))
}

/// Returns the subject, as one line.
pub(crate) fn subject(notification: &Notification) -> String {
    let what = match &notification.about {
        NotificationKind::Result => "done",
        NotificationKind::Question(_) => "asks you",
        NotificationKind::Expired => "waited too long for an answer",
        NotificationKind::Failure => "failed",
        NotificationKind::Disabled => "was disabled",
        _ => "has news",
    };
    match (&notification.task, &notification.run) {
        (Some(task), _) => format!("{task} {what}"),
        (None, Some(run)) => format!("run {run} {what}"),
        (None, None) => format!("Archon {what}"),
    }
}

/// Returns the lines below the subject: our own, then those of the text behind `> `, without characters that hide or reorder
/// text. So a text of a model or of an event cannot pass for our words.
pub(crate) fn body(notification: &Notification) -> String {
    let mut lines = Vec::new();
    if let NotificationKind::Question(question) = &notification.about {
        let until = question.request.expires_at.map(|at| format!(", open until {at}")).unwrap_or_default();
        lines.push(format!("Question {}{until}", question.request.request_id));
        if notification.reply_token.is_some() {
            let takes_yes = question.request.options.iter().any(|option| option == "approve");
            let words = if takes_yes { "only yes or no" } else { "your answer" };
            lines.push(format!("To answer by a reply, write {words} above the quoted text."));
        }
    }
    if let Some(link) = &notification.link {
        lines.push(format!("{LINK}{link}"));
    }
    let text: String = notification.text.chars().take(MOST_CHARACTERS).collect();
    lines.extend(text.lines().map(|line| format!("> {}", visible(line))));
    if text.len() < notification.text.len() {
        lines.push("The rest is in the log of the run.".to_owned());
    }
    if lines.is_empty() {
        lines.push("(no text)".to_owned());
    }
    lines.join("\n")
}
