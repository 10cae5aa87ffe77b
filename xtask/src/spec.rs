//! `cargo xtask spec`: shows the rows of docs/spec.md and the tests that cite them. A row without a test is
//! not promised yet; this lists those rows.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::repository;
use crate::sample;
use crate::spec_citations::{self, Citation};

/// Mark after the title of an audited row.
const AUDITED: &str = " (audited)";

/// The page with the rows.
const PAGE: &str = "docs/spec.md";

/// The most rows that one test may cite; a test that cites more proves none of them well.
const ROWS_PER_TEST: usize = 5;

/// A row of the page.
#[derive(Debug, PartialEq)]
struct Row {
    area: String,
    id: String,
    title: String,
    /// A person read the row and its tests, broke the promise, and saw the tests fail.
    audited: bool,
}

/// Row id → the tests that cite it, as `file::function`.
type Cited = BTreeMap<String, Vec<String>>;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let (all, summary) = (args.flag("--all"), args.flag("--summary"));
    let sample = args.number("--sample")?;
    let seed = args.number("--seed")?.unwrap_or(1);
    args.finish()?;
    let rows = load_rows()?;
    let (citations, mut problems) = spec_citations::collect(&repository::text_files()?);
    problems.extend(check(&rows, &citations));
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    if !problems.is_empty() {
        bail!(
            "{} problems with citations (`spec:`) are listed above; the valid ids are in {PAGE}",
            problems.len()
        );
    }
    let cited = by_row(&citations);
    let unproved: Vec<_> = rows.iter().filter(|row| row.audited && !cited.contains_key(&row.id)).collect();
    if let Some(row) = unproved.first() {
        bail!("{} is marked{AUDITED} in {PAGE}, and no test cites it", row.id);
    }
    let mut text = match (sample, all, summary) {
        (Some(count), ..) => table(drawn(&rows, &cited, count, seed), &cited),
        (None, true, _) => table(&rows, &cited),
        (None, false, false) => missing(&rows, &cited),
        (None, false, true) => String::new(),
    };
    text.push_str(&count(&rows, &cited, &citations));
    text.push('\n');
    show(&text)
}

/// Prints a long text; a closed pipe, as with `head`, is not a failure.
fn show(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot print the rows"),
        _ => Ok(()),
    }
}

fn load_rows() -> Result<Vec<Row>> {
    let page =
        fs::read_to_string(repository::root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    parse_rows(&page)
}

/// Parses the rows: list items `- T-01: Title` under a heading that names their area.
fn parse_rows(page: &str) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut area = String::new();
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            area = heading.to_owned();
        }
        let Some(item) = line.strip_prefix("- ") else { continue };
        let row = item.split_once(": ").filter(|(id, title)| spec_citations::is_id(id) && !title.is_empty());
        let Some((id, title)) = row else {
            bail!("{PAGE}:{}: `{line}` is not of the form `- T-01: Title`", number + 1);
        };
        if rows.iter().any(|row| row.id == id) {
            bail!("{PAGE}:{}: {id} is listed twice", number + 1);
        }
        let audited = title.ends_with(AUDITED);
        let title = title.trim_end_matches(AUDITED).to_owned();
        rows.push(Row { area: area.clone(), id: id.to_owned(), title, audited });
    }
    Ok(rows)
}

fn check(rows: &[Row], citations: &[Citation]) -> Vec<String> {
    let mut problems = Vec::new();
    for citation in citations {
        for id in citation.ids.iter().filter(|id| !rows.iter().any(|row| row.id == **id)) {
            problems.push(format!("{}:{}: {id} is not in {PAGE}", citation.path, citation.line));
        }
        if citation.test.is_some() && citation.ids.len() > ROWS_PER_TEST {
            problems.push(format!(
                "{}:{}: one test cites {} rows, {ROWS_PER_TEST} are allowed; split the test",
                citation.path,
                citation.line,
                citation.ids.len()
            ));
        }
    }
    problems
}

fn by_row(citations: &[Citation]) -> Cited {
    let mut cited = Cited::new();
    for citation in citations {
        let Some(test) = &citation.test else { continue };
        for id in &citation.ids {
            cited.entry(id.clone()).or_default().push(format!("{}::{test}", citation.path));
        }
    }
    cited
}

fn missing(rows: &[Row], cited: &Cited) -> String {
    let mut text = String::new();
    let mut area = "";
    for row in rows.iter().filter(|row| !cited.contains_key(&row.id)) {
        if row.area != area {
            area = &row.area;
            text.push_str(&format!("{area}\n"));
        }
        text.push_str(&format!("  {:6} {}\n", row.id, row.title));
    }
    text
}

