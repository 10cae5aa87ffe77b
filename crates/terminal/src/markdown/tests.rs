//! Tests of Markdown: whole answers, and answers that stream.

use archon_testkit::cases;
use expect_test::{Expect, expect};
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::theme::Theme;

fn page(width: usize) -> Page {
    Page::new(width, Theme::new(true))
}

fn text(rows: &[Row]) -> String {
    rows.iter().map(|row| format!("{}\n", row.text().trim_end())).collect()
}

fn check(source: &str, width: usize, expected: &Expect) {
    let rows = rows(source, &page(width));
    expected.assert_eq(&text(&rows));
    for row in rows.iter().filter(|row| row.wrap == Wrap::Done) {
        assert!(row.width() <= width, "{width} columns: {:?}", row.text());
    }
}

/// The rows that come as the text streams in pieces of these numbers of bytes.
fn streamed(source: &str, cuts: &[usize], page: &Page) -> Vec<Row> {
    let (mut at, mut rows) = (Progress::default(), Vec::new());
    let (mut end, mut cuts) = (0, cuts.iter().cycle());
    while end < source.len() {
        end = (end + cuts.next().copied().unwrap_or(1)).min(source.len());
        while !source.is_char_boundary(end) {
            end += 1;
        }
        rows.append(&mut advance(&source[..end], &mut at, false, page));
    }
    rows.append(&mut advance(source, &mut at, true, page));
    rows
}

const ANSWER: &str = "# 結果 🎉

