//! An agent with skills: the instructions stay in the window, the limits of active skills hold in a run, and a later
//! process knows both.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    fs,
    sync::{Arc, Mutex},
};

use archon::{
    Archon, ArchonBuilder, RunId, RunOptions, Runs, SessionId,
    planner::ScriptedPlanner,
    react_loop::{History, fold},
    skills::{SkillActivationRequest, SkillActivator, SkillSet},
    store::InMemoryJournal,
    tools::{Ask, EngineOptions, FnTool},
    types::{
        AgentMessage, ContextConfig, ForkOptions, InboxEntry, InboxRequest, Journal, Message, ModelEvent,
        MoreLimits, ProviderError, RecordBody, Request, RunError, RunKind, StartRun, StartRuns as _, SubTask,
        Timestamp, Tool, ToolCall, ToolMode, ToolResult, ToolSpec, Trust, metadata,
    },
};
use archon_testkit::{Chance, Ended, FnProvider, SeededIds, VirtualClock, cases};
use serde_json::json;
use tempfile::TempDir;

type Events = Vec<Result<ModelEvent, ProviderError>>;

/// Writes a skill with further lines of its frontmatter.
fn skill(place: &TempDir, name: &str, more: &str, body: &str) {
    let folder = place.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: {name}\ndescription: About {name}.\n{more}---\n\n{body}\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
}

/// Returns instructions that are longer than other results may be, so that two of them can be pinned.
fn body(name: &str) -> String {
    (0..160).map(|n| format!("{name}: step {n} of the work is this\n")).collect()
}

fn activate(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, "activate_skill", json!({ "name": name }))
}

fn activate_for(id: &str, name: &str, caller: &str) -> ToolCall {
    ToolCall::new(id, "activate_skill", json!({ "name": name, "called_by": caller }))
}

fn plain(id: &str, tool: &str) -> ToolCall {
    // The same call with the same arguments would count as a repetition.
    ToolCall::new(id, tool, json!({ "n": id }))
}

/// Answers the n-th request with the n-th list of calls, then with a text.
fn model(turns: Vec<Vec<ToolCall>>) -> FnProvider {
    FnProvider::new(move |n, _| answer(&turns, n))
}

fn answer(turns: &[Vec<ToolCall>], n: usize) -> Events {
    turns.get(n).map_or_else(|| FnProvider::text("done"), |calls| FnProvider::calls(calls.clone()))
}

fn tool(name: &str, calls: &Calls, text: String) -> Arc<dyn Tool> {
    let (own, calls) = (name.to_owned(), calls.clone());
    let spec = ToolSpec::new(name, "Does it.", json!({ "type": "object" }));
    Arc::new(FnTool::new(spec, move |_, _| {
        calls.lock().unwrap().push(own.clone());
        // A mark of a tool that may not set it.
        let result = ToolResult::success(text.clone()).with_metadata(metadata::PINNED, "mine");
        let result = result.with_metadata(metadata::TRUST, "trusted");
        async move { Ok(result) }
    }))
}

type Calls = Arc<Mutex<Vec<String>>>;

fn agent(place: &TempDir, model: &FnProvider, journal: &Arc<InMemoryJournal>) -> (ArchonBuilder, Calls) {
    let calls = Calls::default();
    let builder = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .engine_options(EngineOptions::default().asking(Ask::WhereRequired))
        .clock(Arc::new(VirtualClock::new()))
        .journal(journal.clone())
        .agent_id("desk")
        .system("You write software.")
        .skills(SkillSet::load([place.path()]))
        .tools([
            tool("alpha", &calls, "alpha is done".to_owned()),
            tool("beta", &calls, "beta is done".to_owned()),
            tool("noise", &calls, "noise and more noise\n".repeat(150)),
        ]);
    (builder, calls)
}

fn in_session(run: &str) -> RunOptions {
    let mut options = RunOptions::in_session(SessionId::new("s"));
    options.run = Some(RunId::new(run));
    options
}

fn small_window() -> ContextConfig {
    let mut config = ContextConfig::new(16_000);
    config.min_interval_ms = 0;
    config
}

