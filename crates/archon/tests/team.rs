//! Teams through the facade: from trait objects, worked, taken up; and never answered by the loop.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{Arc, Mutex};

use archon::{
    Archon, OutcomeStatus, RunError, RunId, RunOptions, Teamwork, Tool, ToolContext, ToolResult,
    orchestrator::{TeamDesk, TeamError},
    providers::ScriptedProvider,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        Agent, Answer, AskLater, BoxFuture, CallId, CancellationToken, CommandId, Context, Decision,
        DynApprover, FnApprover, Journal, Json, Member, Message, Outcome, PlanError, Planner,
        PlanningContext, RecordBody, RunFilter, SubTask, SubTaskRules, Task, TaskId, TeamRole,
        ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

#[path = "../examples/research_and_write.rs"]
mod research_and_write;

// spec: A-14, A-16, A-17, A-18, A-21
#[tokio::test]
async fn team_guide_matches_the_example() {
    let story = research_and_write::story().await.unwrap();
    let guide = include_str!("../../../docs/teams.md");
    assert!(guide.contains(&format!("```text\n{story}```\n")), "docs/teams.md does not show this:\n{story}");
}

/// A planner of somebody else's.
struct Steps;

impl Planner for Steps {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let step = |id: &str, what: &str, role: &str| {
            let mut rules = SubTaskRules::default();
            rules.role = Some(role.to_owned());
            SubTask::new(id, what).with_rules(rules)
        };
        let steps =
            vec![step("find", "Find out", "researcher"), step("write", "Write it", "writer").after(["find"])];
        Ok(Task::new(TaskId::new("t"), goal).with_subtasks(steps))
    }
}

/// An agent that is no Archon.
struct Parrot;

impl Agent for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer(format!("It rises: {}", task.contains("3.7 mm a year")));
        Box::pin(std::future::ready(outcome))
    }
}

fn agent(texts: &'static [&str]) -> Archon {
    let provider = Arc::new(ScriptedProvider::texts(texts.iter().copied()));
    Archon::builder().provider(provider, "mock").agent_id("lead").build().unwrap()
}

// spec: MA-13, MA-10
#[tokio::test]
async fn a_team_is_put_together_from_trait_objects_and_this_agent_has_the_last_word() {
    let (lead, researcher) = (agent(&["The sea rises."]), agent(&["3.7 mm a year"]));
    let team = lead
        .team(Arc::new(Steps))
        .member(Member::new("ada", "researcher"), Arc::new(researcher))
        .member(Member::new("ben", "writer"), Arc::new(Parrot));
    assert_eq!(team.team().problems(), []);
    let outcome = team.run("Does the sea rise?").await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "The sea rises.")
    );
    let log = lead.journal().read(&outcome.run).await.unwrap();
    let machine = archon::orchestrator::fold(&outcome.run, &log).unwrap();
    assert_eq!(machine.board().get("write").unwrap().value, "It rises: true");
    assert_eq!(machine.board().get("write").unwrap().by.as_str(), "ben");
}

#[tokio::test]
async fn team_run_is_resumed_only_by_its_team() {
    let lead = agent(&["The sea rises."]);
    let team = lead
        .team(Arc::new(Steps))
        .member(Member::new("ada", "researcher"), Arc::new(agent(&["3.7 mm a year"])))
        .member(Member::new("ben", "writer"), Arc::new(Parrot));
    let (run, cancel) = (RunId::new("run_1"), CancellationToken::new());
    cancel.cancel();
    let mut options = RunOptions::default();
    (options.run, options.cancel) = (Some(run.clone()), Some(cancel));
    let outcome = team.run_with("Does the sea rise?", options).await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    let refused = lead.resume(run.clone()).await.unwrap().reply().await.unwrap_err();
    assert!(matches!(&refused, RunError::Unsupported { run: named, .. } if *named == run), "{refused:?}");
    let outcome = team.resume(run).await.unwrap().reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "The sea rises.")
    );
}

#[tokio::test]
async fn invalid_team_is_refused_before_the_start() {
    let lead = agent(&[]);
    let ada = Arc::new(agent(&[]));
    let team = lead
        .team(Arc::new(Steps))
        .member(Member::new("ada", "researcher"), ada.clone())
        .member(Member::new("ada", "writer"), ada);
    let error = team.run("Does the sea rise?").await.unwrap_err();
    assert!(matches!(error.cause(), Some(TeamError::Problems { .. })), "{error:?}");
    assert!(!error.advice().is_empty() && lead.newest_run(None).await.unwrap().is_none());
    assert!(matches!(team.run(" ").await.unwrap_err(), RunError::EmptyPrompt));
}

struct Asking {
    journal: InMemoryJournal,
    sent: Arc<Mutex<Vec<Json>>>,
}

