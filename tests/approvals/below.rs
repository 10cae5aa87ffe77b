//! What an agent asks that another one called: it surfaces at the run that a person started, and the answer goes down.

use std::sync::Arc;

use archon::{
    Archon, OutcomeStatus, RunOptions, SubAgentTool,
    store::InMemoryJournal,
    types::{Answer, Journal, RecordBody},
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

use crate::{
    approvals::asked_at_once::{Done, Person, careful, now},
    shared::stage::call,
};

struct World {
    journal: InMemoryJournal,
    clock: VirtualClock,
    done: Done,
    models: [FnProvider; 3],
}

impl World {
    fn new() -> Self {
        let says = |n: usize, request: &archon::types::Request, tool: &str| match n {
            0 => call("c", tool, json!({"to": "Ann", "task": "Write to Ann."})),
            _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
        };
        let model = move |tool: &'static str| FnProvider::new(move |n, request| says(n, request, tool));
        Self {
            journal: InMemoryJournal::new(),
            clock: VirtualClock::new(),
            done: Done::default(),
            models: [model("secretary"), model("clerk"), model("send_email")],
        }
    }

    /// A boss who calls a secretary who calls a clerk who writes letters, in a new process.
    fn boss(&self, seed: u16, person: Option<Person>) -> Archon {
        let builder = |model: &FnProvider| {
            Archon::builder()
                .provider(Arc::new(model.clone()), "scripted")
                .journal(Arc::new(self.journal.clone()))
                .clock(Arc::new(self.clock.clone()))
                .ids(Arc::new(SeededIds::new(seed)))
                .limits({
                    let mut limits = archon::types::ExecutionLimits::default();
                    limits.max_depth = 2;
                    limits
                })
        };
        let [boss, secretary, clerk] = &self.models;
        // A toolbox that defers its questions, as that of every agent below one who can be asked.
        let clerk = builder(clerk).tool(careful("send_email", &self.done)).build().unwrap();
        let secretary = builder(secretary).tool(SubAgentTool::new("clerk", clerk)).build().unwrap();
        let boss = builder(boss).tool(SubAgentTool::new("secretary", secretary));
        match person {
            Some(person) => boss.approver(Arc::new(person)).build().unwrap(),
            None => boss.build().unwrap(),
        }
    }

    fn did(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }
}

// spec: MA-31, AP-06, AP-04
#[tokio::test]
async fn descendants_question_surfaces_at_the_root_and_the_answer_reaches_it() {
    let world = World::new();
    let outcome = world.boss(1, Some(Person::default())).run("Write to Ann.").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    let root = outcome.run.clone();

    let later = world.boss(2, Some(Person::default()));
    let open = later.approvals(None).await.unwrap();
    assert_eq!(open.len(), 1, "once, although three runs wait: {open:?}");
    assert_eq!(open[0].run, root);
    let path: Vec<_> = open[0].request.call_path.iter().map(|asker| asker.run.as_str().to_owned()).collect();
    assert_eq!(path, [format!("{root}.0-0"), format!("{root}.0-0.0-0")]);
    assert_eq!(open[0].asker().as_str(), path[1]);
    assert!(later.answer_pending(&open[0], Answer::Approve).await.unwrap());
    assert!(world.did().is_empty());

    let outcome = later.resume(root.clone()).await.unwrap().reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "send_email done for Ann")
    );
    assert_eq!(world.did(), ["send_email Ann"]);
    for run in [root.as_str(), &path[0], &path[1]] {
        let replayed = archon::react_loop::replay(&world.journal, &run.into()).await.unwrap();
        assert!(replayed.is_identical(), "{run}: {replayed:?}");
    }
}

// spec: MA-31, AP-05
#[tokio::test]
async fn approver_of_the_root_answers_a_descendants_question_at_once() {
    let world = World::new();
    let person = Person::saying([now(Answer::Approve)]);
    let outcome = world.boss(1, Some(person.clone())).run("Write to Ann.").await.ended();
    assert_eq!(outcome.last_text(), Some("send_email done for Ann"));
    assert_eq!(person.seen(), [r#"Run send_email with {"to":"Ann","task":"Write to Ann."}"#]);
    assert_eq!(world.did(), ["send_email Ann"]);
}

// spec: AP-15, MA-31
#[tokio::test]
async fn descendants_question_without_an_approver_is_denied() {
    let world = World::new();
    let outcome = world.boss(1, None).run_with("Write to Ann.", RunOptions::default()).await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert!(outcome.last_text().unwrap_or_default().contains("nobody"), "{outcome:?}");
    assert!(world.did().is_empty());
    let records = world.journal.read(&outcome.run).await.unwrap();
    assert!(!records.iter().any(|r| matches!(r.body, RecordBody::ApprovalRequested { .. })));
}