/// Returns the messages of a request that have the whole instructions of a skill.
fn with_instructions(request: &Request, name: &str) -> Vec<Message> {
    let has = |message: &&Arc<Message>| message.text().contains(body(name).trim_end());
    request.messages.iter().filter(has).map(|message| Message::clone(message)).collect()
}

fn results(request: &Request) -> Vec<String> {
    let is_result = |message: &&Arc<Message>| matches!(&***message, Message::ToolResult(_));
    request.messages.iter().filter(is_result).map(|message| message.text()).collect()
}

async fn compactions(journal: &InMemoryJournal, run: &str) -> usize {
    let records = journal.read(&RunId::new(run)).await.unwrap();
    records.iter().filter(|record| matches!(record.body, RecordBody::Compacted(_))).count()
}

// spec: SK-03, SK-05, SK-10
#[tokio::test]
async fn instructions_are_byte_identical_after_three_compactions_and_come_once() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "release", "", &body("release"));
    for mode in [ToolMode::Native, ToolMode::Text] {
        let journal = Arc::new(InMemoryJournal::new());
        // The first turn stays as long as possible, also if nothing in it is pinned.
        let mut turns =
            vec![vec![plain("n", "noise")], vec![activate("a1", "release"), plain("n0", "noise")]];
        turns.extend((1..25).map(|n| vec![plain(&format!("n{n}"), "noise")]));
        let calls = turns.clone();
        let model = match mode {
            ToolMode::Native => model(turns),
            _ => FnProvider::new(move |n, _| match calls.get(n).map(|calls| &calls[0]) {
                Some(call) => FnProvider::text(&format!(
                    "Thought: I go on with step {n}.\nAction: {}",
                    json!({ "tool": call.name, "arguments": call.arguments })
                )),
                None => FnProvider::text("Thought: It is done.\nFinal Answer: done"),
            }),
        };
        let (builder, _) = agent(&place, &model, &journal);
        let agent = builder.context(small_window()).tool_mode(mode).build().unwrap();
        assert!(agent.run_with("Release it", in_session("run_1")).await.ended().is_finished());
        let seen = model.requests();
        let count = compactions(&journal, "run_1").await;
        assert!(count >= 3, "{mode:?}: {count} compactions");
        let system = seen[0].system.as_ref().map(|system| String::clone(system)).unwrap();
        assert!(
            system.contains("You write software.") && system.contains("<name>release</name>"),
            "{system}"
        );
        let first = with_instructions(&seen[2], "release");
        assert_eq!(first.len(), 1);
        assert!(first[0].text().contains(body("release").trim_end()), "{}", first[0].text());
        for request in &seen[2..] {
            assert_eq!(with_instructions(request, "release"), first, "{mode:?}");
        }
        if mode == ToolMode::Native {
            let last: Vec<_> = seen.last().unwrap().messages.iter().collect();
            let at = last.iter().position(|message| ***message == first[0]).unwrap();
            assert!(matches!(&**last[at - 1], Message::Assistant(_)), "the call stands before its result");
        }
    }
}

// spec: SK-10, SK-11
#[tokio::test]
async fn instructions_stay_in_a_later_process_and_come_once() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "release", "", &body("release"));
    let journal = Arc::new(InMemoryJournal::new());
    let mut turns = vec![vec![plain("n", "noise")], vec![activate("a1", "release")]];
    turns.extend((0..25).map(|n| vec![plain(&format!("n{n}"), "noise")]));
    let first = model(turns.clone());
    let (builder, _) = agent(&place, &first, &journal);
    let agent_1 = builder.context(small_window()).build().unwrap();
    assert!(agent_1.run_with("Release it", in_session("run_1")).await.ended().is_finished());
    let before = with_instructions(first.requests().last().unwrap(), "release");
    for (seed, run) in [(7, "run_2"), (8, "run_3")] {
        let later = model(turns.clone());
        let (builder, _) = agent(&place, &later, &journal);
        let ids = Arc::new(SeededIds::new(seed));
        let agent = builder.context(small_window()).ids(ids).build().unwrap();
        assert!(agent.run_with("And again", in_session(run)).await.ended().is_finished());
        let seen = later.requests();
        assert!(compactions(&journal, run).await >= 3);
        assert!(results(&seen[2]).last().unwrap().contains("already in this conversation"));
        for request in &seen {
            assert_eq!(with_instructions(request, "release"), before, "{run}");
        }
    }
}

