//! The text of a notification, as lines for a person.

use archon_types::{Notification, NotificationKind, visible};

/// The most characters of a text that a message has.
const MOST_CHARACTERS: usize = 3000;

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

/// Returns the text below the subject, without characters that hide or reorder text, and the address for the answer.
pub(crate) fn body(notification: &Notification) -> String {
    let text = notification.text.lines().map(visible).collect::<Vec<_>>().join("\n");
    let mut body: String = text.chars().take(MOST_CHARACTERS).collect();
    if body.len() < text.len() {
        body.push_str("\n… the rest is in the log of the run");
    }
    if let NotificationKind::Question(question) = &notification.about {
        body.push_str(&format!("\nQuestion {}", question.request.request_id));
        if let Some(at) = question.request.expires_at {
            body.push_str(&format!(", open until {at}"));
        }
    }
    if let Some(link) = &notification.link {
        body.push_str(&format!("\nAnswer here: {link}"));
    }
    body
}
