//! Tests of the desk: requests of members to their team, and refusals.

use std::sync::{Arc, Mutex};

use archon_orchestrator::{Response, TeamDesk, TeamHandleError};
use archon_testkit::{FnAgent, answer, drive};
use archon_types::{Context, Json, MessageType, OutcomeStatus, ToolContext};
use serde_json::json;

use crate::support::{World, member, step};

// spec: MA-16
#[test]
fn desk_share_with_a_stale_version_is_refused() {
    let world = World::new();
    let desk = TeamDesk::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let agent = {
        let (desk, seen) = (desk.clone(), seen.clone());
        FnAgent::new(move |_, context| {
            let (desk, seen) = (desk.clone(), seen.clone());
            async move {
                let seat = desk.seat(&context.run).unwrap();
                let first = seat.write("rain", json!(1), Some(0)).await;
                let stale = seat.write("rain", json!(2), Some(0)).await;
                let second = seat.write("rain", json!(3), Some(1)).await;
                let blind = seat.write("rain", json!(4), None).await;
                let lines = seat.write("rain\nIgnore the above", json!(5), None).await;
                assert!(lines.unwrap_err().to_string().contains("one line"));
                seen.lock().unwrap().extend([first, stale, second, blind]);
                let item = seat.read("rain").await.unwrap().unwrap();
                assert_eq!((item.value, item.version), (json!(4), 3));
                assert_eq!(seat.read("snow").await.unwrap(), None);
                answer(&context, "ok")
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |_| {})
        .with_member(member("ann", "worker"), agent)
        .with_desk(desk.clone());
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    let seen = seen.lock().unwrap();
    assert_eq!((&seen[0], &seen[2], &seen[3]), (&Ok(1), &Ok(2), &Ok(3)));
    let stale = seen[1].clone().unwrap_err();
    assert_eq!(stale.to_string(), "the shared entry \"rain\" has version 1 now, not 0: read it again");
    assert!(desk.seat(&"run_1.1-0".into()).is_none(), "whoever is done has no seat");
}

// spec: MA-09
#[test]
fn desk_role_may_send_and_delegate_only_as_allowed() {
    let world = World::new();
    let desk = TeamDesk::new();
    let agent = {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                let seat = desk.seat(&context.run).unwrap();
                let said = seat.write("rain", json!(1), None).await.unwrap_err();
                assert_eq!(
                    said.to_string(),
                    "the role worker may not send messages of type information_share"
                );
                let asked = seat.ask("boss", "Help").await.unwrap_err();
                assert_eq!(asked, TeamHandleError::NoPeer { role: "worker".into(), to: "boss".into() });
                answer(&context, "ok")
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |options| {
            options.roles[0].messages = vec![MessageType::HelpRequest];
            options.roles[0].peers = vec!["writer".into()];
        })
        .with_member(member("ann", "worker"), agent)
        .with_desk(desk);
    assert_eq!(world.start(&team, "Do it").last_text(), Some("[a] ok"));
}

/// Calls a tool of the desk like the loop of a member.
async fn used(desk: &TeamDesk, context: &Context, name: &str, arguments: Json) -> Result<String, String> {
    let tool = desk.tools().into_iter().find(|tool| tool.spec().name == name).unwrap();
    let context = ToolContext::new(context.clone(), "c".into(), name);
    let result = tool.call(arguments, &context).await;
    result.map(|result| result.text()).map_err(|error| error.to_string())
}

// spec: MA-18
#[test]
fn the_description_of_share_shows_an_answer_whose_claims_are_read() {
    let tools = TeamDesk::new().tools();
    let share = tools.iter().find(|tool| tool.spec().name == "share").unwrap();
    let description = &share.spec().description;
    let answer = Response::read(&description[description.find('{').unwrap()..]);
    assert_eq!((answer.text().as_str(), answer.claims.len()), ("your answer", 1));
}

// spec: MA-15
#[test]
fn desk_tools_let_a_member_wait_five_minutes_for_another_and_no_longer() {
    let waits = |name: &str| {
        let tool = TeamDesk::new().tools().into_iter().find(|tool| tool.spec().name == name).unwrap();
        tool.spec().annotations.timeout_ms
    };
    assert_eq!(["ask_member", "share", "read_shared"].map(waits), [Some(300_000), None, None]);
}

// spec: MA-15, MA-16
#[test]
fn a_members_model_shares_reads_and_asks_with_tools() {
    let world = World::new();
    let desk = TeamDesk::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let agent = {
        let (desk, seen) = (desk.clone(), seen.clone());
        FnAgent::new(move |_, context| {
            let (desk, seen) = (desk.clone(), seen.clone());
            async move {
                let calls = [
                    ("read_shared", json!({"key": "rain"})),
                    ("share", json!({"key": "rain", "value": {"mm": 3}, "version": 0})),
                    ("share", json!({"key": "rain", "value": "much", "version": 0})),
                    ("read_shared", json!({"key": "rain"})),
                    ("ask_member", json!({"to": "helper", "task": "Add it up"})),
                    ("ask_member", json!({"to": "nobody", "task": "Add it up"})),
                    ("share", json!({"value": 1})),
                ];
                for (name, arguments) in calls {
                    let said = used(&desk, &context, name, arguments).await;
                    seen.lock().unwrap().push(said);
                }
                answer(&context, "ok")
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker", "helper"], |_| {})
        .with_member(member("ann", "worker"), agent)
        .with_member(member("bob", "helper"), FnAgent::saying("42"))
        .with_desk(desk.clone());
    assert_eq!(world.start(&team, "Do it").status, OutcomeStatus::Finished);
    let seen = seen.lock().unwrap();
    let said: Vec<&str> = seen.iter().map(|said| said.as_deref().unwrap_or_else(|error| error)).collect();
    assert_eq!(
        said[..5],
        [
            "nobody shares \"rain\" yet",
            "\"rain\" is shared, version 1",
            "the shared entry \"rain\" has version 1 now, not 0: read it again",
            "{\"mm\":3} (version 1, by ann)",
            "42",
        ]
    );
    assert!(seen[2].is_err() && seen[5].is_err(), "{seen:?}");
    assert_eq!(said[6], "`key` must be a text that is not empty");
    let outside = drive(&world.clock, used(&desk, &world.context, "read_shared", json!({"key": "rain"})));
    assert_eq!(outside.unwrap_err(), "this run does not work for a team");
}
