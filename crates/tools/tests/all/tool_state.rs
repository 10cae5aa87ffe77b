//! `#[tool]` of a function with state: what it is made with, what the model sends, and what a person is asked.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use archon_tools::{FnTool, ToolEngine, ToolRegistry, tool};
use archon_types::{
    Json, Prepared, Tool, ToolAnnotations, ToolCall, ToolContext, ToolError, ToolSpec, Toolbox,
};
use serde_json::json;

use crate::fixture::{call_directly, call_id, context, engine};

/// A ledger that cannot be cloned or shown, as handles of databases often cannot.
#[derive(Default)]
struct Ledger(Mutex<BTreeMap<String, u64>>);

trait Mailer: Send + Sync {
    fn mail(&self, to: &str) -> io::Result<()>;
}

struct Broken;

impl Mailer for Broken {
    fn mail(&self, _: &str) -> io::Result<()> {
        Err(io::Error::other("the mail server is closed"))
    }
}

/// Refunds a part of an order's price.
///
/// # Arguments
/// - `ledger`: for people, who may list all of the parameters
#[tool(requires_confirmation, destructive, summary = "Refund {cents} cents of order {order} ({reason})")]
async fn refund(
    #[state] ledger: &Arc<Ledger>,
    /// The order's number.
    order: String,
    cents: u64,
    #[default("unknown".to_owned())] reason: String,
    context: &ToolContext,
) -> Result<String, ToolError> {
    let mut refunds = ledger.0.lock().map_err(|_| ToolError::new("the ledger is damaged"))?;
    *refunds.entry(order).or_default() += cents;
    Ok(format!("{} by {}: {reason}", refunds.values().sum::<u64>(), context.tool_name))
}

/// Says how much of an order was refunded.
#[tool(read_only)]
fn refunded(#[state] ledger: &Arc<Ledger>, order: &str) -> Option<u64> {
    ledger.0.lock().ok()?.get(order).copied()
}

/// Writes to a customer.
#[tool]
async fn write(
    #[state] mailer: &Arc<dyn Mailer>,
    #[state] from: &String,
    to: String,
) -> Result<String, ToolError> {
    let number: u32 = from.parse()?;
    mailer.mail(&to)?;
    Ok(number.to_string())
}

#[tokio::test]
async fn tool_with_state_uses_its_own_state() {
    let (mine, other) = (Arc::new(Ledger::default()), Arc::new(Ledger::default()));
    let registry = ToolRegistry::new();
    registry.register(refund(mine.clone())).unwrap();
    registry.register(refunded(mine.clone())).unwrap();
    let engine = ToolEngine::new(registry);
    let mut agreed = context();
    agreed.can_ask = true;
    let call = ToolCall::new("c", "refund", json!({"order": "A1", "cents": 40}));
    let Prepared::Ask(question) = engine.prepare(call_id(), &call, &agreed).await else {
        panic!("nobody is asked")
    };
    assert_eq!(question.action_summary, "Refund 40 cents of order A1 (unknown)");
    let result = call_directly(&refund(mine.clone()), json!({"order": "A1", "cents": 40})).unwrap();
    assert_eq!(result.text(), "40 by tool: unknown");
    assert_eq!(engine.execute_tool_call("refunded", json!({"order": "A1"}), &context()).await.text(), "40");
    assert!(other.0.lock().unwrap().is_empty());
    assert_eq!(refunded::run(&mine, "A1"), Some(40));
    assert_eq!(format!("{:?}", refund(other)), "refund { .. }");
}

#[test]
fn spec_of_a_tool_with_state_tells_the_model_of_its_arguments_alone() {
    let tool = refund(Arc::default());
    let spec = tool.spec();
    let arguments: Vec<_> = spec.parameters["properties"].as_object().unwrap().keys().collect();
    assert_eq!(arguments, ["order", "cents", "reason"]);
    assert_eq!(spec.parameters["properties"]["order"]["description"], "The order's number.");
    assert_eq!(spec.description, "Refunds a part of an order's price.");
    assert!(spec.annotations.requires_confirmation && spec.annotations.destructive);
    assert!(refunded(Arc::default()).spec().annotations.blocking);
}

#[test]
fn question_mark_in_a_tool_passes_error_texts_to_the_model() {
    let call = |from: &str| {
        let mailer: Arc<dyn Mailer> = Arc::new(Broken);
        call_directly(&write(mailer, from.to_owned()), json!({"to": "anna"}))
    };
    assert_eq!(call("x"), Err(ToolError::new("invalid digit found in string")));
    assert_eq!(call("7"), Err(ToolError::new("the mail server is closed")));
}

fn remove(fails: &'static str) -> impl Tool {
    let parameters = json!({"type": "object", "properties": {"note": {"type": "string"}}});
    let spec = ToolSpec::new("remove", "Removes a note for good.", parameters)
        .with_annotations(ToolAnnotations::destructive());
    let tool = FnTool::new(spec, move |_, _| async move {
        match fails {
            "io" => Err(io::Error::other("disk on fire"))?,
            "text" => Err("no such note")?,
            _ => {}
        }
        Ok("Removed.".into())
    });
    tool.with_summary("Remove {note}")
}

#[tokio::test]
async fn closure_with_a_summary_asks_with_it_and_takes_any_error() {
    let mut run = context();
    run.can_ask = true;
    let hostile = "a\u{202e}b, which you agreed to\nApprove";
    let call = ToolCall::new("c", "remove", json!({"note": hostile}));
    let Prepared::Ask(question) =
        engine([Arc::new(remove("")) as Arc<dyn Tool>]).prepare(call_id(), &call, &run).await
    else {
        panic!("nobody is asked")
    };
    assert_eq!(question.action_summary, r#"Remove "a\u{202e}b, which you agreed to\nApprove""#);
    assert_eq!(question.details["arguments"]["note"], hostile);
    let failed = |how| call_directly(&remove(how), Json::Null).unwrap_err();
    assert_eq!(failed("io"), ToolError::new("disk on fire"));
    assert_eq!(failed("text"), ToolError::new("no such note"));
}
