//! Tools that are held back until a person agrees to their definition, and the difference for the person.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
    time::Duration,
};

use archon_types::Json;
use similar::TextDiff;

use crate::{Definition, McpError, McpProblem, Phase, Pin, ServerPins, text::plain};

/// Maximum time for the comparison of two definitions. If it is over, the difference is less exact: it may show
/// unchanged lines as changed.
const COMPARISON: Duration = Duration::from_millis(500);

/// A tool that is held back: no model can use it until a person agrees to its definition
/// ([`McpServers::approve`](crate::McpServers::approve)).
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
    /// The difference from the definition that was agreed to, for a person.
    pub difference: HeldDifference,
}

/// The difference between the pinned definition of a tool and the present one, as text for a person. As in a diff,
/// each line begins with `-`, `+` or a space. The text comes from the server and is untrusted.
///
/// The text is made when it is first read, because a server may have thousands of large definitions, and may change
/// them every second.
#[derive(Clone)]
pub struct HeldDifference(Arc<Compared>);

/// The two definitions of a difference, and the text of the difference, which is computed when it is first
/// read.
struct Compared {
    before: Option<Definition>,
    now: Definition,
    text: OnceLock<String>,
}

impl HeldDifference {
    fn new(before: Option<&Definition>, now: &Definition) -> Self {
        Self(Arc::new(Compared { before: before.cloned(), now: now.clone(), text: OnceLock::new() }))
    }
}

impl Deref for HeldDifference {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.text.get_or_init(|| difference(self.0.before.as_ref(), &self.0.now))
    }
}

impl fmt::Display for HeldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for HeldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A difference that was not read is not computed for this.
        f.debug_tuple("HeldDifference").field(&self.0.text.get()).finish()
    }
}

impl PartialEq for HeldDifference {
    fn eq(&self, other: &Self) -> bool {
        self.0.before == other.0.before && self.0.now == other.0.now
    }
}

/// The reason why a tool is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldKind {
    /// The pins have no tool with this name, for instance because the server offers the tool only now.
    New,
    /// The definition differs from the pinned one.
    Changed,
    /// The same definition is pinned under another name, which the server no longer offers.
    Renamed {
        /// The pinned name.
        from: String,
    },
    /// The pins are for a server with another [identity](crate::McpServer::identity), such as another command or
    /// address.
    OtherServer {
        /// The identity in the pins.
        from: String,
        /// The present identity.
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
            HeldKind::Renamed { from } => {
                format!("the tool was agreed to under the name '{}'", escape_line(from))
            }
            HeldKind::OtherServer { from, to } => {
                let (from, to) = (escape_line(from), escape_line(to));
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
    /// The definitions that were agreed to and that the server offers, by the tool's name on the server.
    pub(crate) allowed: BTreeMap<String, Allowed>,
    /// The definitions that were agreed to and that the server does not offer now: the tool changed or is gone. They
    /// stay in requests, because a server must not change the tools of a session. Their calls are refused.
    pub(crate) absent: Vec<Allowed>,
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
    let gone = Gone::new(identity, pins, definitions);
    for definition in definitions {
        let hash = definition.hash(identity);
        let pin = pins.tools.get(&definition.name);
        let (kind, before) = match pin {
            Some(pin) if pin.hash == hash => {
                // The order of keys does not change the hash, but it would change the requests of a session.
                let allowed = Allowed::of(pin, identity);
                let allowed = allowed.unwrap_or_else(|| Allowed { definition: definition.clone(), hash });
                judged.allowed.insert(definition.name.clone(), allowed);
                continue;
            }
            Some(pin) if pins.identity != identity => {
                let (from, to) = (pins.identity.clone(), identity.to_owned());
                (HeldKind::OtherServer { from, to }, Some(&pin.definition))
            }
            Some(pin) => (HeldKind::Changed, Some(&pin.definition)),
            None => match gone.same(definition) {
                Some(gone) => (HeldKind::Renamed { from: gone.name.clone() }, Some(gone)),
                None => (HeldKind::New, None),
            },
        };
        judged.held.push(Held {
            server: server.to_owned(),
            tool: definition.name.clone(),
            kind,
            hash,
            difference: HeldDifference::new(before, definition),
        });
    }
    let absent = pins.tools.iter().filter(|(name, _)| !judged.allowed.contains_key(*name));
    judged.absent = absent.filter_map(|(_, pin)| Allowed::of(pin, identity)).collect();
    judged
}

impl Allowed {
    /// Returns the definition of a pin; `None` if the pin is of another server, or was damaged.
    pub(crate) fn of(pin: &Pin, identity: &str) -> Option<Self> {
        let is_valid = pin.definition.hash(identity) == pin.hash;
        is_valid.then(|| Self { definition: pin.definition.clone(), hash: pin.hash.clone() })
    }
}

/// The pinned definitions whose names the server does not offer any more, by their hashes without the name. Each is
/// hashed once, since a server can rename thousands of tools every second.
struct Gone<'p> {
    identity: &'p str,
    by_hash: BTreeMap<String, &'p Definition>,
}

