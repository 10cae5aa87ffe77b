//! `update_plan`: the lists that it takes, and its refusals.

use std::sync::Arc;

use archon_tools::{Ask, EngineOptions, builtin::UpdatePlan};
use archon_types::{Json, StepList, Tool, ToolCall, ToolResult};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{context, engine, run_call};

async fn update(arguments: Json) -> ToolResult {
    let tool: Arc<dyn Tool> = Arc::new(UpdatePlan::new());
    // The strictest default: a call that needed an approval would be refused here.
    let engine = engine([tool]).with_options(EngineOptions::default().asking(Ask::BeforeChanges));
    run_call(&engine, &ToolCall::new("c", "update_plan", arguments), &context()).await
}

fn steps(statuses: impl IntoIterator<Item = &'static str>) -> Json {
    let steps = statuses
        .into_iter()
        .zip(1..)
        .map(|(status, n)| json!({"step": format!("Step {n}"), "status": status}));
    json!({ "steps": steps.collect::<Vec<_>>() })
}

#[tokio::test]
async fn update_plan_with_steps_is_done_without_a_question() {
    for statuses in
        [vec![], vec!["pending"], vec!["completed", "in_progress", "pending"], vec!["completed"; 50]]
    {
        let done = update(steps(statuses.clone())).await;
        assert_eq!((done.text().as_str(), done.is_error()), ("Plan updated", false), "{statuses:?}");
    }
    let mut changed = steps(["in_progress"]);
    changed["explanation"] = "The parser is fine.".into();
    assert!(!update(changed.clone()).await.is_error());
    assert_eq!(StepList::of(&changed).unwrap().explanation.unwrap(), "The parser is fine.");
}

#[tokio::test]
async fn update_plan_with_a_wrong_list_is_refused_with_the_remedy() {
    let check = async |arguments: Json, expected: Expect| {
        let refused = update(arguments).await;
        assert!(refused.is_error());
        expected.assert_eq(&refused.text());
    };
    check(
        steps(["in_progress", "pending", "in_progress"]),
        expect![[
            r#"Error: Only one step can be in_progress, but 2 are: "Step 1", "Step 3". Set the others to pending or completed, and send the whole list again."#
        ]],
    )
    .await;
    for wrong in [json!({}), steps(["done"]), steps(["pending"; 51]), json!({"steps": [{"step": "A step"}]})]
    {
        assert!(update(wrong.clone()).await.is_error(), "{wrong}");
        let is_list = StepList::of(&wrong).is_some_and(|list| list.steps.len() <= StepList::MAX);
        assert!(!is_list, "{wrong}");
    }
}
