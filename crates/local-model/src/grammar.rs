//! The grammar that a model's output must follow: a small graph of bytes, choices and repetitions.
//!
//! Small models rarely write correct JSON on their own, and a tool call with one wrong bracket is lost. So
//! every token is checked against a grammar before it is accepted. The grammar works on bytes rather than
//! characters, because a token may end in the middle of a UTF-8 sequence. The engine's own grammar is not
//! used for three reasons: this one can be tested without a model, it cannot throw through a foreign
//! function interface, and it checks one token at a time, so that the whole vocabulary is checked only if
//! the model's first choice is refused.
//!
//! [`Grammar`] is built by [`crate::schema`] from a JSON Schema and walked by [`crate::matcher::Matcher`].

use crate::grammar_node::{ByteSet, Node, NodeId};
use crate::shortest::Shortest;

/// The allowed texts, as a graph of nodes. Nodes refer to each other by id, so a recursive schema is
/// possible.
#[derive(Clone, Debug)]
pub(crate) struct Grammar {
    nodes: Vec<Node>,
    root: NodeId,
    shortest: Shortest,
}

impl Grammar {
    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the number of bytes of each node's shortest text.
    pub(crate) fn shortest(&self) -> &Shortest {
        &self.shortest
    }
}

/// Builds a [`Grammar`] node by node.
#[derive(Debug, Default)]
pub(crate) struct GrammarBuilder {
    nodes: Vec<Node>,
}

impl GrammarBuilder {
    /// Creates a builder without nodes.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a node for exactly this text.
    pub(crate) fn text(&mut self, text: &str) -> NodeId {
        self.add(Node::Bytes(text.as_bytes().into()))
    }

    /// Adds a node for one byte of these inclusive ranges.
    pub(crate) fn byte(&mut self, ranges: &[(u8, u8)]) -> NodeId {
        self.add(Node::Set(ByteSet::ranges(ranges)))
    }

    /// Adds a node for all of these nodes, in this order.
    pub(crate) fn seq(&mut self, parts: &[NodeId]) -> NodeId {
        self.add(Node::Seq(parts.into()))
    }

    /// Adds a node for one of these nodes. Without choices, no text is allowed at this node.
    pub(crate) fn any(&mut self, choices: &[NodeId]) -> NodeId {
        self.add(Node::Any(choices.into()))
    }

    /// Adds a node for `node`, between `min` and `max` times; with `u32::MAX` there is no maximum.
    pub(crate) fn repeat(&mut self, node: NodeId, min: u32, max: u32) -> NodeId {
        // A repeated empty text is empty, and the matcher would try every count.
        if matches!(self.nodes.get(node.0 as usize), Some(Node::Bytes(bytes)) if bytes.is_empty()) {
            return node;
        }
        self.add(Node::Repeat { node, min, max })
    }

    /// Adds a node for `node` or nothing.
    pub(crate) fn optional(&mut self, node: NodeId) -> NodeId {
        self.repeat(node, 0, 1)
    }

    /// Adds a placeholder for a node that is set later, for recursive schemas.
    pub(crate) fn reserve(&mut self) -> NodeId {
        self.any(&[])
    }

    /// Replaces the placeholder `place` by `node`.
    pub(crate) fn fill(&mut self, place: NodeId, node: NodeId) {
        self.nodes[place.0 as usize] = Node::Seq([node].into());
    }

    /// Returns the grammar that starts at `root`.
    pub(crate) fn finish(self, root: NodeId) -> Grammar {
        let shortest = Shortest::new(&self.nodes);
        Grammar { nodes: self.nodes, root, shortest }
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(node);
        NodeId(id)
    }
}
