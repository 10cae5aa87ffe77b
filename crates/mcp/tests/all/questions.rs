//! Servers that ask a person: in the result of a call, and while it is open.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon_mcp::{McpServer, McpServers};
use archon_types::{
    Answer, AnsweredQuestion, ApprovalRequest, CallId, CommandId, Decision, DynApprover, FnApprover, Json,
    QuestionKind, Tool, ToolError, ToolQuestions, ToolResult, ToolResultStatus,
};
use serde_json::{Value, json};

use crate::support::{context, messages_until, options, server, start, text_of, tool};

/// The call's position in its run.
fn position() -> CallId {
    CallId::new(CommandId(0), 0)
}

/// Executes a call of a run that can ask a person, with the answer so far.
async fn execute(
    tool: &dyn Tool,
    kind: &str,
    answered: Option<(ApprovalRequest, Answer)>,
    approver: Option<Arc<dyn DynApprover>>,
) -> Result<ToolResult, ToolError> {
    let (mut context, _) = context(tool);
    let answered = answered.map(|(request, answer)| Arc::new(AnsweredQuestion { request, answer }));
    let questions = ToolQuestions::new(context.run.run.clone(), true, [(position(), answered)]);
    context.run.tool_questions = Some(Arc::new(questions.with_approver(approver, "main")));
    context.call = Some(position());
    tool.call(text_of(kind), &context).await
}

/// Executes a call, and returns its question.
async fn question_of(
    tool: &dyn Tool,
    kind: &str,
    answered: Option<(ApprovalRequest, Answer)>,
) -> ApprovalRequest {
    match execute(tool, kind, answered, None).await {
        Err(ToolError::Suspended(question)) => *question,
        other => panic!("{other:?}"),
    }
}

/// Executes a call with an answer to its question, and returns what the server got: the responses and the state.
async fn answered(tool: &dyn Tool, kind: &str, question: &ApprovalRequest, answer: Answer) -> Json {
    let result = execute(tool, kind, Some((question.clone(), answer)), None).await.unwrap();
    serde_json::from_str(&result.text()).unwrap()
}

fn reply(text: &str) -> Answer {
    Answer::Reply { text: text.to_owned() }
}

fn accepted(content: Json) -> Json {
    json!({ "action": "accept", "content": content })
}

/// A server that notes what it gets.
fn logging(behaviour: &str, log: &Path) -> McpServer {
    server(behaviour).with_variable("FAKE_LOG", log.display().to_string())
}

// spec: MC-01
#[tokio::test]
async fn server_that_asks_in_its_result_gets_the_answer_in_the_next_process() {
    let first = start([("fake", server("asks-stateless"))]);
    let question = question_of(&*tool(&first, "fake__ask").await, "form", None).await;
    assert_eq!(question.kind, QuestionKind::Input);
    let text = &question.action_summary;
    assert!(text.starts_with("MCP server `fake` (tool `ask`) asks: Who are you?\n"), "{text}");
    assert!(text.contains("- name: Your name (text of at least 2 characters)"), "{text}");
    first.close().await;
    // What the log keeps is all that the next process has.
    let kept = serde_json::to_string(&question).unwrap();
    let question: ApprovalRequest = serde_json::from_str(&kept).unwrap();
    let next = start([("fake", server("asks-stateless"))]);
    let ask = tool(&next, "fake__ask").await;
    let got = answered(&*ask, "form", &question, reply("name: Ann\nage: 20")).await;
    let content = json!({ "name": "Ann", "age": 20, "colour": "green" });
    assert_eq!(got, json!([{ "q": accepted(content) }, "{\"n\": 1}\u{e4}"]));
    next.close().await;
}

#[tokio::test]
async fn server_that_asks_in_its_result_gets_decline_for_a_no_and_cancel_without_an_answer() {
    let servers = start([("fake", server("asks-stateless"))]);
    let ask = tool(&servers, "fake__ask").await;
    let question = question_of(&*ask, "form", None).await;
    for (answer, action) in [
        (Answer::Cancel { reason: "none of your business".to_owned() }, "decline"),
        (Answer::Expired, "cancel"),
        (Answer::Withdrawn { reason: "too late".to_owned() }, "cancel"),
    ] {
        let got = answered(&*ask, "form", &question, answer).await;
        assert_eq!(got[0], json!({ "q": { "action": action } }));
    }
    servers.close().await;
}

#[tokio::test]
async fn answer_that_does_not_fit_is_asked_for_again_and_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let servers = start([("fake", logging("asks-stateless", &log))]);
    let ask = tool(&servers, "fake__ask").await;
    let question = question_of(&*ask, "form", None).await;
    let edit = |arguments: Json| Answer::Edit { arguments };
    let wrong = edit(json!({ "name": "Ann", "age": "17" }));
    let again = question_of(&*ask, "form", Some((question, wrong))).await;
    let text = &again.action_summary;
    assert!(text.starts_with("That does not fit: `age` must be a whole number of at least 18.\n"), "{text}");
    // The name that fits is kept.
    let got = answered(&*ask, "form", &again, edit(json!({ "age": "18" }))).await;
    assert_eq!(got[0]["q"]["content"], json!({ "name": "Ann", "age": 18, "colour": "green" }));
    servers.close().await;
    let calls = messages_until(&log, "inputResponses").await;
    assert_eq!(calls.iter().filter(|message| message["method"] == "tools/call").count(), 2);
}

