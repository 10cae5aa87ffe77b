//! What a plan, its tools and the runs of its subtasks ask a person: it is listed with the rest, answered from any process,
//! and a yes holds for exactly what was asked.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, OutcomeStatus, Planning,
    store::InMemoryJournal,
    tools::builtin::HumanGuidance,
    types::{
        Answer, ApprovalRequest, Approver, Confirm, Decision, DynApprover, InboxEntry, InboxRequest, Journal,
        Message, PendingApproval, Request, RunId, SubTask, SubTaskRules, Task, Timestamp, ToolCall,
    },
};
use archon_planner::{PlanRunError, ScriptedPlanner};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use futures_util::FutureExt as _;
use serde_json::json;

use crate::{
    approvals::asked_at_once::{Done, Person, kept, now},
    approvals::kept::asking_before_changes,
};

struct Office {
    journal: InMemoryJournal,
    clock: VirtualClock,
    done: Done,
    /// What the person says at once; nothing by default.
    says: Vec<Answer>,
    confirm: Confirm,
    /// Of the tool.
    version: &'static str,
    /// Whether the tool itself says that a person has to agree.
    asks_itself: bool,
    /// To whom the model of a subtask's run writes, in one turn.
    writes_to: &'static [&'static str],
    /// What happens when that is done.
    then: Arc<dyn Fn() + Send + Sync>,
    /// Somebody is there and never says anything.
    is_silent: bool,
}

/// Looks at a question for ever.
struct Silent;

impl Approver for Silent {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        std::future::pending().await
    }
}

impl Default for Office {
    fn default() -> Self {
        Self {
            journal: InMemoryJournal::new(),
            clock: VirtualClock::new(),
            done: Done::default(),
            says: Vec::new(),
            confirm: Confirm::default(),
            version: "1",
            asks_itself: true,
            writes_to: &["Ann"],
            then: Arc::new(|| {}),
            is_silent: false,
        }
    }
}

impl Office {
    /// The agent in a new process.
    fn open(&self, seed: u16, subtasks: Vec<SubTask>) -> (Archon, Planning) {
        let (writes_to, then) = (self.writes_to, self.then.clone());
        let letter =
            |(n, to): (usize, &&str)| ToolCall::new(format!("c{n}"), "send_email", json!({ "to": to }));
        let model = move |_: usize, request: &Request| match &**request.messages.last().unwrap() {
            Message::ToolResult(_) => {
                then();
                FnProvider::text("It is written.")
            }
            _ => FnProvider::calls(writes_to.iter().enumerate().map(letter).collect()),
        };
        let person: Arc<dyn DynApprover> = match self.is_silent {
            true => Arc::new(Silent),
            false => Arc::new(Person::saying(self.says.iter().cloned().map(now))),
        };
        let archon = Archon::builder()
            .provider(Arc::new(FnProvider::new(model)), "scripted")
            .tool(kept(self.asks_itself, "send_email", self.version, &self.done))
            .tool(HumanGuidance::new())
            .engine_options(asking_before_changes())
            .journal(Arc::new(self.journal.clone()))
            .clock(Arc::new(self.clock.clone()))
            .ids(Arc::new(SeededIds::new(seed)))
            .approver(person)
            .name("clerk")
            .build()
            .unwrap();
        let mut options = archon.planning_options();
        options.settings.confirm = self.confirm;
        let planning = archon.planning_with(Arc::new(ScriptedPlanner::new(subtasks)), options);
        (archon, planning)
    }