// spec: SK-10
#[tokio::test]
async fn pinned_results_beyond_a_quarter_of_the_window_leave_it_oldest_first_and_come_again() {
    let place = tempfile::tempdir().unwrap();
    for name in ["first", "second", "third"] {
        skill(&place, name, "", &body(name));
    }
    // The first turn stays as long as possible.
    let mut turns = vec![vec![plain("n", "noise")]];
    turns.extend(["first", "second", "third"].map(|name| vec![activate(name, name)]));
    turns.extend((0..25).map(|n| vec![plain(&format!("n{n}"), "noise")]));
    turns.push(vec![activate("again", "first"), activate("same", "third")]);
    let (model, journal) = (model(turns), Arc::new(InMemoryJournal::new()));
    let agent = agent(&place, &model, &journal).0.context(small_window()).build().unwrap();
    assert!(agent.run_with("Do it", in_session("run_1")).await.ended().is_finished());
    let seen = model.requests();
    let of =
        |request: &Request| ["first", "second", "third"].map(|name| with_instructions(request, name).len());
    assert_eq!(of(&seen[4]), [1, 1, 1], "they are all there until a compaction");
    assert!(compactions(&journal, "run_1").await >= 3);
    let [.., before, after] = &seen[..] else { panic!("two requests") };
    assert_eq!(of(before), [0, 1, 1]);
    assert_eq!(with_instructions(after, "first").len(), 1, "it was loaded again");
    assert!(results(after).last().unwrap().contains("already in this conversation"));
}

// spec: SK-05
#[tokio::test]
async fn results_of_skills_are_trusted_and_those_of_other_tools_are_neither_trusted_nor_pinned() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "release", "", "Do it.");
    let turns = vec![vec![activate("a1", "release")], vec![plain("b1", "beta")]];
    let (model, journal) = (model(turns), Arc::new(InMemoryJournal::new()));
    let agent = agent(&place, &model, &journal).0.build().unwrap();
    assert!(agent.run_with("Do it", in_session("run_1")).await.ended().is_finished());
    let run = RunId::new("run_1");
    let records = journal.read(&run).await.unwrap();
    let machine = fold(&run, &records, History::default()).unwrap();
    assert_eq!(machine.window().pinned().collect::<Vec<_>>(), ["skill:release"]);
    let trust: Vec<(String, Trust)> = machine
        .window()
        .attributed()
        .filter_map(|of| match &*of.message {
            Message::ToolResult(result) => Some((result.tool_name.clone(), of.trust)),
            _ => None,
        })
        .collect();
    let expected = [("activate_skill", Trust::Trusted), ("beta", Trust::Untrusted)];
    assert_eq!(trust, expected.map(|(name, trust)| (name.to_owned(), trust)));
}

// spec: SK-09
#[tokio::test]
async fn active_skill_denies_other_tools_in_its_run_only() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "narrow", "allowed-tools: alpha\n", "Do it.");
    let turns = vec![
        vec![activate("a1", "narrow")],
        vec![plain("c1", "alpha"), plain("c2", "beta")],
        vec![],
        vec![plain("c3", "beta")],
    ];
    let model = FnProvider::new(move |n, _| match n {
        2 => FnProvider::text("done"),
        n => answer(&turns, n),
    });
    let journal = Arc::new(InMemoryJournal::new());
    let (builder, calls) = agent(&place, &model, &journal);
    let agent = builder.build().unwrap();
    assert!(agent.run_with("Do it", in_session("run_1")).await.ended().is_finished());
    assert_eq!(*calls.lock().unwrap(), ["alpha"]);
    let denied = results(&model.requests()[2]).pop().unwrap();
    assert!(denied.contains("allowed-tools of the active skill `narrow`"), "{denied}");
    assert!(agent.run_with("Do the rest", in_session("run_2")).await.ended().is_finished());
    assert_eq!(*calls.lock().unwrap(), ["alpha", "beta"]);
}