#[tokio::test]
async fn several_requests_for_input_are_asked_one_after_the_other() {
    let servers = start([("fake", server("asks-stateless"))]);
    let ask = tool(&servers, "fake__ask").await;
    let first = question_of(&*ask, "two", None).await;
    let second = question_of(&*ask, "two", Some((first, reply("Ann")))).await;
    let got = answered(&*ask, "two", &second, reply("Bob")).await;
    let name = |name: &str| accepted(json!({ "name": name, "colour": "green" }));
    assert_eq!(got[0], json!({ "q": name("Ann"), "r": name("Bob") }));
    servers.close().await;
}

#[tokio::test]
async fn address_is_shown_for_a_yes_or_no() {
    let servers = start([("fake", server("asks-stateless"))]);
    let ask = tool(&servers, "fake__ask").await;
    let question = question_of(&*ask, "url", None).await;
    assert_eq!((question.kind, question.allow_modification), (QuestionKind::Consent, false));
    let text = &question.action_summary;
    assert!(text.contains("\nhttps://pay.example.com/bill?n=7\nIt leads to pay.example.com."), "{text}");
    let got = answered(&*ask, "url", &question, Answer::Approve).await;
    assert_eq!(got[0], json!({ "q": { "action": "accept" } }));
    servers.close().await;
}

#[tokio::test]
async fn server_that_wants_the_call_again_gets_it_without_a_question() {
    let servers = start([("fake", server("asks-stateless"))]);
    let ask = tool(&servers, "fake__ask").await;
    let result = execute(&*ask, "later", None, None).await.unwrap();
    assert_eq!(result.text(), json!([null, "{\"n\": 1}\u{e4}"]).to_string());
    servers.close().await;
}

#[tokio::test]
async fn server_that_asks_for_ever_is_stopped() {
    let servers = start([("fake", server("asks-stateless"))]);
    let ask = tool(&servers, "fake__ask").await;
    let mut answered = None;
    for _ in 0..5 {
        let question = question_of(&*ask, "for ever", answered).await;
        answered = Some((question, reply("Ann")));
    }
    let result = execute(&*ask, "for ever", answered, None).await.unwrap();
    assert_eq!(result.status, ToolResultStatus::Error);
    assert!(result.text().contains("it asked for input more than 5 times in one call"), "{}", result.text());
    servers.close().await;
}

#[tokio::test]
async fn server_is_told_that_it_may_ask_only_in_runs_with_a_person() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let servers = start([("fake", logging("asks-stateless", &log))]);
    let ask = tool(&servers, "fake__ask").await;
    // The fake server asks nevertheless.
    let refused = crate::support::call(&*ask, "form").await;
    assert!(
        refused.text().contains("asks for input, which this client does not offer"),
        "{}",
        refused.text()
    );
    question_of(&*ask, "url", None).await;
    servers.close().await;
    let messages = messages_until(&log, "\"url\"").await;
    let offers = |message: &&Json| {
        !message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_null()
    };
    let offering: Vec<&Value> = messages.iter().filter(offers).collect();
    assert_eq!(offering.len(), 1, "{offering:?}");
    assert_eq!(offering[0]["params"]["arguments"]["text"], "url");
}

#[tokio::test]
async fn question_of_another_definition_is_not_answered() {
    let servers = start([("fake", server("asks-stateless")), ("other", server("asks-stateless"))]);
    let mut question = question_of(&*tool(&servers, "fake__ask").await, "form", None).await;
    question.tool_state["hash"] = "another".into();
    let ask = tool(&servers, "fake__ask").await;
    let result = execute(&*ask, "form", Some((question, reply("Ann"))), None).await.unwrap();
    assert!(result.text().contains("its definition is another one than when it asked"), "{}", result.text());
    servers.close().await;
}

/// Starts a server that asks while a call is open, and is told that it may.
fn start_asking(server: McpServer) -> McpServers {
    McpServers::start([("fake".to_owned(), server)], &options().with_questions_during_calls()).unwrap()
}

/// An approver that gives these answers in turn, after a pause, and then none; and the questions that it saw.
fn person(pause: Duration, answers: Vec<Answer>) -> (Arc<dyn DynApprover>, Arc<Mutex<Vec<String>>>) {
    let (seen, next) = (Arc::new(Mutex::new(Vec::new())), AtomicUsize::new(0));
    let noted = seen.clone();
    let approver = FnApprover::new(move |request: ApprovalRequest| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(request.action_summary);
        let answer = answers.get(next.fetch_add(1, Ordering::Relaxed)).cloned();
        async move {
            tokio::time::sleep(pause).await;
            answer.map_or(Decision::Later, Decision::Now)
        }
    });
    (Arc::new(approver), seen)
}