    fn did(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

fn letter(to: &str) -> SubTask {
    SubTask::new("letter", "Write the letter").with_tool("send_email", Some(json!({ "to": to })))
}

async fn only_question(archon: &Archon) -> PendingApproval {
    let mut open = archon.approvals(None).await.unwrap();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!(open[0].request.agent_name, "clerk", "whoever asks says its name");
    open.remove(0)
}

// spec: AP-04, AP-06, PL-24
#[tokio::test]
async fn approval_of_a_plan_tool_is_used_once_in_any_process() {
    let office = Office::default();
    let (_, planning) = office.open(1, vec![letter("Ann")]);
    let outcome = planning.run("Write to Ann").await.ended();
    assert_eq!((outcome.status, office.did().len()), (OutcomeStatus::Suspended, 0));

    let (archon, planning) = office.open(2, vec![]);
    let open = only_question(&archon).await;
    assert!(open.request.action_summary.contains("send_email"), "{open:?}");
    assert!(!open.request.binding.is_empty(), "a yes is to exactly this call");
    assert!(archon.answer_pending(&open, Answer::Approve).await.unwrap());
    assert!(archon.approvals(None).await.unwrap().is_empty());
    let outcome = planning.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!((outcome.status, office.did()), (OutcomeStatus::Finished, vec!["send_email Ann".to_owned()]));
}

// spec: AP-06, MA-31
#[tokio::test]
async fn subtasks_question_surfaces_at_the_plan_and_is_answered() {
    for through_the_plan in [false, true] {
        let office = Office::default();
        let subtasks =
            vec![SubTask::new("letter", "Write to Ann"), SubTask::new("file", "File it").after(["letter"])];
        let (_, planning) = office.open(1, subtasks);
        let outcome = planning.run("Write to Ann").await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Suspended);

        let (archon, planning) = office.open(2, vec![]);
        let open = only_question(&archon).await;
        assert_eq!(open.request.action_summary, r#"Run send_email with {"to":"Ann"}"#);
        assert_eq!((&open.run, open.request.call_path.len()), (&outcome.run, 1));
        let handle = match through_the_plan {
            true => planning.answer(outcome.run.clone(), open.call, Answer::Approve).await.unwrap(),
            false => {
                assert!(archon.answer_pending(&open, Answer::Approve).await.unwrap());
                planning.resume(outcome.run.clone()).await.unwrap()
            }
        };
        // The next subtask asks in its turn.
        assert_eq!(handle.reply().await.ended().status, OutcomeStatus::Suspended);
        assert_eq!(office.did(), ["send_email Ann"]);
        let second = only_question(&archon).await;
        assert_ne!(second.asker(), open.asker());
        assert!(archon.answer_pending(&second, Answer::Cancel { reason: "enough".into() }).await.unwrap());
        planning.resume(outcome.run).await.unwrap().reply().await.ended();
        assert_eq!(office.did(), ["send_email Ann"], "what was refused was not done");
    }
}

#[tokio::test]
async fn plan_approver_present_is_asked_at_once() {
    for (says, done) in [
        (vec![Answer::Approve, Answer::Approve], vec!["send_email Ann", "send_email Bob"]),
        (vec![Answer::Trust { rules: vec!["send_email".into()] }], vec!["send_email Ann"]),
        (vec![Answer::Cancel { reason: "no".into() }], vec![]),
    ] {
        let office = Office { says, ..Office::default() };
        let mut second = letter("Bob").after(["letter"]);
        second.id = "second".into();
        let (archon, planning) = office.open(1, vec![letter("Ann"), second]);
        let outcome = planning.run("Write to both").await.ended();
        assert_eq!(outcome.is_finished(), done.len() == 2, "{outcome:?}");
        assert_eq!(office.did(), done);
        // A tool that says itself that a person has to agree is asked about however trusted it is, and another plan
        // that wants the same asks anew.
        assert_eq!(archon.approvals(None).await.unwrap().len(), usize::from(done.len() < 2));
    }
}

// spec: AP-11
#[tokio::test]
async fn a_tool_that_is_trusted_is_not_asked_about_again_in_any_process() {
    let office = Office {
        asks_itself: false,
        says: vec![Answer::Trust { rules: vec!["send_email".into()] }],
        ..Office::default()
    };
    let gated = |id: &str, after: &str| {
        let mut rules = SubTaskRules::default();
        rules.gate = Some("Another one?".into());
        let mut step = letter(id).after([after]).with_rules(rules);
        step.id = id.into();
        step
    };
    let (archon, planning) = office.open(1, vec![letter("Ann"), gated("Bob", "letter")]);
    let outcome = planning.run("Write to both").await.ended();
    assert_eq!((outcome.status, office.did()), (OutcomeStatus::Suspended, vec!["send_email Ann".to_owned()]));
    let gate = only_question(&archon).await;
    assert_eq!(gate.request.action_summary, "Another one?");
    let (archon, planning) = Office { says: vec![], ..office }.open(2, vec![]);
    assert!(archon.answer_pending(&gate, Answer::Approve).await.unwrap());
    let outcome = planning.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
}

async fn edited(archon: &Archon, open: &PendingApproval, to: &str) {
    let mut task: Task = serde_json::from_value(open.request.details.clone()).unwrap();
    task.subtasks = vec![letter(to)];
    let arguments = serde_json::to_value(&task).unwrap();
    assert!(archon.answer_pending(open, Answer::Edit { arguments }).await.unwrap());
}

// spec: AP-05, PL-24
#[tokio::test]
async fn a_plan_is_answered_from_the_list_of_questions_and_a_bad_edit_leaves_it_open() {
    let office = Office { confirm: Confirm::First, ..Office::default() };
    let (archon, planning) = office.open(1, vec![letter("Ann")]);
    let run = planning.run("Write to somebody").await.ended().run;
    let open = only_question(&archon).await;
    assert!(archon.answer_pending(&open, Answer::Edit { arguments: json!({"subtasks": 7}) }).await.unwrap());
    let outcome = planning.resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "nothing is lost by it");
    let open = only_question(&archon).await;
    assert!(open.request.action_summary.starts_with("The last answer cannot be taken: "), "{open:?}");

    edited(&archon, &open, "Bob").await;
    let outcome = planning.resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "now the letter itself asks");
    let open = only_question(&archon).await;
    assert!(open.request.action_summary.contains("Bob"), "{open:?}");
    assert!(archon.answer_pending(&open, Answer::Approve).await.unwrap());
    let outcome = planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!((outcome.status, office.did()), (OutcomeStatus::Finished, vec!["send_email Bob".to_owned()]));
}