/// Returns the tools that ran after the skills were activated.
async fn ran(place: &TempDir, skills: &[String]) -> Vec<String> {
    let mut turns: Vec<_> = skills.iter().map(|name| vec![activate(name, name)]).collect();
    turns.push(["alpha", "beta", "noise"].iter().map(|name| plain(name, name)).collect());
    let journal = Arc::new(InMemoryJournal::new());
    let (builder, calls) = agent(place, &model(turns), &journal);
    assert!(builder.build().unwrap().run("Do it").await.ended().is_finished());
    let mut calls = calls.lock().unwrap().clone();
    calls.sort();
    calls
}

// spec: SK-09
#[tokio::test]
async fn further_active_skill_never_allows_a_call_that_was_denied_before() {
    let place = tempfile::tempdir().unwrap();
    for case in 0..cases(10, 200) {
        let mut chance = Chance(case);
        let mut expected: Vec<&str> = vec!["alpha", "beta", "noise"];
        let mut before: Vec<String> = expected.iter().map(|&name| name.to_owned()).collect();
        let mut skills = Vec::new();
        for n in 0..3 {
            let mut allowed: Vec<&str> =
                ["alpha", "beta", "noise", "no*"].into_iter().filter(|_| chance.below(3) > 0).collect();
            let name = format!("skill-{case}-{n}");
            let more = match chance.below(4) {
                0 => String::new(),
                _ => {
                    // An empty list would be no list.
                    allowed.push("other");
                    let allows = |tool: &&str| {
                        allowed.contains(tool) || (*tool == "noise" && allowed.contains(&"no*"))
                    };
                    expected.retain(allows);
                    format!("allowed-tools: {}\n", serde_json::to_string(&allowed.join(" ")).unwrap())
                }
            };
            skill(&place, &name, &more, "Do it.");
            skills.push(name);
            let now = ran(&place, &skills).await;
            assert!(now.iter().all(|tool| before.contains(tool)), "{case}: {before:?}, then {now:?}");
            assert_eq!(now, expected, "{case}: {skills:?}");
            before = now;
        }
    }
}

/// Resumes a run of an agent whose skills are loaded anew, and returns the tools that then ran.
async fn resumed(
    run: &RunId,
    place: &TempDir,
    model: &FnProvider,
    journal: &Arc<InMemoryJournal>,
) -> Vec<String> {
    let (builder, calls) = agent(place, model, journal);
    let later = builder.ids(Arc::new(SeededIds::new(9))).build().unwrap();
    let more = MoreLimits::default().with_max_turns(9);
    let resumed = later.resume_with(run.clone(), more).await.unwrap();
    assert!(resumed.reply().await.ended().is_finished());
    calls.lock().unwrap().clone()
}

// spec: SK-09, SK-11
#[tokio::test]
async fn resumed_run_keeps_the_limits_of_its_active_skill_whatever_became_of_the_skill() {
    for change in ["as it was", "without limits", "gone", "in a fork", "in a fork of a fork"] {
        let place = tempfile::tempdir().unwrap();
        skill(&place, "narrow", "allowed-tools: alpha\n", "Do it.");
        let journal = Arc::new(InMemoryJournal::new());
        let turns = vec![vec![activate("a1", "narrow")], vec![plain("c1", "alpha"), plain("c2", "beta")]];
        let model = model(turns);
        let first = agent(&place, &model, &journal).0.build().unwrap();
        let limits = first.limits().clone().with_max_turns(1);
        let ended = first.run_with("Do it", in_session("run_1").with_limits(limits)).await.ended();
        assert!(!ended.is_finished(), "{ended:?}");
        match change {
            "without limits" => skill(&place, "narrow", "", "Do it."),
            "gone" => fs::remove_dir_all(place.path().join("narrow")).unwrap(),
            _ => {}
        }
        let mut run = RunId::new("run_1");
        for _ in 0..change.matches("fork").count() {
            let fork = first.fork(&run, ForkOptions::default()).await.unwrap();
            assert!(fork.wants_answer);
            run = fork.run;
        }
        let ran = resumed(&run, &place, &model, &journal).await;
        assert_eq!(ran, ["alpha"], "{change}");
    }
}