The **parser** is *fixed*: `parse()` now returns an [`Error`](https://docs.rs/x) instead of a panic.
日本語の**長い**段落はここで折り返されます。

1. Read the file
   - nested **item** with a text that is longer than the row
   - [x] done
   - [ ] open
2. Run the tests:
   ```sh
   cargo test  # all
   ```

> A quote that is longer than one row of a narrow page.
> > 👍🏽 inner

| File | Lines | 状態 |
|---|--:|:-:|
| `a.rs` | 12 | 良い |
| b.rs | 1 |  |

---

```rust
fn main() { /* one
two */ let s = \"日本\"; }
```
<b>bold</b> & a \\* b
";

#[test]
fn rows_of_a_whole_answer_at_80_columns() {
    check(
        ANSWER,
        80,
        &expect![[r#"
        結果 🎉

        The parser is fixed: parse() now returns an Error (https://docs.rs/x) instead of
        a panic.
        日本語の長い段落はここで折り返されます。

        1. Read the file
           • nested item with a text that is longer than the row
           • ☑ done
           • ☐ open
        2. Run the tests:
        ```sh
        cargo test  # all
        ```

        │ A quote that is longer than one row of a narrow page.
        │ │ 👍🏽 inner

        File │ Lines │ 状態
        ─────┼───────┼─────
        a.rs │    12 │ 良い
        b.rs │     1 │

        ────────────────────────────────────────

        ```rust
        fn main() { /* one
        two */ let s = "日本"; }
        ```
        <b>bold</b> & a * b
    "#]],
    );
}

#[test]
fn rows_of_a_whole_answer_at_60_columns() {
    check(
        ANSWER,
        60,
        &expect![[r#"
        結果 🎉

        The parser is fixed: parse() now returns an Error
        (https://docs.rs/x) instead of a panic.
        日本語の長い段落はここで折り返されます。

        1. Read the file
           • nested item with a text that is longer than the row
           • ☑ done
           • ☐ open
        2. Run the tests:
        ```sh
        cargo test  # all
        ```

        │ A quote that is longer than one row of a narrow page.
        │ │ 👍🏽 inner

        File │ Lines │ 状態
        ─────┼───────┼─────
        a.rs │    12 │ 良い
        b.rs │     1 │

        ────────────────────────────────────────

        ```rust
        fn main() { /* one
        two */ let s = "日本"; }
        ```
        <b>bold</b> & a * b
    "#]],
    );
}

#[test]
fn rows_of_a_whole_answer_at_20_columns() {
    check(
        ANSWER,
        20,
        &expect![[r#"
        結果 🎉

        The parser is fixed:
        parse() now returns
        an Error
        (https://docs.rs/x)
        instead of a panic.
        日本語の長い段落はこ
        こで折り返されます。

        1. Read the file
           • nested item
             with a text
             that is longer
             than the row
           • ☑ done
           • ☐ open
        2. Run the tests:
        ```sh
        cargo test  # all
        ```

        │ A quote that is
        │ longer than one
        │ row of a narrow
        │ page.
        │ │ 👍🏽 inner

        File │ Lines │ 状態
        ─────┼───────┼─────
        a.rs │    12 │ 良い
        b.rs │     1 │

        ────────────────────

        ```rust
        fn main() { /* one
        two */ let s = "日本"; }
        ```
        <b>bold</b> & a * b
    "#]],
    );
}

#[test]
fn rows_of_emphasis_and_code_have_their_styles() {
    let rows = rows("a **b** *c* ***d*** `e` [f](g)", &page(40));
    let theme = page(40).theme;
    let plain = theme.style(Look::Plain);
    let spans: Vec<(&str, crate::theme::Style)> =
        rows[0].spans.iter().map(|span| (span.text(), span.style())).collect();
    assert_eq!(
        spans,
        [
            ("a ", plain),
            ("b", plain.bold()),
            (" ", plain),
            ("c", plain.italic()),
            (" ", plain),
            ("d", plain.bold().italic()),
            (" ", plain),
            ("e", theme.style(Look::Code)),
            (" ", plain),
            ("f", plain),
            (" (g)", theme.style(Look::Address)),
        ]
    );
}

#[test]
fn rows_of_code_are_the_lines_of_the_source() {
    let source = "```rust\nfn  a() {}\n\n\tlet x = 1;   \n```\n\n    indented\n";
    let all = rows(source, &page(5));
    let code: Vec<String> = all.iter().filter(|row| row.wrap == Wrap::Terminal).map(Row::text).collect();
    assert_eq!(code, ["```rust", "fn  a() {}", "", "    let x = 1;   ", "```", "    indented"]);
    assert_eq!(all[1].spans[0].style(), page(5).theme.style(Look::Keyword));
}

#[test]
fn rows_of_a_table_that_is_too_wide_are_lines_of_cells() {
    check(
        "|Name|Use|\n|-|-|\n|a b c|one two|\n|d||\n",
        12,
        &expect![[r#"
        Name: a b c
        Use: one two

        Name: d
    "#]],
    );
    check(
        "|Name|Use|\n|-|-|\n|a b c|one two|\n",
        15,
        &expect![[r#"
        Name  │ Use
        ──────┼────────
        a b c │ one two
    "#]],
    );
}

#[test]
fn rows_of_what_is_no_block_are_text() {
    check(
        "a\n===\n\n<div>\n  <b>\n\n[x]: /y\n\n2 * 3 * 4\n#no\n\n&amp; \\# <https://a.b>\n",
        40,
        &expect![[r#"
        a
        ===

        <div>
        <b>

        [x]: /y

        2 * 3 * 4
        #no

        & # https://a.b
    "#]],
    );
    check(
        "text\n2. no list\n1. list\n- a\n+\n\n![alt](i.png) [](x)\n",
        40,
        &expect![[r#"
        text
        2. no list
        1. list
        • a
        •

        alt (i.png) x
    "#]],
    );
}

#[test]
fn advance_gives_full_rows_of_a_paragraph_and_holds_back_what_may_change() {
    let committed = |source: &str| text(&advance(source, &mut Progress::default(), false, &page(10)));
    assert_eq!(committed("one two three"), "one two\n");
    assert_eq!(committed("one two thre**e"), "one two\n");
    assert_eq!(committed("**one two three four**"), "", "the line goes on");
    assert_eq!(committed("**one two** three\n"), "one two\nthree\n");
    assert_eq!(committed("one **two\nthree\n"), "", "a sign is open");
    assert_eq!(committed("one **two\nthree**\n"), "one two\nthree\n");
    assert_eq!(committed("a | b\n"), "", "a table may begin");
    assert_eq!(committed("a | b\nc"), "a | b\n");
    assert_eq!(committed("- one\n- two\n- "), "• one\n");
    assert_eq!(committed("```\na\nb"), "```\na\n");
    assert_eq!(committed("# one"), "");
    assert_eq!(committed("one\n\n2"), "one\n\n", "the empty row is certain");
}

#[test]
fn advance_of_a_long_answer_takes_time_in_proportion_to_its_length() {
    let block =
        "A **bold** word, `code` and _more_.\n\n- one\n  two\n- three\n\n| a | b |\n|---|---|\n| c | d |\n\n";
    let source = block.repeat(2_000);
    let (mut at, mut longest) = (Progress::default(), 0);
    for end in (0..source.len()).step_by(64) {
        let before = at.bytes;
        advance(&source[..end], &mut at, false, &page(80));
        // The text that is not printed is read again with the next piece.
        longest = longest.max(end - at.bytes);
        assert!(at.bytes >= before);
    }
    assert!(longest < 1_000, "{longest}");
}

#[test]
fn open_rows_of_a_line_without_an_end_are_those_of_its_last_part() {
    let source = format!("**{} 日本", "語".repeat(400_000));
    let rows = open_rows(&source, &Progress::default(), &page(80));
    assert!(rows.len() < 300 && rows.last().unwrap().text().ends_with("日本"), "{}", rows.len());
    assert_eq!(text(&open_rows("**a", &Progress::default(), &page(80))), "**a\n");
}

const PIECES: &[&str] = &[
    "word ",
    "another",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "```rust\n",
    "```",
    "~~~\n",
    "\n```\n",
    "    code\n",
    "日本語",
    "👨\u{200d}👩\u{200d}👧",
    "e\u{301}",
    "- item\n",
    "  - nested\n",
    "- ",
    "1. ",
    "2) ",
    "10. ten\n",
    "   more\n",
    "# ",
    "# Title\n",
    "####### ",
    "> ",
    "> quote\n",
    ">",
    "**",
    "*",
    "_",
    "__",
    "`",
    "``",
    "[",
    "](",
    ")",
    "![",
    "[a](b)",
    "[a]: /b\n",
    "<b>",
    "<",
    "<div>\n",
    "<!--",
    "-->",
    "&amp;",
    "&",
    "\\",
    "|",
    " | ",
    "| a | b |\n",
    "|---|:-:|\n",
    "--",
    "---\n",
    "===\n",
    "=",
    "***\n",
    "- [ ] ",
    "[x] ",
    "\x1b[2J",
    "\u{202e}",
    "\0",
    "a-very-long-word-that-is-wider-than-many-pages-are",
    ". ",
    "/* ",
    "\"\"\"",
    "\u{301}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: u32::try_from(cases(200, 20_000)).unwrap(), failure_persistence: None, ..ProptestConfig::default() })]

    // spec: CL-12
    #[test]
    fn advance_of_a_text_cut_anywhere_gives_the_rows_of_the_whole(
        pieces in vec(select(PIECES), 0..40),
        width in 1..70_usize,
        cuts in vec(1..14_usize, 1..20),
    ) {
        let source: String = pieces.concat();
        let page = page(width);
        let whole = rows(&source, &page);
        prop_assert_eq!(text(&streamed(&source, &cuts, &page)), text(&whole), "{:?}", source);
        prop_assert_eq!(streamed(&source, &cuts, &page), whole.clone(), "{:?}", source);
        // A character that is shown by its number may be wider than the page.
        let most = width + 24;
        prop_assert!(whole.iter().all(|row| row.wrap == Wrap::Terminal || row.width() <= most), "{:?}", source);
    }
}
