//! Makes diffs of texts for people.

use archon_types::FileChange;
use similar::{ChangeTag, TextDiff};

/// Options of the diffs that people read in previews and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffOptions {
    /// Number of unchanged lines shown before and after a change. Default 3.
    pub context_lines: usize,
    /// Maximum size of a file in bytes; for a larger file no diff is made. Default 102,400.
    pub max_file_size: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { context_lines: 3, max_file_size: 102_400 }
    }
}

/// Describes how the file `path` changes from the text `before` to the text `after`; `before` is `None` for a
/// new file.
pub(crate) fn change(path: &str, before: Option<&str>, after: &str, options: DiffOptions) -> FileChange {
    let mut change = FileChange::new(path);
    change.created = before.is_none();
    let before = before.unwrap_or_default();
    if before.len().max(after.len()) > options.max_file_size {
        return change;
    }
    let diff = TextDiff::from_lines(before, after);
    for line in diff.iter_all_changes() {
        match line.tag() {
            ChangeTag::Insert => change.added += 1,
            ChangeTag::Delete => change.removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let from = if change.created { "/dev/null".to_owned() } else { format!("a/{path}") };
    let to = format!("b/{path}");
    change.diff =
        Some(diff.unified_diff().context_radius(options.context_lines).header(&from, &to).to_string());
    change
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    // spec: CL-09
    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        let before: String = (1..=12).map(|n| format!("line {n}\n")).collect();
        let after = before.replace("line 6\n", "line six\nand a half\n");
        let changed = change("a.txt", Some(&before), &after, DiffOptions::default());
        assert_eq!((changed.added, changed.removed, changed.created), (2, 1, false));
        expect![[r#"
            --- a/a.txt
            +++ b/a.txt
            @@ -3,7 +3,8 @@
             line 3
             line 4
             line 5
            -line 6
            +line six
            +and a half
             line 7
             line 8
             line 9
        "#]]
        .assert_eq(&changed.diff.unwrap());
        let created = change("b.txt", None, "one\n", DiffOptions::default());
        assert!(created.created && created.diff.unwrap().starts_with("--- /dev/null\n+++ b/b.txt\n"));
    }

    // spec: CL-09
    #[test]
    fn change_too_large_for_a_diff_still_has_its_path() {
        let large = "x\n".repeat(60_000);
        let changed = change("a.txt", Some("x\n"), &large, DiffOptions::default());
        assert_eq!((changed.path.as_str(), changed.diff), ("a.txt", None));
    }
}
