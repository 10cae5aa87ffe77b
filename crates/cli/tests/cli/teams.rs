//! Teams from files: followed with a line for each delegation, taken up, refused.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, Ran, answer, text};

const TEAM: &str = include_str!("../../examples/team.toml");

fn place(server: &MockServer, team: &str) -> (Place, String) {
    let place = Place::with_server(server);
    let file = place.path("team.toml");
    std::fs::write(&file, team).expect("it is written");
    (place, file.display().to_string())
}

async fn only_run(place: &Place) -> String {
    let listed = place.archon("runs list --json", &[]).await.json();
    let of_people = listed.iter().find(|run| run["called_by"].is_null());
    of_people.and_then(|run| run["run_id"].as_str()).expect("a run").to_owned()
}

// spec: MA-13, CL-11
#[tokio::test]
async fn a_team_works_with_a_line_for_each_delegation_and_the_lead_has_the_last_word() {
    let server = MockServer::start([
        answer("3.7 mm a year"),
        answer("It rises slowly."),
        answer("It rises by 3.7 mm."),
    ])
    .await;
    let (place, file) = place(&server, TEAM);
    let ran = place.archon("team run", &[&file, "Does the sea rise?"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It rises by 3.7 mm.\n"), "{ran:?}");
    for line in [
        "the team: ada (researcher), ben (writer); lead leads",
        "  write: Write three sentences [writer] <- find",
        "-> ada: find: Find the figures",
        "<- ada: find: Find the figures: 3.7 mm a year (",
        "1 of 2 done)",
        "-> ben: write: Write three sentences",
        "-> lead: ",
        "finished: 2 of 2 subtasks",
    ] {
        assert!(ran.err.contains(line), "{line}: {ran:?}");
    }
    let run = only_run(&place).await;
    let again = place.archon("runs show", &[&run]).await;
    assert!(again.out.contains("It rises by 3.7 mm.") && again.err.contains("<- ben: write"), "{again:?}");
    let events = place.archon("runs events", &[&run]).await;
    for line in ["formed of ada (researcher), ben (writer); lead leads", "delegated to ada: find"] {
        assert!(events.out.contains(line), "{line}: {events:?}");
    }
    place.archon("resume", &[&run]).await.check_refused(2, "has ended", "archon runs show");
}

#[tokio::test]
async fn team_without_steps_is_planned_by_the_leads_model_with_the_roles() {
    let plan = r#"{"subtasks": [{"id": "a", "description": "Find it", "dependencies": [], "rules": {"role": "researcher"}}]}"#;
    let server = MockServer::start([answer(plan), answer("3.7 mm"), answer("By 3.7 mm.")]).await;
    let without: String = TEAM.split("# Without").next().expect("a team").to_owned();
    let (place, file) = place(&server, &without);
    let ran = place.archon("team run --json", &[&file, "Does the sea rise?"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.json();
    let delegated = |line: &&serde_json::Value| line["event"] == "delegated";
    assert_eq!(lines.iter().find(delegated).map(|line| &line["member"]), Some(&"ada".into()), "{ran:?}");
    let asked = format!("{:?}", server.requests()[0]);
    assert!(asked.contains("Who does the work") && asked.contains("researcher"), "{asked}");
    assert!(!asked.contains("quality_analyst"), "nobody has that role: {asked}");
}

#[tokio::test]
async fn interrupted_team_is_resumed_without_repeating_work() {
    let server =
        MockServer::start([answer("3.7 mm a year"), MockResponse::sse("").event(&text("half ")).hang()])
            .await;
    let (place, file) = place(&server, TEAM);
    let mut child =
        place.command("team run --json", &[&file, "Does the sea rise?"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("half") {}
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::INT).expect("the signal is sent");
    let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let run = only_run(&place).await;
    assert!(ran.err.contains(&format!("archon resume {run}")), "{ran:?}");
    server.push(answer("It rises slowly."));
    server.push(answer("It rises by 3.7 mm."));
    let resumed = place.archon("resume", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "It rises by 3.7 mm.\n"), "{resumed:?}");
    assert_eq!(server.requests().len(), 4, "what ada found is not looked for again");
}

#[tokio::test]
async fn team_resume_of_a_run_that_met_a_limit_goes_on_with_more() {
    let server = MockServer::start([answer("3.7 mm a year")]).await;
    let (place, file) = place(&server, &TEAM.replace("[limits]", "[limits]\nmax_tokens = 10"));
    let ran = place.archon("team run", &[&file, "Does the sea rise?"]).await;
    let run = only_run(&place).await;
    let way_on = format!("continue it with `archon resume {run} ");
    assert!(
        ran.code == Some(4) && ran.err.contains(&way_on) && ran.err.contains(" --max-tokens N`"),
        "{ran:?}"
    );
    let refused = place.archon("resume", &[&run]).await;
    refused.check_refused(2, "has ended", &format!("archon resume {run} --max-tokens N"));
    server.push(answer("It rises slowly."));
    server.push(answer("It rises by 3.7 mm."));
    let resumed = place.archon("resume --max-tokens 100000", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "It rises by 3.7 mm.\n"), "{resumed:?}");
}

#[tokio::test]
async fn team_resume_of_a_log_without_its_first_record_advises_a_new_start() {
    let server = MockServer::start([answer("a"), answer("b"), answer("c")]).await;
    let (place, file) = place(&server, TEAM);
    place.archon("team run", &[&file, "Does the sea rise?"]).await;
    let run = only_run(&place).await;
    let log = place.data().join("runs").join(format!("{run}.jsonl"));
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::write(&log, text.split_inclusive('\n').next().expect("a line")).expect("it is written");
    let refused = place.archon("resume", &[&run]).await;
    refused.check_refused(2, "was interrupted before its task was stored", "archon team run TEAM.toml TASK");
}

#[tokio::test]
async fn invalid_team_file_is_refused_with_line_and_remedy_before_any_request() {
    let server = MockServer::start([]).await;
    let (place, file) = place(&server, &TEAM.replace("id = \"ben\"", "id = \"ada\""));
    let refused = place.archon("team run", &[&file, "Does the sea rise?"]).await;
    refused.check_refused(2, "team.toml:16: two agents have the id \"ada\"", "another id");
    std::fs::write(&file, TEAM.replace("roles = [\"writer\"]", "roles = [\"researcher\"]"))
        .expect("it is written");
    let refused = place.archon("team run", &[&file, "Does the sea rise?"]).await;
    refused.check_refused(
        2,
        "no agent has the role \"writer\"",
        "add a [[member]] with roles = [\"writer\"]",
    );
    std::fs::write(&file, TEAM.replace("[\"search\"]", "[\"telescope\"]")).expect("it is written");
    let refused = place.archon("team run", &[&file, "Does the sea rise?"]).await;
    refused.check_refused(2, "there is no tool \"telescope\"", "the tools are: ");
    place.archon("team run", &[&file, " "]).await.check_refused(2, "empty", "describe the task");
    let missing = place.archon("team run", &["nowhere.toml", "Hi"]).await;
    missing.check_refused(2, "cannot read nowhere.toml", "docs/teams.md");
    assert_eq!(server.requests().len(), 0);
}
