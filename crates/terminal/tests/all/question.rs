//! Questions: which keys answer, and when.

use archon_terminal::{AnswerScope, Composer, Input, Page, Place, Question, QuestionKey, Row, Theme};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{Answer, ApprovalRequest, QuestionKind};
use serde_json::json;

use crate::typing::{at, inputs};

fn request() -> ApprovalRequest {
    let details = json!({ "tool": "bash", "arguments": { "command": "cargo test" } });
    let mut request = ApprovalRequest::new("approval_1", "Run `cargo test`", details);
    request.rules = vec!["bash(cargo test)".into(), "bash(cargo:*)".into()];
    request
}

/// Returns what comes of keys with an empty draft, one in a second, with a frame after each.
fn keys(request: ApprovalRequest, typed: &str) -> Vec<QuestionKey> {
    keys_beside(request, typed, false)
}

fn keys_beside(request: ApprovalRequest, typed: &str, has_draft: bool) -> Vec<QuestionKey> {
    let mut question = Question::new(request);
    let press = |(input, second): (&Input, u64)| {
        question.mark_drawn(at(second * 1_000));
        question.apply(input, at((second + 1) * 1_000), has_draft)
    };
    inputs(typed).iter().zip(0..).map(press).collect()
}

fn last(request: ApprovalRequest, typed: &str) -> QuestionKey {
    keys(request, typed).pop().unwrap()
}

fn no(reason: &str) -> QuestionKey {
    QuestionKey::Decided(Answer::Cancel { reason: reason.into() }, AnswerScope::Once)
}

fn trust(rule: &str, scope: AnswerScope) -> QuestionKey {
    QuestionKey::Decided(Answer::Trust { rules: vec![rule.into()] }, scope)
}

fn texts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(Row::text).collect()
}

fn page(width: usize) -> Page {
    Page::new(width, Theme::new(true))
}

#[test]
fn plan_is_carried_out_by_a_yes_and_refused_with_a_reason() {
    let plan = || {
        let details = json!({ "tool": "finish_plan", "arguments": { "plan": "1. Do it" } });
        ApprovalRequest::new("approval_1", "Carry out this plan:\n1. Do it", details)
    };
    let (rows, _) = Question::new(plan()).rows(&page(80), 9, None);
    let keys = "  [y]es, carry it out  [e]dit  [n]o  no, and [t]ell why  Esc stops the run";
    assert_eq!(texts(&rows), ["? Carry out this plan:", keys]);
    assert_eq!(last(plan(), "tnot yet<Enter>"), no("not yet"));
}

// spec: AP-11, AP-13
#[test]
fn key_becomes_the_answer() {
    for (typed, expected) in [
        ("y", QuestionKey::Decided(Answer::Approve, AnswerScope::Once)),
        ("Y", QuestionKey::Decided(Answer::Approve, AnswerScope::Once)),
        ("s", trust("bash(cargo test)", AnswerScope::Session)),
        ("a", QuestionKey::Taken),
        ("aa", trust("bash(cargo test)", AnswerScope::Always)),
        ("aA", trust("bash(cargo test)", AnswerScope::Always)),
        ("n", no("")),
        ("t<Enter>", no("")),
        ("tuse make<Enter>", no("use make")),
        ("tuse <P:make\ntest><Enter>", no("use make\ntest")),
        ("tab<S-Enter>cd<Enter>", no("ab\ncd")),
        ("tnxyz<C-w>no<Home><Del><Enter>", no("o")),
        // Escape closes the field, and the keys answer again.
        ("tyes<Esc>y", QuestionKey::Decided(Answer::Approve, AnswerScope::Once)),
        ("tyes<Esc>t<Enter>", no("")),
        ("x", QuestionKey::NotForMe),
        ("<Enter>", QuestionKey::NotForMe),
        ("<Esc>", QuestionKey::NotForMe),
        ("<C-c>", QuestionKey::NotForMe),
        ("tab<C-c>", QuestionKey::NotForMe),
        ("<C-y>", QuestionKey::NotForMe),
        ("<A-y>", QuestionKey::NotForMe),
        ("<P:y>", QuestionKey::NotForMe),
        ("r", QuestionKey::NotForMe),
        ("ty", QuestionKey::Taken),
    ] {
        assert_eq!(last(request(), typed), expected, "{typed}");
    }
}

