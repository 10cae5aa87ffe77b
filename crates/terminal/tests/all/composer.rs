//! The draft: keys, pastes, kinds, history and rows.

use archon_terminal::{
    Action, Composer, Draft, DraftKind, Input, InterruptAction, Key, Keymap, Look, Page, Place, Style,
    TextSpan, Theme, Work,
};
use archon_testkit::{Chance, cases, first_seed};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use crate::typing::{at, inputs};

pub(crate) fn page(width: usize) -> Page {
    Page::new(width, Theme::new(true))
}

/// Applies inputs in a slow conversation without a run, and returns what came out last.
pub(crate) fn apply(composer: &mut Composer, text: &str) -> Action {
    let actions = inputs(text).into_iter().map(|input| composer.apply(input, at(0), Work::Idle));
    actions.last().unwrap_or(Action::Nothing)
}

pub(crate) fn composer_with(text: &str) -> Composer {
    let mut composer = Composer::new(Keymap::default());
    apply(&mut composer, text);
    composer
}

/// Returns the draft with a bar at the caret.
pub(crate) fn draft_text(composer: &Composer) -> String {
    let mut text = composer.draft().text;
    text.insert(composer.caret(), '|');
    text
}

#[test]
fn keys_edit_the_draft() {
    for (keys, expected) in [
        ("hallo<Left><Left>x", "halx|lo"),
        ("ab<Home>c<End>d", "cabd|"),
        ("ab<C-a><C-f>x<C-b><C-b>y<C-e>z", "yaxbz|"),
        ("one two<C-Left>x", "one x|two"),
        ("one, two<A-b><A-b>x<A-f>y", "xoney|, two"),
        ("one two<C-Left><C-Left><A-Right>x", "onex| two"),
        ("日本語 x<C-Left><C-Left>y", "日本y|語 x"),
        ("abc<Back>", "ab|"),
        ("abc<C-h><Home><Del>", "|b"),
        ("ae\u{301}<Back>", "a|"),
        ("👨\u{200d}👩\u{200d}👧<Left>x", "x|👨\u{200d}👩\u{200d}👧"),
        ("one two<C-w>", "one |"),
        ("one two<Home><A-d>", "| two"),
        ("one two<C-w><C-y><C-y>", "one twotwo|"),
        ("one two three<C-w><C-w><Home><C-y>", "two three|one "),
        ("one two<Home><A-d><A-d><C-y>", "one two|"),
        ("one two<C-w><Left><Right><C-w><C-y>", "one |"),
        ("ab<S-Enter>cd<C-u>", "ab\n|"),
        ("ab<S-Enter>cd<C-u><C-u>", "ab|"),
        ("ab<S-Enter>cd<Up><C-k>", "ab|cd"),
        ("ab<S-Enter>cd<Up><Home><C-k>", "|\ncd"),
        ("ab<Home><C-d>", "|b"),
        ("a<S-Left>b", "b|a"),
        ("a<Tab>b<C-q><A-x>c", "abc|"),
    ] {
        assert_eq!(draft_text(&composer_with(keys)), expected, "{keys}");
    }
}

#[test]
fn text_of_a_key_with_modifiers_is_only_what_alt_gr_writes() {
    for (key, expected) in [
        (Key::char('é'), Some('é')),
        (Key::char('A').with_shift(), Some('A')),
        (Key::ctrl('x'), None),
        (Key::alt('x'), None),
        (Key::ctrl('@').with_alt(), Some('@')),
        (Key::ctrl('b').with_alt(), None),
        (Key::char('\u{1b}'), None),
    ] {
        assert_eq!(key.text(), expected, "{key:?}");
    }
}

#[test]
fn new_line_comes_by_four_keys() {
    for keys in ["a<S-Enter>b", "a<A-Enter>b", "a<C-j>b", "a\\<Enter>b"] {
        assert_eq!(draft_text(&composer_with(keys)), "a\nb|", "{keys}");
    }
}

