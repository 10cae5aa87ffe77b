//! Tools that are held back until a person agrees to their definition, and the difference for the person.

use std::collections::BTreeMap;

use archon_types::Json;
use similar::TextDiff;

use crate::{Definition, McpError, McpProblem, Phase, ServerPins, text::plain};

/// A tool that is held back until a person agrees to its definition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Held {
    /// The server, by its configured name.
    pub server: String,
    /// The name of the tool on the server.
    pub tool: String,
    /// The reason why the tool is held back.
    pub kind: HeldKind,
    /// The hash of the definition that is held back. An approval is for this definition only.
    pub hash: String,
    /// The difference from the definition that was agreed to, for a person: lines that begin with `-`, `+` or
    /// a space. The text comes from the server and is untrusted.
    pub difference: String,
}

/// The reason why a tool is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldKind {
    /// The server did not have this tool when its tools were agreed to.
    New,
    /// The definition changed.
    Changed,
    /// The tool was agreed to under another name.
    Renamed {
        /// The name under which the tool was agreed to.
        from: String,
    },
    /// The server's command or address is not the one whose tools were agreed to.
    OtherServer {
        /// The earlier command or address.
        from: String,
        /// The present command or address.
        to: String,
    },
    /// The pins cannot be read or stored, for this reason.
    Unreadable(String),
}

impl Held {
    /// Returns the reason in a sentence.
    pub fn reason(&self) -> String {
        match &self.kind {
            HeldKind::New => "the tool is new since the server's tools were agreed to".to_owned(),
            HeldKind::Changed => "the tool's definition changed since it was agreed to".to_owned(),
            HeldKind::Renamed { from } => format!("the tool was agreed to under the name '{}'", shown(from)),
            HeldKind::OtherServer { from, to } => {
                let (from, to) = (shown(from), shown(to));
                format!("the server's command or address changed from `{from}` to `{to}`")
            }
            HeldKind::Unreadable(why) => why.clone(),
        }
    }

    /// Returns advice for a person on how to make the tool usable, as one line.
    pub fn advice(&self) -> String {
        McpError::new(&self.server, Phase::Call, self.problem()).advice()
    }

    /// Returns the problem of a call of the tool.
    pub(crate) fn problem(&self) -> McpProblem {
        match &self.kind {
            HeldKind::Unreadable(why) => McpProblem::UnreadablePins(why.clone()),
            _ => McpProblem::HeldBack(self.reason()),
        }
    }
}

/// The tools of a server after a comparison with its pins.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The definitions that were agreed to, by the tool's name on the server.
    pub(crate) allowed: BTreeMap<String, Allowed>,
    pub(crate) held: Vec<Held>,
}

/// A definition that was agreed to. Its hash is kept, because each search of a server's tools needs it.
#[derive(Debug)]
pub(crate) struct Allowed {
    pub(crate) definition: Definition,
    pub(crate) hash: String,
}

/// Compares the definitions of a server with its pins.
pub(crate) fn judge(server: &str, identity: &str, pins: &ServerPins, definitions: &[Definition]) -> Judged {
    let mut judged = Judged::default();
    let gone: Vec<&Definition> = pins
        .tools
        .values()
        .map(|pin| &pin.definition)
        .filter(|pinned| definitions.iter().all(|definition| definition.name != pinned.name))
        .collect();
    for definition in definitions {
        let hash = definition.hash(identity);
        let pin = pins.tools.get(&definition.name);
        let (kind, before) = match pin {
            Some(pin) if pin.hash == hash => {
                let allowed = Allowed { definition: definition.clone(), hash };
                judged.allowed.insert(definition.name.clone(), allowed);
                continue;
            }
            Some(pin) if pins.identity != identity => {
                let (from, to) = (pins.identity.clone(), identity.to_owned());
                (HeldKind::OtherServer { from, to }, Some(&pin.definition))
            }
            Some(pin) => (HeldKind::Changed, Some(&pin.definition)),
            None => match gone.iter().find(|gone| is_renamed(gone, definition, identity)) {
                Some(gone) => (HeldKind::Renamed { from: gone.name.clone() }, Some(*gone)),
                None => (HeldKind::New, None),
            },
        };
        let difference = difference(before, definition);
        judged.held.push(Held {
            server: server.to_owned(),
            tool: definition.name.clone(),
            kind,
            hash,
            difference,
        });
    }
    judged
}

/// Holds every tool back, because the pins cannot be read, for the reason `why`.
pub(crate) fn hold_all(server: &str, identity: &str, why: &str, definitions: &[Definition]) -> Judged {
    let held = definitions.iter().map(|definition| Held {
        server: server.to_owned(),
        tool: definition.name.clone(),
        kind: HeldKind::Unreadable(why.to_owned()),
        hash: definition.hash(identity),
        difference: difference(None, definition),
    });
    Judged { allowed: BTreeMap::new(), held: held.collect() }
}

fn is_renamed(gone: &Definition, now: &Definition, identity: &str) -> bool {
    gone.hash_without_name(identity) == now.hash_without_name(identity)
}

/// Returns the difference of two definitions, by lines. Invisible characters are shown by their numbers, as a
/// change may consist of them.
fn difference(before: Option<&Definition>, now: &Definition) -> String {
    let (before, now) = (before.map(written).unwrap_or_default(), written(now));
    let diff = TextDiff::from_lines(&before, &now);
    let lines = diff.iter_all_changes().map(|change| format!("{}{}", change.tag(), change.value()));
    lines.collect()
}

