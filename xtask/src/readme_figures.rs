//! Compares the figures in the README and on the first page of the book with the benchmarks, and the README's limits
//! with the programs that check them.

use crate::demo::{DISK_MB, DOWNLOAD_MB, GLIBC, MEMORY_MB};
use crate::deps::LIMITS;
use crate::repository::TextFile;

const README: &str = "README.md";
const BENCHMARKS: &str = "docs/benchmarks.md";
/// The heading of the table that the pages repeat a part of.
const HEADING: &str = "\n## Beside other frameworks\n";

/// The pages with that part.
const PAGES: &[&str] = &[README, "docs/book/start.md"];

/// The name of a row on those pages, and its name in the benchmarks.
const ROWS: &[(&str, &str)] = &[
    ("written by hand, no framework", "floor"),
    ("archon", "archon"),
    ("rig 0.44", "rig"),
    ("LangGraph 1.2", "langgraph"),
    ("Pydantic AI 2.68", "pydantic-ai"),
];

/// The columns of the benchmarks that those pages repeat, in their order: a turn, turn 290, the peak of many runs, idle.
const COLUMNS: [usize; 4] = [1, 8, 4, 10];

/// Returns one line for each figure and each limit that is not the one of its source.
pub(crate) fn check(files: &[TextFile]) -> Vec<String> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| file.text.as_str());
    let measured = text(BENCHMARKS).split_once(HEADING).map_or("", |(_, after)| after);
    let measured = measured.split("\n## ").next().unwrap_or_default();
    let mut problems = Vec::new();
    for page in PAGES {
        for (shown, source) in ROWS {
            problems.extend(compare(page, row(text(page), shown), row(measured, source), shown));
        }
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = words(text(README));
    let missing = sentences().into_iter().filter(|sentence| !readme.contains(sentence));
    problems
        .extend(missing.map(|sentence| format!("{README}: it does not say {sentence:?}, as the code does")));
    problems
}

fn compare(page: &str, shown: Option<Vec<&str>>, measured: Option<Vec<&str>>, name: &str) -> Option<String> {
    let (Some(shown), Some(measured)) = (shown, measured) else {
        return Some(format!("{page}: it or {BENCHMARKS} has no row for {name:?}"));
    };
    let measured = COLUMNS.map(|column| measured.get(column).copied().unwrap_or_default());
    let fits = shown.len() == measured.len() + 1
        && shown[1..].iter().zip(measured).all(|(shown, measured)| is_rounded(shown, measured));
    (!fits).then(|| format!("{page}: the row {name:?} is not that of {BENCHMARKS}: {}", measured.join(", ")))
}

/// Returns the cells of the row with this name, without marks.
fn row<'t>(text: &'t str, name: &str) -> Option<Vec<&'t str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let cells = |row: &'t str| row.split('|').map(|cell| cell.trim().trim_matches('*')).collect::<Vec<_>>();
    rows.map(cells).find(|cells| cells.first() == Some(&name))
}

/// Returns whether a shown figure, to which a remark may be added, is the measured one in as many digits.
fn is_rounded(shown: &str, measured: &str) -> bool {
    let shown = shown.split(' ').next().unwrap_or_default();
    let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    measured.parse::<f64>().is_ok_and(|measured| format!("{measured:.decimals$}") == shown)
}

/// The README's words about limits of the repository's own programs.
fn sentences() -> [String; 4] {
    let limit = |name: &str| LIMITS.iter().find(|(of, _)| *of == name).map_or(0, |(_, limit)| *limit);
    let (facade, providers) = (limit("archon-agents"), limit("archon-providers"));
    let gigabytes = |mb: u64| format!("{}.{} GB", mb / 1000, mb % 1000 / 100);
    let (major, minor) = GLIBC;
    [
        format!(
            "at most {facade} crates for the facade with its defaults, and {providers} for `archon-providers`"
        ),
        format!("fetches a small model ({DOWNLOAD_MB} MB)"),
        format!("{} of disk and {} of memory", gigabytes(DISK_MB), gigabytes(MEMORY_MB)),
        format!("needs glibc {major}.{minor} or newer"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_of_a_figure_that_was_measured_anew_names_page_and_row() {
        let measured = "| **rig** | **3.20** | 1 | 2 | **161** | 5 | 6 | 7 | 15.50 | 9 | 12.6 |\n";
        let find = |page: &str| compare("a.md", row(page, "rig 0.44"), row(measured, "rig"), "rig 0.44");
        assert_eq!(find("| rig 0.44 | 3.20 | 15.5 | 161 (200 runs) | 13 |\n"), None);
        assert_eq!(
            find("| rig 0.44 | 3.20 | 15.5 | 162 | 13 |\n").unwrap(),
            "a.md: the row \"rig 0.44\" is not that of docs/benchmarks.md: 3.20, 15.50, 161, 12.6"
        );
        assert!(find("| rig 0.44 | 3.20 | 15.5 |\n").is_some(), "columns are missing");
        assert!(find("").unwrap().contains("has no row"));
    }

    #[test]
    fn check_of_a_readme_without_a_limit_names_the_sentence() {
        let problems = check(&[TextFile::new(README, &sentences()[1..].join(" "))]);
        let limits: Vec<_> = problems.iter().filter(|problem| problem.contains("does not say")).collect();
        assert_eq!(limits.len(), 1, "{problems:?}");
        assert!(limits[0].contains("crates for the facade"), "{problems:?}");
    }
}
