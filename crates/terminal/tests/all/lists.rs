//! The lists below the draft: commands, files, and the search in the history.

use archon_terminal::{
    Action, CompletionCandidate, Composer, Draft, DraftKind, InterruptAction, Place, Row, Work,
};
use archon_testkit::{Chance, cases, first_seed};

use crate::{
    composer::{apply, draft_text, page, random_input},
    typing::{at, inputs},
};

fn composer() -> Composer {
    let mut composer = Composer::default();
    composer.set_commands(vec![
        CompletionCandidate::new("/help", "/help", "shows all commands"),
        CompletionCandidate::new("/model ", "/model", "changes the model"),
        CompletionCandidate::new("/compact", "/compact", ""),
    ]);
    let files = ["Cargo.toml", "docs/my notes.md", "src/main.rs", "src/map.rs"];
    composer.set_files(files.map(str::to_owned).into());
    composer
}

/// Returns the rows of the list after these keys, joined by `|`.
fn list(composer: &mut Composer, keys: &str) -> String {
    apply(composer, keys);
    let rows = composer.popup(&page(60), 6);
    rows.iter().map(|row| row.text().trim_end().to_owned()).collect::<Vec<_>>().join("|")
}

// spec: CL-02
#[test]
fn slash_at_the_beginning_lists_the_commands_that_fit() {
    for (keys, expected) in [
        ("/", "▸ /help     shows all commands|  /model    changes the model|  /compact"),
        ("/mo", "▸ /model  changes the model"),
        ("/cm", "▸ /compact"),
        ("/x", ""),
        ("/help ", ""),
        ("a /", ""),
        ("/usr/", ""),
        ("<P:/>", ""),
        ("/<Down>", "  /help     shows all commands|▸ /model    changes the model|  /compact"),
        ("/<Up>", "  /help     shows all commands|  /model    changes the model|▸ /compact"),
        ("/<Esc>", ""),
        ("/<Esc>h", ""),
        ("/<Esc>h<Tab>", "▸ /help  shows all commands"),
        ("/<Esc><Back>/", "▸ /help     shows all commands|  /model    changes the model|  /compact"),
        ("/hx<Back>", "▸ /help  shows all commands"),
        ("/hel<Tab>", ""),
        ("/hel<Left><Left><Left>", "▸ /help     shows all commands|  /model    changes the model|  /compact"),
        ("/hel<Home>", ""),
    ] {
        assert_eq!(list(&mut composer(), keys), expected, "{keys}");
    }
}

// spec: CL-02
#[test]
fn enter_sends_a_command_and_waits_for_the_words_of_another() {
    for (keys, sent, left) in [
        ("/he<Enter>", Some("/help"), "|"),
        ("/help<Enter>", Some("/help"), "|"),
        ("/<Down><Down><Enter>", Some("/compact"), "|"),
        ("/mo<Enter>", None, "/model |"),
        ("/model<Enter>", Some("/model"), "|"),
        ("/mo<Tab>x<Enter>", Some("/model x"), "|"),
        ("/x<Enter>", Some("/x"), "|"),
        ("/he<Esc><Enter>", Some("/he"), "|"),
    ] {
        let mut composer = composer();
        let action = apply(&mut composer, keys);
        let expected = sent.map_or(Action::Redraw, |sent| Action::Send(Draft::typed(sent)));
        assert_eq!((action, draft_text(&composer).as_str()), (expected, left), "{keys}");
    }
}

// spec: CL-02
#[test]
fn sign_for_files_lists_files_and_takes_their_paths() {
    for (keys, expected) in [
        ("@ma<Tab>", "@src/map.rs |"),
        ("@ma<Down><Enter>x", "@src/main.rs x|"),
        ("see @toml<Enter>", "see @Cargo.toml |"),
        ("see @notes<Tab>", "see @\"docs/my notes.md\" |"),
        ("@ma, please<C-Left><Left><Left><Tab><Tab>", "@src/map.rs| please"),
        ("@src/map.rs<Enter>", "|"),
        ("mail a@ma<Tab>", "mail a@ma|"),
        ("<P:@ma><Tab>", "@ma|"),
        ("@zz<Tab>", "@zz|"),
        ("!cat @ma<Tab>", "!cat @ma|"),
    ] {
        let mut composer = composer();
        apply(&mut composer, keys);
        assert_eq!(draft_text(&composer), expected, "{keys}");
    }
}

#[test]
fn files_are_wanted_while_a_name_is_typed_and_may_come_later() {
    let mut composer = Composer::default();
    assert!(!composer.wants_files());
    assert_eq!(list(&mut composer, "see @ma"), "");
    assert!(composer.wants_files());
    composer.set_files([String::from("src/map.rs")].into());
    assert_eq!(list(&mut composer, ""), "▸ src/map.rs");
    apply(&mut composer, " ");
    assert!(!composer.wants_files());
}

#[test]
fn list_takes_escape_and_arrows_only_while_it_has_entries() {
    let apply_while_busy = |keys: &str| {
        let mut composer = composer();
        composer.remember(Draft::message("older"));
        let actions = inputs(keys).into_iter().map(|input| composer.apply(input, at(0), Work::Model));
        (actions.last().unwrap(), composer.draft().text)
    };
    assert_eq!(apply_while_busy("/h<Esc>"), (Action::Redraw, "/h".to_owned()));
    let stop = Action::Interrupt(InterruptAction::CancelRun);
    assert_eq!(apply_while_busy("/h<Esc><Esc>"), (stop.clone(), "/h".to_owned()));
    assert_eq!(apply_while_busy("/x<Esc>"), (stop, "/x".to_owned()));
    assert_eq!(apply_while_busy("/x<Up>"), (Action::Redraw, "older".to_owned()));
}