#[test]
fn enter_behind_a_backslash_sends_if_the_backslash_is_meant() {
    for (keys, sent) in
        [("a\\\\<Enter>", "a\\\\"), ("<P:C:\\dir\\><Enter>", "C:\\dir\\"), ("a\\ <Enter>", "a\\ ")]
    {
        let action = apply(&mut Composer::default(), keys);
        assert!(matches!(&action, Action::Send(draft) if draft.text == sent), "{keys}: {action:?}");
    }
    assert_eq!(draft_text(&composer_with("a\\<Left><Enter><S-Enter>")), "\n|");
}

// spec: CL-02
#[test]
fn enter_sends_a_draft_of_the_kind_that_was_typed() {
    for (keys, text, kind) in [
        ("hello<Enter>", "hello", DraftKind::Message),
        ("/help x<Enter>", "/help x", DraftKind::Command),
        ("/<Enter>", "/", DraftKind::Command),
        ("!ls<Enter>", "!ls", DraftKind::Shell),
        ("# fact<Enter>", "# fact", DraftKind::Memory),
        ("@file<Enter>", "@file", DraftKind::Message),
        (" /help<Enter>", " /help", DraftKind::Message),
        ("/usr/bin/x fails<Enter>", "/usr/bin/x fails", DraftKind::Message),
        ("/diff a/b<Enter>", "/diff a/b", DraftKind::Command),
        ("<P:/x><Enter>", "/x", DraftKind::Message),
        ("<P:!rm -rf><Enter>", "!rm -rf", DraftKind::Message),
        ("/<P:help><Enter>", "/help", DraftKind::Command),
        // The typed letter before the pasted text is gone.
        ("<P:!ls><Home>x<Back><Enter>", "!ls", DraftKind::Message),
        ("<P:ls><Home>!<Enter>", "!ls", DraftKind::Shell),
        // A killed text is as typed or pasted as it was.
        ("<P:!ls><C-u><C-y><Enter>", "!ls", DraftKind::Message),
        ("!ls<C-u><C-y><Enter>", "!ls", DraftKind::Shell),
        ("<P:!ls><C-u><C-_><Enter>", "!ls", DraftKind::Message),
    ] {
        let mut composer = Composer::default();
        let Action::Send(draft) = apply(&mut composer, keys) else { panic!("{keys} sends nothing") };
        assert_eq!((draft.text.as_str(), draft.kind), (text, kind), "{keys}");
        assert!(composer.is_empty(), "{keys}");
        // Shown again from the history, it is of the same kind.
        apply(&mut composer, "<Up>");
        assert_eq!(composer.draft(), draft, "{keys}");
    }
}

// spec: CL-02
#[test]
fn enter_of_a_blank_draft_sends_nothing() {
    for keys in ["<Enter>", "  <Enter>", "<S-Enter><Enter>", "<P:\n><Enter>"] {
        assert_eq!(apply(&mut Composer::default(), keys), Action::Nothing, "{keys:?}");
    }
}

#[test]
fn body_is_the_text_without_its_sign() {
    for (text, body) in [("/help  x ", "help  x"), ("! ls", "ls"), ("#", ""), (" plain ", " plain ")] {
        assert_eq!(Draft::typed(text).body(), body);
    }
    assert_eq!(Draft::message("/x").body(), "/x");
}

#[test]
fn draft_names_the_parts_that_were_pasted() {
    let mut composer = Composer::default();
    apply(&mut composer, "é <P:@a> b <P:c><P:d>");
    let draft = composer.draft();
    let pasted: Vec<&str> = draft.pasted.iter().map(|part| &draft.text[part.clone()]).collect();
    assert_eq!((draft.text.as_str(), pasted), ("é @a b cd", vec!["@a", "cd"]));
    // The parts stay what they are in a draft that is changed again.
    composer.replace(draft.clone());
    assert_eq!(composer.draft().pasted, draft.pasted);
    composer.replace(Draft::message("earlier"));
    assert_eq!(composer.draft().pasted.first(), Some(&(0..7)));
    composer.replace(Draft::typed("typed"));
    assert!(composer.draft().pasted.is_empty());
}

