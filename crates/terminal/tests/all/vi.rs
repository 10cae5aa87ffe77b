//! Vi keys: modes, motions, operators, and what they leave to other keys.

use archon_terminal::{
    Action, Composer, Draft, Input, InterruptAction, Key, Keymap, Meter, Question, QuestionKey, Status,
    ViMode, Work,
};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{ApprovalRequest, SessionMode};
use serde_json::json;
use unicode_segmentation::GraphemeCursor;

use crate::{
    composer::{apply, draft_text, page, random_input},
    typing::{at, inputs},
};

fn vi() -> Composer {
    Composer::new(Keymap::default()).with_vi_keys()
}

/// Applies keys to an empty draft in insert mode.
fn vi_with(keys: &str) -> Composer {
    let mut composer = vi();
    apply(&mut composer, keys);
    composer
}

#[test]
fn motions_move_the_caret() {
    for (keys, expected) in [
        ("abc<Esc>", "ab|c"),
        ("abc<Left><Left><Esc>", "|abc"),
        ("<Esc>", "|"),
        ("abc<Esc>h", "a|bc"),
        ("abc<Esc>9h", "|abc"),
        ("abc<Esc>0", "|abc"),
        ("abc<Esc>0l", "a|bc"),
        ("abc<Esc>0$", "ab|c"),
        ("abc<Esc>l", "ab|c"),
        ("abc<Esc><End>", "ab|c"),
        ("  ab<Esc>^", "  |ab"),
        ("one, two<Esc>0w", "one|, two"),
        ("one, two<Esc>02w", "one, |two"),
        ("one two<Esc>b", "one |two"),
        ("one two<Esc>2b", "|one two"),
        ("one, two<Esc>0e", "on|e, two"),
        ("one, two<Esc>03e", "one, tw|o"),
        ("ab<S-Enter>cd<Esc>h", "ab\n|cd"),
        ("ab<S-Enter>cd<Esc>9h", "ab\n|cd"),
        ("ab<S-Enter>cd<Esc>b2b", "|ab\ncd"),
        ("ab<S-Enter>cd<Esc>k", "a|b\ncd"),
        ("ab<S-Enter>cd<Esc>kl", "a|b\ncd"),
        ("ab<S-Enter>cd<Esc>kj", "ab\nc|d"),
        ("ab<S-Enter>cd<Esc>gg", "|ab\ncd"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>2G", "ab\n|cd\nef"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>ggG", "ab\ncd\n|ef"),
        ("ab<S-Enter>cd<Esc>9G", "ab\n|cd"),
        ("ab<S-Enter><S-Enter>cd<Esc>2G", "ab\n|\ncd"),
        ("ae\u{301}日<Esc>hh", "|ae\u{301}日"),
    ] {
        assert_eq!(draft_text(&vi_with(keys)), expected, "{keys}");
    }
}

