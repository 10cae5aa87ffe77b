//! Size budgets that only shrink: a file should have at most 400 lines and may have 800, a function may have
//! 60. Exceptions are listed with the exact number; growing fails, and so does shrinking without lowering the
//! number.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::repository::TextFile;
use crate::rust_source::RustSource;

/// The most lines of a file, without its tests, unless it is an exception.
const FILE_STOP: usize = 800;
/// The most lines that a file should have; above it there is a remark but no failure.
const FILE_WANT: usize = 400;
/// The most lines from `fn` to the closing brace.
const FUNCTION_STOP: usize = 60;

/// The file with the exceptions.
pub(crate) const EXCEPTIONS: &str = "xtask/tidy-exceptions.toml";

/// The measured lines of everything over its budget: `path` for a file, `path::function` for a function.
pub(crate) type Oversized = BTreeMap<String, usize>;

struct Exception {
    what: String,
    lines: usize,
    reason: String,
}

impl Exception {
    /// Reads an exception: exactly these three keys.
    fn read(value: &Value) -> Option<Self> {
        let table = value.as_table().filter(|table| table.len() == 3)?;
        let text = |key: &str| table.get(key)?.as_str().map(str::to_owned);
        let lines = usize::try_from(table.get("lines")?.as_integer()?).ok()?;
        Some(Self { what: text("what")?, lines, reason: text("reason")? })
    }
}

/// Reads the list of exceptions; the file may have nothing else.
fn listed(text: &str) -> Result<Vec<Exception>> {
    let table: Table = toml::from_str(text).with_context(|| format!("{EXCEPTIONS} cannot be read"))?;
    let read = |list: &Value| list.as_array()?.iter().map(Exception::read).collect::<Option<Vec<_>>>();
    let list = match table.get("exception") {
        None if table.is_empty() => Some(Vec::new()),
        Some(list) if table.len() == 1 => read(list),
        _ => None,
    };
    list.with_context(|| {
        format!("{EXCEPTIONS} may hold `[[exception]]`, each with `what`, `lines` and `reason`")
    })
}

/// Returns remarks on files over the wanted size.
pub(crate) fn wanted_smaller(files: &[TextFile]) -> Vec<String> {
    let measured = files.iter().filter(|file| counts(file)).map(|file| (&file.path, file_lines(file)));
    measured
        .filter(|(_, lines)| (FILE_WANT + 1..=FILE_STOP).contains(lines))
        .map(|(path, lines)| format!("{path}: {lines} lines, {FILE_WANT} are wanted"))
        .collect()
}

/// Measures everything over its budget.
pub(crate) fn measure(files: &[TextFile]) -> Oversized {
    let mut oversized = Oversized::new();
    for file in files.iter().filter(|file| counts(file)) {
        let lines = file_lines(file);
        if lines > FILE_STOP {
            oversized.insert(file.path.clone(), lines);
        }
        measure_functions(file, &mut oversized);
    }
    oversized
}

/// Compares with the list of exceptions, strictly both ways.
pub(crate) fn check(mut oversized: Oversized, exceptions: &str) -> Result<Vec<String>> {
    let listed = listed(exceptions)?;
    let mut problems = Vec::new();
    for Exception { what, lines, reason } in &listed {
        if reason.trim().is_empty() {
            problems.push(format!("{EXCEPTIONS}: `{what}` gives no reason"));
        }
        match oversized.remove(what) {
            None => {
                problems.push(format!("{EXCEPTIONS}: `{what}` is within its budget now; remove its entry"))
            }
            Some(now) if now > *lines => {
                problems.push(format!("{what}: {now} lines, and its exception allows {lines}; split it"));
            }
            Some(now) if now < *lines => {
                problems
                    .push(format!("{EXCEPTIONS}: `{what}` shrank; lower its number from {lines} to {now}"));
            }
            Some(_) => {}
        }
    }
    for (what, lines) in oversized {
        let stop = if what.contains("::") { FUNCTION_STOP } else { FILE_STOP };
        problems.push(format!("{what}: {lines} lines, {stop} are allowed; split it"));
    }
    Ok(problems)
}

fn counts(file: &TextFile) -> bool {
    file.is_rust() && !file.is_test_code()
}

fn file_lines(file: &TextFile) -> usize {
    RustSource::parse(&file.text).lines_without_tests()
}

fn measure_functions(file: &TextFile, oversized: &mut Oversized) {
    let source = RustSource::parse(&file.text);
    let tests = source.test_modules();
    for function in source.functions() {
        let lines = function.end - function.start + 1;
        let in_tests = tests.iter().any(|(first, last)| (first..=last).contains(&&function.start));
        if lines > FUNCTION_STOP && !in_tests {
            // Two methods of one name share an entry: the longer one counts.
            let entry = oversized.entry(format!("{}::{}", file.path, function.name)).or_default();
            *entry = lines.max(*entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, body_lines: usize) -> TextFile {
        TextFile::new(path, &format!("//! Why.\nfn long() {{\n{}}}\n", "    x();\n".repeat(body_lines)))
    }

    fn exception(what: &str, lines: usize) -> String {
        format!("[[exception]]\nwhat = \"{what}\"\nlines = {lines}\nreason = \"a table\"\n")
    }

    #[test]
    fn a_long_function_and_a_long_file_are_found() {
        let problems = check(measure(&[file("a.rs", 59), file("b.rs", 58), file("c.rs", 798)]), "").unwrap();
        assert_eq!(
            problems,
            [
                "a.rs::long: 61 lines, 60 are allowed; split it",
                "c.rs: 801 lines, 800 are allowed; split it",
                "c.rs::long: 800 lines, 60 are allowed; split it"
            ]
        );
    }

    #[test]
    fn tests_have_no_budget() {
        let mut inside = file("a.rs", 0);
        inside
            .text
            .push_str(&format!("#[cfg(test)]\nmod tests {{\nfn t() {{\n{}}}\n}}\n", "x();\n".repeat(900)));
        assert_eq!(measure(&[inside, file("tests/b.rs", 900), file("x.md", 900)]), Oversized::new());
    }

    #[test]
    fn an_exception_holds_exactly() {
        let check = |lines| check(measure(&[file("a.rs", 70)]), &exception("a.rs::long", lines)).unwrap();
        assert_eq!(check(72), [""; 0]);
        assert_eq!(check(71), ["a.rs::long: 72 lines, and its exception allows 71; split it"]);
        assert_eq!(
            check(73),
            ["xtask/tidy-exceptions.toml: `a.rs::long` shrank; lower its number from 73 to 72"]
        );
    }

    #[test]
    fn a_needless_or_unexplained_exception_fails() {
        let text = exception("gone.rs", 900).replace("a table", "");
        assert_eq!(
            check(Oversized::new(), &text).unwrap(),
            [
                "xtask/tidy-exceptions.toml: `gone.rs` gives no reason",
                "xtask/tidy-exceptions.toml: `gone.rs` is within its budget now; remove its entry"
            ]
        );
        assert!(check(Oversized::new(), "nonsense").is_err());
        for wrong in
            ["exceptions = 1", "exception = 1", "[[exception]]\nwhat = \"a\"\nlines = 1\nwhy = \"b\"\n"]
        {
            assert!(check(Oversized::new(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_over_the_wish_earns_a_remark() {
        let remarks = wanted_smaller(&[file("a.rs", 398), file("b.rs", 397)]);
        assert_eq!(remarks, ["a.rs: 401 lines, 400 are wanted"]);
    }
}
