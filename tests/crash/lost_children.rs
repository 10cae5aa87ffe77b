//! Runs that a loop, a plan, a team or an agent with fields called, and whose logs are lost: what they did is unknown, and
//! they are not begun again without a person's yes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, Outcome, OutcomeStatus, RunId, RunOptions, SubAgentTool, Teamwork,
    store::InMemoryJournal,
    types::{
        Answer, AskLater, Durability, DynApprover, Journal, Member, Message, OpenMode, PendingApproval,
        QuestionKind, Record, RecordBody, SubTask, SubTaskRules, TeamRole, ToolCall, pending_approvals,
    },
};
use archon_assistant::AgentTool;
use archon_planner::ScriptedPlanner;
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Caller {
    Loop,
    Fields,
    Plan,
    Team,
}

/// A process: agents over a journal, and how often the one that is called was asked to work.
struct Process {
    boss: Archon,
    team: Teamwork,
    planning: archon::Planning,
    worked: Arc<AtomicUsize>,
}

fn steps() -> Vec<SubTask> {
    let mut rules = SubTaskRules::default();
    rules.role = Some("worker".to_owned());
    vec![SubTask::new("pay", "Pay Ann").with_rules(rules)]
}

fn process(caller: Caller, journal: &InMemoryJournal, approver: Option<Arc<dyn DynApprover>>) -> Process {
    let worked = Arc::new(AtomicUsize::new(0));
    let count = worked.clone();
    let model = FnProvider::new(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        FnProvider::text("Paid.")
    });
    let worker = Archon::builder().provider(Arc::new(model), "small").journal(Arc::new(journal.clone()));
    let worker = worker.build().unwrap();
    let model = FnProvider::new(|_, request| {
        let has_result = request.messages.iter().any(|m| matches!(&**m, Message::ToolResult(_)));
        match request.tools.first() {
            Some(tool) if !has_result => {
                let arguments = json!({ "task": "Pay Ann", "task_instruction": "Pay Ann" });
                FnProvider::calls(vec![ToolCall::new("c", tool.name.as_str(), arguments)])
            }
            _ => FnProvider::text("It is done."),
        }
    });
    let mut boss = Archon::builder().provider(Arc::new(model), "large").journal(Arc::new(journal.clone()));
    boss = match caller {
        Caller::Loop => boss.tool(SubAgentTool::new("payer", worker.clone())),
        Caller::Fields => boss.tool(AgentTool::new("payer", "Pays.", Arc::new(worker.clone()))),
        Caller::Plan | Caller::Team => boss,
    };
    if let Some(approver) = approver {
        boss = boss.approver(approver);
    }
    let boss = boss.build().unwrap();
    let planner = || Arc::new(ScriptedPlanner::new(steps()));
    // The subtasks of a plan are runs of the agent that plans.
    let planning = match caller {
        Caller::Plan => worker.planning(planner()),
        _ => boss.planning(planner()),
    };
    let mut options = boss.team_options();
    options.roles = vec![TeamRole::new("worker", "")];
    let team = boss.team_with(planner(), options).member(Member::new("ada", "worker"), Arc::new(worker));
    Process { boss, team, planning, worked }
}

impl Process {
    async fn run(&self, caller: Caller) -> Outcome {
        let mut options = RunOptions::default();
        options.run = Some(RunId::new("run"));
        match caller {
            Caller::Loop | Caller::Fields => self.boss.run_with("Pay Ann", options).await.ended(),
            Caller::Plan => self.planning.run_with("Pay Ann", options).await.ended(),
            Caller::Team => self.team.run_with("Pay Ann", options).await.ended(),
        }
    }

    async fn resume(&self, caller: Caller) -> Outcome {
        let run = RunId::new("run");
        let handle = match caller {
            Caller::Loop | Caller::Fields => self.boss.resume(run).await,
            Caller::Plan => self.planning.resume(run).await,
            Caller::Team => self.team.resume(run).await,
        };
        handle.unwrap().reply().await.ended()
    }

    async fn answer(&self, caller: Caller, open: &PendingApproval, answer: Answer) -> Outcome {
        let run = RunId::new("run");
        let handle = match caller {
            Caller::Loop | Caller::Fields => {
                assert!(self.boss.answer(&open.request.request_id, answer).await.unwrap());
                self.boss.resume(run).await
            }
            Caller::Plan => self.planning.answer(run, open.call, answer).await,
            Caller::Team => self.team.answer(run, open.call, answer).await,
        };
        handle.unwrap().reply().await.ended()
    }

    fn worked(&self) -> usize {
        self.worked.load(Ordering::Relaxed)
    }
}

/// Up to which record the caller's log came before its process died.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// The call is started, and its run has no log yet.
    Started,
    /// The run had its log.
    Begun,
}

