//! Questions of a run to a person, as elicitation of the protocol, and the answers.

use archon_types::{Answer, ApprovalRequest, QuestionKind};
use rmcp::{
    ErrorData,
    model::{ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction},
};
use serde_json::json;

/// Maximum number of characters of a question's details that a person is shown.
const DETAILS: usize = 4_000;

/// Returns the form for a question: a decision, and a text for a reply or a reason.
pub(crate) fn elicit_request(question: &ApprovalRequest) -> Result<ElicitRequest, ErrorData> {
    let decisions = decisions(question);
    let params = json!({
        "mode": "form",
        "message": message(question),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": { "type": "string", "title": "Decision", "enum": decisions },
                "text": { "type": "string", "title": "Reply, or reason for a no" },
            },
            "required": ["decision"],
        },
    });
    let params: ElicitRequestParams = serde_json::from_value(params)
        .map_err(|e| ErrorData::internal_error(format!("a question cannot be asked: {e}"), None))?;
    Ok(ElicitRequest::new(params))
}

/// Returns the answer in a client's result. Everything but a clear approval or reply is a refusal.
pub(crate) fn answer(result: ElicitResult) -> Answer {
    let content = result.content.unwrap_or_default();
    let field =
        |name: &str| content.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    match (result.action, field("decision").as_str()) {
        (ElicitationAction::Accept, APPROVE) => Answer::Approve,
        (ElicitationAction::Accept, REPLY) => Answer::Reply { text: field("text") },
        _ => Answer::Cancel { reason: field("text") },
    }
}

/// Returns the answer to a question for which no person can be asked.
pub(crate) fn withdrawn(question: &ApprovalRequest) -> Answer {
    let way = question.rules.first().map_or_else(String::new, |rule| {
        format!(" The person at the server can allow it beforehand with the rule `{rule}`.")
    });
    let reason = format!(
        "It needs a person's answer ({}), and this client cannot ask one: it offers no elicitation. It was not run.{way}",
        question.action_summary
    );
    Answer::Withdrawn { reason }
}

const APPROVE: &str = "approve";
const REPLY: &str = "reply";
const CANCEL: &str = "cancel";

fn decisions(question: &ApprovalRequest) -> Vec<&'static str> {
    let offers = |option: &str| question.options.iter().any(|offered| offered == option);
    let may_reply = offers(REPLY) || question.kind == QuestionKind::Input;
    let may_approve = offers(APPROVE);
    let yes = [(APPROVE, may_approve), (REPLY, may_reply)];
    yes.into_iter().filter_map(|(option, is_offered)| is_offered.then_some(option)).chain([CANCEL]).collect()
}

fn message(question: &ApprovalRequest) -> String {
    let details = serde_json::to_string_pretty(&question.details).unwrap_or_default();
    let shown = archon_types::shorten(&details, DETAILS, " ... (more is not shown)");
    let asker = match question.agent_name.as_str() {
        "" => String::new(),
        name => format!("{name} asks: "),
    };
    format!("{asker}{}\n\n{shown}", question.action_summary)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use archon_types::Json;

    use super::*;

    fn question() -> ApprovalRequest {
        ApprovalRequest::new("q", "Write notes.md", json!({ "tool": "write_file" }))
    }

    fn answered(result: Json) -> Answer {
        answer(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn answer_is_a_yes_only_if_a_person_accepted_the_form_and_approved() {
        let no = |reason: &str| Answer::Cancel { reason: reason.to_owned() };
        for (result, expected) in [
            (json!({ "action": "accept", "content": { "decision": "approve" } }), Answer::Approve),
            (
                json!({ "action": "accept", "content": { "decision": "cancel", "text": "not now" } }),
                no("not now"),
            ),
            (
                json!({ "action": "accept", "content": { "decision": "reply", "text": "42" } }),
                Answer::Reply { text: "42".to_owned() },
            ),
            (json!({ "action": "accept" }), no("")),
            (json!({ "action": "accept", "content": { "decision": "Approve" } }), no("")),
            (json!({ "action": "decline", "content": { "decision": "approve" } }), no("")),
            (json!({ "action": "cancel" }), no("")),
        ] {
            assert_eq!(answered(result.clone()), expected, "{result}");
        }
    }

    #[test]
    fn form_offers_the_answers_of_the_question_and_shows_what_is_asked() {
        let form = serde_json::to_value(elicit_request(&question()).unwrap().params).unwrap();
        assert_eq!(form["requestedSchema"]["properties"]["decision"]["enum"], json!(["approve", "cancel"]));
        assert!(
            form["message"].as_str().unwrap().contains("Write notes.md\n\n{\n  \"tool\": \"write_file\"")
        );
        let mut guidance = question();
        guidance.options = vec!["reply".to_owned(), "cancel".to_owned()];
        assert_eq!(decisions(&guidance), ["reply", "cancel"]);
    }

    #[test]
    fn withdrawn_names_the_narrowest_rule() {
        let mut question = question();
        question.rules = vec!["write_file(notes.md)".to_owned(), "write_file".to_owned()];
        let Answer::Withdrawn { reason } = withdrawn(&question) else { panic!("no withdrawal") };
        assert!(reason.contains("with the rule `write_file(notes.md)`."), "{reason}");
    }
}