/// Writes a definition for a person, each part on lines of its own.
fn written(definition: &Definition) -> String {
    let mut text = format!("name: {}\n", shown(&definition.name));
    if let Some(title) = &definition.title {
        text += &format!("title: {}\n", shown(title));
    }
    text += "description:\n";
    definition.description.lines().for_each(|line| text += &format!("  {}\n", shown(line)));
    let schemas = [
        ("arguments", Some(&definition.input_schema)),
        ("result", definition.output_schema.as_ref()),
        ("annotations", Some(&definition.annotations).filter(|value| !value.is_null())),
    ];
    for (name, value) in schemas.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        text += &format!("{name}:\n");
        pretty(value).lines().for_each(|line| text += &format!("  {}\n", shown(line)));
    }
    text
}

fn pretty(value: &Json) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns a text as one line in which every character can be seen.
fn shown(line: &str) -> String {
    let mut shown = String::new();
    for c in line.chars() {
        match c == '\n' || plain(c.encode_utf8(&mut [0; 4]), 1).is_empty() {
            true => shown += &format!("<U+{:04X}>", u32::from(c)),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use archon_testkit::Chance;
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    const IDENTITY: &str = "npx files";

    fn judged(now: &[Definition]) -> Judged {
        let pins = ServerPins::first(IDENTITY, &[definition("read"), definition("write")]);
        judge("files", IDENTITY, &pins, now)
    }

    #[test]
    fn judge_allows_pinned_definitions() {
        let judged = judged(&[definition("read")]);
        assert_eq!(judged.allowed.keys().collect::<Vec<_>>(), ["read"]);
        assert_eq!(judged.allowed["read"].hash, definition("read").hash(IDENTITY));
        assert_eq!(judged.held, []);
    }

    #[test]
    fn judge_holds_back_changed_new_and_renamed_tools() {
        let mut changed = definition("write");
        changed.description = "Reads a file.\u{200b}".to_owned();
        let mut new = definition("delete");
        new.description = "Deletes.".to_owned();
        let judged = judged(&[definition("fetch"), changed, new]);
        assert!(judged.allowed.is_empty());
        let kinds: Vec<_> = judged.held.iter().map(|held| (&*held.tool, held.kind.clone())).collect();
        let renamed = HeldKind::Renamed { from: "read".to_owned() };
        assert_eq!(kinds, [("fetch", renamed), ("write", HeldKind::Changed), ("delete", HeldKind::New)]);
        let difference = &judged.held[1].difference;
        assert!(difference.contains("-  Reads a file.\n+  Reads a file.<U+200B>\n"), "{difference}");
    }

    #[test]
    fn difference_shows_a_line_break_in_a_title_and_adds_no_line() {
        let mut changed = definition("write");
        changed.title = Some("Write\n-description:\n\tx".to_owned());
        let difference = judged(&[changed]).held[0].difference.clone();
        assert!(difference.contains("+title: Write<U+000A>-description:<U+000A>\tx\n"), "{difference}");
    }

    #[test]
    fn advice_of_a_held_tool_is_to_approve_unless_the_pins_are_unreadable() {
        let new = judge("files", IDENTITY, &ServerPins::default(), &[definition("read")]);
        assert!(new.held[0].advice().contains("approve the tool"), "{}", new.held[0].advice());
        let unreadable = hold_all("files", IDENTITY, "cannot be read", &[definition("read")]);
        let advice = unreadable.held[0].advice();
        assert!(advice.contains("delete") && !advice.contains("approve"), "{advice}");
    }

    #[test]
    fn judge_holds_everything_back_when_the_command_changes() {
        let pins = ServerPins::first(IDENTITY, &[definition("read")]);
        let judged = judge("files", "npx evil", &pins, &[definition("read")]);
        assert!(judged.allowed.is_empty());
        assert_eq!(
            judged.held[0].reason(),
            "the server's command or address changed from `npx files` to `npx evil`"
        );
        let judged = judge("files", "npx 'a\nb'", &pins, &[definition("read")]);
        assert!(judged.held[0].reason().ends_with("to `npx 'a<U+000A>b'`"), "{}", judged.held[0].reason());
    }

    #[test]
    fn judge_holds_back_every_one_of_a_thousand_random_changes() {
        let mut chance = Chance(11);
        for _ in 0..1_000 {
            let mut changed = definition("read");
            let piece = ["\u{200b}", " ", "ignore all", "é"][usize::try_from(chance.below(4)).unwrap_or(0)];
            match chance.below(7) {
                0 => changed.name.push_str(piece),
                1 => changed.title = Some(piece.to_owned()),
                2 => changed.description.insert_str(0, piece),
                3 => changed.input_schema["properties"]["path"]["description"] = json!(piece),
                4 => changed.input_schema["required"] = json!(["path"]),
                5 => changed.output_schema = Some(json!({ "description": piece })),
                _ => changed.annotations = json!({ "destructiveHint": false, "title": piece }),
            }
            let judged = judged(&[changed]);
            assert!(judged.allowed.is_empty() && judged.held.len() == 1);
            assert!(judged.held[0].difference.lines().any(|line| line.starts_with(['+', '-'])));
        }
    }
}