/// What a process left that died while a call ran, without the log of the run that worked.
async fn left(caller: Caller, cut: Cut) -> InMemoryJournal {
    let whole = InMemoryJournal::new();
    let outcome = process(caller, &whole, None).run(caller).await;
    assert!(outcome.is_finished(), "{caller:?}: {outcome:?}");
    let journal = InMemoryJournal::new();
    let runs: &[&str] = if caller == Caller::Fields { &["run", "run.0-0"] } else { &["run"] };
    for run in runs {
        let records = whole.read(&RunId::new(*run)).await.unwrap();
        let is_deepest = runs.last() == Some(run);
        let is_end = |record: &Arc<Record>| match cut {
            Cut::Started if is_deepest => matches!(record.body, RecordBody::ToolCallStarted { .. }),
            _ => matches!(record.body, RecordBody::ChildRunCreated { .. }),
        };
        let end = records.iter().position(is_end).unwrap_or_else(|| panic!("{caller:?}: {records:?}"));
        let mut open = journal.open(&RunId::new(*run), OpenMode::Create).await.unwrap();
        open.writer.append(&records[..=end], Durability::Synced).await.unwrap();
    }
    journal
}

async fn open(journal: &InMemoryJournal) -> Vec<PendingApproval> {
    pending_approvals(&journal.read(&RunId::new("run")).await.unwrap())
}

#[tokio::test]
async fn resume_of_a_caller_whose_call_had_no_log_yet_begins_the_call() {
    for caller in [Caller::Loop, Caller::Fields, Caller::Plan, Caller::Team] {
        let journal = left(caller, Cut::Started).await;
        let process = process(caller, &journal, None);
        let outcome = process.resume(caller).await;
        assert!(outcome.is_finished(), "{caller:?}: {outcome:?}");
        assert_eq!(process.worked(), 1, "{caller:?}");
    }
}

/// A process in which nobody can be asked takes the caller up.
async fn resume_alone(caller: Caller) {
    let journal = left(caller, Cut::Begun).await;
    let process = process(caller, &journal, None);
    let outcome = process.resume(caller).await;
    assert_eq!(process.worked(), 0, "{caller:?}: {outcome:?}");
    let log = journal.read(&RunId::new("run")).await.unwrap();
    let said = match caller {
        Caller::Loop | Caller::Fields => {
            assert!(outcome.is_finished(), "the model knows of it: {outcome:?}");
            let result = log.iter().find_map(|record| match &record.body {
                RecordBody::ToolCallFinished { result, .. } => Some(result.text()),
                _ => None,
            });
            result.unwrap()
        }
        Caller::Plan => {
            assert_eq!(outcome.status, OutcomeStatus::Suspended);
            open(&journal).await[0].request.action_summary.clone()
        }
        Caller::Team => {
            assert_eq!(outcome.status, OutcomeStatus::Failed, "{outcome:?}");
            outcome.error.unwrap()
        }
    };
    let doubt = ["effect of this call is unknown", "may have done its work", "nobody knows"];
    assert!(doubt.iter().any(|words| said.contains(words)), "{caller:?}: {said}");
}

/// A process takes the caller up whose questions wait.
async fn resume_asking(caller: Caller) {
    for (answer, worked) in [
        (Answer::Approve, 1),
        (Answer::Cancel { reason: "no".into() }, 0),
        (Answer::Reply { text: "The bank has it.".into() }, 0),
    ] {
        let at = format!("{caller:?}, {answer:?}");
        let journal = left(caller, Cut::Begun).await;
        let process = process(caller, &journal, Some(Arc::new(AskLater)));
        let outcome = process.resume(caller).await;
        assert_eq!(outcome.status, OutcomeStatus::Suspended, "{at}: {outcome:?}");
        let asked = open(&journal).await;
        assert_eq!((asked.len(), asked[0].request.kind), (1, QuestionKind::InDoubt), "{at}: {asked:?}");
        let summary = &asked[0].request.action_summary;
        assert!(summary.starts_with("The log of run run.") && summary.contains("Pay Ann"), "{summary}");
        // Asked once, however often the run is taken up.
        assert_eq!(process.resume(caller).await.status, OutcomeStatus::Suspended, "{at}");
        assert_eq!(open(&journal).await.len(), 1, "{at}");
        assert_eq!(process.worked(), 0, "{at}: nothing is repeated without a yes");
        let is_no = matches!(answer, Answer::Cancel { .. });
        let outcome = process.answer(caller, &asked[0], answer).await;
        assert_eq!(process.worked(), worked, "{at}: {outcome:?}");
        assert_eq!(outcome.is_finished(), !is_no || caller == Caller::Loop, "{at}: {outcome:?}");
    }
}

#[tokio::test]
async fn resume_of_a_loop_whose_calls_log_is_lost_tells_the_model_that_the_effect_is_unknown() {
    resume_alone(Caller::Loop).await;
}

#[tokio::test]
async fn resume_of_an_agent_call_with_a_lost_child_log_reports_it_to_the_caller() {
    resume_alone(Caller::Fields).await;
}

#[tokio::test]
async fn resume_of_a_plan_whose_subtasks_log_is_lost_waits_for_a_person() {
    resume_alone(Caller::Plan).await;
}

#[tokio::test]
async fn resume_of_a_team_with_a_lost_member_log_and_no_approver_fails() {
    resume_alone(Caller::Team).await;
}

#[tokio::test]
async fn resume_of_a_loop_with_a_lost_child_log_asks_and_follows_the_answer() {
    resume_asking(Caller::Loop).await;
}

#[tokio::test]
async fn resume_of_a_plan_with_a_lost_child_log_asks_and_follows_the_answer() {
    resume_asking(Caller::Plan).await;
}

#[tokio::test]
async fn resume_of_a_team_with_a_lost_child_log_asks_and_follows_the_answer() {
    resume_asking(Caller::Team).await;
}
