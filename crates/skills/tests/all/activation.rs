//! Activation: chains, limits, and what a conversation remembers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Barrier},
    thread,
};

use archon_skills::{
    AllowedTools, RuleMatcher, SkillActivationRequest, SkillActivator, SkillConversations, SkillError,
    SkillLevel, SkillMessageKind, SkillVisibility,
};
use archon_types::{RunId, SessionId, Subject, Timestamp};
use proptest::prelude::*;

use crate::folders::Place;

fn place_with(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        place.skill(name, "");
    }
    place
}

fn request(name: &str, chain: &[&str]) -> SkillActivationRequest {
    SkillActivationRequest::new(name).with_activation_chain(chain.iter().copied()).with_run(run())
}

fn run() -> RunId {
    RunId::new("run_1")
}

// spec: SK-06, SK-07, A-47, Q-05
#[test]
fn activate_in_a_circle_or_too_deep_is_refused_with_the_chain() {
    let place = place_with(&["A", "B", "C", "D", "E"]);
    let conversation = place.conversation();
    let activate = |name: &str, chain: &[&str]| {
        let result = conversation.activate(&request(name, chain));
        result.error.map(|error| error.to_string())
    };
    assert_eq!(activate("A", &[]), None);
    assert_eq!(activate("A", &["A"]).unwrap(), "Circular dependency detected: A → A");
    assert_eq!(activate("B", &["A"]), None);
    assert_eq!(activate("C", &["A", "B"]), None);
    assert_eq!(activate("A", &["A", "B", "C"]).unwrap(), "Circular dependency detected: A → B → C → A");
    assert_eq!(activate("D", &["A", "B", "C"]), None);
    assert_eq!(activate("E", &["A", "B", "C", "D"]).unwrap(), "Maximum skill activation depth (3) exceeded");
    let deep = request("E", &["A", "B"]).with_max_depth(1);
    assert_eq!(conversation.activate(&deep).error, Some(SkillError::TooDeep(1)));
    let active: Vec<String> = conversation.active(&run()).into_iter().map(|active| active.name).collect();
    assert_eq!(active, ["A", "B", "C", "D"]);
    assert_eq!(conversation.chain_below(&run(), "C").unwrap(), ["A", "B", "C"]);
    assert_eq!(conversation.chain_below(&run(), "E"), Err(SkillError::CallerNotActive("E".to_owned())));
}

// spec: SK-08, Q-05
#[test]
fn activate_returns_messages_and_modifier() {
    let place = Place::new();
    place.skill("review", "allowed-tools: Read Bash(git log:*)\nmodel: small\n");
    let conversation = place.conversation();
    let asked = request("review", &[]).with_user_request("the parser").with_activation_id("act_1");
    let result = conversation.activate(&asked.with_time(Timestamp::from_millis(7)));
    assert!(result.success && result.error.is_none());
    let modifier = result.context_modifier.clone().unwrap();
    assert_eq!(modifier.allowed_tools, Some(AllowedTools::new(["read_file", "bash(git log:*)"])));
    assert_eq!((modifier.model.as_deref(), modifier.disable_model_invocation), (Some("small"), false));
    let kinds: Vec<_> = result.messages.iter().map(|message| (message.kind, message.visibility)).collect();
    assert_eq!(
        kinds,
        [
            (SkillMessageKind::Metadata, SkillVisibility::Visible),
            (SkillMessageKind::Instruction, SkillVisibility::Hidden),
            (SkillMessageKind::Permissions, SkillVisibility::Visible),
        ]
    );
    assert_eq!(
        result.text_for_person(),
        "The skill `review` is active, for: the parser\n\
         Only these tools may be called while it is active: read_file bash(git log:*). The model is small."
    );
    assert!(result.text_for_model().contains("<skill_content name=\"review\">\nDo review.\n"));
    let active = conversation.active(&run());
    assert_eq!((active[0].activation_id.as_str(), active[0].since), ("act_1", Timestamp::from_millis(7)));

    let metadata = request("review", &[]).with_load_level(SkillLevel::Metadata);
    let result = place.conversation().activate(&metadata);
    assert_eq!(result.messages.len(), 2);
    assert!(!result.text_for_model().contains("Do review."));
}

