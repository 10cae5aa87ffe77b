//! Finds `spec: TE-08, A-27` in comments, and the function, and so the test, to which each one belongs.

use std::collections::BTreeMap;

use crate::repository::TextFile;
use crate::rust_source::{Function, RustSource};

const MARK: &str = "spec:";

/// All ids that a function (or a comment outside of functions) cites.
#[derive(Debug, PartialEq)]
pub(crate) struct Citation {
    pub(crate) path: String,
    /// Line of the first citing comment, counted from 1.
    pub(crate) line: usize,
    /// Name of the test; `None` if the citation is not in a test.
    pub(crate) test: Option<String>,
    pub(crate) ids: Vec<String>,
}

/// Returns whether a word has the form of an id: letters, a hyphen, digits. docs/spec.md decides if it
/// exists.
pub(crate) fn is_id(word: &str) -> bool {
    let Some((area, number)) = word.split_once('-') else { return false };
    (1..=2).contains(&area.len())
        && area.bytes().all(|byte| byte.is_ascii_uppercase())
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the citations of all Rust files, and problems with unreadable ones.
pub(crate) fn collect(files: &[TextFile]) -> (Vec<Citation>, Vec<String>) {
    let (mut citations, mut problems) = (Vec::new(), Vec::new());
    for file in files.iter().filter(|file| file.is_rust()) {
        collect_file(file, &mut citations, &mut problems);
    }
    (citations, problems)
}

fn collect_file(file: &TextFile, citations: &mut Vec<Citation>, problems: &mut Vec<String>) {
    if !file.text.contains(MARK) {
        return;
    }
    let source = RustSource::parse(&file.text);
    let functions = source.functions();
    // Keyed by the function's place in the file; a citation outside of functions has its own entry.
    let mut grouped: BTreeMap<(Option<usize>, usize), Citation> = BTreeMap::new();
    for (line, comment) in source.comment_lines().iter().enumerate() {
        let ids = match ids_in(comment) {
            Ok(ids) if ids.is_empty() => continue,
            Ok(ids) => ids,
            Err(problem) => {
                problems.push(format!("{}:{}: {problem}", file.path, line + 1));
                continue;
            }
        };
        let owner = owner(&functions, line);
        let key = (owner, owner.map_or(line, |_| 0));
        let test = owner.map(|index| &functions[index]).filter(|function| function.is_test);
        let citation = grouped.entry(key).or_insert_with(|| Citation {
            path: file.path.clone(),
            line: line + 1,
            test: test.map(|function| function.name.clone()),
            ids: Vec::new(),
        });
        citation.ids.extend(ids);
        citation.ids.dedup();
    }
    citations.extend(grouped.into_values());
}

/// Returns the innermost function whose header or body has the line.
fn owner(functions: &[Function], line: usize) -> Option<usize> {
    let holds = |function: &Function| (function.header..=function.end).contains(&line);
    functions.iter().rposition(holds)
}

/// Returns the ids of a comment line; empty if it cites nothing.
fn ids_in(comment: &str) -> Result<Vec<String>, String> {
    let text = comment.trim().trim_start_matches(['/', '!', '*']).trim_start();
    let Some(at) = text.find(MARK) else { return Ok(vec![]) };
    let list = text[at + MARK.len()..].trim();
    let words: Vec<&str> = list.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let bare = |word: &str| word.trim_end_matches(['.', ';', ')']).to_owned();
    let ids: Vec<String> = words.iter().map(|word| bare(word)).take_while(|word| is_id(word)).collect();
    if ids.is_empty() && at > 0 {
        // Prose with the word "spec:".
        return Ok(vec![]);
    }
    let range = |word: &&&str| ["-", "–", "…", "..", "to"].iter().any(|dash| word.starts_with(dash));
    if ids.is_empty() || words.get(ids.len()).filter(range).is_some() {
        return Err(format!("`{text}` has to list its ids one by one, as in `spec: TE-08, A-27`"));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (Vec<Citation>, Vec<String>) {
        collect(&[TextFile::new("a.rs", text)])
    }

    #[test]
    fn comments_above_and_inside_a_test_belong_to_it() {
        let text = "\
//! Tests.

// spec: T-01
/// Says more.
#[tokio::test]
async fn holds() {
    let text = \"spec: T-09\";
    // spec: T-02, T-03
}

// spec: T-04
fn production() {}
";
        let (citations, problems) = of(text);
        assert_eq!(problems, [""; 0]);
        let found: Vec<_> = citations.iter().map(|c| (c.line, c.test.as_deref(), c.ids.join(" "))).collect();
        assert_eq!(found, [(3, Some("holds"), "T-01 T-02 T-03".to_owned()), (11, None, "T-04".to_owned())]);
    }

    #[test]
    fn properties_in_a_macro_are_tests_too() {
        let (citations, _) =
            of("proptest! {\n    // spec: C-04\n    #[test]\n    fn pairs(x in 0..9) { f(x) }\n}\n");
        assert_eq!(citations[0].test.as_deref(), Some("pairs"));
    }

    #[test]
    fn prose_is_no_citation() {
        for text in ["// as in the spec: it says so\n", "// inspect: T-01x\n", "let spec: Spec = T-01;\n"] {
            assert_eq!(of(text), (vec![], vec![]), "{text}");
        }
    }

    #[test]
    fn ranges_and_empty_lists_are_refused() {
        for text in
            ["// spec: T-01 … T-05\n", "// spec: T-01 - T-05\n", "// spec:\n", "/// spec: all of it\n"]
        {
            let (_, problems) = of(text);
            assert_eq!(problems.len(), 1, "{text}");
            assert!(
                problems[0].ends_with("has to list its ids one by one, as in `spec: TE-08, A-27`"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_id_may_end_a_sentence() {
        let (citations, _) = of("// Nobody to ask means no (spec: AP-15, A-54).\n#[test]\nfn denies() {}\n");
        assert_eq!(citations[0].ids, ["AP-15", "A-54"]);
    }
}
