//! The rights of each role on each route.

use std::sync::Arc;

use archon::{
    Runs,
    server::{Needs, ROUTES, Right, Role, ServerOptions, TokenLimits},
};

use crate::{
    faulty::{Fault, Faulty},
    world::{Ask, World},
};

/// Returns a request for a route, whose parameters lead to nothing.
fn request(route: &archon::server::Route) -> Ask {
    let parts = route.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    let path = parts.collect::<Vec<_>>().join("/");
    Ask::new(route.method.as_str(), &path)
}

// spec: EX-11
#[tokio::test]
async fn role_has_its_rights_and_no_others_on_every_route() {
    let site = World::new().site();
    for route in &ROUTES {
        for role in Role::ALL {
            let answer = site.send(request(route).by(role)).await;
            let is_refused = answer.rule() == "role";
            let has_right = match route.needs {
                Needs::Right(right) => role.has(right),
                _ => true,
            };
            assert_eq!(is_refused, !has_right, "{role} {} {}: {answer:?}", route.method, route.path);
            assert!(!["unknown-route", "method"].contains(&answer.rule()), "{} {}", route.method, route.path);
        }
        let anyone = site.send(request(route).without("authorization")).await;
        let expected = if route.needs == Needs::Nothing { "one-time-link" } else { "token-missing" };
        assert_eq!(anyone.rule(), expected, "{} {}", route.method, route.path);
    }
}

// spec: EX-11
#[test]
fn rights_of_the_roles_are_those_of_the_table() {
    let rights = |role: Role| role.rights().map(Right::as_str).collect::<Vec<_>>();
    for (role, expected) in [
        (Role::Viewer, vec!["monitor"]),
        (Role::Operator, vec!["monitor", "read_logs", "operate"]),
        (Role::Admin, vec!["monitor", "read_logs", "operate", "administer"]),
        (Role::Auditor, vec!["monitor", "read_logs"]),
    ] {
        assert_eq!(rights(role), expected, "{role}");
    }
}

// spec: EX-11
#[tokio::test]
async fn role_without_the_right_to_logs_gets_no_text_of_a_log() {
    let (world, journal) = (World::new(), Faulty::default());
    let walker = world.builder("walker").journal(Arc::new(journal.clone())).build().unwrap();
    let site = world.site_of(Runs::new(walker), ServerOptions::default(), TokenLimits::default());
    let run = site.run("a secret plan").await;
    for fault in [Fault::None, Fault::Damaged] {
        journal.set(fault.clone());
        for role in Role::ALL {
            let head = site.send(Ask::get(&format!("/v1/runs/{run}")).by(role)).await.body;
            let list = site.send(Ask::get("/v1/runs").by(role)).await.body;
            assert_eq!(head, list["runs"][0], "{role}");
            assert_eq!(head["run_id"], run.as_str(), "{role}");
            let has_right = role.has(Right::ReadLogs);
            assert_eq!(head["task"], if has_right { "a secret plan" } else { "" }, "{role}");
            let has_problem = has_right && fault == Fault::Damaged;
            assert_eq!(head.get("problem").is_some(), has_problem, "{role}: {head}");
            assert_eq!(head.to_string().contains("secret"), has_right, "{role}: {head}");
        }
    }
}
