//! The answer in the words of a reply.

use archon_types::{Answer, ApprovalRequest};

use crate::error::AnswerError;

/// Words that mean yes, if they stand alone.
const YES: &[&str] =
    &["yes", "y", "ok", "okay", "approve", "approved", "ja", "oui", "si", "sí", "是", "好", "同意"];

/// Words that mean no, if they stand alone in the first line.
const NO: &[&str] = &["no", "n", "cancel", "refuse", "reject", "nein", "non", "否", "不", "拒绝"];

/// The most characters of a reason or of a person's own words.
const MOST_CHARACTERS: usize = 4_000;

/// Returns the answer to a question in the text of a reply.
///
/// A yes is a yes only if the person wrote nothing else: a condition behind it would get lost.
pub(crate) fn answer_in(text: &str, question: &ApprovalRequest) -> Result<Answer, AnswerError> {
    let own = own_words(text);
    let (first, rest) = own.split_once('\n').unwrap_or((&own, ""));
    let (first, rest) = (first.trim().trim_end_matches(['.', '!', '。', ',']).to_lowercase(), rest.trim());
    let has = |option: &str| question.options.iter().any(|offered| offered == option);
    if NO.contains(&&*first) {
        return Ok(Answer::Cancel { reason: rest.chars().take(MOST_CHARACTERS).collect() });
    }
    if has("approve") && YES.contains(&&*first) && rest.is_empty() {
        return Ok(Answer::Approve);
    }
    // Where a yes is possible, other words may be a yes under conditions, so a person has to be clear.
    if has("reply") && !has("approve") && !own.is_empty() {
        return Ok(Answer::Reply { text: own.trim_start().chars().take(MOST_CHARACTERS).collect() });
    }
    Err(AnswerError::Unclear { question: question.request_id.clone() })
}

/// Returns the lines that the person wrote: those above the first quoted line, its introduction, a signature, or the copied
/// head of the mail. Words between or below quoted lines are a part of what the person means, so they are kept too.
fn own_words(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut own: Vec<&str> = Vec::new();
    let mut has_quote = false;
    for line in text.lines().map(str::trim_end).take_while(|line| !is_end(line)) {
        match line.starts_with('>') {
            true if has_quote => {}
            false if own.is_empty() && line.is_empty() => {}
            true => {
                drop_introduction(&mut own);
                // So that an answer below the quote stands in no first line.
                own.push("");
                has_quote = true;
            }
            false => own.push(line),
        }
    }
    own.join("\n").trim_end().to_owned()
}

/// Returns true for the first line of what a mail program adds below a reply.
fn is_end(line: &str) -> bool {
    let starts = |beginning: &&str| line.starts_with(*beginning);
    line == "--"
        || line.starts_with("____")
        || line.starts_with("-----")
        || ["From: ", "Von: ", "De : ", "De: ", "发件人", "Sent from ", "Von meinem ", "Get Outlook "]
            .iter()
            .any(starts)
}

/// Removes the paragraph in front of a quote, such as "On Friday, Archon wrote:". A paragraph that ends in other words
/// stays: it may be a condition.
fn drop_introduction(own: &mut Vec<&str>) {
    while own.last().is_some_and(|line| line.is_empty()) {
        own.pop();
    }
    let wrote =
        ["wrote:", "schrieb:", "a écrit :", "a écrit\u{a0}:", "escribió:", "ha scritto:", "写道:", "写道："];
    if own.last().is_some_and(|line| wrote.iter().any(|end| line.ends_with(end))) {
        while own.last().is_some_and(|line| !line.is_empty()) {
            own.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str, options: &[&str]) -> Option<Answer> {
        let mut question = ApprovalRequest::new("approval_1", "Send the mail", serde_json::json!({}));
        question.options = options.iter().map(|&option| option.to_owned()).collect();
        answer_in(text, &question).ok()
    }

    fn no(reason: &str) -> Option<Answer> {
        Some(Answer::Cancel { reason: reason.to_owned() })
    }

    // spec: AP-10
    #[test]
    fn answer_in_a_reply_is_a_yes_only_if_nothing_else_was_written() {
        let check = |text: &str, expected: Option<Answer>| {
            assert_eq!(answer(text, &["approve", "edit", "cancel"]), expected, "{text:?}");
        };
        let quote =
            "\n\nOn Fri, 27 Mar 2026 at 08:00, Archon <archon@example.com>\nwrote:\n\n> no\n> Send the mail";
        check(&format!("Yes.{quote}"), Some(Answer::Approve));
        check(&format!("yes\r\n\r\nSent from my phone{quote}"), Some(Answer::Approve));
        check("同意\n\n-- \nAnna", Some(Answer::Approve));
        check("OK\n________________________________\nFrom: Archon\n\nno", Some(Answer::Approve));
        check("yes, but only to Ben", None);
        check("yes\nbut only to Ben", None);
        check(&format!("Please wait.{quote}"), None);
        check(&format!("{quote}\nyes"), None);
        check("> yes", None);
        check("yes\n> send to Ben and Eva\nnot to Eva", None);
        check("yes\n\nbut only on these terms:\n> Send the mail", None);
        check("", None);
        check("No", no(""));
        check(&format!("No!\nBen left the company.{quote}"), no("Ben left the company."));
    }

    #[test]
    fn answer_in_own_words_is_taken_where_a_question_asks_for_words_only() {
        let words = Some(Answer::Reply { text: "At noon,\nin the hall.".to_owned() });
        assert_eq!(answer("At noon,\nin the hall.\n\n> When?", &["reply", "cancel"]), words);
        assert_eq!(answer("no", &["reply", "cancel"]), no(""));
        assert_eq!(answer("At noon.", &["approve", "reply", "cancel"]), None);
        assert_eq!(answer("\n> When?", &["reply", "cancel"]), None);
    }
}
