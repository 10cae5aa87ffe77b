//! The command killed from outside at any moment, and resumed until it ends: no effect happens twice, none that the
//! model was told of is lost, and every run can be resumed. Loops, plans and teams.

use std::{collections::BTreeMap, time::Duration};

use archon_testkit::{Chance, MockResponse, MockServer, RecordedRequest, cases, first_seed};
use serde_json::{Value, json};

use crate::setup::{Place, Ran, answer, asks_for};

/// Effects of a run.
pub(crate) const EFFECTS: usize = 4;

/// Kills of one run at most; then it is left alone.
const MOST: u64 = 6;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Loop,
    Plan,
    Team,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Loop, Kind::Plan, Kind::Team];

const TEAM: &str = r#"
[[role]]
name = "worker"
prompt = "You work."
tools = ["bash"]

[[member]]
id = "ada"
roles = ["worker"]
tools = ["bash"]

[[step]]
id = "work"
task = "Do the work"
role = "worker"
"#;

fn command(n: usize) -> Value {
    json!({ "command": format!("echo effect{n} >> ledger") })
}

impl Kind {
    /// The model, which says what follows from the request alone.
    pub(crate) fn answer(self, request: &RecordedRequest) -> MockResponse {
        let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        let has_tools = request.body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        match self {
            Self::Plan if request.text.contains("subtasks") => answer(&plan(&request.text)),
            Self::Loop | Self::Team if has_tools && results < EFFECTS => {
                asks_for("bash", &command(results).to_string())
            }
            _ => answer("It is done."),
        }
    }

    pub(crate) fn start(self, place: &Place) -> tokio::process::Command {
        match self {
            Self::Loop => place.command("run --json --tools bash", &["Work."]),
            Self::Plan => place.command("run --json --plan --tools bash", &["Work."]),
            Self::Team => place.command("team run --json", &[&file(place), "Work."]),
        }
    }

    pub(crate) fn resume(place: &Place, run: &str) -> tokio::process::Command {
        place.command("resume --json", &[run])
    }
}

fn file(place: &Place) -> String {
    place.path("team.toml").display().to_string()
}

/// A step for each effect. Where one is in doubt already, it is only spoken of: a model that plans it again would repeat it
/// on purpose.
fn plan(asked: &str) -> String {
    let step = |n: usize| {
        let before: Vec<String> = (n > 0).then(|| format!("s{}", n - 1)).into_iter().collect();
        let mut step =
            json!({ "id": format!("s{n}"), "description": format!("Effect {n}"), "dependencies": before });
        if !asked.contains(&format!("subtask s{n} (Effect {n}) failed")) {
            step["tool_name"] = json!("bash");
            step["tool_args"] = command(n);
        }
        step
    };
    json!({ "subtasks": (0..EFFECTS).map(step).collect::<Vec<_>>() }).to_string()
}

/// The run that a person started, if one was kept before the kill, and its status.
pub(crate) async fn run_of(place: &Place) -> Option<(String, String)> {
    let listed = place.archon("runs list --json", &[]).await.json();
    // A log without a record is of a run that was killed before it began.
    let has_begun =
        |run: &Value| !run["problem"].as_str().is_some_and(|problem| problem.contains("its log is empty"));
    let run = listed.into_iter().find(|run| run["called_by"].is_null() && has_begun(run))?;
    Some((run["run_id"].as_str()?.to_owned(), run["status"].as_str()?.to_owned()))
}

/// Starts the command and kills it after so long; none if it ended before.
async fn killed(mut command: tokio::process::Command, after: Duration) -> Option<Ran> {
    let child = command.spawn().unwrap();
    tokio::time::timeout(after, child.wait_with_output()).await.ok().map(|ended| ended.unwrap().into())
}

/// Whether each effect was told as done, by the last request that has it.
pub(crate) fn told_as_done(server: &MockServer) -> BTreeMap<String, bool> {
    let mut told = BTreeMap::new();
    for request in server.requests() {
        let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
        let calls =
            messages.iter().flat_map(|message| message["tool_calls"].as_array().cloned().unwrap_or_default());
        let mut effects = calls.filter_map(|call| {
            let arguments = call["function"]["arguments"].as_str()?;
            let effect = arguments.split("echo ").nth(1)?.split(' ').next()?;
            Some(effect.to_owned())
        });
        for result in messages.iter().filter(|message| message["role"] == "tool") {
            let text = result["content"].to_string();
            if let Some(effect) = effects.next() {
                told.insert(effect, text.contains("(no output)"));
            }
        }
    }
    told
}

/// Calls whose success is in a log, of the run or of one below it.
fn finished_calls(place: &Place) -> usize {
    let logs = std::fs::read_dir(place.data().join("runs")).unwrap().flatten().map(|entry| entry.path());
    let texts = logs.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let is_done =
        |line: &&str| line.contains("\"type\":\"tool_call_finished\"") && line.contains("(no output)");
    texts.map(|path| std::fs::read_to_string(path).unwrap().lines().filter(is_done).count()).sum()
}

/// A place whose settings let every command run, and its model.
pub(crate) async fn stage(kind: Kind) -> (MockServer, Place) {
    let server = MockServer::answering(move |request| kind.answer(request)).await;
    let place = Place::with_server(&server);
    std::fs::create_dir_all(place.path(".config/archon")).unwrap();
    std::fs::write(place.path(".config/archon/archon.toml"), "[permissions]\nallow = [\"bash\"]\n").unwrap();
    std::fs::write(place.path("team.toml"), TEAM).unwrap();
    (server, place)
}