// spec: SK-09, SK-11
#[tokio::test]
async fn fork_keeps_the_limits_of_its_active_skill_after_a_persons_message() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "narrow", "allowed-tools: alpha\n", "Do it.");
    let journal = Arc::new(InMemoryJournal::new());
    let calls = vec![plain("c2", "alpha"), plain("c3", "beta")];
    let model = model(vec![vec![activate("a1", "narrow")], vec![plain("c1", "alpha")], calls]);
    let first = agent(&place, &model, &journal).0.build().unwrap();
    let one_turn = first.limits().clone().with_max_turns(1);
    let _ = first.run_with("Do it", in_session("run_1").with_limits(one_turn)).await;
    let fork = first.fork(&RunId::new("run_1"), ForkOptions::default()).await.unwrap().run;
    let message = AgentMessage::from(Message::user("Be quick", Timestamp::default()));
    let entry = InboxEntry::new("m", Timestamp::default(), InboxRequest::Steer { message });
    journal.inbox().unwrap().post(&fork, entry).await.unwrap();
    let one_more = first.resume_with(fork.clone(), MoreLimits::default().with_max_turns(2)).await.unwrap();
    assert!(!one_more.reply().await.ended().is_finished());
    let records = journal.read(&fork).await.unwrap();
    assert!(records.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. })));
    assert_eq!(resumed(&fork, &place, &model, &journal).await, ["alpha"]);
}

// spec: SK-09
#[tokio::test]
async fn message_that_activates_a_skill_starts_neither_a_plan_nor_a_team() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "narrow", "allowed-tools: alpha\n", "Do it.");
    let journal = Arc::new(InMemoryJournal::new());
    let desk = agent(&place, &model(Vec::new()), &journal).0.build().unwrap();
    let request = SkillActivationRequest::new("narrow").with_activator(SkillActivator::Person);
    let activation = desk.skills().unwrap().for_message(&request);
    let message = AgentMessage::from(Message::user(activation.text_for_model(), Timestamp::default()));
    let message = message.with_mark(activation.mark.unwrap());
    let plan = Arc::new(ScriptedPlanner::new(vec![SubTask::new("a", "Do it")]));
    let (planning, team) = (desk.planning(plan.clone()), desk.team(plan));
    let runs = Runs::new(desk).with_agent(planning.run_agent()).with_agent(team.run_agent());
    for (kind, agent) in [(RunKind::Plan, "desk"), (RunKind::Team, "team")] {
        let mut request = StartRun::with_messages(vec![message.clone()]);
        (request.kind, request.agent) = (kind, Some(agent.into()));
        let refused = runs.start(request).await.unwrap_err();
        assert!(matches!(refused, RunError::NotForKind { .. }), "{refused:?}");
        assert!(refused.to_string().contains("a message that activates a skill"), "{refused}");
    }
}

// spec: SK-09
#[tokio::test]
async fn plan_with_a_step_that_activates_a_skill_has_a_problem() {
    let place = tempfile::tempdir().unwrap();
    skill(&place, "narrow", "allowed-tools: alpha\n", "Do it.");
    let desk = agent(&place, &model(Vec::new()), &Arc::new(InMemoryJournal::new())).0.build().unwrap();
    for (tool, arguments, problems) in
        [("alpha", json!({}), 0), ("activate_skill", json!({ "name": "narrow" }), 1)]
    {
        let step = SubTask::new("a", "Do it").with_tool(tool, Some(arguments));
        let planning = desk.planning(Arc::new(ScriptedPlanner::new(vec![step])));
        let draft = planning.draft("Do it").await.unwrap();
        assert_eq!(draft.problems.len(), problems, "{:?}", draft.problems);
    }
}

