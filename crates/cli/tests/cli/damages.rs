//! Logs of crashed runs, damaged while nobody works on them: the command names what is damaged and what to do, or goes
//! on. No effect happens twice, nothing is lost without a word, and there is a way on from each.

mod damage;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use archon_testkit::{Chance, MockServer, RecordedRequest, cases, first_seed};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::{
    faults::{EFFECTS, KINDS, Kind, run_of, stage, told_as_done},
    setup::{Place, Ran, says_and_asks_for},
};
use damage::{Damage, Files};

/// A run that was killed, and copies of its files as they were then.
struct Crashed {
    kind: Kind,
    place: Place,
    run: String,
    kept: PathBuf,
}

/// Effects, and how often each happened.
type Ledger = BTreeMap<String, usize>;

/// How the command met a damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    /// It said what is damaged; a fork went on from what is whole.
    Forked,
    /// It said what is damaged; nothing is whole, so the task was started again.
    StartedAgain,
    /// It went on, and said what it dropped.
    WentOnWarned,
    /// It went on with all that there was.
    WentOn,
}

/// As the model of the faults, with words in the second and third answer of a loop that are kept beside its log.
async fn model(kind: Kind) -> MockServer {
    MockServer::answering(move |request: &RecordedRequest| {
        let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        match (kind, results) {
            (Kind::Loop, 1 | 2) => {
                let words = format!("word{results} ").repeat(12_000);
                let command = json!({ "command": format!("echo effect{results} >> ledger") });
                says_and_asks_for(&words, "bash", &command.to_string())
            }
            _ => kind.answer(request),
        }
    })
    .await
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// Starts a run and kills it after so many records.
async fn crash(kind: Kind, records: u64) -> Option<Crashed> {
    let (_, mut place) = stage(kind).await;
    let server = model(kind).await;
    place.serve(&server);
    let mut child = kind.start(&place).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = 0;
    while seen < records {
        let line = lines.next_line().await.unwrap()?;
        seen += u64::from(line.contains("\"seq\":"));
    }
    child.kill().await.unwrap();
    let (run, status) = run_of(&place).await?;
    let kept = place.path("kept");
    copy(&place.data(), &kept);
    fs::copy(place.path("ledger"), place.path("ledger.kept")).ok();
    (status != "finished").then_some(Crashed { kind, place, run, kept })
}

impl Crashed {
    /// Everything as it was after the kill.
    fn restore(&self) {
        fs::remove_dir_all(self.place.data()).unwrap();
        copy(&self.kept, &self.place.data());
        _ = fs::remove_file(self.place.path("ledger"));
        _ = fs::copy(self.place.path("ledger.kept"), self.place.path("ledger"));
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for line in fs::read_to_string(self.place.path("ledger")).unwrap_or_default().lines() {
            *ledger.entry(line.to_owned()).or_default() += 1;
        }
        ledger
    }

    /// The log of the run, or of one that it called.
    fn files(&self, chance: &mut Chance) -> Files {
        let logs = fs::read_dir(self.place.data().join("runs")).unwrap().flatten().map(|entry| entry.path());
        let mut logs: Vec<_> = logs
            .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
            .filter(|path| path.metadata().unwrap().len() > 0)
            .collect();
        logs.sort();
        Files::of(logs.swap_remove(usize::try_from(chance.below(logs.len() as u64)).unwrap()))
    }

    /// Takes a run up until it ends or is refused. Whoever is asked about a call in doubt says no.
    async fn go_on(&self, take_up: impl Fn() -> Command) -> Ran {
        let mut err = String::new();
        for _ in 0..50 {
            let mut ran: Ran = take_up().output().await.unwrap().into();
            err += &ran.err;
            if ran.code != Some(3) {
                ran.err = err;
                return ran;
            }
            for waits in self.place.archon("approvals list --json", &[]).await.json() {
                let id = waits["request_id"].as_str().unwrap();
                let mut said = self.place.archon("approvals deny", &[id]).await;
                err += &said.err;
                // The no lets the run go on.
                if said.code != Some(3) {
                    said.err = err;
                    return said;
                }
            }
        }
        panic!("{:?}: it waits again and again: {err}", self.kind);
    }

    /// Takes the damaged run up, and checks what the command says and does.
    async fn meet(&self, files: &Files, damage: Damage, at: &str, server: &MockServer) -> Met {
        let before = self.ledger();
        let ran = self.go_on(|| Kind::resume(&self.place, &self.run)).await;
        let at = &format!("{at}: {ran:?}");
        if ran.code == Some(0) {
            self.check_whole(server, at);
            return check_went_on(files, &ran, damage, at);
        }
        check_named(files, &ran, damage, at);
        assert_eq!(self.ledger(), before, "{at}: an effect beside a damaged log");
        let Some(fork) = ran.err.split('`').find(|part| part.starts_with("archon runs fork")) else {
            assert!(ran.err.contains("start the task again") || ran.err.contains("start it again"), "{at}");
            let again = self.kind.start(&self.place).output().await.unwrap();
            assert_eq!(again.status.code(), Some(0), "{at}: {again:?}");
            return Met::StartedAgain;
        };
        let line = fork.trim_start_matches("archon ");
        let forked = self.place.archon(&format!("{line} --json"), &[]).await;
        assert_eq!(forked.code, Some(0), "{at}: {forked:?}");
        let fork = &forked.json()[0];
        let ran = match fork["wants_answer"] == true {
            // A member's has tools of its team besides.
            true => {
                let run = fork["run"].as_str().unwrap();
                self.go_on(|| self.place.command("resume --json --tools bash", &[run])).await
            }
            false => {
                let session = fork["session"].as_str().unwrap();
                self.place.archon("run --json --tools bash", &["--session", session, "Work."]).await
            }
        };
        assert_eq!(ran.code, Some(0), "{at}: {ran:?}");
        self.check_fork(server, &before, at);
        Met::Forked
    }

    /// No effect happened twice, and none is lost that somebody was told of.
    fn check_whole(&self, server: &MockServer, at: &str) {
        let (ledger, told) = (self.ledger(), told_as_done(server));
        for effect in (0..EFFECTS).map(|n| format!("effect{n}")) {
            let times = ledger.get(&effect).copied().unwrap_or_default();
            assert!(times <= 1, "{at}: {effect} happened {times} times");
            assert!(times > 0 || told.get(&effect) != Some(&true), "{at}: {effect} was told as done");
        }
        server.assert_paired();
    }

    /// The fork did again only what it does not have, as whoever forked was told.
    fn check_fork(&self, server: &MockServer, before: &Ledger, at: &str) {
        let first = server.requests().into_iter().find(|request| request.body["messages"].is_array());
        let kept = first.map_or(0, |request| {
            let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
            messages.iter().filter(|message| message["role"] == "tool").count()
        });
        let after = self.ledger();
        for n in 0..EFFECTS {
            let effect = format!("effect{n}");
            let (was, is) = (before.get(&effect).copied(), after.get(&effect).copied());
            let (was, is) = (was.unwrap_or_default(), is.unwrap_or_default());
            assert!(n >= kept || is == was, "{at}: the fork has {effect} and did it again");
            assert!(n < kept || is <= was + 1, "{at}: the fork did {effect} {} times", is - was);
        }
    }
}

/// What is gone from the log was said to be gone.
fn check_went_on(files: &Files, ran: &Ran, damage: Damage, at: &str) -> Met {
    let after = fs::read(&files.log).unwrap();
    let is_there = |line: &[u8]| !line.ends_with(b"\n") || after.windows(line.len()).any(|w| w == line);
    let lost = files.lines().into_iter().filter(|line| !is_there(&files.before[line.clone()])).count();
    let warned = ran.err.contains("dropped a record");
    // Whole records that nobody had acted on leave no trace.
    let is_untraced = matches!(damage, Damage::EndLost | Damage::Emptied);
    assert!(lost == 0 || warned || is_untraced, "{at}: {lost} records are lost silently");
    if warned { Met::WentOnWarned } else { Met::WentOn }
}

/// The record that is damaged stands in the refusal.
fn check_named(files: &Files, ran: &Ran, damage: Damage, at: &str) {
    let named = ran.err.split("is damaged at record ").nth(1).and_then(|rest| rest.split(':').next());
    let named = named.and_then(|record| record.trim().parse::<usize>().ok());
    match files.damaged {
        // The end was dropped with a warning, and what is left has nothing to do.
        _ if ran.err.contains("was interrupted before its") => {
            assert!(damage == Damage::EndLost || ran.err.contains("dropped a record"), "{at}");
        }
        // Nothing is left of the first record, so there is no run of which it could be told.
        Some(0) if named.is_none() => {
            assert!(ran.err.contains("is empty: it was emptied"), "{at}");
        }
        Some(record) => {
            let near = named.is_some_and(|named| named == record || named == record + 1);
            assert!(near, "{at}: record {record} is damaged");
        }
        None => assert!(damage.is_of_blob() && named.is_some(), "{at}"),
    }
}

// spec: A-06
#[tokio::test]
async fn resume_of_a_damaged_log_names_the_damage_or_goes_on_and_repeats_no_effect() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let mut chance = Chance(first_seed());
    let mut counts: BTreeMap<(Damage, Met), u64> = BTreeMap::new();
    let (mut done, mut crashes, all) = (0, 0, cases(24, 1_000));
    while done < all {
        let kind = KINDS[usize::try_from(crashes % 3).unwrap()];
        let Some(mut crashed) = crash(kind, 2 + chance.below(24)).await else { continue };
        crashes += 1;
        for n in 0..8 {
            let damage = Damage::ALL[usize::try_from((crashes * 8 + n) % 17).unwrap()];
            crashed.restore();
            let mut files = crashed.files(&mut chance);
            let Some(at) = files.damage(damage, &mut chance) else { continue };
            let server = model(kind).await;
            crashed.place.serve(&server);
            let at = format!("{kind:?}, {damage:?} of {} at {at}", files.log.display());
            let met = crashed.meet(&files, damage, &at, &server).await;
            *counts.entry((damage, met)).or_default() += 1;
            done += 1;
        }
    }
    for ((damage, met), count) in &counts {
        eprintln!("{damage:?}: {met:?} {count}");
    }
    eprintln!("{done} damages of {crashes} runs: no effect twice, nothing lost silently, a way on from each");
}

/// What a member did is not done again by another: nobody knows how far it came.
#[tokio::test]
async fn resume_of_a_team_whose_member_has_a_damaged_log_is_refused_and_repeats_nothing() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let crashed = crash(Kind::Team, 20).await.expect("a run of more records");
    let member = crashed.place.data().join("runs").join(format!("{}.1-0.jsonl", crashed.run));
    let mut log = fs::read(&member).unwrap();
    let end = log.iter().position(|byte| *byte == b'\n').unwrap();
    log[end + 40] ^= 1;
    fs::write(&member, log).unwrap();
    let before = crashed.ledger();
    assert!(!before.is_empty());
    let refused = crashed.go_on(|| Kind::resume(&crashed.place, &crashed.run)).await;
    let name = format!("{}.1-0 is damaged at record 1", crashed.run);
    assert!(refused.code == Some(1) && refused.err.contains(&name), "{refused:?}");
    assert_eq!(crashed.ledger(), before);
}
