//! Default descriptions of parameters that have none, by their name.

/// Parameter names that mean the same in most tools, and their descriptions. The descriptions are short,
/// because a model reads them with every request.
const MEANINGS: &[(&str, &str)] = &[
    ("command", "Shell command"),
    ("content", "Content to write"),
    ("cwd", "Working directory"),
    ("directory", "Directory path"),
    ("end_line", "Last line, counted from 1"),
    ("expression", "Arithmetic expression"),
    ("file_path", "File path"),
    ("glob", "File name pattern (glob)"),
    ("limit", "Maximum number of results"),
    ("max_results", "Maximum number of results"),
    ("message", "Message text"),
    ("new_string", "Replacement text"),
    ("old_string", "Text to replace"),
    ("path", "File or directory path"),
    ("pattern", "Search pattern (regex)"),
    ("prompt", "Instructions in plain text"),
    ("query", "Search query"),
    ("replace_all", "Replace every occurrence"),
    ("start_line", "First line, counted from 1"),
    ("timeout", "Time limit in seconds"),
    ("timeout_ms", "Time limit in milliseconds"),
    ("url", "URL"),
];

/// Returns the default description of a parameter called `name`, if there is one.
pub(crate) fn meaning(name: &str) -> Option<&'static str> {
    MEANINGS.iter().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
}