/// Draws rows that a test cites and that nobody has audited, by the seed.
fn drawn<'a>(rows: &'a [Row], cited: &Cited, count: u64, seed: u64) -> Vec<&'a Row> {
    let left = rows.iter().filter(|row| !row.audited && cited.contains_key(&row.id)).collect();
    sample::draw(left, count, seed)
}

fn table<'a>(rows: impl IntoIterator<Item = &'a Row>, cited: &Cited) -> String {
    let mut text = String::from("| row | title | tests |\n|---|---|---|\n");
    for row in rows {
        let tests = cited.get(&row.id).map(|tests| tests.join("<br>")).unwrap_or_default();
        text.push_str(&format!("| {} | {} | {tests} |\n", row.id, row.title));
    }
    text
}

fn count(rows: &[Row], cited: &Cited, citations: &[Citation]) -> String {
    let tests = citations.iter().filter(|citation| citation.test.is_some()).count();
    let done = rows.iter().filter(|row| cited.contains_key(&row.id)).count();
    let audited = rows.iter().filter(|row| row.audited).count();
    format!("spec: {done} of {} rows are cited, by {tests} tests; {audited} are audited", rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::TextFile;

    const PAGE_TEXT: &str =
        "# Spec\n\n## Types\n\n- T-01: Content\n- T-02: Messages\n\n## Scenarios\n\n- A-01: Percent\n";

    fn citations(text: &str) -> Vec<Citation> {
        spec_citations::collect(&[TextFile::new("tests/a.rs", text)]).0
    }

    #[test]
    fn repository_cites_only_existing_spec_rows() {
        let rows = load_rows().unwrap();
        assert_eq!(rows.len(), 495);
        let (citations, mut problems) = spec_citations::collect(&repository::text_files().unwrap());
        problems.extend(check(&rows, &citations));
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn spec_table_lists_missing_rows_by_area() {
        let rows = parse_rows(PAGE_TEXT).unwrap();
        let citations = citations("// spec: T-01\n#[test]\nfn holds() {}\n");
        let cited = by_row(&citations);
        assert_eq!(missing(&rows, &cited), "Types\n  T-02   Messages\nScenarios\n  A-01   Percent\n");
        assert_eq!(
            count(&rows, &cited, &citations),
            "spec: 1 of 3 rows are cited, by 1 tests; 0 are audited"
        );
        assert!(
            table(&rows, &cited).contains("| T-01 | Content | tests/a.rs::holds |\n| T-02 | Messages |  |\n")
        );
    }

    #[test]
    fn spec_sample_has_each_unaudited_cited_row_once() {
        let page = "## A\n\n- A-01: One (audited)\n- A-02: Two\n- A-03: Three\n- A-04: Four\n";
        let rows = parse_rows(page).unwrap();
        assert_eq!((rows[0].audited, rows[0].title.as_str()), (true, "One"));
        let cited = by_row(&citations("// spec: A-01, A-02, A-04\n#[test]\nfn holds() {}\n"));
        let ids = |seed| {
            let mut ids: Vec<_> = drawn(&rows, &cited, 9, seed).iter().map(|row| row.id.as_str()).collect();
            ids.sort_unstable();
            ids
        };
        for seed in 0..20 {
            assert_eq!(ids(seed), ["A-02", "A-04"]);
        }
        let first = |seed| drawn(&rows, &cited, 1, seed)[0].id.clone();
        assert_eq!(first(1), first(1));
        assert!((0..20).any(|seed| first(seed) != first(1)), "the seed decides");
    }

    #[test]
    fn a_citation_outside_tests_proves_nothing() {
        let citations = citations("// spec: T-01\nfn production() {}\n");
        assert!(by_row(&citations).is_empty());
    }

    #[test]
    fn unknown_ids_and_greedy_tests_fail() {
        let rows = parse_rows(PAGE_TEXT).unwrap();
        let unknown = citations("// spec: T-99\n#[test]\nfn holds() {}\n");
        assert_eq!(check(&rows, &unknown), ["tests/a.rs:1: T-99 is not in docs/spec.md"]);
        let ids: Vec<String> = (1..=6).map(|n| format!("T-0{n}")).collect();
        let greedy = Citation { path: "a.rs".into(), line: 3, test: Some("all".into()), ids };
        let problems = check(&rows, &[greedy]);
        assert_eq!(problems.last().unwrap(), "a.rs:3: one test cites 6 rows, 5 are allowed; split the test");
    }

    #[test]
    fn a_broken_page_is_refused() {
        let error = |text| parse_rows(text).unwrap_err().to_string();
        assert_eq!(
            error("- T01 Title\n"),
            "docs/spec.md:1: `- T01 Title` is not of the form `- T-01: Title`"
        );
        assert_eq!(error("- T-01: A\n- T-01: B\n"), "docs/spec.md:2: T-01 is listed twice");
    }
}
