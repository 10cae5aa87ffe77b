//! Follows a grammar one byte at a time, and finds the bytes that may come next.
//!
//! A text can be at several positions of a grammar at the same time (after `1` a number may end or
//! continue), so the state is a set of stacks, each a path from the root to the next byte. Copying a state
//! is cheap: to check a token, a copy of the state takes the token's bytes.

use std::sync::Arc;

use crate::grammar::Grammar;
use crate::grammar_node::{Node, NodeId};

/// A path through the grammar, outermost node first; each node with the number of its parts or bytes that
/// are done. An empty path means that the text may end.
type Path = Vec<(NodeId, u32)>;

/// The maximum depth of a path; no sensible document has a deeper nesting.
const MAX_DEPTH: usize = 512;

/// The maximum number of steps between two bytes; no sensible schema needs more. A schema that only refers
/// to itself would otherwise be expanded for ever.
const MAX_STEPS: usize = 20_000;

/// The position of a text within a [`Grammar`].
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    grammar: Arc<Grammar>,
    paths: Vec<Path>,
}

impl Matcher {
    /// Creates a matcher at the start of the grammar.
    pub(crate) fn new(grammar: Arc<Grammar>) -> Self {
        let mut paths = Vec::new();
        expand(&grammar, vec![(grammar.root(), 0)], &mut paths);
        Self { grammar, paths }
    }

    /// Advances by these bytes. If the grammar does not allow them, returns false and changes nothing.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> bool {
        let Some(paths) = self.after(bytes) else { return false };
        self.paths = paths;
        true
    }

    /// Returns true if these bytes may come next.
    pub(crate) fn accepts(&self, bytes: &[u8]) -> bool {
        // Most tokens fail on their first byte, which needs no copy.
        let Some(&first) = bytes.first() else { return false };
        self.paths.iter().any(|path| leaf_takes(&self.grammar, path, first))
            && (bytes.len() == 1 || self.after(bytes).is_some())
    }

    /// Returns true if the text may end at this point.
    pub(crate) fn may_end(&self) -> bool {
        self.paths.iter().any(Vec::is_empty)
    }

    /// Returns true if the text must end at this point.
    pub(crate) fn must_end(&self) -> bool {
        self.paths.iter().all(Vec::is_empty)
    }

    /// Returns the next bytes that have no alternative in the grammar; empty if the next byte has an
    /// alternative.
    pub(crate) fn forced(&self) -> Vec<u8> {
        let mut ahead = self.clone();
        let mut bytes = Vec::new();
        while let Some(byte) = ahead.forced_byte() {
            if !ahead.advance(&[byte]) {
                break;
            }
            bytes.push(byte);
        }
        bytes
    }

    /// Returns the number of bytes of the shortest text that completes the text so far: 0 if it may end here,
    /// `None` if it can never end.
    pub(crate) fn shortest_end(&self) -> Option<u64> {
        self.paths.iter().map(|path| rest(&self.grammar, path)).min().filter(|bytes| *bytes < u64::MAX)
    }

    /// Returns the shortest text that completes the text so far; `None` if it needs more than `most` bytes,
    /// or if the text can never end.
    pub(crate) fn end(&self, most: u64) -> Option<Vec<u8>> {
        let path = self.paths.iter().min_by_key(|path| rest(&self.grammar, path))?;
        if rest(&self.grammar, path) > most {
            return None;
        }
        let shortest = self.grammar.shortest();
        let mut bytes = Vec::new();
        let mut open = path.clone();
        while let Some((id, at)) = open.pop() {
            let parts = shortest.complete(self.grammar.node(id), at, &mut bytes);
            open.extend(parts.into_iter().rev().map(|part| (part, 0)));
        }
        Some(bytes)
    }

    fn forced_byte(&self) -> Option<u8> {
        let mut only = None;
        for path in &self.paths {
            let &(id, at) = path.last()?;
            let byte = match self.grammar.node(id) {
                Node::Bytes(bytes) => bytes.get(at as usize).copied(),
                Node::Set(set) => set.single(),
                _ => None,
            }?;
            if only.is_some_and(|other| other != byte) {
                return None;
            }
            only = Some(byte);
        }
        only
    }

    fn after(&self, bytes: &[u8]) -> Option<Vec<Path>> {
        let mut paths = step(&self.grammar, &self.paths, *bytes.first()?);
        for &byte in &bytes[1..] {
            if paths.is_empty() {
                return None;
            }
            paths = step(&self.grammar, &paths, byte);
        }
        (!paths.is_empty()).then_some(paths)
    }
}

/// Returns true if `byte` may be the path's next byte.
fn leaf_takes(grammar: &Grammar, path: &Path, byte: u8) -> bool {
    let Some(&(id, at)) = path.last() else { return false };
    match grammar.node(id) {
        Node::Bytes(bytes) => bytes.get(at as usize) == Some(&byte),
        Node::Set(set) => set.contains(byte),
        _ => false,
    }
}

