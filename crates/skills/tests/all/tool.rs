//! The tool `activate_skill`, and the bound of a run.

use std::sync::Arc;

use archon_skills::{ActivateSkill, SKILL_METADATA, SkillBound, SkillConversations};
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    Context, Json, PermissionBound, Permit, SessionId, Subject, Tool, ToolContext, ToolError, ToolResult,
    ToolSpec,
};
use serde_json::json;

use crate::folders::Place;

fn context(session: &str) -> Context {
    let (clock, ids) = (Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    Context::new("run".into(), session.into(), clock, ids)
}

fn tool(place: &Place) -> (ActivateSkill, Arc<SkillConversations>) {
    let conversations = Arc::new(SkillConversations::new(Arc::new(place.load())));
    (ActivateSkill::new(conversations.clone()).unwrap(), conversations)
}

async fn call(tool: &ActivateSkill, session: &str, arguments: Json) -> Result<ToolResult, ToolError> {
    tool.call(arguments, &ToolContext::new(context(session), "call_1".into(), "activate_skill")).await
}

async fn refusal(tool: &ActivateSkill, arguments: Json) -> (&'static str, String) {
    let error = call(tool, "s", arguments).await.unwrap_err();
    (error.code(), error.to_string())
}

// spec: SK-05, SK-09
#[test]
fn spec_names_the_visible_skills_and_there_is_no_tool_without_any() {
    let place = Place::new();
    place.skill("hidden", "disable-model-invocation: true\n");
    assert!(ActivateSkill::new(Arc::new(SkillConversations::new(Arc::new(place.load())))).is_none());
    place.skill("b", "");
    place.skill("a", "");
    let tool = tool(&place).0;
    let properties = &tool.spec().parameters["properties"];
    assert_eq!(properties["name"]["enum"], json!(["a", "b"]));
    assert_eq!(properties["called_by"]["enum"], json!(["a", "b"]));
}

// spec: SK-05, SK-07, A-47
#[tokio::test]
async fn call_brings_the_instructions_once_and_follows_the_chain() {
    let place = Place::new();
    for name in ["A", "B", "C"] {
        place.skill(name, "");
    }
    let (tool, conversations) = tool(&place);
    let first = call(&tool, "s", json!({ "name": "A" })).await.unwrap();
    assert!(first.text().contains("Do A."));
    assert_eq!(first.metadata[SKILL_METADATA]["name"], "A");
    let again = call(&tool, "s", json!({ "name": "A" })).await.unwrap().text();
    assert!(again.contains("already in this conversation") && !again.contains("Do A."), "{again}");
    assert!(call(&tool, "other", json!({ "name": "A" })).await.unwrap().text().contains("Do A."));

    assert_eq!(
        refusal(&tool, json!({ "name": "A", "called_by": "A" })).await,
        ("invalid_parameters", "Circular dependency detected: A → A".to_owned())
    );
    assert_eq!(refusal(&tool, json!({ "name": "C", "called_by": "B" })).await.0, "invalid_parameters");
    call(&tool, "s", json!({ "name": "B", "called_by": "A" })).await.unwrap();
    call(&tool, "s", json!({ "name": "C", "called_by": "B" })).await.unwrap();
    assert_eq!(
        refusal(&tool, json!({ "name": "A", "called_by": "C" })).await.1,
        "Circular dependency detected: A → B → C → A"
    );
    assert_eq!(conversations.of(&SessionId::new("s")).active(&"run".into()).len(), 3);
}

// spec: SK-04
#[tokio::test]
async fn call_with_a_file_reads_it_only_of_an_active_skill() {
    let place = Place::new();
    place.skill("pdf", "");
    place.write("pdf/references/forms.md", "Fill them.");
    place.write("pdf/logo.png", b"\xff\xfe");
    let tool = tool(&place).0;
    let file = |name: &str| json!({ "name": "pdf", "file": name });
    assert_eq!(refusal(&tool, file("references/forms.md")).await.0, "invalid_parameters");
    call(&tool, "s", json!({ "name": "pdf" })).await.unwrap();
    assert_eq!(call(&tool, "s", file("references/forms.md")).await.unwrap().text(), "Fill them.");
    assert_eq!(refusal(&tool, file("../pdf/SKILL.md")).await.0, "invalid_parameters");
    assert!(refusal(&tool, file("logo.png")).await.1.ends_with("it is not UTF-8 text"));
    assert_eq!(refusal(&tool, file("nothing")).await.0, "execution_error");
}

// spec: SK-10, SK-11
#[tokio::test]
async fn recall_in_another_process_restores_the_active_skill() {
    let place = Place::new();
    place.skill("a", "allowed-tools: Read\n");
    place.skill("b", "");
    let before = tool(&place).0;
    let earlier = call(&before, "s", json!({ "name": "a" })).await.unwrap();
    let (tool, conversations) = tool(&place);
    tool.recall(&SessionId::new("s"), &earlier);
    tool.recall(&SessionId::new("s"), &ToolResult::success("without metadata"));
    let conversation = conversations.of(&SessionId::new("s"));
    assert_eq!(conversation.active(&"run".into())[0].name, "a");
    assert!(!conversation.offers_tool(&"run".into(), "bash"));
    // The run of the next message has the instructions, and no active skill.
    assert!(conversation.active(&"run_2".into()).is_empty());
    assert!(!call(&tool, "s", json!({ "name": "a" })).await.unwrap().text().contains("Do a."));
    assert!(call(&tool, "s", json!({ "name": "b", "called_by": "a" })).await.is_ok());
}

// spec: SK-09, SK-11
#[tokio::test]
async fn recall_restores_the_limits_of_the_activation_whatever_became_of_the_skill() {
    for change in ["as it was", "wider", "without limits", "gone"] {
        let place = Place::new();
        place.skill("a", "allowed-tools: Read\n");
        let earlier = call(&tool(&place).0, "s", json!({ "name": "a" })).await.unwrap();
        match change {
            "wider" => drop(place.skill("a", "allowed-tools: Read Bash\n")),
            "without limits" => drop(place.skill("a", "")),
            "gone" => std::fs::remove_dir_all(place.path().join("a")).unwrap(),
            _ => {}
        }
        let conversations = SkillConversations::new(Arc::new(place.load()));
        conversations.recall(&SessionId::new("s"), &earlier);
        let conversation = conversations.of(&SessionId::new("s"));
        let blocker = |tool: &str| conversation.blocker(&"run".into(), tool, &Subject::Unknown);
        assert_eq!((blocker("bash").as_deref(), blocker("read_file")), (Some("a"), None), "{change}");
    }
}

/// Asks about everything.
struct Asks;

impl PermissionBound for Asks {
    fn verdict(&self, _: &ToolSpec, _: &Subject, _: &Context) -> Permit {
        Permit::Ask
    }
}

// spec: SK-09
#[tokio::test]
async fn bound_denies_what_an_active_skill_does_not_allow_and_else_asks_the_bound_above() {
    let place = Place::new();
    place.skill("a", "allowed-tools: Read\n");
    let (tool, conversations) = tool(&place);
    let bound = |above| SkillBound::new(conversations.of(&SessionId::new("s")), "run".into(), above);
    let verdict = |bound: SkillBound, name: &str| {
        let spec = ToolSpec::new(name, "", json!({ "type": "object" }));
        bound.verdict(&spec, &Subject::Unknown, &context("s"))
    };
    assert_eq!(verdict(bound(None), "bash"), Permit::Allow);
    call(&tool, "s", json!({ "name": "a" })).await.unwrap();
    let denied = Permit::Deny("allowed-tools of the active skill `a`".to_owned());
    assert_eq!(verdict(bound(None), "bash"), denied);
    assert_eq!(verdict(bound(Some(Arc::new(Asks))), "bash"), denied);
    assert_eq!(verdict(bound(Some(Arc::new(Asks))), "read_file"), Permit::Ask);
    assert_eq!(verdict(bound(None), "activate_skill"), Permit::Allow);
}
