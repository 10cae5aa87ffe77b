//! What members say to their team, and what they may not.

use std::sync::{Arc, Mutex};

use archon_orchestrator::{Desk, SeatError};
use archon_types::{MessageType, OutcomeStatus};
use serde_json::json;

use crate::support::{FnAgent, World, answer, member, step};

// spec: MA-16
#[test]
fn a_write_on_top_of_what_somebody_else_wrote_is_refused() {
    let world = World::new();
    let desk = Desk::new();
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
    assert_eq!(stale.to_string(), "\"rain\" is at version 1 by now, not at 0: read it again");
    assert!(desk.seat(&"run_1.1-0".into()).is_none(), "whoever is done has no seat");
}

// spec: MA-09
#[test]
fn a_role_says_and_hands_on_only_what_it_may() {
    let world = World::new();
    let desk = Desk::new();
    let agent = {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                let seat = desk.seat(&context.run).unwrap();
                let said = seat.write("rain", json!(1), None).await.unwrap_err();
                assert_eq!(said.to_string(), "the role worker sends no information_share");
                let asked = seat.ask("boss", "Help").await.unwrap_err();
                assert_eq!(asked, SeatError::NoPeer { role: "worker".into(), to: "boss".into() });
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
    assert_eq!(world.start(&team, "Do it").answer, "[a] ok");
}