fn quick(answers: Vec<Answer>) -> (Arc<dyn DynApprover>, Arc<Mutex<Vec<String>>>) {
    person(Duration::ZERO, answers)
}

#[tokio::test]
async fn server_that_asks_while_the_call_is_open_gets_the_answer_of_the_person_here() {
    let servers = start_asking(server("asks"));
    let ask = tool(&servers, "fake__ask").await;
    for (kind, answers, expected) in [
        ("form", vec![reply("A"), reply("Ann")], accepted(json!({ "name": "Ann", "colour": "green" }))),
        ("form", vec![Answer::Cancel { reason: String::new() }], json!({ "action": "decline" })),
        ("url", vec![Answer::Approve], json!({ "action": "accept" })),
    ] {
        let (person, seen) = quick(answers.clone());
        let result = execute(&*ask, kind, None, Some(person)).await.unwrap();
        let got: Json = serde_json::from_str(&result.text()).unwrap();
        assert_eq!(got, expected);
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(seen.len(), answers.len(), "{seen:?}");
        assert!(seen.iter().all(|text| text.contains("MCP server `fake` (tool `ask`) asks")), "{seen:?}");
    }
    servers.close().await;
}

#[tokio::test]
async fn question_during_a_call_that_nobody_answers_is_cancelled_and_the_result_says_so() {
    let servers = start_asking(server("asks"));
    let ask = tool(&servers, "fake__ask").await;
    let (away, _) = quick(Vec::new());
    for (person, why) in [
        (None, "nobody can be asked while this call runs; the question was 'Who are you?'"),
        (Some(away), "nobody answered; the question was 'Who are you?'"),
    ] {
        let result = execute(&*ask, "form", None, person).await.unwrap();
        let text = result.text();
        assert!(text.contains("{\"action\":\"cancel\"}") && text.contains(why), "{text}");
    }
    servers.close().await;
}

#[tokio::test]
async fn time_in_which_a_person_is_asked_does_not_count_for_the_call() {
    let mut slow = server("asks");
    slow.timeouts.call = Duration::from_millis(300);
    let servers = start_asking(slow);
    let ask = tool(&servers, "fake__ask").await;
    let (person, _) = person(Duration::from_millis(900), vec![reply("Ann")]);
    let result = execute(&*ask, "form", None, Some(person)).await.unwrap();
    assert!(result.text().contains("\"Ann\""), "{}", result.text());
    servers.close().await;
}

#[tokio::test]
async fn server_that_asks_for_ever_while_the_call_is_open_is_cancelled() {
    let servers = start_asking(server("asks"));
    let ask = tool(&servers, "fake__ask").await;
    let (person, seen) = quick(vec![reply("Ann"); 20]);
    let result = execute(&*ask, "for ever", None, Some(person)).await.unwrap();
    let text = result.text();
    assert!(
        text.contains("{\"action\":\"cancel\"}") && text.contains("it asked more than 5 times"),
        "{text}"
    );
    assert_eq!(seen.lock().unwrap_or_else(PoisonError::into_inner).len(), 5);
    servers.close().await;
}

#[tokio::test]
async fn question_is_not_answered_while_it_could_be_of_either_of_two_calls() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("messages");
    let servers = start_asking(logging("asks", &log));
    let (ask, wait) = (tool(&servers, "fake__ask").await, tool(&servers, "fake__wait").await);
    // Both calls could ask this person.
    let (person, seen) = quick(vec![reply("Ann")]);
    let asking = async {
        // The server has the other call.
        messages_until(&log, "\"tools/call\"").await;
        execute(&*ask, "form", None, Some(person.clone())).await.unwrap()
    };
    let waiting = execute(&*wait, "", None, Some(person.clone()));
    let result = tokio::select! {
        result = asking => result,
        _ = waiting => panic!("it waits"),
    };
    assert!(result.text().contains("{\"action\":\"cancel\"}"), "{}", result.text());
    assert!(seen.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
    servers.close().await;
}

#[tokio::test]
async fn server_of_an_older_revision_is_told_that_it_may_ask_only_if_the_program_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for (log, is_told) in [("told", true), ("untold", false)] {
        let log = folder.path().join(log);
        let server = logging("asks", &log);
        let servers = if is_told { start_asking(server) } else { start([("fake", server)]) };
        tool(&servers, "fake__ask").await;
        servers.close().await;
        let messages = messages_until(&log, "\"initialize\"").await;
        let greeting = messages.iter().find(|message| message["method"] == "initialize").unwrap();
        assert_eq!(greeting["params"]["capabilities"].get("elicitation").is_some(), is_told);
    }
}