impl Asking {
    /// A team in a process of its own, whose researcher sends two emails at once, each only after a person has agreed.
    fn open(&self) -> (Archon, Teamwork) {
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec = ToolSpec::new("send_email", "Sends an email.", json!({"type": "object"}));
        let sent = self.sent.clone();
        let tool: Arc<dyn Tool> = Arc::new(FnTool::new(
            spec.with_annotations(annotations),
            move |arguments: Json, _: ToolContext| {
                sent.lock().unwrap().push(arguments["to"].clone());
                async { Ok(ToolResult::success("Sent.")) }
            },
        ));
        let model = FnProvider::new(|_, request| match request.messages.iter().last().map(|last| &**last) {
            Some(Message::ToolResult(_)) => FnProvider::text("Both were asked."),
            _ => FnProvider::calls(
                ["ann", "bob"].map(|to| ToolCall::new(to, "send_email", json!({ "to": to }))).to_vec(),
            ),
        });
        let journal = Arc::new(self.journal.clone());
        let researcher =
            Archon::builder().provider(Arc::new(model), "mock").tools([tool]).approver(Arc::new(AskLater));
        let researcher = researcher.journal(journal.clone()).build().unwrap();
        let provider = Arc::new(ScriptedProvider::texts(["The sea rises."]));
        let lead = Archon::builder().provider(provider, "mock").agent_id("lead").journal(journal);
        let lead = lead.approver(Arc::new(AskLater)).build().unwrap();
        let team = lead
            .team(Arc::new(Steps))
            .member(Member::new("ada", "researcher"), Arc::new(researcher))
            .member(Member::new("ben", "writer"), Arc::new(Parrot));
        (lead, team)
    }
}

// spec: AP-05, AP-06, MA-13
#[tokio::test]
async fn team_members_question_is_listed_and_answered_from_another_process() {
    let office = Asking { journal: InMemoryJournal::new(), sent: Arc::default() };
    let (_, team) = office.open();
    let outcome = team.run("Does the sea rise?").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    // Another process lists both questions with the team's run; each answer goes to the member.
    let (archon, team) = office.open();
    let asked = archon.approvals(None).await.unwrap();
    let of: Vec<_> = asked.iter().map(|pending| (&pending.run, pending.request.call_path.len())).collect();
    assert_eq!(of, [(&outcome.run, 1), (&outcome.run, 1)]);
    assert!(
        archon.answer(&asked[1].request.request_id, Answer::Cancel { reason: "no".into() }).await.unwrap()
    );
    // One is answered: the member goes on, and asks about the other.
    let again = team.resume(outcome.run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(again.status, OutcomeStatus::Suspended);
    let left = archon.approvals(None).await.unwrap();
    assert_eq!((left.len(), &left[0].request.request_id), (1, &asked[0].request.request_id));
    let log = archon.journal().read(&outcome.run).await.unwrap();
    assert_eq!(archon::types::pending_approvals(&log).len(), 1, "what is answered is not open");
    // And the other one through the team itself.
    let (_, team) = office.open();
    let done = team.answer(outcome.run, left[0].call, Answer::Approve).await.unwrap().reply().await.ended();
    assert_eq!(
        (done.status, done.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "The sea rises.")
    );
    assert_eq!(*office.sent.lock().unwrap(), [json!("ann")]);
}

// spec: AP-15, ER-16
#[tokio::test]
async fn a_team_asks_people_only_where_the_agent_that_leads_it_may() {
    for (may_ask, expected) in [(true, OutcomeStatus::Suspended), (false, OutcomeStatus::Failed)] {
        let provider = || Arc::new(ScriptedProvider::texts(Vec::<&str>::new()));
        let mut lead = Archon::builder().provider(provider(), "mock").agent_id("lead");
        if may_ask {
            lead = lead.approver(Arc::new(AskLater));
        }
        let lead = lead.build().unwrap();
        let mut options = lead.team_options();
        options.settings.error_budget = Some(1);
        // Ada has nothing to say, and fails.
        let ada = Archon::builder().provider(provider(), "mock").build().unwrap();
        let team = lead
            .team_with(Arc::new(Steps), options)
            .member(Member::new("ada", "researcher"), Arc::new(ada))
            .member(Member::new("ben", "writer"), Arc::new(Parrot));
        assert_eq!(team.run("Does the sea rise?").await.ended().status, expected);
    }
}

/// A plan of one step, for a writer.
struct OneStep;

impl Planner for OneStep {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let mut rules = SubTaskRules::default();
        rules.role = Some("writer".to_owned());
        let step = SubTask::new("write", "Write it").with_rules(rules);
        Ok(Task::new(TaskId::new("t"), goal).with_subtasks(vec![step]))
    }
}

