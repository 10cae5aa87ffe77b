//! The questions of a conversation's runs. A question about a call waits in the log. The question of a tool that asks
//! while it works is shown to the person at once, and the tool waits for the answer.

use archon::{
    types::{Answer, ApprovalRequest, Approver, Decision, PLAN_TOOL},
    views::ArgumentSource,
};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

use crate::{
    output::{Look, Output},
    permissions::StoredRules,
    question,
    text::{visible, visible_line},
};

/// A question of a tool that waits for its answer while it works.
pub(crate) struct Waiting {
    pub(crate) request: ApprovalRequest,
    pub(crate) reply: oneshot::Sender<Decision>,
}

/// The approver of a conversation: passes the question of a working tool to the screen, and lets all other questions
/// wait.
///
/// A run with an open question about a call is suspended, so that nothing is lost if the program is killed, and so
/// that the question can also be answered from another terminal.
pub(crate) struct ScreenApprover(UnboundedSender<Waiting>);

impl ScreenApprover {
    /// Creates an approver that sends the questions of working tools to `waiting`.
    pub(crate) fn new(waiting: UnboundedSender<Waiting>) -> Self {
        Self(waiting)
    }
}

impl Approver for ScreenApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let (reply, answer) = oneshot::channel();
        let request = request.clone();
        match self.0.send(Waiting { request, reply }) {
            Ok(()) => answer.await.unwrap_or(Decision::Later),
            Err(_) => Decision::Later,
        }
    }

    async fn decide_all(&self, requests: &[ApprovalRequest]) -> Vec<Decision> {
        vec![Decision::Later; requests.len()]
    }
}

/// A part of what a person has to know about a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Line(Look, String),
    /// The difference of a file in the unified format, without hidden characters.
    Difference(String),
}

/// Returns the facts about a call that a person needs before answering: its arguments and the changes of files, even if
/// they are long. Each argument and each path is followed by the sources of its words. The first line is left out if it
/// has at most `columns` columns, because the question then shows the whole line with its keys.
pub(crate) fn body(request: &ApprovalRequest, sources: &[ArgumentSource], columns: usize) -> Vec<Part> {
    let mut head = question::head(request);
    // A character has at most two columns.
    let is_whole_below = head.first().is_some_and(|(_, line)| 2 * line.chars().count() <= columns);
    if is_whole_below {
        head.remove(0);
    }
    let mut parts: Vec<Part> = head.into_iter().map(|(look, line)| Part::Line(look, line)).collect();
    let changes: Vec<_> = question::changes(request).collect();
    let is_compared = !changes.is_empty() && changes.iter().all(|(_, diff)| diff.is_some());
    let is_brief = question::brief(request, &[]).is_whole;
    let has_arguments = !is_compared || !is_brief;
    for (path, diff) in changes.iter().filter_map(|(path, diff)| Some((*path, (*diff)?))) {
        parts.push(Part::Line(Look::Dim, format!("  {}", visible_line(path))));
        if !has_arguments {
            let lines = question::sources_of_path(sources, path).into_iter();
            parts.extend(lines.map(|source| Part::Line(Look::Dim, format!("    {source}"))));
        }
        // A line end of another kind may be all that differs.
        parts.push(Part::Difference(visible(diff)));
    }
    if has_arguments {
        let look = if is_brief { Look::Dim } else { Look::Plain };
        let lines = question::arguments(request, sources).into_iter();
        parts.extend(lines.map(|line| Part::Line(look, line)));
    }
    parts
}

/// Returns the plan that a question is about, in Markdown; `None` for any other question.
pub(crate) fn plan(request: &ApprovalRequest) -> Option<&str> {
    request.details["arguments"]["plan"].as_str().filter(|_| request.details["tool"] == PLAN_TOOL)
}

/// Stores the rules of an answer with `always`, and notes where they are stored.
pub(crate) fn remember(answer: &Answer, store: Option<&StoredRules>, output: &Output) {
    let (Answer::Trust { rules }, Some(store)) = (answer, store) else { return };
    let file = store.file.display();
    for rule in rules {
        let (look, text) = match store.remember(rule) {
            Ok(()) => {
                let (rule, workspace) = (visible(rule), visible(&store.workspace));
                (Look::Dim, format!("{rule} is stored for {workspace} in {file}"))
            }
            Err(e) => (
                Look::Warning,
                format!("the rule holds for this session only: {file} cannot be written: {e}"),
            ),
        };
        output.note(look, text);
    }
}

#[cfg(test)]
mod tests {
    use archon::types::Json;
    use serde_json::json;

    use super::*;

    // spec: AP-05
    #[test]
    fn body_of_a_long_call_is_whole() {
        let command = format!("{} rm -rf .", "true;".repeat(2_000));
        let details = json!({ "tool": "bash", "arguments": { "command": command } });
        let parts = body(&ApprovalRequest::new("approval_1", "Run bash", details), &[], 80);
        let has =
            |text: &str| parts.iter().any(|part| matches!(part, Part::Line(_, line) if line.contains(text)));
        assert!(has("rm -rf .") && !has("not shown"), "{parts:?}");
    }

    // spec: CL-09
    #[test]
    fn body_of_a_change_has_its_difference_and_arguments_only_for_what_it_does_not_show() {
        let diff = "@@ -0,0 +1 @@\n+hello\n";
        let known = json!({ "path": "a.txt", "diff": diff });
        let details =
            |changes: Json| json!({ "arguments": { "content": "hello" }, "preview": { "changes": changes } });
        let parts = |changes| body(&ApprovalRequest::new("approval_1", "Create", details(changes)), &[], 80);
        let shown = [Part::Line(Look::Dim, "  a.txt".to_owned()), Part::Difference(diff.to_owned())];
        assert_eq!(parts(json!([known])), shown);
        let parts_of_line_end = parts(json!([{ "path": "a.txt", "diff": "-a\n+a\r\n" }]));
        assert!(parts_of_line_end.contains(&Part::Difference("-a\n+a\\u{d}\n".to_owned())));
        let both = parts(json!([known, { "path": "large.txt" }]));
        assert!(both.contains(&shown[1]), "{both:?}");
        assert!(both.contains(&Part::Line(Look::Dim, "  content: \"hello\"".to_owned())), "{both:?}");
    }

    #[test]
    fn body_has_the_first_line_only_if_the_question_cuts_it() {
        let request = |summary: &str| ApprovalRequest::new("approval_1", summary, json!({}));
        assert_eq!(body(&request("Send it?"), &[], 79), []);
        let long = format!("Send it to {}?", "ada, ".repeat(20));
        assert_eq!(body(&request(&long), &[], 79), [Part::Line(Look::Warning, format!("? {long}"))]);
    }

    #[tokio::test]
    async fn approver_defers_questions_about_calls_and_asks_those_of_working_tools() {
        let (waiting, mut questions) = tokio::sync::mpsc::unbounded_channel();
        let approver = ScreenApprover::new(waiting);
        let request = ApprovalRequest::new("approval_1", "Send it?", json!({}));
        let both = [request.clone(), request.clone()];
        assert_eq!(approver.decide_all(&both).await, [Decision::Later, Decision::Later]);
        let answer = async {
            let Waiting { reply, .. } = questions.recv().await.unwrap();
            reply.send(Decision::Now(Answer::Approve)).unwrap();
        };
        let (decision, ()) = tokio::join!(approver.decide(&request), answer);
        assert_eq!(decision, Decision::Now(Answer::Approve));
        drop(questions);
        assert_eq!(approver.decide(&request).await, Decision::Later, "the conversation is over");
    }
}