#[test]
fn paste_never_sends_and_keeps_each_byte() {
    let text = "one\n\n\ttwo\n/three \u{1b}[2J\u{202e} e\u{301} 日本\n";
    for sent in [text.to_owned(), text.replace('\n', "\r"), text.replace('\n', "\r\n")] {
        let mut composer = Composer::default();
        let action = composer.apply(Input::Paste(sent), at(0), Work::Idle);
        assert_eq!((action, composer.draft()), (Action::Redraw, Draft::message(text)));
        // What could steer the terminal is shown by its number.
        let (rows, _) = composer.rows(&page(60), 9);
        assert_eq!(rows[3].text(), "  /three \\u{1b}[2J\\u{202e} e\u{301} 日本");
    }
}

// spec: CL-06
#[test]
fn keys_for_the_program_become_actions() {
    let cancel = Action::Interrupt(InterruptAction::CancelRun);
    for (keys, work, expected) in [
        ("<Esc>", Work::Model, cancel.clone()),
        ("x<Esc>", Work::Tools, cancel.clone()),
        ("<Esc>", Work::Asking, cancel.clone()),
        ("<Esc>", Work::Idle, Action::Escape),
        ("x<Esc>", Work::Idle, Action::Escape),
        ("x<BackTab>", Work::Model, Action::NextMode),
        ("x<C-s>", Work::Model, Action::SendNow(Draft::typed("x"))),
        ("<C-s>", Work::Model, Action::Nothing),
        ("x<C-c>", Work::Model, cancel),
        ("x<C-c>", Work::Idle, Action::Interrupt(InterruptAction::ClearDraft)),
        ("<C-c>", Work::Idle, Action::Interrupt(InterruptAction::Leave)),
        ("<C-d>", Work::Idle, Action::Leave),
        ("x<C-d>", Work::Idle, Action::Nothing),
        ("<C-z>", Work::Model, Action::Suspend),
        ("<C-l>", Work::Model, Action::Repaint),
        ("x", Work::Model, Action::Redraw),
        ("x<Right>", Work::Idle, Action::Nothing),
        ("x<Enter>", Work::Model, Action::Send(Draft::typed("x"))),
    ] {
        let mut composer = Composer::default();
        let actions = inputs(keys).into_iter().map(|input| composer.apply(input, at(0), work));
        assert_eq!(actions.last(), Some(expected), "{keys} {work:?}");
    }
}

// spec: CL-06
#[test]
fn ctrl_c_clears_a_draft_that_undo_gives_back() {
    let mut composer = composer_with("some text<C-c>");
    assert!(composer.is_empty());
    apply(&mut composer, "<C-7>");
    assert_eq!(draft_text(&composer), "some text|");
    assert_eq!(composer.interrupt(at(900), Work::Model), InterruptAction::CancelRun);
    assert_eq!(draft_text(&composer), "some text|");
}

#[test]
fn undo_takes_back_a_word_a_paste_or_a_kill_at_a_time() {
    let mut composer = composer_with("one two<P: three><C-w><Home>x");
    for expected in ["|one two ", "one two three|", "one two|", "one |", "|", "|"] {
        apply(&mut composer, "<C-_>");
        assert_eq!(draft_text(&composer), expected);
    }
}

#[test]
fn replace_can_be_taken_back() {
    let mut composer = composer_with("draft");
    composer.replace(Draft::typed("!other"));
    assert_eq!((draft_text(&composer).as_str(), composer.draft().kind), ("!other|", DraftKind::Shell));
    apply(&mut composer, "<C-/>");
    assert_eq!(draft_text(&composer), "draft|");
}

