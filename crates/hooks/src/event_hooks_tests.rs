//! Tests with real shell scripts and a real endpoint: every way to answer, and every way not to.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{fs, time::Duration};

use archon_testkit::{MockResponse, MockServer, RealClock, VirtualClock};
use archon_types::{FnHooks, Hooks, Json, Outcome, OutcomeStatus, ToolCall};

use super::*;

/// The commands of one event, in a folder of their own, with a deadline of a minute: the test skips to it.
struct World {
    folder: tempfile::TempDir,
    hooks: EventHooks,
    event: HookEvent,
    clock: RealClock,
}

impl World {
    fn new(event: HookEvent, commands: &[&str]) -> Self {
        let entry = |command: &&str| json!({ "type": "command", "command": command, "timeout": 60 });
        let entries: Vec<Json> = commands.iter().map(entry).collect();
        let (folder, clock) = (tempfile::tempdir().unwrap(), RealClock::new());
        let hooks = EventHooks::new(set(event, entries), folder.path(), Arc::new(clock.clone()));
        Self { folder, hooks, event, clock }
    }

    /// Returns the answer of hooks whose deadline passes once this file is there.
    async fn answer_too_late_after(&self, file: &str) -> Answer {
        let deadline = async {
            while !self.folder.path().join(file).exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            self.clock.skip(Duration::from_secs(60));
        };
        tokio::join!(self.answer(), deadline).0
    }