// spec: SK-09, Q-05
#[test]
fn activate_hidden_skill_only_by_a_person_and_unknown_never() {
    let place = Place::new();
    place.skill("deploy", "disable-model-invocation: true\n");
    place.skill("review", "");
    let conversation = place.conversation();
    let by_model = conversation.activate(&request("deploy", &[]));
    assert_eq!(by_model.error, Some(SkillError::OnlyByPerson("deploy".to_owned())));
    assert!(by_model.messages.is_empty() && by_model.context_modifier.is_none());
    let by_person = request("deploy", &[]).with_activator(SkillActivator::Person);
    assert!(conversation.activate(&by_person).success);
    let unknown = |name: &str| conversation.activate(&request(name, &[])).error.unwrap().to_string();
    assert_eq!(unknown("reviews"), "there is no skill `reviews`; did you mean `review`?");
    // The hidden skill is not among those that a model may choose.
    assert_eq!(unknown("zzz"), "there is no skill `zzz`; the skills are: review");
    let set = place.load();
    assert_eq!(set.command(" /deploy  now ").unwrap().1, "now");
    assert!(set.command("deploy now").is_none() && set.command("/other").is_none());
}

// spec: SK-10, SK-11, Q-05
#[test]
fn activate_by_threads_at_once_brings_the_instructions_once() {
    let place = place_with(&["a", "b"]);
    let conversation = place.conversation();
    let barrier = Barrier::new(8);
    let with_body = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    conversation.activate(&request("a", &[])).text_for_model().contains("Do a.")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|has| *has).count()
    });
    assert_eq!(with_body, 1);
    conversation.activate(&request("b", &[]));
    conversation.activate(&request("c", &[]));
    let metrics = conversation.metrics();
    assert_eq!((metrics.activations, metrics.repeated, metrics.refused), (9, 7, 1));
    assert_eq!((metrics.unique_skills(), metrics.by_skill["a"]), (2, 8));
    assert_eq!(conversation.active(&run()).len(), 2);

    let next = RunId::new("run_2");
    assert!(conversation.active(&next).is_empty());
    assert!(!conversation.activate(&request("a", &[]).with_run(next)).text_for_model().contains("Do a."));
    conversation.forget_instructions("a");
    assert!(conversation.activate(&request("a", &[])).text_for_model().contains("Do a."));
}

// spec: SK-10
#[test]
fn activate_of_an_unreadable_file_changes_nothing() {
    let place = place_with(&["a"]);
    let conversation = place.conversation();
    std::fs::remove_file(place.path().join("a/SKILL.md")).unwrap();
    assert!(matches!(conversation.activate(&request("a", &[])).error, Some(SkillError::Unreadable { .. })));
    assert!(conversation.active(&run()).is_empty());
    place.skill("a", "");
    assert!(conversation.activate(&request("a", &[])).text_for_model().contains("Do a."));
}

// spec: SK-10
#[test]
fn conversations_beyond_the_limit_drop_the_oldest_that_nobody_holds() {
    let place = place_with(&["a"]);
    let conversations = SkillConversations::new(Arc::new(place.load())).with_most(2);
    let session = |name: &str| SessionId::new(name);
    let held = conversations.of(&session("1"));
    held.activate(&request("a", &[]));
    conversations.of(&session("2")).activate(&request("a", &[]));
    conversations.of(&session("3"));
    assert_eq!(conversations.of(&session("1")).active(&run()).len(), 1);
    assert!(conversations.of(&session("2")).active(&run()).is_empty());
    assert_eq!(conversations.metrics().activations, 2);
}

// spec: SK-08, SK-11
#[test]
fn for_message_activates_nothing_before_a_run_has_its_mark() {
    let place = Place::new();
    place.skill("review", "allowed-tools: Read\ndisable-model-invocation: true\n");
    let conversations = SkillConversations::new(Arc::new(place.load()));
    let conversation = conversations.of(&SessionId::new("s"));
    let asked = SkillActivationRequest::new("review").with_user_request("the parser");
    let refused = conversations.for_message(&asked);
    assert_eq!(refused.error, Some(SkillError::OnlyByPerson("review".to_owned())));
    assert!(refused.mark.is_none());
    let asked = asked.with_activator(SkillActivator::Person);
    for _ in 0..2 {
        // Each message has the instructions, because an earlier one may have left the window.
        let activation = conversations.for_message(&asked);
        assert!(activation.success && activation.text_for_model().contains("Do review."));
        assert!(conversation.active(&run()).is_empty());
    }
    let mark = conversations.for_message(&asked).mark.unwrap();
    assert_eq!(mark.tool, "activate_skill");
    conversations.recall(&SessionId::new("s"), &mark.result(&run()));
    assert_eq!(conversation.active(&run())[0].name, "review");
    assert_eq!(conversation.blocker(&run(), "bash", &Subject::Unknown).unwrap(), "review");
    assert!(conversation.blocker(&RunId::new("run_2"), "bash", &Subject::Unknown).is_none());
    let metrics = conversations.metrics();
    assert_eq!((metrics.activations, metrics.refused, metrics.unique_skills()), (3, 1, 1));
}

