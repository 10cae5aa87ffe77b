//! Tickets: the contents of a token.

use archon_types::{ApprovalRequest, PendingApproval, RunId, Timestamp};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::key::AnswerKey;

/// The most bytes of a token.
const LONGEST: usize = 2_000;

/// The way of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// The page of links.
    Link,
    /// A reply by mail.
    Mail,
}

/// The permission to answer one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) way: Way,
    pub(crate) run: RunId,
    /// The id of the question.
    pub(crate) question: String,
    /// The digest of the question as it was shown.
    pub(crate) shown: String,
    pub(crate) person: String,
    /// The time at which the ticket ends.
    pub(crate) end: Timestamp,
}

impl Ticket {
    pub(crate) fn new(way: Way, question: &PendingApproval, person: &str, end: Timestamp) -> Self {
        Self {
            way,
            run: question.run.clone(),
            question: question.request.request_id.clone(),
            shown: digest(&question.request),
            person: person.to_owned(),
            end,
        }
    }

    /// Returns true if the ticket is for this question as it is now.
    pub(crate) fn is_for(&self, question: &ApprovalRequest) -> bool {
        self.shown == digest(question)
    }

    /// Returns the token: letters, digits, `-`, `_` and one dot.
    pub(crate) fn to_token(&self, key: &AnswerKey) -> String {
        // A struct of texts and a number is always written.
        let text = BASE64URL_NOPAD.encode(json!(self).to_string().as_bytes());
        let seal = BASE64URL_NOPAD.encode(&key.seal(&text));
        format!("{text}.{seal}")
    }

    /// Reads a token that this key made.
    pub(crate) fn open(token: &str, key: &AnswerKey) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let (text, seal) = token.split_once('.')?;
        let seal: [u8; 32] = BASE64URL_NOPAD.decode(seal.as_bytes()).ok()?.try_into().ok()?;
        if !key.is_seal(text, &seal) {
            return None;
        }
        serde_json::from_slice(&BASE64URL_NOPAD.decode(text.as_bytes()).ok()?).ok()
    }
}

/// Returns the digest of what a person sees of a question, and of the call that an approval is bound to.
fn digest(request: &ApprovalRequest) -> String {
    let ApprovalRequest { action_summary, details, options, binding, .. } = request;
    let text = json!([action_summary, details, options, binding]).to_string();
    HEXLOWER.encode(&Hash::hash(text.as_bytes())[..16])
}

#[cfg(test)]
mod tests {
    use archon_types::Secret;

    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            way: Way::Link,
            run: "run_1".into(),
            question: "approval_1".into(),
            shown: "ab".into(),
            person: "anna".into(),
            end: Timestamp::from_millis(7),
        }
    }

    // spec: AP-10
    #[test]
    fn open_of_a_token_that_was_changed_or_is_of_another_key_gives_nothing() {
        let key = AnswerKey::new(&Secret::from("0123456789abcdef")).unwrap();
        let other = AnswerKey::new(&Secret::from("0123456789abcdeg")).unwrap();
        let token = ticket().to_token(&key);
        assert_eq!(Ticket::open(&token, &key), Some(ticket()));
        assert_eq!(Ticket::open(&token, &other), None);
        // The seal of another ticket.
        let later = Ticket { end: Timestamp::from_millis(8), ..ticket() }.to_token(&key);
        let (text, seal) = (later.split_once('.').unwrap().0, token.split_once('.').unwrap().1);
        assert_eq!(Ticket::open(&format!("{text}.{seal}"), &key), None);
        for broken in ["", ".", "a.b", &token[1..], &token[..token.len() - 1], &format!("{token}A")] {
            assert_eq!(Ticket::open(broken, &key), None, "{broken}");
        }
    }
}