    async fn answer(&self) -> Answer {
        self.hooks.run(&occurrence(self.event)).await
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn set(event: HookEvent, entries: Vec<Json>) -> HookSet {
    let text = json!({ "hooks": { event.name(): [{ "hooks": entries }] } }).to_string();
    let (set, problems) = HookSet::of_person("hooks.json".as_ref(), &text);
    assert_eq!(problems, []);
    set
}

fn occurrence(event: HookEvent) -> Occurrence {
    Occurrence::new(event, Some("bash"), json!({ "tool_name": "bash", "tool_input": { "command": "ls" } }))
}

fn deny(answer: &Answer) -> &str {
    match &answer.verdict {
        Verdict::Deny(reason) => reason,
        other => panic!("{other:?}"),
    }
}

async fn one(event: HookEvent, command: &str) -> Answer {
    World::new(event, &[command]).answer().await
}

#[tokio::test]
async fn hook_gets_the_event_on_its_input_and_the_folder_in_its_environment() {
    let world =
        World::new(HookEvent::BeforeTool, &["cat > event.json; echo \"$CLAUDE_PROJECT_DIR\" > folder"]);
    assert_eq!(world.answer().await, Answer::default());
    let folder = world.folder.path().display().to_string();
    let event: Json = serde_json::from_str(&world.read("event.json")).unwrap();
    let expected = json!({
        "hook_event_name": "PreToolUse", "cwd": folder, "tool_name": "bash", "tool_input": { "command": "ls" },
    });
    assert_eq!(event, expected);
    assert_eq!(world.read("folder").trim(), folder);
}

#[tokio::test]
async fn hook_with_exit_code_2_denies_with_its_error_output() {
    let answer = one(HookEvent::BeforeTool, "echo 'Not on a Friday.' >&2; echo ignored; exit 2").await;
    assert_eq!(deny(&answer), "Not on a Friday.");
    assert!(answer.warnings.is_empty());
}

#[tokio::test]
async fn answers_in_json_deny_ask_and_have_no_opinion() {
    let specific =
        |fields: &str| format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{fields}}}}}"#);
    let deny = |reason: &str| Verdict::Deny(reason.to_owned());
    let cases = [
        (specific(r#""permissionDecision":"deny","permissionDecisionReason":"No.""#), deny("No.")),
        (
            specific(r#""permissionDecision":"ask","permissionDecisionReason":"Sure?""#),
            Verdict::Ask("Sure?".to_owned()),
        ),
        (specific(r#""permissionDecision":"allow""#), Verdict::Silent),
        (r#"{"decision":"block","reason":"No."}"#.to_owned(), deny("No.")),
        (r#"{"decision":"approve"}"#.to_owned(), Verdict::Silent),
        (r#"{"continue":false,"stopReason":"Enough."}"#.to_owned(), deny("Enough.")),
        (r#"{"continue":true,"suppressOutput":true,"systemMessage":"Hello."}"#.to_owned(), Verdict::Silent),
    ];
    for (reply, verdict) in cases {
        let answer = one(HookEvent::BeforeTool, &format!("echo '{reply}'")).await;
        assert_eq!((answer.verdict, answer.warnings), (verdict, Vec::new()), "{reply}");
    }
}

#[tokio::test]
async fn hook_without_an_answer_denies_before_a_call_and_warns_elsewhere() {
    let cases = [
        ("exit 1", "ended with exit code 1"),
        ("echo broken >&2; exit 7", "ended with exit code 7: broken"),
        ("kill -SEGV $$", "ended with exit code 139"),
        ("/no/such/program", "ended with exit code 127"),
        ("echo All is well.", "printed text that is no JSON object"),
        ("echo '{\"decision\": '", "printed JSON that is no answer"),
        ("echo '{\"decision\": \"perhaps\"}'", "the unknown decision `perhaps`"),
        ("echo '{\"decision\": 3}'", "printed JSON that is no answer"),
        (
            r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"pwd"}}}'"#,
            "a hook cannot change arguments",
        ),
        ("printf '\\377\\376'", "printed text that is no JSON object"),
        ("head -c 10000000 /dev/zero", "printed more than 64 KiB"),
    ];
    for (command, problem) in cases {
        let answer = one(HookEvent::BeforeTool, command).await;
        let reason = deny(&answer);
        assert!(reason.starts_with("the hook `") && reason.contains("(hooks.json:1)"), "{reason}");
        assert!(reason.contains(problem), "{command}: {reason}");
        for event in [HookEvent::AfterTool, HookEvent::Stop, HookEvent::Notification, HookEvent::Permission] {
            let answer = one(event, command).await;
            assert_eq!(
                (&answer.verdict, answer.warnings.len()),
                (&Verdict::Silent, 1),
                "{command} {event:?}"
            );
            assert!(answer.warnings[0].contains(problem), "{:?}", answer.warnings);
        }
    }
}

#[tokio::test]
async fn hook_that_hangs_is_killed_at_its_deadline_and_denies() {
    let script = "trap '' TERM; echo $$ > leader; (trap '' TERM; exec setsid sleep 1000) & echo $! > child; \
                  touch ready; while :; do sleep 1; done";
    let world = World::new(HookEvent::BeforeTool, &[script]);
    assert!(deny(&world.answer_too_late_after("ready").await).ends_with("did not answer within 60 s"));
    #[cfg(target_os = "linux")]
    for name in ["leader", "child"] {
        let process = world.read(name).trim().parse().unwrap();
        assert_eq!(archon_process::start_ticks(process), None, "{name}");
    }
    let world = World::new(HookEvent::AfterTool, &["touch ready; sleep 1000"]);
    let answer = world.answer_too_late_after("ready").await;
    assert_eq!((answer.verdict, answer.warnings.len()), (Verdict::Silent, 1));
}

#[tokio::test]
async fn hook_that_would_answer_late_is_dead_and_denies() {
    let script = "touch ready; until [ -e go ]; do sleep 0.01; done; touch answered; echo '{\"decision\":\"approve\"}'";
    let world = World::new(HookEvent::BeforeTool, &[script]);
    assert!(deny(&world.answer_too_late_after("ready").await).contains("did not answer within 60 s"));
    fs::write(world.folder.path().join("go"), "").unwrap();
    assert!(!world.folder.path().join("answered").exists());
}

#[tokio::test]
async fn hook_that_leaves_its_outputs_open_answers_when_it_ends() {
    let script = "sleep 1000 & echo '{\"decision\":\"block\",\"reason\":\"No.\"}'";
    assert_eq!(deny(&one(HookEvent::BeforeTool, script).await), "No.");
    let closed = "exec >&- 2>&-; sleep 0.05; exit 2";
    assert_eq!(deny(&one(HookEvent::BeforeTool, closed).await), "no reason was given");
}

#[tokio::test]
async fn hook_that_reads_nothing_of_a_large_event_answers() {
    let world = World::new(HookEvent::BeforeTool, &["exec <&-; echo no >&2; exit 2"]);
    let large = Occurrence::new(HookEvent::BeforeTool, None, json!({ "tool_input": "x".repeat(4_000_000) }));
    assert_eq!(deny(&world.hooks.run(&large).await), "no");
}

#[tokio::test]
async fn several_hooks_fold_to_the_strictest_answer() {
    let ask =
        r#"echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"Sure?"}}'"#;
    let allow = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'"#;
    let no = "echo No. >&2; exit 2";
    let answer = World::new(HookEvent::BeforeTool, &[allow, ask]).answer().await;
    assert_eq!(answer.verdict, Verdict::Ask("Sure?".to_owned()));
    let answer = World::new(HookEvent::BeforeTool, &[ask, no, allow, "exit 1"]).answer().await;
    assert!(deny(&answer).starts_with("No.; the hook `exit 1`"), "{answer:?}");
}

#[tokio::test]
async fn hook_after_a_call_adds_context_for_the_model() {
    let reply = r#"echo '{"hookSpecificOutput":{"additionalContext":"The build is red."}}'"#;
    assert_eq!(one(HookEvent::AfterTool, reply).await.context, ["The build is red."]);
    assert_eq!(one(HookEvent::AfterTool, "echo 'Format it.' >&2; exit 2").await.context, ["Format it."]);
    assert!(one(HookEvent::BeforeTool, reply).await.context.is_empty());
}

#[tokio::test]
async fn prompt_is_passed_extended_or_rejected() {
    let check = async |command: &str| {
        let world = World::new(HookEvent::Prompt, &[command]);
        world.hooks.check(&Message::user("Refund it", Timestamp::from_millis(0))).await
    };
    assert_eq!(check("grep -q 'Refund it'").await, InputVerdict::Pass);
    let warning = InputVerdict::Warn("A hook of this machine adds: Today is Monday.".to_owned());
    assert_eq!(check("echo Today is Monday.").await, warning);
    let InputVerdict::Reject(reason) = check("echo 'No refunds.' >&2; exit 2").await else { panic!() };
    assert_eq!(reason, "A hook refused this message: No refunds.");
    let InputVerdict::Reject(reason) = check("exit 1").await else { panic!() };
    assert!(reason.contains("ended with exit code 1"), "{reason}");
}

#[tokio::test]
async fn stop_hook_runs_at_the_end_but_not_when_the_run_waits() {
    let world = World::new(HookEvent::Stop, &["cat >> stops"]);
    world.hooks.after_loop(&Outcome::new("r1".into(), OutcomeStatus::Suspended)).await;
    world.hooks.after_loop(&Outcome::new("r2".into(), OutcomeStatus::Failed)).await;
    let stop: Json = serde_json::from_str(&world.read("stops")).unwrap();
    assert_eq!((&stop["run_id"], &stop["hook_event_name"]), (&json!("r2"), &json!("Stop")));
}

#[tokio::test]
async fn own_hooks_of_the_program_decide_beside_a_stop_hook() {
    let world = World::new(HookEvent::Stop, &["touch stopped"]);
    let marker = world.folder.path().join("own");
    let own = FnHooks::new().before_tool(|call| async move { call.name != "delete" }).after_loop(move |_| {
        fs::write(&marker, "").unwrap();
        async {}
    });
    let hooks = world.hooks.clone().with_hooks(Arc::new(own)).with_hooks(Arc::new(FnHooks::new()));
    assert!(!hooks.before_tool(&ToolCall::new("c1", "delete", json!({}))).await);
    assert!(hooks.before_tool(&ToolCall::new("c2", "read_file", json!({}))).await);
    hooks.after_loop(&Outcome::new("r1".into(), OutcomeStatus::Finished)).await;
    assert_eq!((world.read("own"), world.read("stopped")), (String::new(), String::new()));
}

#[tokio::test]
async fn project_hook_whose_script_changes_is_not_run_again() {
    let project = tempfile::tempdir().unwrap();
    let script = project.path().join("check.sh");
    fs::write(&script, "echo ran >> runs").unwrap();
    let text = r#"{ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "sh ./check.sh" }] }] } }"#;
    let (set, problems) = HookSet::of_project("hooks.json".as_ref(), text, project.path(), |digest| {
        digest == HookSet::digest(text, project.path()).unwrap()
    });
    assert!(problems.is_empty());
    let hooks = EventHooks::new(set, project.path(), Arc::new(RealClock::new()));
    assert_eq!(hooks.run(&occurrence(HookEvent::BeforeTool)).await, Answer::default());
    fs::write(&script, "echo changed >> runs").unwrap();
    let answer = hooks.run(&occurrence(HookEvent::BeforeTool)).await;
    assert!(deny(&answer).contains("was changed since a person trusted it"), "{answer:?}");
    assert_eq!(fs::read_to_string(project.path().join("runs")).unwrap(), "ran\n");
}

#[derive(Debug)]
struct NoSandbox;

impl ProcessSandbox for NoSandbox {
    fn prepare(&self, _: &std::process::Command, _: u32) -> std::io::Result<archon_process::SandboxedStart> {
        Err(std::io::Error::other("no such kernel"))
    }
}

#[tokio::test]
async fn sandbox_counts_for_commands_of_a_project_only() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "true" }] }] } }"#;
    let (own, _) = HookSet::of_person("own.json".as_ref(), text);
    let (of_project, _) = HookSet::of_project("its.json".as_ref(), text, folder.path(), |_| true);
    for (set, is_sandboxed) in [(own, false), (of_project, true)] {
        let clock = Arc::new(RealClock::new());
        let hooks = EventHooks::new(set, folder.path(), clock).with_sandbox(Arc::new(NoSandbox));
        let answer = hooks.run(&occurrence(HookEvent::BeforeTool)).await;
        assert_eq!(answer.warnings.iter().any(|w| w.contains("no such kernel")), is_sandboxed, "{answer:?}");
    }
}