// spec: AP-03
#[tokio::test]
async fn plan_question_that_expires_is_denied() {
    let office = Office { confirm: Confirm::First, ..Office::default() };
    let (archon, planning) = office.open(1, vec![letter("Ann")]);
    let outcome = planning.run("Write to Ann").await.ended();
    let open = only_question(&archon).await;
    office.clock.advance(Duration::from_secs(30 * 60 - 1));
    assert_eq!(archon.approvals(None).await.unwrap().len(), 1);
    office.clock.advance(Duration::from_secs(1));
    assert!(archon.approvals(None).await.unwrap().is_empty());
    assert!(!archon.answer_pending(&open, Answer::Approve).await.unwrap());
    let late = planning.answer(outcome.run.clone(), open.call, Answer::Approve).await.unwrap().reply().await;
    let late = late.unwrap_err();
    assert!(matches!(late.cause(), Some(PlanRunError::Expired { .. })), "{late:?}");
    let outcome = planning.resume(outcome.run).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert!(outcome.error.unwrap().contains("nobody answered in time"));
    assert!(office.did().is_empty());
}

// spec: AP-05
#[tokio::test]
async fn a_yes_does_not_hold_for_a_tool_that_has_changed() {
    let mut office = Office::default();
    let (archon, planning) = office.open(1, vec![letter("Ann")]);
    let run = planning.run("Write to Ann").await.ended().run;
    let open = only_question(&archon).await;
    assert!(archon.answer_pending(&open, Answer::Approve).await.unwrap());
    office.version = "2";
    let (archon, planning) = office.open(2, vec![]);
    let outcome = planning.resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!((outcome.status, office.did().len()), (OutcomeStatus::Suspended, 0));
    let again = only_question(&archon).await;
    assert_ne!(again.request.binding, open.request.binding);
    assert!(archon.answer_pending(&again, Answer::Approve).await.unwrap());
    planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!(office.did(), ["send_email Ann"]);
}

// spec: AP-03, AP-07
#[tokio::test]
async fn plan_approval_time_is_not_counted_and_ends_at_the_expiry() {
    // Ten minutes are all that the run itself may take.
    let office = Office { clock: VirtualClock::jumping(), is_silent: true, ..Office::default() };
    let (_, planning) = office.open(1, vec![letter("Ann")]);
    let outcome = planning.run("Write to Ann").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Failed, "{outcome:?}");
    let error = outcome.error.unwrap();
    assert!(error.contains("nobody answered in time"), "{error}");
}

// spec: AP-08
#[tokio::test]
async fn reply_to_a_plan_step_is_its_result() {
    let office = Office { says: vec![Answer::Reply { text: "Tuesday".into() }], ..Office::default() };
    let ask =
        SubTask::new("when", "Ask when").with_tool("human_guidance", Some(json!({"question": "When?"})));
    let (_, planning) = office.open(1, vec![ask]);
    let outcome = planning.run("Ask").await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "Tuesday"),
        "{outcome:?}"
    );
}

// spec: AP-05
#[tokio::test]
async fn arguments_that_a_person_changed_are_those_of_the_call() {
    let edit = || Answer::Edit { arguments: json!({"to": "Bob"}) };
    let at_once = Office { says: vec![edit()], ..Office::default() };
    let (_, planning) = at_once.open(1, vec![letter("Ann")]);
    let outcome = planning.run("Write").await.ended();
    assert_eq!((outcome.status, at_once.did()), (OutcomeStatus::Finished, vec!["send_email Bob".to_owned()]));
    assert!(
        outcome.last_text().unwrap_or_default().contains("A person changed the arguments"),
        "{outcome:?}"
    );

    let later = Office::default();
    let (archon, planning) = later.open(1, vec![letter("Ann")]);
    let run = planning.run("Write").await.ended().run;
    assert!(archon.answer_pending(&only_question(&archon).await, edit()).await.unwrap());
    let outcome = planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!((outcome.status, later.did()), (OutcomeStatus::Finished, vec!["send_email Bob".to_owned()]));
}

fn post(office: &Office, run: &RunId, id: &str, at: Timestamp, request: InboxRequest) {
    let inbox = office.journal.inbox().unwrap();
    inbox.post(run, InboxEntry::new(id, at, request)).now_or_never().unwrap().unwrap();
}