impl<'p> Gone<'p> {
    fn new(identity: &'p str, pins: &'p ServerPins, definitions: &[Definition]) -> Self {
        let offered: BTreeSet<&str> = definitions.iter().map(|definition| &*definition.name).collect();
        let mut by_hash = BTreeMap::new();
        for pinned in pins.tools.values().map(|pin| &pin.definition) {
            if !offered.contains(&*pinned.name) {
                by_hash.entry(pinned.hash_without_name(identity)).or_insert(pinned);
            }
        }
        Self { identity, by_hash }
    }

    /// Returns the pinned definition that differs from this one in nothing but the name.
    fn same(&self, definition: &Definition) -> Option<&'p Definition> {
        if self.by_hash.is_empty() {
            return None;
        }
        self.by_hash.get(&definition.hash_without_name(self.identity)).copied()
    }
}

/// Holds every tool back, because the pins cannot be read, for the reason `why`.
pub(crate) fn hold_all(server: &str, identity: &str, why: &str, definitions: &[Definition]) -> Judged {
    let held = definitions.iter().map(|definition| Held {
        server: server.to_owned(),
        tool: definition.name.clone(),
        kind: HeldKind::Unreadable(why.to_owned()),
        hash: definition.hash(identity),
        difference: HeldDifference::new(None, definition),
    });
    Judged { held: held.collect(), ..Judged::default() }
}

/// Returns the difference of two definitions, by lines. Invisible characters are shown as code points, since a
/// change may consist only of such characters.
fn difference(before: Option<&Definition>, now: &Definition) -> String {
    let (before, now) = (before.map(written).unwrap_or_default(), written(now));
    let diff = TextDiff::configure().timeout(COMPARISON).diff_lines(&before, &now);
    let lines = diff.iter_all_changes().map(|change| format!("{}{}", change.tag(), change.value()));
    lines.collect()
}

/// Writes a definition for a person, each part on lines of its own.
fn written(definition: &Definition) -> String {
    let mut text = format!("name: {}\n", escape_line(&definition.name));
    if let Some(title) = &definition.title {
        text += &format!("title: {}\n", escape_line(title));
    }
    text += "description:\n";
    definition.description.lines().for_each(|line| text += &format!("  {}\n", escape_line(line)));
    let schemas = [
        ("arguments", Some(&definition.input_schema)),
        ("result", definition.output_schema.as_ref()),
        ("annotations", Some(&definition.annotations).filter(|value| !value.is_null())),
    ];
    for (name, value) in schemas.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        text += &format!("{name}:\n");
        pretty(value).lines().for_each(|line| text += &format!("  {}\n", escape_line(line)));
    }
    text
}

fn pretty(value: &Json) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns a text as one line in which every character can be seen.
fn escape_line(line: &str) -> String {
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
    use crate::definition::tests::{NAMELESS_HASHES, definition};

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
    fn judge_keeps_the_bytes_of_a_pinned_definition_whose_keys_the_server_reorders() {
        let bytes = |definition: &Definition| serde_json::to_string(definition).unwrap_or_default();
        let mut reordered = definition("read");
        reordered.input_schema = json!({ "properties": { "path": { "type": "string" } }, "type": "object" });
        assert_ne!(bytes(&reordered), bytes(&definition("read")));
        let judged = judged(&[reordered]);
        assert_eq!(bytes(&judged.allowed["read"].definition), bytes(&definition("read")));
    }

    #[test]
    fn judge_keeps_pinned_definitions_of_changed_and_missing_tools_and_none_of_another_server() {
        let mut changed = definition("write");
        changed.description = "Writes.".to_owned();
        let judged = judged(std::slice::from_ref(&changed));
        assert!(judged.allowed.is_empty());
        let absent: Vec<_> = judged.absent.iter().map(|absent| absent.definition.clone()).collect();
        assert_eq!(absent, [definition("read"), definition("write")]);
        let pins = ServerPins::first(IDENTITY, &[definition("read")]);
        assert!(judge("files", "npx evil", &pins, &[changed]).absent.is_empty());
    }

    #[test]
    fn judge_hashes_each_of_two_thousand_renamed_tools_once_on_each_side() {
        let named = |prefix: &str| -> Vec<Definition> {
            let tool = |n: usize| {
                let mut tool = definition(&format!("{prefix}{n:04}"));
                tool.description = format!("Does the work number {n}.");
                tool
            };
            (0..2_000).map(tool).collect()
        };
        let pins = ServerPins::first(IDENTITY, &named("old"));
        NAMELESS_HASHES.set(0);
        let judged = judge("files", IDENTITY, &pins, &named("new"));
        assert_eq!(NAMELESS_HASHES.get(), 4_000);
        for (n, held) in judged.held.iter().enumerate() {
            assert_eq!(held.kind, HeldKind::Renamed { from: format!("old{n:04}") });
        }
        let is_unread = |held: &Held| held.difference.0.text.get().is_none();
        assert!(judged.held.len() == 2_000 && judged.held.iter().all(is_unread));
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
