//! One type of question for tools, agents and plans: what it says, and its status, which is a fold of the log.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, ArchonBuilder, OutcomeStatus, Runs,
    store::InMemoryJournal,
    tools::{FnTool, builtin},
    types::{
        Answer, AnswerRuns, AskLater, Clock, Confirm, Journal, Json, Message, PendingApproval, Record,
        RecordBody, Request, RunKind, StartRun, StartRuns, SubTask, ToolAnnotations, ToolCall, ToolContext,
        ToolResult, ToolSpec,
    },
};
use archon_assistant::AgentTool;
use archon_planner::ScriptedPlanner;
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

/// A place in which a tool, a tool for people, an agent and a plan ask.
struct Place {
    journal: InMemoryJournal,
    clock: VirtualClock,
    runs: Runs,
}

impl Place {
    fn new() -> Self {
        let (journal, clock) = (InMemoryJournal::new(), VirtualClock::new());
        let builder = |id: &str| -> ArchonBuilder {
            Archon::builder()
                .provider(Arc::new(FnProvider::new(|_, request| reply(request))), "scripted")
                .agent_id(id)
                .name("ada")
                .approver(AskLater)
                .journal(Arc::new(journal.clone()))
                .clock(Arc::new(clock.clone()))
        };
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec =
            ToolSpec::new("send", "Sends it.", json!({"type": "object"})).with_annotations(annotations);
        let send = FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("sent")) });
        let clerk = AgentTool::new("clerk", "Writes.", Arc::new(builder("writer").build().unwrap()));
        let agent =
            builder("agent").tool(send).tool(builtin::HumanGuidance::new()).tool(clerk.needs_approval());
        let agent = agent.build().unwrap();
        let mut options = agent.planning_options();
        options.settings.confirm = Confirm::First;
        let planner = ScriptedPlanner::new(vec![SubTask::new("one", "Write it")]);
        let planning = agent.planning_with(Arc::new(planner), options);
        let runs = Runs::new(agent).with_agent(planning.run_agent());
        Self { journal, clock, runs }
    }

    /// Starts a run that asks, and returns its only question.
    async fn ask(&self, asker: &str) -> PendingApproval {
        let kind = if asker == "plan" { RunKind::Plan } else { RunKind::Loop };
        let started = self.runs.start(StartRun::new(asker).kind(kind).agent("agent")).await.unwrap();
        let outcome = self.runs.reply(&started.run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Suspended, "{asker}: {outcome:?}");
        let mut open = self.runs.questions(None).await.unwrap();
        open.retain(|open| open.run == started.run);
        assert_eq!(open.len(), 1, "{asker}: {open:?}");
        open.remove(0)
    }

    /// Returns the status of a question: a fold of the log of the run that asks, and of the run that a person started.
    async fn status(&self, question: &PendingApproval) -> &'static str {
        let id = &question.request.request_id;
        let mut status = fold(&self.journal.read(question.asker()).await.unwrap(), id);
        // The run that a person started logs the question, too, and may have ended since.
        if status == "pending" {
            status = fold(&self.journal.read(&question.run).await.unwrap(), id);
        }
        let open = self.runs.questions(None).await.unwrap();
        let is_open = open.iter().any(|open| open.request.request_id == *id);
        assert_eq!(is_open, status == "pending", "{id} is {status}: {open:?}");
        status
    }
}

fn fold(log: &[Arc<Record>], id: &str) -> &'static str {
    let (mut asked, mut status) = (None, "unknown");
    for record in log {
        match &record.body {
            RecordBody::ApprovalRequested { call, request } if request.request_id == id => {
                (asked, status) = (Some(*call), "pending");
            }
            RecordBody::ApprovalAnswered { call, answer } if asked == Some(*call) => {
                status = match answer {
                    Answer::Cancel { .. } => "rejected",
                    Answer::Expired => "timeout",
                    Answer::Withdrawn { .. } => "cancelled",
                    _ => "approved",
                };
            }
            RecordBody::RunFinished(end) if status == "pending" && end.status == OutcomeStatus::Cancelled => {
                status = "cancelled";
            }
            _ => {}
        }
    }
    status
}