#[test]
fn up_and_down_move_in_the_rows_of_the_last_frame() {
    // Seven columns for text, the sign and the caret aside.
    let text = "abcdef ghij<S-Enter>日本語日<S-Enter>xyzuvw";
    let mut composer = composer_with(text);
    let (rows, caret) = composer.rows(&page(10), 9);
    let texts: Vec<String> = rows.iter().map(archon_terminal::Row::text).collect();
    assert_eq!(texts, ["› abcdef ", "  ghij", "  日本語", "  日", "  xyzuvw "]);
    assert_eq!(caret, Place { row: 4, column: 8 });
    for (key, expected) in [
        ("<Up>", Place { row: 3, column: 4 }),
        // The column of the start is kept over a shorter row.
        ("<Up>", Place { row: 2, column: 6 }),
        ("<Up>", Place { row: 1, column: 6 }),
        ("<Up>", Place { row: 0, column: 8 }),
        ("<Down>", Place { row: 1, column: 6 }),
        ("<Left>", Place { row: 1, column: 5 }),
        ("<Up>", Place { row: 0, column: 5 }),
    ] {
        apply(&mut composer, key);
        assert_eq!(composer.rows(&page(10), 9).1, expected, "{key}");
    }
}

#[test]
fn up_at_the_first_row_shows_older_drafts_and_down_returns() {
    let mut composer = composer_with("first<Enter>a<S-Enter>b<Enter>a<S-Enter>b<Enter>now");
    for (key, expected) in [
        ("<Up>", "a\nb|"),
        ("<Up>", "first|"),
        ("<Up>", "first|"),
        ("<Down>", "a\nb|"),
        ("<Down>", "now|"),
        ("<Down>", "now|"),
        ("<C-p>", "a\nb|"),
        // Any other key edits what is shown, and the arrows move in it.
        ("<Left>", "a\n|b"),
        ("<Up>", "|a\nb"),
        ("<Up>", "a\nb|"),
        ("!", "a\nb!|"),
        ("<C-_>", "a\nb|"),
        ("<C-_>", "|a\nb"),
    ] {
        apply(&mut composer, key);
        assert_eq!(draft_text(&composer), expected, "{key}");
    }
    let mut composer = Composer::default();
    composer.remember(Draft::message("/from a log"));
    apply(&mut composer, "<Up>");
    assert_eq!(composer.draft(), Draft::message("/from a log"));
    assert_eq!(apply(&mut Composer::default(), "<Up>"), Action::Nothing);
}

#[test]
fn rows_of_an_empty_draft_are_the_sign_and_the_caret() {
    let (rows, caret) = Composer::default().rows(&page(40), 5);
    assert_eq!((rows.len(), rows[0].text().as_str(), caret), (1, "›  ", Place { row: 0, column: 2 }));
    let styles: Vec<_> =
        rows[0].spans.iter().filter(|span| span.text() == " ").map(|span| span.style()).collect();
    assert_eq!(styles, [Theme::new(true).style(Look::Caret)]);
}

#[test]
fn rows_of_a_long_draft_scroll_only_as_far_as_the_caret_needs() {
    let mut composer = composer_with("1<S-Enter>2<S-Enter>3<S-Enter>4<S-Enter>5");
    let mut shows = |keys: &str| -> String {
        apply(&mut composer, keys);
        let (rows, caret) = composer.rows(&page(20), 3);
        let texts: Vec<String> = rows.iter().map(|row| row.text().trim().to_owned()).collect();
        format!("{} at {}", texts.join(","), caret.row)
    };
    for (keys, expected) in [
        ("", "3,4,5 at 2"),
        ("<Up>", "3,4,5 at 1"),
        ("<Up>", "3,4,5 at 0"),
        ("<Up>", "2,3,4 at 0"),
        ("<Down><Down>", "2,3,4 at 2"),
        ("<Down>", "3,4,5 at 2"),
        ("<C-Home>", "› 1,2,3 at 0"),
        ("<C-End><Back><Back>", "2,3,4 at 2"),
    ] {
        assert_eq!(shows(keys), expected, "{keys}");
    }
}

const PIECES: [&str; 16] =
    ["a", "b", " ", "é", "\u{301}", "日", "👨", "\u{200d}", "👩", "🇨", "🇭", "\\", "ก", "\u{e33}", "/", "-"];