/// A team in a process of its own: a writer asks a helper by `ask_member`, and the helper sends two emails, each only after
/// a person has agreed.
struct Helped {
    journal: InMemoryJournal,
    sent: Arc<Mutex<Vec<Json>>>,
    /// Requests to the model of the writer.
    asked: Arc<Mutex<usize>>,
}

impl Helped {
    fn new() -> Self {
        Self { journal: InMemoryJournal::new(), sent: Arc::default(), asked: Arc::default() }
    }

    fn email(&self) -> Arc<dyn Tool> {
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec = ToolSpec::new("send_email", "Sends an email.", json!({"type": "object"}));
        let sent = self.sent.clone();
        let send = move |arguments: Json, _: ToolContext| {
            sent.lock().unwrap().push(arguments["to"].clone());
            async { Ok(ToolResult::success("Sent.")) }
        };
        Arc::new(FnTool::new(spec.with_annotations(annotations), send))
    }

    fn open(&self, approver: Arc<dyn DynApprover>) -> (Archon, Teamwork) {
        let desk = TeamDesk::new();
        let asked = self.asked.clone();
        let writer = FnProvider::new(move |_, request| {
            *asked.lock().unwrap() += 1;
            match request.messages.iter().last().map(|last| &**last) {
                Some(last @ Message::ToolResult(_)) => {
                    FnProvider::text(&format!("They say: {}", last.text()))
                }
                _ => {
                    let what = json!({ "to": "helper", "task": "Write to ann and bob" });
                    FnProvider::calls(vec![ToolCall::new("c", "ask_member", what)])
                }
            }
        });
        let ada = Arc::new(self.agent(writer, desk.tools(), &approver));
        self.team(desk, ada, approver)
    }

    fn agent(&self, model: FnProvider, tools: Vec<Arc<dyn Tool>>, approver: &Arc<dyn DynApprover>) -> Archon {
        let agent = Archon::builder().provider(Arc::new(model), "mock").tools(tools);
        agent.approver(approver.clone()).journal(Arc::new(self.journal.clone())).build().unwrap()
    }

    /// The team of a writer and the helper.
    fn team(
        &self,
        desk: TeamDesk,
        ada: Arc<dyn Agent>,
        approver: Arc<dyn DynApprover>,
    ) -> (Archon, Teamwork) {
        let helper = FnProvider::new(|_, request| {
            let results = request.messages.iter().filter(|m| matches!(&***m, Message::ToolResult(_)));
            let results: Vec<String> = results.map(|result| result.text()).collect();
            match results.is_empty() {
                true => FnProvider::calls(
                    ["ann", "bob"].map(|to| ToolCall::new(to, "send_email", json!({ "to": to }))).to_vec(),
                ),
                false => {
                    FnProvider::text(&format!("{} sent.", results.iter().filter(|r| *r == "Sent.").count()))
                }
            }
        });
        let (journal, ben) =
            (Arc::new(self.journal.clone()), self.agent(helper, vec![self.email()], &approver));
        let lead = Archon::builder().provider(Arc::new(ScriptedProvider::texts(["It is done."])), "mock");
        let lead = lead.agent_id("lead").journal(journal.clone()).approver(approver.clone()).build().unwrap();
        let mut options = lead.team_options();
        options.roles = vec![TeamRole::new("writer", ""), TeamRole::new("helper", "")];
        options.limits.max_depth = 2;
        let team = lead.team_with(OneStep, options);
        let team = team.member(Member::new("ada", "writer"), ada);
        let team = team.member(Member::new("ben", "helper"), Arc::new(ben));
        (lead, team.with(|team| team.with_desk(desk)))
    }

    /// The same, where the writer follows a plan: it asks the helper, and beside that looks until a person is
    /// asked.
    fn open_planned(&self, looked: &Arc<Mutex<u32>>) -> (Archon, Teamwork) {
        let (desk, journal, looked) = (TeamDesk::new(), self.journal.clone(), looked.clone());
        let look = FnTool::new(
            ToolSpec::new("look", "Looks.", json!({"type": "object"})),
            move |_: Json, _: ToolContext| {
                let (journal, looked) = (journal.clone(), looked.clone());
                async move {
                    while !is_asked(&journal).await {
                        tokio::task::yield_now().await;
                    }
                    *looked.lock().unwrap() += 1;
                    Ok(ToolResult::success("It is there."))
                }
            },
        );
        let approver: Arc<dyn DynApprover> = Arc::new(AskLater);
        let tools = desk.tools().into_iter().chain([Arc::new(look) as Arc<dyn Tool>]).collect();
        let model = FnProvider::new(|_, _| FnProvider::text("All is known."));
        let ada = self.agent(model, tools, &approver).planning(AskAndLook).agent().clone();
        self.team(desk, Arc::new(ada), approver)
    }

