//! Suggests rules that would allow a call, for the person who is asked to approve the call.

use archon_types::Subject;

use super::{Permissions, Rule, Ruling};

/// Maximum length of a command line that is suggested as a rule, in bytes.
const LONGEST: usize = 200;

/// Returns rules that allow the call, the narrowest first.
pub(crate) fn suggestions(tool: &str, subject: &Subject) -> Vec<String> {
    let mut rules = Vec::new();
    match subject {
        Subject::Command { line, .. } => {
            let line = line.trim();
            if !line.is_empty() && !line.contains('\n') && line.len() <= LONGEST {
                rules.push(format!("{tool}({line})"));
            }
            rules.extend(first_words(line).map(|words| format!("{tool}({words}:*)")));
        }
        Subject::Paths { root, paths } => {
            if let [path] = &paths[..]
                && let Ok(inside) = path.strip_prefix(root)
            {
                let escaped = escape(&inside.to_string_lossy());
                rules.push(format!("{tool}({escaped})"));
                if let Some(folder) = inside.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                    rules.push(format!("{tool}({}/**)", escape(&folder.to_string_lossy())));
                }
            }
        }
        Subject::Urls(urls) => {
            if let [url] = &urls[..]
                && let Some((scheme, rest)) = url.split_once("://")
            {
                let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
                rules.push(format!("{tool}({scheme}://{host}/*)"));
            }
        }
        _ => rules.push(tool.to_owned()),
    }
    rules.retain(|rule| allows(rule, tool, subject));
    rules
}

fn allows(rule: &str, tool: &str, subject: &Subject) -> bool {
    let Ok(rule) = rule.parse::<Rule>() else { return false };
    let rules = Permissions { allow: vec![rule], ..Permissions::default() };
    rules.ruling(tool, subject, &[]) == Ruling::Allow
}

/// Returns the first words of a line with one command, for a suggested rule.
fn first_words(line: &str) -> Option<String> {
    #[cfg(all(unix, feature = "bash"))]
    {
        let line = super::shell::analyse(line)?;
        let [part] = &line.parts[..] else { return None };
        part.suggestion()
    }
    #[cfg(not(all(unix, feature = "bash")))]
    {
        let _ = line;
        None
    }
}

/// Escapes a path, so that the pattern matches only the path itself.
fn escape(path: &str) -> String {
    path.chars().flat_map(|c| "*?[]{}\\!".contains(c).then_some('\\').into_iter().chain([c])).collect()
}