/// A model that calls the tool of which the prompt is the name, once.
fn reply(request: &Request) -> crate::shared::stage::Answer {
    let prompt = request.messages.iter().find(|m| matches!(***m, Message::User(_))).map(|m| m.text());
    match prompt.as_deref() {
        _ if request.messages.iter().any(|message| is_result(message)) => FnProvider::text("done"),
        Some("human_guidance") => {
            let question = json!({"question": "Which colour?", "context": "for the door"});
            FnProvider::calls(vec![ToolCall::new("c", "human_guidance", question)])
        }
        Some(tool @ ("send" | "clerk")) => FnProvider::calls(vec![ToolCall::new("c", tool, json!({}))]),
        _ => FnProvider::text("done"),
    }
}

fn is_result(message: &Message) -> bool {
    matches!(message, Message::ToolResult(_))
}

/// The fields of a question that the row names.
struct Says {
    asked_by: &'static str,
    question: &'static str,
    options: &'static [&'static str],
    /// Parts of the details, by their places.
    details: &'static [(&'static str, &'static str)],
    wait: Duration,
}

async fn check(asker: &str, says: &Says) {
    let place = Place::new();
    place.clock.advance(MINUTE);
    let now = place.clock.now();
    let (first, second) = (place.ask(asker).await, place.ask(asker).await);
    assert_ne!(first.request.request_id, second.request.request_id, "{asker}");
    assert_ne!(first.run, second.run, "{asker}");
    assert_eq!(first.created_at, now, "{asker}");
    let request = &first.request;
    assert!(!request.request_id.is_empty(), "{asker}");
    assert_eq!(
        (request.agent_name.as_str(), request.action_summary.as_str()),
        (says.asked_by, says.question)
    );
    assert_eq!(request.options, says.options, "{asker}");
    for (place, text) in says.details {
        assert_eq!(request.details.pointer(place), Some(&json!(text)), "{asker}: {}", request.details);
    }
    assert_eq!(request.expires_at, Some(now + says.wait), "{asker}");
}

// spec: AP-02
#[tokio::test]
async fn question_of_a_tool_an_agent_and_a_plan_names_its_task_its_options_and_its_time() {
    const USUAL: &[&str] = &["approve", "edit", "cancel"];
    let send = Says {
        asked_by: "ada",
        question: "Run send with {}",
        options: USUAL,
        details: &[("/tool", "send")],
        wait: 30 * MINUTE,
    };
    check("send", &send).await;
    let guidance = Says {
        asked_by: "ada",
        question: "Which colour? (for the door)",
        options: &["reply", "cancel"],
        details: &[("/tool", "human_guidance"), ("/arguments/context", "for the door")],
        wait: 5 * MINUTE,
    };
    check("human_guidance", &guidance).await;
    let clerk = Says {
        asked_by: "clerk",
        question: "Run clerk with {}",
        options: USUAL,
        details: &[("/tool", "clerk")],
        wait: 30 * MINUTE,
    };
    check("clerk", &clerk).await;
    let plan = Says {
        asked_by: "ada",
        question: "Follow this plan of 1 subtasks?",
        options: USUAL,
        details: &[("/goal", "plan"), ("/subtasks/0/id", "one")],
        wait: 30 * MINUTE,
    };
    check("plan", &plan).await;
}

// spec: AP-02
#[tokio::test]
async fn status_of_a_question_of_a_tool_an_agent_and_a_plan_is_a_fold_of_the_log() {
    for asker in ["send", "human_guidance", "clerk", "plan"] {
        for expected in ["approved", "rejected", "timeout", "cancelled"] {
            let place = Place::new();
            let question = place.ask(asker).await;
            assert_eq!(place.status(&question).await, "pending", "{asker}");
            let id = &question.request.request_id;
            match expected {
                "approved" => assert!(place.runs.answer(id, Answer::Approve).await.unwrap()),
                "rejected" => {
                    let no = Answer::Cancel { reason: "not now".to_owned() };
                    assert!(place.runs.answer(id, no).await.unwrap());
                }
                "timeout" => {
                    place.clock.advance(30 * MINUTE);
                    place.runs.sweep().await.unwrap().all_ok().unwrap();
                }
                _ => place.runs.cancel(&question.run, "no more").await.unwrap(),
            }
            let _ = place.runs.reply(&question.run).await;
            assert_eq!(place.status(&question).await, expected, "{asker}");
            assert!(!place.runs.answer(id, Answer::Approve).await.unwrap(), "{asker} {expected}: it is over");
        }
    }
}