    /// What the writer's model read as the result of its call.
    async fn results(&self, run: &RunId) -> Vec<String> {
        let log = self.journal.read(&run.of_call(CallId::new(CommandId(1), 0))).await.unwrap();
        let results = log.iter().filter_map(|record| match &record.body {
            RecordBody::ToolCallFinished { result, .. } => Some(result.text()),
            _ => None,
        });
        results.collect()
    }
}

/// A plan of two steps that do not wait for each other.
struct AskAndLook;

impl Planner for AskAndLook {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let what = json!({ "to": "helper", "task": "Write to ann and bob" });
        let steps = vec![
            SubTask::new("ask", "Ask").with_tool("ask_member", Some(what)),
            SubTask::new("look", "Look").with_tool("look", Some(json!({}))),
        ];
        Ok(Task::new(TaskId::new("t"), goal).with_subtasks(steps))
    }
}

/// Returns true if a run was told that one below it asks a person.
async fn is_asked(journal: &InMemoryJournal) -> bool {
    for head in journal.list(&RunFilter::all()).await.unwrap() {
        let asked = archon::types::pending_approvals(&journal.read(&head.run_id).await.unwrap());
        if asked.iter().any(|pending| !pending.request.call_path.is_empty()) {
            return true;
        }
    }
    false
}

// spec: MA-15, PL-11
#[tokio::test]
async fn plan_with_a_waiting_member_suspends_after_its_other_steps() {
    let (office, looked) = (Helped::new(), Arc::default());
    let outcome = office.open_planned(&looked).1.run("Tell them").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    assert_eq!(*looked.lock().unwrap(), 1, "nothing of the plan was cut off");
    assert_eq!(office.results(&outcome.run).await, ["It is there."]);
    let (archon, team) = office.open_planned(&looked);
    for asked in archon.approvals(None).await.unwrap() {
        assert!(archon.answer(&asked.request.request_id, Answer::Approve).await.unwrap());
    }
    let done = team.resume(outcome.run.clone()).await.unwrap().reply().await.ended();
    assert_eq!((done.status, done.last_text()), (OutcomeStatus::Finished, Some("It is done.")), "{done:?}");
    assert_eq!(office.results(&outcome.run).await, ["It is there.", "2 sent."]);
    assert_eq!(
        (*looked.lock().unwrap(), office.sent.lock().unwrap().len()),
        (1, 2),
        "and nothing done twice"
    );
}

// spec: MA-15, AP-05
#[tokio::test]
async fn team_helpers_approval_is_requested_and_its_asker_gets_the_result() {
    let office = Helped::new();
    // A person who is there.
    let agrees = FnApprover::new(|_| async { Decision::Now(Answer::Approve) });
    let outcome = office.open(Arc::new(agrees)).1.run("Tell them").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    assert_eq!(office.results(&outcome.run).await, ["2 sent."]);

    // Nobody is there: both questions wait with the team, and the team rests.
    let office = Helped::new();
    let outcome = office.open(Arc::new(AskLater)).1.run("Tell them").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended, "{outcome:?}");
    let (archon, _) = office.open(Arc::new(AskLater));
    let asked = archon.approvals(None).await.unwrap();
    let of: Vec<_> = asked.iter().map(|pending| (&pending.run, pending.request.call_path.len())).collect();
    assert_eq!(of, [(&outcome.run, 1), (&outcome.run, 1)]);
    assert!(office.results(&outcome.run).await.is_empty(), "the wait has not ended");
    let log = archon.journal().read(&outcome.run).await.unwrap();
    let used = log.iter().filter_map(|record| match &record.body {
        RecordBody::LeaseSettled { call, spent, .. } => Some((call.command.0, spent.tokens > 0)),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [(2, true), (1, true)], "the helper's, and the asker's");
    let no = Answer::Cancel { reason: "no".into() };
    assert!(archon.answer(&asked[0].request.request_id, Answer::Approve).await.unwrap());
    assert!(archon.answer(&asked[1].request.request_id, no).await.unwrap());
    // Another process goes on with the helper, and then with its asker.
    let (_, team) = office.open(Arc::new(AskLater));
    let done = team.resume(outcome.run.clone()).await.unwrap().reply().await.ended();
    assert_eq!((done.status, done.last_text()), (OutcomeStatus::Finished, Some("It is done.")), "{done:?}");
    assert_eq!(*office.sent.lock().unwrap(), [json!("ann")]);
    assert_eq!(office.results(&outcome.run).await, ["1 sent."]);
    assert_eq!(*office.asked.lock().unwrap(), 2, "its model was asked nothing again");
}