// spec: SK-09, SK-11
#[tokio::test]
async fn skill_of_a_persons_message_limits_the_run_that_receives_it_also_after_a_resume() {
    for is_steer in [false, true] {
        let place = tempfile::tempdir().unwrap();
        skill(&place, "narrow", "allowed-tools: alpha\ndisable-model-invocation: true\n", "Do it.");
        let journal = Arc::new(InMemoryJournal::new());
        let turns = vec![vec![plain("c1", "alpha")], vec![plain("c2", "alpha"), plain("c3", "beta")]];
        let model = model(turns);
        let first = agent(&place, &model, &journal).0.build().unwrap();
        let limits = first.limits().clone().with_max_turns(1);
        let request = SkillActivationRequest::new("narrow").with_activator(SkillActivator::Person);
        let activation = first.skills().unwrap().for_message(&request);
        let message = AgentMessage::from(Message::user(activation.text_for_model(), Timestamp::default()));
        let message = message.with_mark(activation.mark.unwrap());
        let run = match is_steer {
            true => {
                let _ = first.run_with("Do it", in_session("run_1").with_limits(limits)).await;
                let (run, request) = (RunId::new("run_1"), InboxRequest::Steer { message });
                let entry = InboxEntry::new("m", Timestamp::default(), request);
                journal.inbox().unwrap().post(&run, entry).await.unwrap();
                run
            }
            false => {
                let runs = Runs::new(first);
                let mut request = StartRun::with_messages(vec![message]);
                request.settings.limits = Some(limits);
                let run = runs.start(request).await.unwrap().run;
                let _ = runs.reply(&run).await;
                // The process that resumes the run has no such skill.
                fs::remove_dir_all(place.path().join("narrow")).unwrap();
                run
            }
        };
        assert_eq!(resumed(&run, &place, &model, &journal).await, ["alpha"], "steered: {is_steer}");
        if is_steer {
            let seen = model.requests();
            assert!(seen.last().unwrap().messages.iter().any(|message| message.text().contains("Do it.")));
        }
    }
}

// spec: SK-07, A-47
#[tokio::test]
async fn chain_of_skills_stops_at_a_circle_and_at_its_depth() {
    let place = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d", "e"] {
        skill(&place, name, "", &format!("Do {name}."));
    }
    let turns = vec![
        vec![activate("1", "a")],
        vec![activate_for("2", "a", "a")],
        vec![activate_for("3", "b", "a")],
        vec![activate_for("4", "c", "b")],
        vec![activate_for("5", "a", "c")],
        vec![activate_for("6", "d", "c")],
        vec![activate_for("7", "e", "d")],
    ];
    let (model, journal) = (model(turns), Arc::new(InMemoryJournal::new()));
    let agent = agent(&place, &model, &journal).0.build().unwrap();
    assert!(agent.run("Do it").await.ended().is_finished());
    let results = results(model.requests().last().unwrap());
    let has = |n: usize, text: &str| assert!(results[n].contains(text), "{n}: {}", results[n]);
    has(0, "Do a.");
    has(1, "Circular dependency detected: a → a");
    has(3, "Do c.");
    has(4, "Circular dependency detected: a → b → c → a");
    has(5, "Do d.");
    has(6, "Maximum skill activation depth (3) exceeded");
}

// spec: SK-03, SK-09
#[tokio::test]
async fn agent_without_visible_skills_is_as_without_skills() {
    let place = tempfile::tempdir().unwrap();
    let journal = Arc::new(InMemoryJournal::new());
    let tools = |request: &Request| request.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    for hidden in [false, true] {
        if hidden {
            skill(&place, "hidden", "disable-model-invocation: true\n", "Do it.");
        }
        let model = model(Vec::new());
        let agent = agent(&place, &model, &journal).0.build().unwrap();
        assert!(agent.run("Do it").await.ended().is_finished());
        let request = &model.requests()[0];
        assert_eq!(
            request.system.as_ref().map(|system| String::clone(system)).unwrap(),
            "You write software."
        );
        assert_eq!(tools(request), ["alpha", "beta", "noise"]);
    }
}