/// Returns the hooks with one endpoint, and the answer to an event.
async fn at(server: &MockServer, event: HookEvent) -> Answer {
    let entry = json!({
        "type": "http", "url": format!("{}/check?key=s3cret", server.url()), "headers": { "x-key": "s3cret" },
    });
    let clock = VirtualClock::new();
    EventHooks::new(set(event, vec![entry]), "/srv/app", Arc::new(clock)).run(&occurrence(event)).await
}

#[tokio::test]
async fn endpoint_gets_the_event_and_answers_like_a_command() {
    let reply =
        json!({ "hookSpecificOutput": { "permissionDecision": "deny", "permissionDecisionReason": "No." } });
    let server = MockServer::start([MockResponse::json(200, &reply), MockResponse::new(200)]).await;
    assert_eq!(deny(&at(&server, HookEvent::BeforeTool).await), "No.");
    assert_eq!(at(&server, HookEvent::BeforeTool).await, Answer::default());
    let request = &server.requests()[0];
    assert_eq!((&*request.method, &*request.path), ("POST", "/check?key=s3cret"));
    assert_eq!(request.header("x-key"), Some("s3cret"));
    assert_eq!(request.body["tool_input"]["command"], "ls");
    assert_eq!(request.body["cwd"], "/srv/app");
}

