//! A mail, and its event.

use archon_triggers::TriggerEvent;
use archon_types::Json;
use mail_parser::{Message, MessageParser, MimeHeaders as _};
use serde_json::json;

use super::tokens;

/// The most bytes of the text of a mail in an event, as JSON. With all lines of the head it stays below the limit of an event.
const MOST_TEXT: usize = 20_000;

/// The most bytes of a line of the head of a mail in an event, as JSON.
const MOST_LINE: usize = 500;

/// The most addresses of each kind, and the most names of attachments.
const MOST_NAMES: usize = 20;

/// A mail of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceivedMail {
    /// The id of the mail in its mailbox, which stays the same: `UIDVALIDITY/UID`.
    pub id: String,
    /// The mail as the server has it; of a large mail only the first bytes
    /// ([`ImapMailbox::with_max_bytes`](crate::ImapMailbox::with_max_bytes)).
    pub bytes: Vec<u8>,
    /// True if the program got the mail before, but the mail was not marked as taken then, because the program ended or
    /// an error came.
    pub is_repeat: bool,
}

impl ReceivedMail {
    /// Creates a mail, for instance for a source of your own. [`is_repeat`](Self::is_repeat) is false.
    ///
    /// ```
    /// use archon_event_sources::ReceivedMail;
    ///
    /// let mail = ReceivedMail::new("17/4", *b"From: ben@example.com\r\nSubject: Lunch\r\n\r\nAt noon?\r\n");
    /// let event = mail.to_event("inbox");
    /// assert_eq!((event.kind.as_str(), &event.data["subject"]), ("mail.received", &"Lunch".into()));
    /// ```
    pub fn new(id: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { id: id.into(), bytes: bytes.into(), is_repeat: false }
    }

    /// Returns true for a mail that a program wrote by itself: its header `Auto-Submitted` is not `no` (RFC 3834), it has no
    /// address to return to (`Return-Path: <>`), or it is a report, such as that of a mail which could not be delivered. Mail
    /// that Archon sends is such mail, too. A newsletter or the mail of a mailing list is not, without such a header.
    ///
    /// ```
    /// use archon_event_sources::ReceivedMail;
    ///
    /// let absent = *b"From: ben@example.com\r\nAuto-Submitted: auto-replied\r\n\r\nI am on holiday.\r\n";
    /// assert!(ReceivedMail::new("17/4", absent).is_automatic());
    /// ```
    pub fn is_automatic(&self) -> bool {
        let Some(mail) = MessageParser::default().parse_headers(&self.bytes) else { return false };
        let has = |name: &str, is: fn(&str) -> bool| {
            let headers =
                mail.headers().iter().filter(|header| header.name.as_str().eq_ignore_ascii_case(name));
            let mut values = headers.map(|header| {
                let bytes = mail.raw_message.get(header.offset_start as usize..header.offset_end as usize);
                String::from_utf8_lossy(bytes.unwrap_or_default())
            });
            values.any(|value| is(value.trim()))
        };
        let is_report = mail.content_type().is_some_and(|kind| {
            let subtype = kind.subtype().unwrap_or_default();
            kind.ctype().eq_ignore_ascii_case("multipart") && subtype.eq_ignore_ascii_case("report")
        });
        is_report
            || has("Return-Path", |value| value == "<>")
            || has("Auto-Submitted", |value| {
                // Parameters or a comment may follow.
                let end = value.find([';', '(', ' ', '\t', '\r']).unwrap_or(value.len());
                !value[..end].eq_ignore_ascii_case("no")
            })
    }

    /// Returns the event `mail.received` of a source. The data has `from`, `to`, `subject`, `date`, `message_id`, `text`, the
    /// names of `attachments`, and `is_cut`: true if the text is longer than 20,000 bytes, and its rest is left out. Each is
    /// untrusted, and a long line is cut. A mail that cannot be read has `text` and `is_cut` only.
    ///
    /// The event has no token with which a person can answer a question: in its place stands `[token]`. So a model that reads
    /// the mail of a person cannot answer for the person.
    pub fn to_event(&self, source: impl Into<String>) -> TriggerEvent {
        let data = match MessageParser::default().parse(&self.bytes) {
            Some(mail) => data_of(&mail),
            None => with_text(json!({}), &String::from_utf8_lossy(&self.bytes)),
        };
        TriggerEvent::new(&self.id, source, "mail.received", data)
    }
}

fn data_of(mail: &Message<'_>) -> Json {
    let people = |people: Option<&mail_parser::Address<'_>>| -> Vec<String> {
        let people = people.into_iter().flat_map(|people| people.iter());
        people.filter_map(|one| one.address()).take(MOST_NAMES).map(line).collect()
    };
    let names = mail.attachments().filter_map(|part| part.attachment_name()).take(MOST_NAMES).map(line);
    let head = json!({
        "from": people(mail.from()), "to": people(mail.to()), "subject": mail.subject().map(line),
        "date": mail.date().map(ToString::to_string), "message_id": mail.message_id().map(line),
        "attachments": names.collect::<Vec<_>>(),
    });
    with_text(head, &mail.body_text(0).unwrap_or_default())
}