// spec: PL-23, AP-06
#[tokio::test]
async fn plan_question_is_repeated_after_a_cancel_and_a_message_applied_once() {
    for confirm in [Confirm::First, Confirm::Never] {
        let office = Office { confirm, ..Office::default() };
        let (archon, planning) = office.open(1, vec![letter("Ann")]);
        let run = planning.run("Write to Ann").await.ended().run;
        let cancel = || InboxRequest::Cancel { reason: "not now".into() };
        post(&office, &run, "in_1", Timestamp::default(), cancel());
        let outcome = planning.resume(run.clone()).await.unwrap().reply().await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Cancelled);
        assert!(archon.approvals(None).await.unwrap().is_empty());
        // As if it could not be removed when it was heard.
        post(&office, &run, "in_1", Timestamp::default(), cancel());
        let outcome = planning.resume(run.clone()).await.unwrap().reply().await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
        assert!(archon.answer_pending(&only_question(&archon).await, Answer::Approve).await.unwrap());
    }
}

// spec: AP-03
#[tokio::test]
async fn answer_posted_before_the_expiry_counts_when_read_later() {
    let office = Office { confirm: Confirm::First, says: vec![Answer::Approve], ..Office::default() };
    let (archon, planning) = office.open(1, vec![letter("Ann")]);
    let run = planning.run("Write to Ann").await.ended().run;
    assert!(archon.answer_pending(&only_question(&archon).await, Answer::Approve).await.unwrap());
    office.clock.advance(Duration::from_secs(60 * 60));
    let outcome = planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!((outcome.status, office.did().len()), (OutcomeStatus::Finished, 1), "{outcome:?}");
}

// spec: AP-05, MA-31
#[tokio::test]
async fn of_several_questions_about_one_step_each_has_its_own_answer() {
    let office = Office { writes_to: &["Ann", "Bob"], ..Office::default() };
    let (_, planning) = office.open(1, vec![SubTask::new("letters", "Write to both")]);
    let run = planning.run("Write").await.ended().run;
    let (archon, planning) = office.open(2, vec![]);
    let open = archon.approvals(None).await.unwrap();
    assert_eq!((open.len(), open[0].call), (2, open[1].call));
    let either = planning.answer(run.clone(), open[0].call, Answer::Approve).await.unwrap().reply().await;
    let either = either.unwrap_err();
    assert!(matches!(either.cause(), Some(PlanRunError::SeveralQuestions { .. })), "{either:?}");
    let bob = open.iter().find(|open| open.request.action_summary.contains("Bob")).unwrap();
    let id = bob.request.request_id.as_str();
    let handle = planning.answer_question(run.clone(), id, Answer::Approve).await.unwrap();
    assert_eq!(handle.reply().await.ended().status, OutcomeStatus::Suspended);
    assert_eq!(office.did(), ["send_email Bob"]);
    let again = planning.answer_question(run, id, Answer::Approve).await.unwrap().reply().await;
    let again = again.unwrap_err();
    assert!(matches!(again.cause(), Some(PlanRunError::NoSuchQuestion { .. })), "{again:?}");
}

// spec: AP-06, MA-31
#[tokio::test]
async fn answer_to_a_child_run_reaches_a_working_plan_without_resume() {
    let office = Office::default();
    let steps = vec![SubTask::new("one", "Write to Ann"), SubTask::new("two", "Write to Ann, too")];
    let (archon, planning) = office.open(1, steps);
    let run = planning.run("Write").await.ended().run;
    let open = archon.approvals(None).await.unwrap();
    assert_eq!(open.len(), 2);
    assert!(archon.answer_pending(&open[1], Answer::Approve).await.unwrap());
    // The other answer comes when the second letter is out, and the plan has looked at the first, too.
    let (journal, asker, question) =
        (office.journal.clone(), open[0].asker().clone(), open[0].request.clone());
    let then = Arc::new(move || {
        let request = question.answered(Answer::Approve);
        let entry = InboxEntry::new("in_late", Timestamp::default(), request);
        journal.inbox().unwrap().post(&asker, entry).now_or_never().unwrap().unwrap();
    });
    let (_, planning) = Office { then, done: office.done.clone(), ..office }.open(2, vec![]);
    let outcome = planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
}

// spec: AP-11, MA-31
#[tokio::test]
async fn trust_answer_of_a_plan_applies_to_its_subtasks() {
    let says = vec![Answer::Trust { rules: vec!["send_email".into()] }];
    let office = Office { asks_itself: false, says, ..Office::default() };
    let by_agent = SubTask::new("second", "Write to Ann again").after(["letter"]);
    let (_, planning) = office.open(1, vec![letter("Ann"), by_agent]);
    let outcome = planning.run("Write").await.ended();
    assert_eq!((outcome.status, office.did().len()), (OutcomeStatus::Finished, 2), "{outcome:?}");
}