#[test]
fn commands_change_the_draft() {
    for (keys, expected) in [
        // Erase and change.
        ("abc<Esc>x", "a|b"),
        ("abcdef<Esc>03x", "|def"),
        ("ab<S-Enter>cd<Esc>k5x", "|a\ncd"),
        ("ae\u{301}日<Esc>hx", "a|日"),
        ("abc<Esc>0lD", "|a"),
        ("one two<Esc>0C1", "1|"),
        ("one two<Esc>0dw", "|two"),
        ("one, two<Esc>0dw", "|, two"),
        ("one two three<Esc>0d2w", "|three"),
        ("one two three<Esc>02dw", "|three"),
        ("one two<Esc>de", "one t|w"),
        ("one two<Esc>0de", "| two"),
        ("one two<Esc>db", "one |o"),
        ("one two<Esc>bd$", "one| "),
        ("  ab<Esc>d^", "  |b"),
        ("abc<Esc>d0", "|c"),
        ("abcdef<Esc>0d3l", "|def"),
        ("one<S-Enter>two<Esc>gg0dw", "|\ntwo"),
        ("one two<Esc>0cwten", "ten| two"),
        ("one two<Esc>0ecw!", "on!| two"),
        ("one  two<Esc>0elcw_", "one_|two"),
        ("one two three<Esc>0c2wx", "x| three"),
        // Lines.
        ("ab<S-Enter>cd<Esc>kdd", "|cd"),
        ("ab<S-Enter>cd<Esc>dd", "|ab"),
        ("ab<S-Enter>  cd<S-Enter>ef<Esc>ggdd", "  |cd\nef"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>gg2dd", "|ef"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>2GdG", "|ab"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>2Gdgg", "|ef"),
        ("ab<Esc>dd", "|"),
        ("ab<S-Enter>cd<Esc>ccx", "ab\nx|"),
        ("ab<S-Enter>cd<S-Enter>ef<Esc>gg2ccx", "x|\nef"),
        // Insert.
        ("ab<Esc>ix", "ax|b"),
        ("ab<Esc>0ax", "ax|b"),
        ("ab<Esc>ax", "abx|"),
        ("<Esc>ax", "x|"),
        ("  ab<Esc>Ix", "  x|ab"),
        ("ab<Esc>0Ax", "abx|"),
        ("ab<S-Enter>cd<Esc>kox", "ab\nx|\ncd"),
        ("ab<S-Enter>cd<Esc>Ox", "ab\nx|\ncd"),
        // Put.
        ("abc<Esc>xp", "ab|c"),
        ("abc<Esc>0xp", "b|ac"),
        ("abc<Esc>0xP", "|abc"),
        ("one two<Esc>0ywP", "one| one two"),
        ("one two<Esc>y0", "|one two"),
        ("ab<S-Enter>cd<Esc>ddp", "ab\n|cd"),
        ("ab<S-Enter>cd<Esc>ddP", "|cd\nab"),
        ("ab<S-Enter>cd<Esc>kyyjP", "ab\n|ab\ncd"),
        ("ab<S-Enter>cd<Esc>kyyp", "ab\n|ab\ncd"),
        ("  ab<Esc>yyp", "  ab\n  |ab"),
        ("<Esc>p", "|"),
        ("one two<C-w><Esc>p", "one tw|o"),
        // Undo.
        ("one two<Esc>0dwu", "|one two"),
        ("one two<Esc>0dwu<C-r>", "|two"),
        ("one two<Esc>u", "one| "),
        ("abc<Esc>xxx3u", "ab|c"),
        ("abc<Esc>xxx3u2<C-r>", "|a"),
        ("abc<Esc>xuix<Esc><C-r>", "ab|xc"),
        // No command.
        ("ab<Esc>d<Esc>x", "|a"),
        ("ab<Esc>dqx", "|a"),
        ("ab<Esc>gqx", "|a"),
        ("ab<Esc>dyx", "|a"),
        ("ab<Esc>. x", "|a"),
    ] {
        assert_eq!(draft_text(&vi_with(keys)), expected, "{keys}");
    }
}

// spec: CL-06
#[test]
fn keys_leave_the_mode_and_the_action_that_belong_to_it() {
    let cancel = Action::Interrupt(InterruptAction::CancelRun);
    let (insert, normal) = (ViMode::Insert, ViMode::Normal);
    for (keys, work, action, mode) in [
        ("x", Work::Idle, Action::Redraw, insert),
        ("x<Esc>", Work::Model, Action::Redraw, normal),
        ("x<C-[>", Work::Model, Action::Redraw, normal),
        ("x<Esc><Esc>", Work::Model, cancel.clone(), normal),
        ("<Esc><Esc>", Work::Idle, Action::Escape, normal),
        ("x<Esc>d<Esc>", Work::Model, Action::Nothing, normal),
        // An empty draft lets keys answer a question.
        ("x<Esc>xd<Esc>", Work::Asking, cancel.clone(), normal),
        ("<Esc>", Work::Asking, cancel, insert),
        ("x<Esc>", Work::Asking, Action::Redraw, normal),
        ("x<Esc>i", Work::Idle, Action::Redraw, insert),
        ("x<Esc>cc", Work::Idle, Action::Redraw, insert),
        ("x<Esc>q", Work::Idle, Action::Nothing, normal),
        ("x<Esc><C-r>", Work::Idle, Action::Redraw, normal),
        ("x<Esc><Enter>", Work::Idle, Action::Send(Draft::typed("x")), insert),
        ("x<Esc><C-c>", Work::Idle, Action::Interrupt(InterruptAction::ClearDraft), insert),
        ("x<Esc><BackTab>", Work::Idle, Action::NextMode, normal),
    ] {
        let mut composer = vi();
        let actions = inputs(keys).into_iter().map(|input| composer.apply(input, at(0), work));
        assert_eq!(actions.last(), Some(action), "{keys} {work:?}");
        assert_eq!((composer.vi_mode(), composer.is_searching()), (Some(mode), false), "{keys} {work:?}");
    }
    assert!(vi_with("x<C-r>").is_searching(), "Ctrl+R searches in insert mode");
    assert_eq!(Composer::default().vi_mode(), None);
}

#[test]
fn k_in_the_first_row_shows_the_older_draft_and_j_returns() {
    let mut composer = vi_with("first<Enter>now<Esc>");
    for (key, expected) in [("k", "firs|t"), ("9k", "firs|t"), ("j", "no|w"), ("j", "no|w"), ("k", "firs|t")]
    {
        apply(&mut composer, key);
        assert_eq!(draft_text(&composer), expected, "{key}");
    }
}

#[test]
fn long_paste_is_one_character_for_a_command() {
    let long = "line\n".repeat(20);
    let mut composer = vi_with("see ");
    composer.apply(Input::Paste(long.clone()), at(0), Work::Idle);
    apply(&mut composer, "<Esc>x");
    assert_eq!(draft_text(&composer), "see| ");
    apply(&mut composer, "p");
    assert_eq!((composer.draft().text, composer.caret()), (format!("see {long}"), 4));
}

#[test]
fn replaced_draft_has_the_caret_on_its_last_character_in_normal_mode() {
    let mut composer = vi_with("x<Esc>");
    composer.replace(Draft::typed("other"));
    assert_eq!((draft_text(&composer).as_str(), composer.vi_mode()), ("othe|r", Some(ViMode::Normal)));
}

#[test]
fn status_names_the_mode_of_vi_keys_and_the_keys_that_stop() {
    let meter = Meter::default();
    for (vi, expected) in [
        (None, "m · the model works, Esc stops it"),
        (Some(ViMode::Insert), "vi: insert · m · the model works, Esc Esc stops it"),
        (Some(ViMode::Normal), "vi: normal · m · the model works, Esc stops it"),
    ] {
        let status = Status {
            meter: &meter,
            model: "m",
            vi,
            mode: SessionMode::Ask,
            work: Work::Model,
            branch: None,
            is_sandboxed: false,
            questions: 0,
        };
        assert_eq!(status.row(&page(99)).text(), expected);
    }
}

// spec: CL-06
#[test]
fn question_names_the_keys_that_stop_the_run() {
    let request = ApprovalRequest::new("approval_1", "Run `ls`", json!({ "tool": "bash" }));
    for (keys, is_called, stop) in [
        ("x", false, "  Esc Esc stops the run"),
        ("x", true, "  Esc Esc stops the run"),
        ("x<Esc>", false, "  Esc stops the run"),
        ("", false, "  Esc stops the run"),
    ] {
        let mut composer = vi_with(keys);
        let mut question = Question::new(request.clone());
        question.mark_drawn(at(0));
        if is_called {
            question.apply(&inputs("<Tab>")[0], at(1_000), true);
        }
        let draft = Some(&composer).filter(|draft| !draft.is_empty());
        let (rows, _) = question.rows(&page(99), 9, draft);
        let shown = rows.last().unwrap().text();
        assert!(shown.ends_with(stop), "{keys}, {is_called}: {shown}");
        // The keys of the label do what it says, and the question leaves them to the composer.
        for (input, stops) in inputs("<Esc><Esc>").iter().zip([!stop.contains("Esc Esc"), true]) {
            assert_eq!(question.apply(input, at(2_000), !composer.is_empty()), QuestionKey::NotForMe);
            let action = composer.apply(input.clone(), at(2_000), Work::Asking);
            assert_eq!(action == Action::Interrupt(InterruptAction::CancelRun), stops, "{keys}, {is_called}");
        }
    }
}

fn random_key(chance: &mut Chance) -> Input {
    const COMMANDS: &[u8] = b"hjklwbe0^$iaIAoOxdcyDCpPugG129";
    let command = usize::try_from(chance.below(COMMANDS.len() as u64)).unwrap();
    match chance.below(10) {
        0..3 => random_input(chance),
        3 => inputs("<Esc>").remove(0),
        4 if chance.percent(30) => inputs("<C-r>").remove(0),
        _ => Input::Key(Key::char(char::from(COMMANDS[command]))),
    }
}

/// Whatever is typed: the caret stands at the boundary of a grapheme, in normal mode on a character, and redo goes the
/// way of undo back.
#[test]
fn random_keys_keep_the_caret_on_a_character_and_redo_returns() {
    for seed in first_seed()..first_seed() + cases(500, 20_000) {
        let mut chance = Chance(seed);
        let mut composer = vi();
        for _ in 0..chance.below(80) {
            let input = random_key(&mut chance);
            let before = (composer.draft(), composer.caret());
            let action = composer.apply(input.clone(), at(0), Work::Idle);
            let (text, caret) = (composer.draft().text, composer.caret());
            let shown = || format!("seed {seed}, {input:?}: {}", draft_text(&composer));
            assert_eq!(
                GraphemeCursor::new(caret, text.len(), true).is_boundary(&text, 0),
                Ok(true),
                "{}",
                shown()
            );
            let (left, right) = text.split_at(caret);
            let is_behind = right.is_empty() || right.starts_with('\n');
            let is_empty = left.is_empty() || left.ends_with('\n');
            assert!(composer.vi_mode() == Some(ViMode::Insert) || is_empty || !is_behind, "{}", shown());
            if action == Action::Nothing {
                assert_eq!((composer.draft(), caret), before, "{}", shown());
            }
        }
        // A search is closed, a command is left, and insert mode is left.
        apply(&mut composer, "<Esc><Esc>");
        assert_eq!(composer.vi_mode(), Some(ViMode::Normal), "seed {seed}");
        let last = composer.draft().text;
        let mut changes = 0;
        while apply(&mut composer, "<C-_>") == Action::Redraw {
            changes += 1;
        }
        assert_eq!(composer.draft().text, "", "seed {seed}");
        for _ in 0..changes {
            apply(&mut composer, "<C-r>");
        }
        assert_eq!(composer.draft().text, last, "seed {seed}");
    }
}
