//! Long pastes: shown by their size, edited as one character, sent whole.

use archon_terminal::{Action, Composer, Draft, DraftKind, Input, Place, Row, Work};
use archon_testkit::{Chance, cases, first_seed};

use crate::{
    composer::{apply, composer_with, draft_text, page, random_input},
    typing::at,
};

/// A paste of some lines, each with this name.
fn lines(name: &str, count: usize) -> String {
    (1..=count).map(|n| format!("{name}{n}\n")).collect()
}

fn paste(composer: &mut Composer, text: &str) -> Action {
    composer.apply(Input::Paste(text.to_owned()), at(0), Work::Idle)
}

fn texts(composer: &mut Composer, width: usize) -> (Vec<String>, Place) {
    let (rows, caret) = composer.rows(&page(width), 9);
    (rows.iter().map(Row::text).map(|row| row.trim_end().to_owned()).collect(), caret)
}

#[test]
fn long_paste_is_shown_by_its_size_and_sent_whole() {
    let long = lines("x", 214);
    let mut composer = composer_with("see ");
    assert_eq!(paste(&mut composer, &long.replace('\n', "\r")), Action::Redraw);
    apply(&mut composer, "!");
    let (rows, caret) = texts(&mut composer, 40);
    assert_eq!(rows, ["› see [pasted 214 lines]!"]);
    assert_eq!(caret, Place { row: 0, column: 25 });
    let text = format!("see {long}!");
    assert_eq!((composer.draft().text, composer.caret()), (text.clone(), text.len()));
    assert_eq!(composer.draft().pasted.first(), Some(&(4..4 + long.len())));
    assert_eq!(apply(&mut composer, "<Enter>"), Action::Send(Draft::typed(text.clone())));
    for keys in ["<Up>", "<C-u><C-r>see<Enter>"] {
        apply(&mut composer, keys);
        assert_eq!(texts(&mut composer, 40).0, ["› see [pasted 214 lines]!"], "{keys}");
        assert_eq!(composer.draft(), Draft::typed(text.clone()), "{keys}");
    }
}

#[test]
fn paste_of_eight_lines_and_a_thousand_characters_is_shown_whole() {
    let mut composer = Composer::default();
    paste(&mut composer, &lines("x", 8));
    assert_eq!(texts(&mut composer, 40).0.len(), 9);
    let mut composer = Composer::default();
    paste(&mut composer, &"x".repeat(1_001));
    assert_eq!(texts(&mut composer, 40).0, ["› [pasted 1001 characters]"]);
}

#[test]
fn long_paste_is_erased_killed_and_undone_as_one_character() {
    let long = lines("x", 9);
    let with_paste = || {
        let mut composer = composer_with("a b");
        paste(&mut composer, &long);
        apply(&mut composer, " c");
        composer
    };
    for (keys, expected) in [
        ("<Left><Left><Back>", "a b| c".to_owned()),
        ("<Left><Left><Left><Del>", "a b| c".to_owned()),
        ("<Left><Left><Left>x", format!("a bx|{long} c")),
        ("<Left><Left><C-w>", "a b| c".to_owned()),
        ("<C-u><C-y>", format!("a b{long} c|")),
        ("<C-u><C-y><Home><C-y>", format!("a b{long} c|a b{long} c")),
        ("<Left><Left><Back><C-_>", format!("a b{long}| c")),
    ] {
        let mut composer = with_paste();
        apply(&mut composer, keys);
        assert_eq!(draft_text(&composer), expected, "{keys}");
    }
}

#[test]
fn text_with_the_sign_of_a_paste_is_no_paste() {
    let mut composer = composer_with("\u{fffc}");
    paste(&mut composer, "\u{fffc}");
    let (rows, _) = texts(&mut composer, 40);
    assert!(!rows[0].contains("pasted"), "{rows:?}");
    assert_eq!(composer.draft().text, "\u{fffc}\u{fffc}");
}

#[test]
fn pasted_text_is_no_command_although_it_is_long() {
    let mut composer = Composer::default();
    paste(&mut composer, &format!("!rm\n{}", lines("x", 9)));
    assert_eq!(composer.draft().kind, DraftKind::Message);
}

/// Whatever is typed: each long paste is in the draft whole or not at all, and rows fit.
#[test]
fn random_keys_never_split_a_long_paste() {
    for seed in first_seed()..first_seed() + cases(300, 10_000) {
        let mut chance = Chance(seed);
        let mut composer = Composer::default();
        let mut pasted = 0;
        for _ in 0..chance.below(60) {
            let action = match chance.percent(15) {
                true => {
                    pasted += 1;
                    paste(&mut composer, &format!("<{pasted}>\n{}</{pasted}>", lines("x", 12)))
                }
                false => composer.apply(random_input(&mut chance), at(0), Work::Idle),
            };
            let text = match action {
                Action::Send(draft) => draft.text,
                _ => composer.draft().text,
            };
            for number in 1..=pasted {
                let whole = format!("<{number}>\n{}</{number}>", lines("x", 12));
                let count = |part: &str| text.matches(part).count();
                let counts = (count(&whole), count(&format!("<{number}>")), count(&format!("</{number}>")));
                assert!(counts.0 == counts.1 && counts.0 == counts.2, "seed {seed}: {text:?}");
            }
            assert!(composer.caret() <= composer.draft().text.len(), "seed {seed}");
            let width = 4 + usize::try_from(chance.below(30)).unwrap();
            let (rows, caret) = composer.rows(&page(width), 4);
            assert!((1..=4).contains(&rows.len()), "seed {seed}");
            assert!(rows.iter().all(|row| row.width() <= width), "seed {seed}: {rows:?}");
            assert!(caret.row < rows.len() && caret.column < width, "seed {seed}: {caret:?}");
        }
    }
}