fn with_text(mut data: Json, text: &str) -> Json {
    let (text, is_cut) = cut(&tokens::hide(text), MOST_TEXT);
    (data["text"], data["is_cut"]) = (text.into(), is_cut.into());
    data
}

fn line(text: &str) -> String {
    cut(&tokens::hide(text), MOST_LINE).0
}

/// Returns the beginning of a text, without control characters, which has at most this many bytes as JSON. Also returns true if
/// there is more.
fn cut(text: &str, most: usize) -> (String, bool) {
    let (mut kept, mut bytes) = (String::new(), 0);
    for c in text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()) {
        bytes += match c {
            '\n' | '\t' | '"' | '\\' => 2,
            c => c.len_utf8(),
        };
        if bytes > most {
            return (kept, true);
        }
        kept.push(c);
    }
    (kept, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TR-04
    #[test]
    fn to_event_has_the_parts_of_the_mail_and_stays_small() {
        let text = "x".repeat(200_000);
        let mail = format!(
            "From: Ben <ben@example.com>\r\nTo: anna@example.com\r\nSubject: =?utf-8?q?Lunch=1b?=\r\n\
             Message-ID: <1@example.com>\r\nDate: Fri, 27 Mar 2026 08:00:00 +0100\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nAt noon?\r\n{text}\r\n--b\r\n\
             Content-Disposition: attachment; filename=menu.pdf\r\n\r\n%PDF\r\n--b--\r\n"
        );
        let event = ReceivedMail::new("7/1", mail).to_event("inbox");
        assert_eq!(
            (event.id.as_str(), event.source.as_str(), event.kind.as_str()),
            ("7/1", "inbox", "mail.received")
        );
        assert_eq!(
            (&event.data["from"], &event.data["subject"]),
            (&json!(["ben@example.com"]), &json!("Lunch"))
        );
        assert_eq!(
            (&event.data["message_id"], &event.data["attachments"]),
            (&json!("1@example.com"), &json!(["menu.pdf"]))
        );
        assert!(event.data["text"].as_str().unwrap().starts_with("At noon?\n"));
        assert_eq!(event.data["is_cut"], true);
        assert!(event.data.to_string().len() < 64 * 1024);
        let broken = ReceivedMail::new("7/2", []).to_event("inbox");
        assert_eq!((&broken.data["text"], &broken.data["is_cut"]), (&json!(""), &json!(false)));
    }

    #[test]
    fn mail_that_a_program_wrote_is_known_by_its_head() {
        let is_automatic =
            |head: &str| ReceivedMail::new("7/1", format!("{head}\r\nFrom: a@b.c\r\n\r\nyes")).is_automatic();
        for head in [
            "Auto-Submitted: auto-generated",
            "auto-submitted:AUTO-REPLIED; owner-email=\"a@b.c\"",
            "Auto-Submitted: no\r\nAuto-Submitted: auto-notified",
            "Return-Path: <>",
            "Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=b",
            "Content-Type: Multipart/Report; boundary=b",
        ] {
            assert!(is_automatic(head), "{head}");
        }
        for head in [
            "Auto-Submitted: no",
            "Auto-Submitted: NO (a person)",
            "Return-Path: <a@b.c>",
            "Precedence: list",
            "Content-Type: multipart/mixed; boundary=report",
            "Subject: Auto-Submitted: auto-replied",
        ] {
            assert!(!is_automatic(head), "{head}");
        }
        assert!(!ReceivedMail::new("7/2", []).is_automatic());
        let below = ReceivedMail::new("7/3", "From: a@b.c\r\n\r\nAuto-Submitted: auto-replied\r\n");
        assert!(!below.is_automatic());
    }

    // spec: TR-04
    #[test]
    fn to_event_of_a_mail_with_many_names_and_signs_that_json_escapes_fits_into_an_event() {
        let name = |n: usize| format!("{n}{}", "\\\"".repeat(600));
        let people: Vec<String> =
            (0..60).map(|n| format!("<{}@example.com>", "x\"".repeat(300 + n))).collect();
        let part = |n: usize| {
            format!(
                "--b\r\nContent-Disposition: attachment; filename*=utf-8''{}\r\n\r\nx\r\n",
                "%22".repeat(600 + n)
            )
        };
        let parts: String = (0..60).map(part).collect();
        let mail = format!(
            "From: {people}\r\nTo: {people}\r\nSubject: {}\r\nMessage-ID: <{}@x>\r\n\
             Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n{}\r\n{parts}--b--\r\n",
            name(1),
            name(2),
            "\"\n".repeat(50_000),
            people = people.join(", "),
        );
        let event = ReceivedMail::new("7/1", mail).to_event("inbox");
        assert!(event.data.to_string().len() <= 64 * 1024, "{}", event.data.to_string().len());
        assert_eq!(event.data["attachments"].as_array().unwrap().len(), 20);
        assert_eq!(event.data["is_cut"], true);
    }
}
