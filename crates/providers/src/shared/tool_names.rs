//! Converts tool names for services, which accept `[A-Za-z0-9_-]{1,64}`. The name of a tool here may have dots, and
//! a name that a model invents may have any characters.

use std::borrow::Cow;

use archon_types::ToolSpec;

use crate::json_text::{push_json, push_separated};

const LONGEST: usize = 64;

/// Returns a name that services accept: a dot becomes two underscores, any other refused character becomes
/// one underscore, and a long name is cut.
pub(crate) fn to_wire(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let mut wire = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '.' => wire.push_str("__"),
            c if allowed(c) => wire.push(c),
            _ => wire.push('_'),
        }
    }
    if wire.is_empty() {
        wire.push('_');
    }
    wire.truncate(LONGEST);
    Cow::Owned(wire)
}

/// Returns the wire names of a request's tools, in order. All names are different: if a changed name equals another
/// one, a number is appended to it.
pub(crate) fn wire_names(tools: &[ToolSpec]) -> Vec<Cow<'_, str>> {
    let mut names: Vec<Cow<'_, str>> = tools.iter().map(|tool| to_wire(&tool.name)).collect();
    for place in 0..names.len() {
        // A name that needed no change is kept.
        if matches!(names[place], Cow::Borrowed(_)) {
            continue;
        }
        let taken = |name: &str| names.iter().enumerate().any(|(at, n)| at != place && n == name);
        if !taken(&names[place]) {
            continue;
        }
        let free = (2..).map(|n| numbered(&names[place], n)).find(|name| !taken(name));
        names[place] = Cow::Owned(free.unwrap_or_default());
    }
    names
}

/// Returns the tools as JSON objects with commas between them. Each begins with `begin` and the wire name;
/// `rest` appends everything after the name.
pub(crate) fn tool_list(tools: &[ToolSpec], begin: &str, rest: impl Fn(&ToolSpec, &mut String)) -> String {
    let mut text = String::new();
    for (tool, name) in tools.iter().zip(wire_names(tools)) {
        push_separated(&mut text, 0, begin);
        push_json(&mut text, &*name);
        rest(tool, &mut text);
    }
    text
}

/// Returns the wire name of a tool that the model must call.
pub(crate) fn wire_name<'a>(name: &'a str, tools: &'a [ToolSpec]) -> Cow<'a, str> {
    let place = tools.iter().position(|tool| tool.name == name);
    place.map_or_else(|| to_wire(name), |place| wire_names(tools).swap_remove(place))
}

/// Returns a name like `wanted` that no tool of a request has, for an additional tool.
pub(crate) fn free_name(wanted: &str, tools: &[ToolSpec]) -> String {
    let taken = wire_names(tools);
    let free = |name: &str| !taken.iter().any(|taken| taken == name);
    let name = to_wire(wanted);
    if free(&name) {
        return name.into_owned();
    }
    (2..).map(|n| numbered(&name, n)).find(|name| free(name)).unwrap_or_default()
}

fn numbered(name: &str, n: usize) -> String {
    let suffix = format!("_{n}");
    let keep = name.len().min(LONGEST - suffix.len());
    format!("{}{suffix}", &name[..keep])
}

/// Returns the tool's own name for a wire name; a name that no tool has is returned unchanged.
pub(crate) fn from_wire(wire: &str, tools: &[ToolSpec]) -> String {
    if !tools.iter().any(|tool| tool.name == wire)
        && let Some(place) = wire_names(tools).iter().position(|name| name == wire)
    {
        return tools[place].name.clone();
    }
    wire.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // spec: P-15
    #[test]
    fn names_are_allowed_on_the_wire_and_come_back() {
        let long = "x".repeat(70);
        let sets: &[&[&str]] = &[
            &["add", "files.read", "mcp__server__tool"],
            &["files.read", "files__read"],
            &["files__read", "files.read", "files..read"],
            &["a.b", "a__b_2", "a__b"],
            &[&long, &long[..64]],
            &["ö", "ü"],
        ];
        for set in sets {
            let tools: Vec<ToolSpec> = set.iter().map(|n| ToolSpec::new(*n, "", json!({}))).collect();
            let wire = wire_names(&tools);
            for (name, wire) in set.iter().zip(&wire) {
                let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                assert!((1..=64).contains(&wire.len()) && wire.chars().all(allowed), "{wire}");
                assert_eq!(from_wire(wire, &tools), *name);
            }
        }
        let tools: Vec<ToolSpec> = ["a.b", "c"].iter().map(|n| ToolSpec::new(*n, "", json!({}))).collect();
        assert_eq!(["x y", "c", "a__b"].map(|name| free_name(name, &tools)), ["x_y", "c_2", "a__b_2"]);
        assert_eq!(to_wire("files.read"), "files__read");
        assert_eq!(to_wire(""), "_");
        assert_eq!(from_wire("made up!", &[]), "made up!");
    }
}