#[test]
fn keys_without_a_rule_or_an_option_are_not_offered() {
    let long = "x".repeat(201);
    for (rules, typed) in
        [(&[][..], "s"), (&["bash(a\u{202e}b)"], "a"), (&["bash(a\nb)"], "s"), (&[long.as_str()], "a")]
    {
        let mut request = request();
        request.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        assert_eq!(last(request, typed), QuestionKey::NotForMe, "{rules:?}");
    }
    let mut request = request();
    request.options = vec!["cancel".into()];
    assert_eq!(last(request, "y"), QuestionKey::NotForMe);
}

// spec: AP-05
#[test]
fn edit_of_the_arguments_becomes_the_answer() {
    let edit =
        |arguments: archon_types::Json| QuestionKey::Decided(Answer::Edit { arguments }, AnswerScope::Once);
    // The only argument is a text, so the text itself is edited.
    assert_eq!(last(request(), "e -q<Enter>"), edit(json!({ "command": "cargo test -q" })));
    assert_eq!(last(request(), "e<C-u>ls <P:a\nb><Enter>"), edit(json!({ "command": "ls a\nb" })));
    assert_eq!(last(request(), "e<C-u><Enter>"), QuestionKey::Taken, "nothing is left");
    assert_eq!(last(request(), "e<Esc>y"), QuestionKey::Decided(Answer::Approve, AnswerScope::Once));
    let mut two = request();
    two.details["arguments"] = json!({ "path": "a", "count": 1 });
    let mut question = Question::new(two.clone());
    question.mark_drawn(at(0));
    question.apply(&inputs("e")[0], at(1_000), false);
    let shown = texts(&question.rows(&page(80), 6, None).0);
    assert!(shown[1].contains("in JSON") && shown[2].contains(r#"{"path":"a","count":1}"#), "{shown:?}");
    assert_eq!(last(two.clone(), "e<C-u>{\"path\": \"b\"}<Enter>"), edit(json!({ "path": "b" })));
    for wrong in ["e<C-u>[1]<Enter>", "e,<Enter>"] {
        assert_eq!(last(two.clone(), wrong), QuestionKey::Taken, "{wrong}");
    }
    let (mut fixed, mut doubtful) = (request(), request());
    fixed.allow_modification = false;
    doubtful.kind = QuestionKind::InDoubt;
    for request in [fixed, doubtful] {
        assert_eq!(last(request, "e"), QuestionKey::NotForMe);
    }
}

#[test]
fn questions_of_other_kinds_take_replies_and_inputs() {
    let reply = |text: &str| QuestionKey::Decided(Answer::Reply { text: text.into() }, AnswerScope::Once);
    let in_doubt = ApprovalRequest::in_doubt("approval_1", "pay", &json!({ "sum": 3 }));
    assert_eq!(last(in_doubt.clone(), "rit was paid<Enter>"), reply("it was paid"));
    assert_eq!(last(in_doubt.clone(), "r <Enter>"), QuestionKey::Taken);
    assert_eq!(last(in_doubt, "y"), QuestionKey::Decided(Answer::Approve, AnswerScope::Once));
    let mut failed = request();
    (failed.kind, failed.options) = (QuestionKind::FailedStep, vec!["approve".into(), "reply".into()]);
    assert_eq!(last(failed, "r<Enter>"), reply(""));
    let input = |details| ApprovalRequest::of_tool("approval_1", "Which city?", details, json!(1));
    assert_eq!(last(input(json!({})), "rBerlin<Enter>"), reply("Berlin"));
    assert_eq!(last(input(json!({})), "y"), QuestionKey::NotForMe);
    let two = json!({ "missing": [{ "name": "city" }, { "name": "date" }] });
    let answers = keys(input(two), "rBerlin<Enter><Enter>now<Enter>");
    let arguments = json!({ "city": "Berlin", "date": "now" });
    assert_eq!(answers.last(), Some(&QuestionKey::Decided(Answer::Edit { arguments }, AnswerScope::Once)));
    assert!(answers[..answers.len() - 1].iter().all(|key| *key == QuestionKey::Taken));
}

// spec: AP-13
#[test]
fn keys_that_were_typed_early_do_not_answer() {
    for (drawn, typed, expected) in [
        // Read before the question was on the screen, though applied after.
        (Some(1_000), &[999][..], false),
        (Some(1_000), &[1_000], false),
        (Some(1_000), &[1_399], false),
        (Some(1_000), &[1_400], true),
        // A person who goes on with a sentence does not look at the question yet.
        (Some(1_000), &[1_200, 1_500], false),
        (Some(1_000), &[1_200, 1_500, 1_899], false),
        (Some(1_000), &[1_200, 1_500, 1_900], true),
        (Some(1_000), &[500, 1_400], true),
        (None, &[9_000], false),
    ] {
        let mut question = Question::new(request());
        if let Some(drawn) = drawn {
            question.mark_drawn(at(drawn));
            question.mark_drawn(at(drawn + 9_000));
        }
        let yes = inputs("y").remove(0);
        let keys: Vec<QuestionKey> = typed.iter().map(|ms| question.apply(&yes, at(*ms), false)).collect();
        let decided = QuestionKey::Decided(Answer::Approve, AnswerScope::Once);
        assert_eq!(keys.last() == Some(&decided), expected, "{drawn:?} {typed:?}");
        assert!(keys[..keys.len() - 1].iter().all(|key| *key == QuestionKey::NotForMe), "{typed:?}");
    }
}

// spec: AP-13
#[test]
fn letters_beside_a_draft_go_to_the_draft_unless_tab_comes_first() {
    let yes = QuestionKey::Decided(Answer::Approve, AnswerScope::Once);
    for (typed, expected) in [
        ("y", QuestionKey::NotForMe),
        ("a", QuestionKey::NotForMe),
        ("<Tab>", QuestionKey::Taken),
        ("<Tab>y", yes),
        ("<Tab>a", QuestionKey::Taken),
        ("<Tab>aa", trust("bash(cargo test)", AnswerScope::Always)),
        ("<Tab>tno<Enter>", no("no")),
        // Any other key goes on with the draft.
        ("<Tab>x", QuestionKey::NotForMe),
        ("<Tab>xy", QuestionKey::NotForMe),
        ("<Tab><Tab>", QuestionKey::NotForMe),
        ("<Tab><P:y>y", QuestionKey::NotForMe),
    ] {
        assert_eq!(keys_beside(request(), typed, true).pop(), Some(expected), "{typed}");
    }
    assert_eq!(last(request(), "<Tab>"), QuestionKey::NotForMe, "without a draft the letters answer");
    // A Tab that was pressed before the question was seen was not meant for it, nor is the letter behind it.
    let mut question = Question::new(request());
    question.mark_drawn(at(1_000));
    for input in inputs("<Tab>y") {
        assert_eq!(question.apply(&input, at(1_300), true), QuestionKey::NotForMe);
    }
    // Behind a Tab that was meant for it, a letter answers at once.
    let [tab, letter] = <[_; 2]>::try_from(inputs("<Tab>n")).unwrap();
    assert_eq!(question.apply(&tab, at(2_000), true), QuestionKey::Taken);
    assert_eq!(question.apply(&letter, at(2_001), true), no(""));
}

// spec: AP-13
#[test]
fn question_that_was_hidden_takes_no_key_before_it_is_seen_again() {
    for (before, has_draft, key) in [("", false, "y"), ("", true, "<Tab>"), ("<Tab>", true, "y")] {
        let mut question = Question::new(request());
        question.mark_drawn(at(0));
        for input in inputs(before) {
            assert_eq!(question.apply(&input, at(1_000), has_draft), QuestionKey::Taken);
            question.mark_drawn(at(1_000));
        }
        question.mark_hidden();
        let input = &inputs(key)[0];
        assert_eq!(question.apply(input, at(9_000), has_draft), QuestionKey::NotForMe, "{before}{key}");
        question.mark_drawn(at(9_000));
        let is_taken = question.apply(input, at(10_000), has_draft) != QuestionKey::NotForMe;
        assert_eq!(is_taken, before.is_empty(), "{before}{key}");
    }
}

// spec: AP-11
#[test]
fn rule_is_stored_only_by_a_second_press_that_is_not_early() {
    for (typed, expected) in [
        ("ay", QuestionKey::NotForMe),
        ("ayy", QuestionKey::Decided(Answer::Approve, AnswerScope::Once)),
        ("a<Esc>", QuestionKey::Taken),
        ("a<Esc>a", QuestionKey::Taken),
        ("a<Esc>y", QuestionKey::Decided(Answer::Approve, AnswerScope::Once)),
        ("a<C-c>", QuestionKey::NotForMe),
        ("a<P:a>", QuestionKey::NotForMe),
    ] {
        assert_eq!(last(request(), typed), expected, "{typed}");
    }
    // A key that repeats because it is held, and the word `aardvark`.
    let mut question = Question::new(request());
    let press = &inputs("a")[0];
    question.mark_drawn(at(0));
    assert_eq!(question.apply(press, at(1_000), false), QuestionKey::Taken);
    assert_eq!(question.clone().apply(press, at(9_000), false), QuestionKey::NotForMe, "it was not drawn");
    question.mark_drawn(at(1_010));
    assert_eq!(question.apply(press, at(1_409), false), QuestionKey::NotForMe);
    assert_eq!(question.apply(press, at(1_420), true), QuestionKey::NotForMe);
}

#[test]
fn rows_beside_a_draft_say_how_to_answer() {
    let draft = Composer::default();
    let mut question = Question::new(request());
    question.mark_drawn(at(0));
    let (rows, place) = question.rows(&page(100), 6, Some(&draft));
    assert_eq!(
        texts(&rows),
        ["? Run `cargo test`", "  empty the draft to answer, or press Tab  Esc stops the run"]
    );
    assert_eq!(place, None);
    question.apply(&inputs("<Tab>")[0], at(1_000), true);
    assert_eq!(
        texts(&question.rows(&page(100), 6, Some(&draft)).0),
        texts(&question.rows(&page(100), 6, None).0)
    );
    question.apply(&inputs("a")[0], at(2_000), true);
    let (rows, _) = question.rows(&page(60), 6, Some(&draft));
    assert_eq!(
        texts(&rows),
        [
            "? Run `cargo test`",
            "  press [a] again to store the rule bash(cargo test), any",
            "  other key goes back",
        ]
    );
}

#[test]
fn rows_show_the_question_its_keys_and_the_text_field() {
    let mut question = Question::new(request());
    question.mark_drawn(at(0));
    let (rows, place) = question.rows(&page(100), 6, None);
    assert_eq!(
        texts(&rows),
        [
            "? Run `cargo test`",
            "  [y]es, once  for this [s]ession  [a]lways: bash(cargo test)  [e]dit  [n]o  no, and [t]ell why",
            "  Esc stops the run",
        ]
    );
    assert_eq!(place, None);
    for input in inputs("tuse make") {
        question.apply(&input, at(1_000), false);
    }
    let (rows, place) = question.rows(&page(60), 6, None);
    assert_eq!(
        texts(&rows),
        [
            "? Run `cargo test`",
            "  Why not? The model reads this.  (Enter sends it, Esc goes…",
            "  › use make ",
        ]
    );
    assert_eq!(place, Some(Place { row: 2, column: 12 }));
    let (rows, place) = question.rows(&page(60), 1, None);
    assert_eq!((texts(&rows), place.map(|place| place.row)), (vec!["  › use make ".into()], Some(0)));
}

#[test]
fn rows_of_a_narrow_page_show_the_whole_rule() {
    let mut request = request();
    request.rules = vec!["bash(cargo test --workspace --all-features)".into()];
    request.action_summary = "Run `cargo test\u{1b}[2J` and more words\nsecond line".into();
    let (rows, _) = Question::new(request).rows(&page(30), 12, None);
    assert_eq!(
        texts(&rows),
        [
            "? Run `cargo test\\u{1b}[2J` a…",
            "  [y]es, once",
            "  for this [s]ession",
            "  [a]lways: bash(cargo test",
            "  --workspace --all-features)",
            "  [e]dit  [n]o",
            "  no, and [t]ell why",
            "  Esc stops the run",
        ]
    );
}

/// No inputs before the question was quiet for 400 ms decide anything, and rows always fit.
#[test]
fn random_early_keys_never_decide() {
    let draft = Composer::default();
    for seed in first_seed()..first_seed() + cases(500, 20_000) {
        let mut chance = Chance(seed);
        let mut question = Question::new(request());
        let mut now = 0;
        let drawn = chance.below(2_000);
        question.mark_drawn(at(drawn));
        for _ in 0..chance.below(40) {
            now += chance.below(500);
            let letter = ['y', 's', 'a', 'n', 't', 'x'][usize::try_from(chance.below(6)).unwrap()];
            let before = question.clone();
            let has_draft = chance.percent(20);
            match question.apply(&inputs(&letter.to_string())[0], at(now), has_draft) {
                QuestionKey::NotForMe => {}
                _ => {
                    assert!(now >= drawn + 400 && !has_draft, "seed {seed}: {letter} at {now}");
                    question = before;
                }
            }
            let (width, most) = (1 + usize::try_from(chance.below(80)).unwrap(), chance.below(9));
            let (rows, _) =
                question.rows(&page(width), usize::try_from(most).unwrap(), has_draft.then_some(&draft));
            assert!(rows.len() <= usize::try_from(most.max(1)).unwrap(), "seed {seed}");
            assert!(rows.iter().all(|row| row.width() <= width), "seed {seed}, {width}: {:?}", texts(&rows));
        }
    }
}