/// Returns the minimum number of bytes that complete a path.
fn rest(grammar: &Grammar, path: &Path) -> u64 {
    let of = |(id, at): &(NodeId, u32)| grammar.shortest().rest(grammar.node(*id), *at);
    path.iter().fold(0, |sum, open| sum.saturating_add(of(open)))
}

/// Returns the paths after one more byte.
fn step(grammar: &Grammar, paths: &[Path], byte: u8) -> Vec<Path> {
    let mut next = Vec::new();
    for path in paths.iter().filter(|path| leaf_takes(grammar, path, byte)) {
        let mut path = path.clone();
        if let Some((_, at)) = path.last_mut() {
            *at += 1;
        }
        expand(grammar, path, &mut next);
    }
    next
}

/// Expands a path to all paths that end at a node for a byte, and adds these to `out`.
fn expand(grammar: &Grammar, path: Path, out: &mut Vec<Path>) {
    let mut todo = vec![path];
    for _ in 0..MAX_STEPS {
        let Some(mut path) = todo.pop() else { return };
        let Some((id, at)) = path.pop() else {
            add(out, path);
            continue;
        };
        if path.len() >= MAX_DEPTH {
            continue;
        }
        match grammar.node(id) {
            Node::Bytes(bytes) if (at as usize) < bytes.len() => {
                path.push((id, at));
                add(out, path);
            }
            Node::Set(_) if at == 0 => {
                path.push((id, at));
                add(out, path);
            }
            Node::Bytes(_) | Node::Set(_) => todo.push(path),
            Node::Seq(parts) => {
                if let Some(&part) = parts.get(at as usize) {
                    // The last part needs no entry to return to; without this a long list would nest for
                    // ever.
                    if (at as usize) + 1 < parts.len() {
                        path.push((id, at + 1));
                    }
                    path.push((part, 0));
                }
                todo.push(path);
            }
            Node::Any(choices) => {
                for &choice in choices.iter().rev() {
                    let mut path = path.clone();
                    path.push((choice, 0));
                    todo.push(path);
                }
            }
            &Node::Repeat { node, min, max } => {
                if at >= min {
                    todo.push(path.clone());
                }
                if at < max {
                    // Without a maximum, repetitions are counted only up to the minimum, so that the number
                    // of states stays finite.
                    let done = if max == u32::MAX { (at + 1).min(min) } else { at + 1 };
                    path.push((id, done));
                    path.push((node, 0));
                    todo.push(path);
                }
            }
        }
    }
}

fn add(out: &mut Vec<Path>, path: Path) {
    if !out.contains(&path) {
        out.push(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::GrammarBuilder;

    fn matcher(build: impl FnOnce(&mut GrammarBuilder) -> NodeId) -> Matcher {
        let mut builder = GrammarBuilder::new();
        let root = build(&mut builder);
        Matcher::new(Arc::new(builder.finish(root)))
    }

    fn digits(b: &mut GrammarBuilder, min: u32, max: u32) -> NodeId {
        let digit = b.byte(&[(b'0', b'9')]);
        b.repeat(digit, min, max)
    }

    #[test]
    fn a_number_may_end_or_go_on() {
        let mut m = matcher(|b| digits(b, 1, 3));
        assert!(!m.may_end());
        assert!(m.advance(b"12"));
        assert!(m.may_end() && !m.must_end());
        assert!(m.accepts(b"3") && !m.accepts(b"34") && !m.accepts(b"x"));
        assert!(m.advance(b"3"));
        assert!(m.must_end());
    }

    #[test]
    fn a_refused_token_changes_nothing() {
        let mut m = matcher(|b| b.text("abc"));
        assert!(!m.advance(b"abx"));
        assert!(m.advance(b"abc") && m.must_end());
    }

    #[test]
    fn bytes_without_choice_are_forced() {
        let m = matcher(|b| {
            let open = b.text("{\"n\": ");
            let yes = b.text("true");
            let no = b.text("false");
            let value = b.any(&[yes, no]);
            b.seq(&[open, value])
        });
        assert_eq!(m.forced(), b"{\"n\": ");
    }

    #[test]
    fn a_grammar_may_contain_itself() {
        let mut m = matcher(|b| {
            let list = b.reserve();
            let (open, close) = (b.text("["), b.text("]"));
            let inner = b.optional(list);
            let body = b.seq(&[open, inner, close]);
            b.fill(list, body);
            list
        });
        assert!(m.advance(b"[[[]]") && !m.may_end() && m.advance(b"]") && m.must_end());
    }

    #[test]
    fn a_grammar_that_only_refers_to_itself_accepts_nothing_and_ends() {
        let m = matcher(|b| {
            let place = b.reserve();
            b.fill(place, place);
            place
        });
        assert!(!m.accepts(b"x") && !m.may_end());
    }

    #[test]
    fn an_unlimited_repeat_of_nothing_ends() {
        let mut m = matcher(|b| {
            let empty = b.text("");
            let many = b.repeat(empty, 0, u32::MAX);
            let end = b.text(".");
            b.seq(&[many, end])
        });
        assert!(m.advance(b".") && m.must_end());
    }
}