#[tokio::test]
async fn endpoint_without_an_answer_denies_before_a_call_and_shows_no_key() {
    let large = "x".repeat(100_000);
    let answers = || {
        [
            (MockResponse::json(500, &json!({})), "answered with status 500"),
            (
                MockResponse::json(302, &json!({})).header("location", "http://127.0.0.1:1/"),
                "answered with status 302",
            ),
            (MockResponse::new(200).chunk("<html>"), "printed text that is no JSON object"),
            (MockResponse::new(200).chunk(&large), "printed more than 64 KiB"),
            (MockResponse::new(200).chunk("{").close(), "broke off its answer"),
        ]
    };
    for (response, problem) in answers() {
        let server = MockServer::start([response]).await;
        let answer = at(&server, HookEvent::BeforeTool).await;
        let reason = deny(&answer);
        assert!(reason.contains(problem) && !reason.contains("s3cret"), "{problem}: {reason}");
    }
    for (response, problem) in answers() {
        let server = MockServer::start([response]).await;
        let answer = at(&server, HookEvent::AfterTool).await;
        assert_eq!((answer.verdict, answer.warnings.len()), (Verdict::Silent, 1), "{problem}");
    }
    let unreachable = MockServer::start([]).await;
    let url = unreachable.url();
    drop(unreachable);
    let entry = json!({ "type": "http", "url": url });
    let hooks = EventHooks::new(set(HookEvent::BeforeTool, vec![entry]), "/", Arc::new(VirtualClock::new()));
    let answer = hooks.run(&occurrence(HookEvent::BeforeTool)).await;
    assert!(matches!(answer.verdict, Verdict::Deny(_)), "{answer:?}");
}

#[tokio::test]
async fn endpoint_that_hangs_denies_at_its_deadline() {
    let responses = [MockResponse::new(200).hang(), MockResponse::new(200).chunk("{\"decision\":").hang()];
    let server = MockServer::start(responses).await;
    for _ in 0..2 {
        let clock = VirtualClock::new();
        let entry = json!({ "type": "http", "url": server.url(), "timeout": 30 });
        let hooks = EventHooks::new(set(HookEvent::BeforeTool, vec![entry]), "/", Arc::new(clock.clone()));
        let occurrence = occurrence(HookEvent::BeforeTool);
        let late = async {
            clock.until_asleep(1).await;
            clock.advance(Duration::from_secs(30));
        };
        let (answer, ()) = tokio::join!(hooks.run(&occurrence), late);
        assert!(deny(&answer).ends_with("did not answer within 30 s"), "{answer:?}");
    }
}