fn composer_with_history() -> Composer {
    let mut composer = composer();
    for text in ["first one", "second\ntwo", "Third ONE", "!ls one", "first one"] {
        composer.remember(Draft::typed(text));
    }
    apply(&mut composer, "a draft<Left>");
    composer
}

#[test]
fn search_lists_the_drafts_that_have_all_words_newest_first() {
    for (keys, expected) in [
        ("<C-r>", "▸ first one|  !ls one|  Third ONE|  second two"),
        ("<C-r>one", "▸ first one|  !ls one|  Third ONE"),
        ("<C-r>ONE", "▸ Third ONE"),
        ("<C-r>e t<C-r>", "  first one|▸ Third ONE|  second two"),
        ("<C-r>one<C-r><Down><Up>", "  first one|▸ !ls one|  Third ONE"),
        ("<C-r>two<P:\nsecond>", "▸ second two"),
        ("<C-r>zz", ""),
        ("<C-r>zz<C-u>ls", "▸ !ls one"),
    ] {
        assert_eq!(list(&mut composer_with_history(), keys), expected, "{keys}");
    }
}

#[test]
fn search_takes_a_draft_with_enter_and_leaves_the_draft_with_escape() {
    for (keys, expected, kind) in [
        ("<C-r>second<Enter>", "second\ntwo|", DraftKind::Message),
        ("<C-r>ls<Tab>", "!ls one|", DraftKind::Shell),
        ("<C-r>ls<Enter><C-_>", "a draf|t", DraftKind::Message),
        ("<C-r>ls<Esc>", "a draf|t", DraftKind::Message),
        ("<C-r>zz<Enter>", "a draf|t", DraftKind::Message),
        ("<C-r>ls<C-c>", "a draf|t", DraftKind::Message),
    ] {
        let mut composer = composer_with_history();
        let action = apply(&mut composer, keys);
        assert_ne!(action, Action::Nothing, "{keys}");
        assert!(!composer.is_searching(), "{keys}");
        assert_eq!((draft_text(&composer).as_str(), composer.draft().kind), (expected, kind), "{keys}");
        assert!(composer.popup(&page(60), 6).len() <= 1, "{keys}");
    }
}

#[test]
fn row_of_a_search_has_its_text_and_the_caret() {
    let mut composer = composer_with_history();
    apply(&mut composer, "<C-r>one<Left>");
    let (rows, caret) = composer.rows(&page(40), 5);
    assert_eq!((rows.len(), rows[0].text().trim_end()), (1, "search: one"));
    assert_eq!(caret, Place { row: 0, column: 10 });
}

// spec: CL-02
#[test]
fn sign_before_the_draft_tells_its_kind() {
    for (keys, expected, column, hint) in [
        ("hello", "› hello", 7, ""),
        ("/help x", "› /help x", 9, ""),
        ("!ls", "! ls", 4, "  a line for the shell"),
        ("!", "!", 2, "  a line for the shell"),
        ("!ls<Home>", "! ls", 2, "  a line for the shell"),
        ("# fact", "#  fact", 7, "  a text to remember"),
        ("<P:!ls>", "› !ls", 5, ""),
        ("!a<S-Enter>b", "! a|  b", 3, "  a line for the shell"),
    ] {
        let mut composer = composer();
        let below = list(&mut composer, keys);
        let (rows, caret) = composer.rows(&page(40), 5);
        let texts: Vec<_> = rows.iter().map(Row::text).map(|row| row.trim_end().to_owned()).collect();
        assert_eq!(
            (texts.join("|").as_str(), caret.column, below.as_str()),
            (expected, column, hint),
            "{keys}"
        );
    }
}

/// Whatever is typed: a list has at most six rows that fit, and Escape closes a search without a trace.
#[test]
fn random_keys_keep_lists_small_and_escape_restores_the_draft() {
    for seed in first_seed()..first_seed() + cases(300, 10_000) {
        let mut chance = Chance(seed);
        let mut composer = composer_with_history();
        let mut waiting: Option<(Draft, usize)> = None;
        for _ in 0..chance.below(60) {
            let input = match chance.below(12) {
                0 => inputs("<C-r>").remove(0),
                1 => inputs("<Tab>").remove(0),
                2 => inputs("@").remove(0),
                3 => inputs("!").remove(0),
                4 => inputs("<Esc>").remove(0),
                _ => random_input(&mut chance),
            };
            let is_search = input == inputs("<C-r>")[0];
            let is_escape = input == inputs("<Esc>")[0];
            let before = (composer.draft(), composer.caret());
            composer.apply(input, at(0), Work::Idle);
            let (rows, caret) = composer.rows(&page(30), 3);
            // The first row of a long search may be out of sight.
            let in_search = composer.is_searching();
            if is_search && waiting.is_none() {
                waiting = Some(before.clone());
            }
            if in_search || is_escape && waiting.is_some() {
                assert_eq!(Some((composer.draft(), composer.caret())), waiting, "seed {seed}");
            }
            if !in_search {
                waiting = None;
            }
            let popup = composer.popup(&page(30), 9);
            assert!(popup.len() <= 6 && popup.iter().all(|row| row.width() <= 30), "seed {seed}");
            assert!(caret.row < rows.len() && caret.column < 30, "seed {seed}: {caret:?}");
        }
    }
}