/// Allows calls whose command begins with the text in the brackets of a rule.
struct Prefixes;

impl RuleMatcher for Prefixes {
    fn allows(&self, rules: &[&str], _: &str, subject: &Subject) -> bool {
        let Subject::Command { line, .. } = subject else { return false };
        let prefixes = rules.iter().filter_map(|rule| rule.split_once('(')?.1.strip_suffix(":*)"));
        prefixes.into_iter().any(|prefix| line.starts_with(prefix))
    }
}

const TOOLS: [&str; 4] = ["read_file", "write_file", "bash", "mcp__a__b"];

/// Returns the calls that a conversation allows.
fn allowed_calls(conversation: &archon_skills::SkillConversation) -> BTreeSet<String> {
    let command = |line: &str| Subject::Command { line: line.to_owned(), root: "/".into() };
    let calls = TOOLS.map(|tool| (tool, Subject::Unknown)).into_iter();
    let calls = calls.chain(["git log", "git push", "rm x"].map(|line| ("bash", command(line))));
    let allowed = calls.filter(|(tool, subject)| conversation.blocker(&run(), tool, subject).is_none());
    allowed.map(|(tool, subject)| format!("{tool} {subject:?}")).collect()
}

fn rules() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(vec![
        "Read",
        "write_file",
        "Bash",
        "Bash(git:*)",
        "Bash(git log:*)",
        "Bash(",
        "mcp__*",
        "*",
        "nothing",
    ]);
    prop::collection::vec(rule, 0..4).prop_map(|rules| rules.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: SK-09
    #[test]
    fn activate_further_skill_never_allows_more(lists in prop::collection::vec(rules(), 1..5)) {
        let place = Place::new();
        for (number, list) in lists.iter().enumerate() {
            place.skill(&format!("s{number}"), &format!("allowed-tools: \"{list}\"\n"));
        }
        let conversation = place.conversation().with_matcher(Arc::new(Prefixes));
        let mut before = allowed_calls(&conversation);
        prop_assert_eq!(before.len(), 7);
        for (number, list) in lists.iter().enumerate() {
            let result = conversation.activate(&request(&format!("s{number}"), &[]));
            prop_assert!(result.success, "{:?}", result.error);
            let after = allowed_calls(&conversation);
            prop_assert!(after.is_subset(&before), "{list}: {after:?} is more than {before:?}");
            let offered = |tool: &str| conversation.offers_tool(&run(), tool);
            let callable = |tool: &str| after.iter().any(|call| call.starts_with(&format!("{tool} ")));
            prop_assert!(TOOLS.iter().all(|tool| offered(tool) || !callable(tool)));
            before = after;
        }
    }
}

#[test]
fn allowed_tools_of_two_active_skills_are_intersected_and_end_with_them() {
    let place = Place::new();
    place.skill("a", "allowed-tools: Read Bash(git:*)\n");
    place.skill("b", "allowed-tools: Bash(git log:*) Write\n");
    let conversation = place.conversation().with_matcher(Arc::new(Prefixes));
    conversation.activate(&request("a", &[]));
    conversation.activate(&request("b", &[]));
    let calls = allowed_calls(&conversation);
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(calls.first().unwrap().contains("git log"));
    assert!(
        conversation.offers_tool(&run(), "activate_skill") && !conversation.offers_tool(&run(), "read_file")
    );
    assert_eq!(conversation.blocker(&run(), "write_file", &Subject::Unknown).unwrap(), "a");
    conversation.end_run(&run());
    assert_eq!(allowed_calls(&conversation).len(), 7);
}