pub(crate) fn random_input(chance: &mut Chance) -> Input {
    const KEYS: [&str; 26] = [
        "<Left>",
        "<Right>",
        "<C-Left>",
        "<C-Right>",
        "<Home>",
        "<End>",
        "<Up>",
        "<Down>",
        "<Back>",
        "<Del>",
        "<C-w>",
        "<A-d>",
        "<C-u>",
        "<C-k>",
        "<C-y>",
        "<C-_>",
        "<S-Enter>",
        "<Enter>",
        "<C-Home>",
        "<C-End>",
        "<C-d>",
        "<C-c>",
        "<Esc>",
        "<Tab>",
        "<C-l>",
        "<A-Back>",
    ];
    let pick = |chance: &mut Chance, n: usize| usize::try_from(chance.below(n as u64)).unwrap();
    match chance.below(10) {
        0..5 => Input::Key(Key::char(PIECES[pick(chance, PIECES.len())].chars().next().unwrap())),
        5 if chance.percent(40) => {
            let pieces = (0..chance.below(8)).map(|_| PIECES[pick(chance, PIECES.len())]);
            Input::Paste(pieces.collect::<Vec<_>>().join(["", "\n", "\r\n", "\u{1b}[2J"][pick(chance, 4)]))
        }
        _ => inputs(KEYS[pick(chance, KEYS.len())]).remove(0),
    }
}

/// Whatever is typed: the caret stands at the boundary of a grapheme and on its place on the screen, rows fit, and
/// undo goes back through the texts that were there, down to the first.
#[test]
fn random_keys_keep_the_caret_at_a_boundary_and_undo_returns() {
    for seed in first_seed()..first_seed() + cases(500, 20_000) {
        let mut chance = Chance(seed);
        let mut composer = Composer::default();
        let mut texts = vec![String::new()];
        for _ in 0..chance.below(60) {
            let input = random_input(&mut chance);
            let before = (composer.draft(), composer.caret());
            let action = composer.apply(input.clone(), at(0), Work::Idle);
            let draft = composer.draft();
            let mut cursor = GraphemeCursor::new(composer.caret(), draft.text.len(), true);
            assert_eq!(
                cursor.is_boundary(&draft.text, 0),
                Ok(true),
                "seed {seed}, {input:?}: {}",
                draft_text(&composer)
            );
            assert!(!draft.text.contains('\r'), "seed {seed}");
            match action {
                Action::Send(sent) => {
                    assert_eq!((sent, draft.text.as_str()), (before.0, ""), "seed {seed}");
                    texts = vec![String::new()];
                }
                Action::Nothing => assert_eq!((draft, composer.caret()), before, "seed {seed}, {input:?}"),
                _ => texts.push(draft.text),
            }
            let width = 4 + usize::try_from(chance.below(20)).unwrap();
            check_rows(&mut composer, width, seed);
        }
        while apply(&mut composer, "<C-_>") == Action::Redraw {
            let now = composer.draft().text;
            let place = texts.iter().rposition(|text| *text == now);
            assert!(place.is_some(), "seed {seed}: {now:?} was never there");
        }
        assert_eq!(composer.draft().text, "", "seed {seed}");
    }
}

fn check_rows(composer: &mut Composer, width: usize, seed: u64) {
    let (rows, caret) = composer.rows(&page(width), 4);
    assert!((1..=4).contains(&rows.len()), "seed {seed}");
    let reversed = Theme::new(true).style(Look::Caret);
    for (number, row) in rows.iter().enumerate() {
        assert!(row.width() <= width, "seed {seed}: {:?} is wider than {width}", row.text());
        let mut column = 0;
        for span in &row.spans {
            // A character that is wider than the page is cut off.
            if span.style() == reversed && column < width {
                assert_eq!((number, column), (caret.row, caret.column), "seed {seed}");
            }
            column += span.width();
        }
    }
    let draft = composer.draft().text;
    let span = |text: &str| TextSpan::new(text, Style::PLAIN);
    // On a page that is wide enough for each character, no row is cut.
    if draft.graphemes(true).all(|grapheme| span(grapheme).width() <= width - 3) {
        let (rows, _) = composer.rows(&page(width), usize::MAX);
        let letters = |text: &str| text.replace([' ', '›'], "");
        let all: String = rows.iter().map(|row| letters(&row.text())).collect();
        assert_eq!(all, letters(span(&draft).text()), "seed {seed}, {width}");
    }
}