/// No effect happened twice, and none that somebody was told of is lost.
pub(crate) fn check_effects(server: &MockServer, place: &Place, at: &str) {
    let ledger = std::fs::read_to_string(place.path("ledger")).unwrap_or_default();
    let told = told_as_done(server);
    for effect in (0..EFFECTS).map(|n| format!("effect{n}")) {
        let times = ledger.lines().filter(|line| *line == effect).count();
        assert!(times <= 1, "{at}: {effect} happened {times} times: {ledger}");
        assert!(times == 1 || told.get(&effect) != Some(&true), "{at}: {effect} was told as done: {ledger}");
    }
    let done = finished_calls(place);
    assert!(done <= ledger.lines().count(), "{at}: {done} calls are done in the logs: {ledger}");
    server.assert_paired();
}

/// One run with its kills; returns how many there were.
async fn round(kind: Kind, chance: &mut Chance) -> u64 {
    let (server, place) = stage(kind).await;
    let (mut kills, mut waits, mut busy) = (0, 0, 0);
    loop {
        let command = match run_of(&place).await {
            None => kind.start(&place),
            // The last kill may have come behind the end.
            Some((_, status)) if status == "finished" => break,
            Some((run, _)) => Kind::resume(&place, &run),
        };
        let after = if kills < MOST { chance.below(250) } else { 60_000 };
        match killed(command, Duration::from_millis(after)).await {
            None => kills += 1,
            Some(ran) if ran.code == Some(3) => {
                // A call in doubt is a question; whoever does not know says no.
                for waits in place.archon("approvals list --json", &[]).await.json() {
                    place.archon("approvals deny", &[waits["request_id"].as_str().unwrap()]).await;
                }
                waits += 1;
                assert!(waits < 50, "{kind:?}: it waits again and again: {ran:?}");
            }
            // On a busy machine, children of the killed command hold its lock until they have started.
            Some(ran) if ran.err.contains("in use by another process") && busy < 50 => busy += 1,
            Some(ran) => assert_eq!(ran.code, Some(0), "{kind:?} after {kills} kills: {ran:?}"),
        }
    }
    check_effects(&server, &place, &format!("{kind:?} after {kills} kills"));
    kills
}

// spec: A-06
#[tokio::test]
async fn resume_of_a_killed_command_repeats_and_loses_no_effect() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let mut chance = Chance(first_seed());
    let (mut kills, mut runs) = (0, 0);
    while kills < cases(20, 1_000) {
        for kind in KINDS {
            kills += round(kind, &mut chance).await;
            runs += 1;
        }
    }
    eprintln!("{kills} kills in {runs} runs: no effect twice, none lost, every run resumed to its end");
}

// spec: A-06
#[tokio::test]
async fn resume_by_several_at_once_has_one_writer() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let mut chance = Chance(first_seed());
    let rounds = cases(5, 200);
    let (mut done, mut refused) = (0, 0);
    while done < rounds {
        let (server, place) = stage(Kind::Loop).await;
        let after = Duration::from_millis(50 + chance.below(150));
        if killed(Kind::Loop.start(&place), after).await.is_some() {
            continue;
        }
        let Some((run, _)) = run_of(&place).await.filter(|(_, status)| status != "finished") else {
            continue;
        };
        let resumes = (0..2 + chance.below(3)).map(|_| Kind::resume(&place, &run).output());
        let ended: Vec<Ran> = futures_util::future::join_all(resumes)
            .await
            .into_iter()
            .map(|ended| ended.unwrap().into())
            .collect();
        let winners = ended.iter().filter(|ran| ran.code == Some(0)).count();
        assert_eq!(winners, 1, "{ended:?}");
        for ran in ended.iter().filter(|ran| ran.code != Some(0)) {
            assert!(ran.err.contains("in use") || ran.err.contains("has ended"), "{ran:?}");
            refused += 1;
        }
        check_effects(&server, &place, &format!("{ended:?}"));
        done += 1;
    }
    eprintln!("{done} races: one writer each, {refused} others refused");
}

#[tokio::test]
async fn run_on_a_full_disk_prints_how_to_resume() {
    let server = MockServer::start([answer(&"a ".repeat(4_000)), answer("Done.")]).await;
    let place = Place::with_server(&server);
    // No file may grow beyond so many blocks of 512 bytes: the start of the run fits, the answer does not.
    let run = place.command("run", &["Say something long."]);
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 12; exec \"$0\" \"$@\""]).arg(run.as_std().get_program());
    shell.args(run.as_std().get_args()).env_clear();
    shell.envs(run.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(place.dir.path()).stdin(std::process::Stdio::null());
    let ran = Ran::from(shell.output().await.unwrap());
    let (run, _) = run_of(&place).await.expect("its beginning is kept");
    let data = place.data();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in ["free space", &format!("archon resume {run} --data-dir {}", data.display())] {
        assert!(ran.err.contains(part), "{part}: {ran:?}");
    }
    let resumed = place.archon("resume", &[&run]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    // A run of which nothing was kept cannot be taken up.
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::write(&data, "no folder").unwrap();
    let refused = place.archon("run", &["Hi"]).await;
    assert!(refused.code != Some(0) && !refused.err.contains("archon resume"), "{refused:?}");
}
