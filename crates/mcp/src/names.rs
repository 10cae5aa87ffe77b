//! Names of tools for models: `server__tool`, valid for every model service.

use hmac_sha256::Hash;

/// Maximum length of a name that every model service accepts, in characters.
const LONGEST: usize = 64;
/// Maximum length of the name of a server, so that there is room for the names of its tools.
const LONGEST_SERVER: usize = 32;
/// Number of hexadecimal digits of the hash at the end of a name that was shortened or cleaned.
const DIGITS: usize = 8;

/// Returns the name by which a model calls a tool of a server: `server__tool`.
///
/// Model services accept only letters, digits, `_` and `-`, at most 64 characters. A name that is longer or
/// has other characters is shortened and cleaned, and ends with a hash of the original. So the name always
/// names one tool of one server, and is the same in every process.
pub fn model_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    let is_legal = plain.len() <= LONGEST && tool.chars().all(is_allowed) && !tool.is_empty();
    if is_legal && !ends_like_a_hash(tool) {
        return plain;
    }
    let mut hash = Hash::new();
    hash.update(format!("archon mcp name\n{server}\n{tool}"));
    let hash: String = hash.finalize().iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    let clean = plain.chars().map(|c| if is_allowed(c) { c } else { '_' });
    let short: String = clean.take(LONGEST - DIGITS - 1).collect();
    format!("{short}_{hash}")
}

/// Returns the reason why a server's configured name is invalid; `None` for a valid name. A valid name has 1
/// to 32 letters, digits, `_` and `-`. It has no `__`, and neither begins nor ends with `_`.
pub fn server_name_problem(name: &str) -> Option<&'static str> {
    match name {
        "" => Some("it is empty"),
        _ if name.len() > LONGEST_SERVER => Some("it has more than 32 characters"),
        _ if !name.chars().all(is_allowed) => Some("it may have only letters, digits, '_' and '-'"),
        _ if name.contains("__") => Some("it contains '__', which separates the server from the tool"),
        _ if name.starts_with('_') || name.ends_with('_') => Some("it begins or ends with '_'"),
        _ => None,
    }
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns true if a tool's name ends with `_` and a hash. Such a name could be confused with a name that was
/// shortened or cleaned.
fn ends_like_a_hash(tool: &str) -> bool {
    tool.len() > DIGITS
        && tool.is_char_boundary(tool.len() - DIGITS)
        && tool[..tool.len() - DIGITS].ends_with('_')
        && tool[tool.len() - DIGITS..].chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use archon_testkit::Chance;

    use super::*;

    // spec: TE-03, MC-07
    #[test]
    fn model_name_of_an_ordinary_tool_is_readable() {
        assert_eq!(model_name("files", "read_file"), "files__read_file");
        assert_eq!(model_name("math", "a-b_c__d"), "math__a-b_c__d");
        assert!(model_name("web", "web.search").starts_with("web__web_search_"));
        assert!(model_name("files", "lire le café").starts_with("files__lire_le_caf__"));
    }

    // spec: TE-03
    #[test]
    fn model_name_of_any_tool_is_legal_and_unique() {
        let mut chance = Chance(7);
        let mut seen: BTreeMap<String, (String, String)> = BTreeMap::new();
        let letters: Vec<char> = "ab_-./ é\u{202e}0f😀".chars().collect();
        for _ in 0..5_000 {
            let mut below = |n: usize| usize::try_from(chance.below(n as u64)).unwrap_or(0);
            let server = ["a", "a_b", "b-1"][below(3)];
            let length = below(90);
            let mut tool: String = (0..length).map(|_| letters[below(letters.len())]).collect();
            if below(4) == 0 {
                // What an attacker would call a tool to be taken for another.
                tool = model_name(server, &tool).trim_start_matches(&format!("{server}__")).to_owned();
            }
            let name = model_name(server, &tool);
            assert!(!name.is_empty() && name.len() <= LONGEST && name.chars().all(is_allowed), "{name}");
            let owner = (server.to_owned(), tool);
            let known = seen.entry(name.clone()).or_insert_with(|| owner.clone());
            assert_eq!(*known, owner, "{name}");
        }
    }

    #[test]
    fn server_names_that_would_blur_the_border_are_refused() {
        for name in ["", "a__b", "_a", "a_", "a.b", "é", &"a".repeat(33)] {
            assert!(server_name_problem(name).is_some(), "{name}");
        }
        for name in ["a", "github-2", "my_files"] {
            assert_eq!(server_name_problem(name), None, "{name}");
        }
    }
}
