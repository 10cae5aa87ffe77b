//! Finds the shortest text that completes a document, from any position in a grammar.
//!
//! A model with a token limit may reach the limit in the middle of a document. The minimum number of bytes
//! of each node is known, so the number of missing bytes is a sum over the open nodes.

use crate::grammar_node::{ByteSet, Node, NodeId};

/// The number of bytes in the shortest text of a node, and the number of levels of nodes that make up this
/// text.
///
/// The height decides between choices with the same number of bytes: the parts of a node's shortest text
/// always have a smaller height than the node, so writing that text ends even if a node contains itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    bytes: u64,
    height: u32,
}

impl Cost {
    /// The cost of a node that cannot be written.
    const NEVER: Self = Self { bytes: u64::MAX, height: u32::MAX };

    fn then(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), height: self.height.max(other.height) }
    }

    fn times(self, count: u32) -> Self {
        match count {
            0 => Self { bytes: 0, height: 0 },
            _ => Self { bytes: self.bytes.saturating_mul(u64::from(count)), ..self },
        }
    }

    /// Returns the cost of a node that contains only this one.
    fn around(self) -> Self {
        match self.bytes {
            u64::MAX => Self::NEVER,
            _ => Self { height: self.height.saturating_add(1), ..self },
        }
    }
}

/// The minimum number of bytes of each node of a grammar.
#[derive(Clone, Debug)]
pub(crate) struct Shortest(Vec<Cost>);

impl Shortest {
    /// Computes all costs in rounds until no cost falls any more: a node that comes before its parts gets its
    /// cost in a later round than they do.
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut shortest = Self(vec![Cost::NEVER; nodes.len()]);
        let mut falls = true;
        while falls {
            falls = false;
            for (at, node) in nodes.iter().enumerate() {
                let cost = shortest.cost_of(node);
                if cost < shortest.0[at] {
                    shortest.0[at] = cost;
                    falls = true;
                }
            }
        }
        shortest
    }

    /// Returns the number of bytes that an open node still needs if `at` of its parts or bytes are done;
    /// `u64::MAX` if the node cannot be completed.
    pub(crate) fn rest(&self, node: &Node, at: u32) -> u64 {
        match node {
            Node::Bytes(bytes) => (bytes.len() as u64).saturating_sub(u64::from(at)),
            Node::Set(_) => u64::from(at == 0),
            Node::Seq(parts) => {
                parts.iter().skip(at as usize).fold(0, |sum, part| sum.saturating_add(self.cost(*part).bytes))
            }
            Node::Any(_) => self.cost_of(node).bytes,
            Node::Repeat { node, min, .. } => self.cost(*node).times(min.saturating_sub(at)).bytes,
        }
    }

    /// Returns the parts that complete an open node with the minimum number of bytes, in their order. A node
    /// without parts is completed in `bytes`.
    pub(crate) fn complete(&self, node: &Node, at: u32, bytes: &mut Vec<u8>) -> Vec<NodeId> {
        match node {
            Node::Bytes(text) => bytes.extend_from_slice(text.get(at as usize..).unwrap_or_default()),
            Node::Set(set) if at == 0 => bytes.extend(plainest(set)),
            Node::Set(_) => {}
            Node::Seq(parts) => return parts.iter().skip(at as usize).copied().collect(),
            Node::Any(choices) => {
                return choices.iter().copied().min_by_key(|choice| self.cost(*choice)).into_iter().collect();
            }
            // Repetitions without bytes can be left out.
            Node::Repeat { node, .. } if self.cost(*node).bytes == 0 => {}
            Node::Repeat { node, min, .. } => return vec![*node; min.saturating_sub(at) as usize],
        }
        Vec::new()
    }

    fn cost(&self, id: NodeId) -> Cost {
        self.0.get(id.index()).copied().unwrap_or(Cost::NEVER)
    }

    fn cost_of(&self, node: &Node) -> Cost {
        let nothing = Cost { bytes: 0, height: 0 };
        let inside = match node {
            Node::Bytes(bytes) => Cost { bytes: bytes.len() as u64, height: 0 },
            Node::Set(set) => plainest(set).map_or(Cost::NEVER, |_| Cost { bytes: 1, height: 0 }),
            Node::Seq(parts) => parts.iter().fold(nothing, |sum, part| sum.then(self.cost(*part))),
            Node::Any(choices) => {
                choices.iter().map(|choice| self.cost(*choice)).min().unwrap_or(Cost::NEVER)
            }
            Node::Repeat { node, min, .. } => self.cost(*node).times(*min),
        };
        inside.around()
    }
}

/// Returns one byte of the set, if possible a readable one.
fn plainest(set: &ByteSet) -> Option<u8> {
    let readable = b'0'..=b'z';
    readable.chain(0..=u8::MAX).find(|byte| set.contains(*byte))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::grammar::GrammarBuilder;
    use crate::grammar_node::NodeId;
    use crate::matcher::Matcher;

    /// A grammar over the letters a, b and c.
    #[derive(Clone, Debug)]
    enum Shape {
        Text(String),
        Letter(u8, u8),
        Seq(Vec<Shape>),
        Any(Vec<Shape>),
        Repeat(Box<Shape>, u32, u32),
        /// An `a`, then the whole grammar again.
        Again,
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let leaf = prop_oneof![
            "[abc]{0,3}".prop_map(Shape::Text),
            (b'a'..=b'c', b'a'..=b'c').prop_map(|(x, y)| Shape::Letter(x.min(y), x.max(y))),
            Just(Shape::Again),
        ];
        leaf.prop_recursive(3, 10, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Shape::Seq),
                prop::collection::vec(inner.clone(), 1..4).prop_map(Shape::Any),
                (inner, 0..3_u32, 0..3_u32).prop_map(|(shape, min, more)| Shape::Repeat(
                    Box::new(shape),
                    min,
                    min + more
                )),
            ]
        })
    }

    fn build(shape: &Shape, whole: NodeId, b: &mut GrammarBuilder) -> NodeId {
        match shape {
            Shape::Text(text) => b.text(text),
            Shape::Letter(low, high) => b.byte(&[(*low, *high)]),
            Shape::Seq(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| build(part, whole, b)).collect();
                b.seq(&parts)
            }
            Shape::Any(choices) => {
                let choices: Vec<_> = choices.iter().map(|choice| build(choice, whole, b)).collect();
                b.any(&choices)
            }
            Shape::Repeat(shape, min, max) => {
                let inner = build(shape, whole, b);
                b.repeat(inner, *min, *max)
            }
            Shape::Again => {
                let letter = b.text("a");
                b.seq(&[letter, whole])
            }
        }
    }

    fn matcher(shape: &Shape) -> Matcher {
        let mut b = GrammarBuilder::new();
        let whole = b.reserve();
        let root = build(shape, whole, &mut b);
        b.fill(whole, root);
        Matcher::new(Arc::new(b.finish(whole)))
    }

    /// Returns the bytes of the shortest end, found by trying all texts of up to `most` bytes.
    fn tried(matcher: &Matcher, most: u64) -> Option<u64> {
        let mut states = vec![matcher.clone()];
        for bytes in 0..=most {
            if states.iter().any(Matcher::may_end) {
                return Some(bytes);
            }
            let next = |state: &Matcher, letter: u8| {
                let mut state = state.clone();
                state.advance(&[letter]).then_some(state)
            };
            states = states.iter().flat_map(|s| (b'a'..=b'c').filter_map(move |l| next(s, l))).collect();
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn from_any_place_of_any_grammar_the_shortest_end_is_an_end_and_the_shortest(
            shape in shapes(),
            walk in prop::collection::vec(0..3_usize, 0..8),
        ) {
            let mut matcher = matcher(&shape);
            for step in walk {
                let letters: Vec<u8> = (b'a'..=b'c').filter(|letter| matcher.accepts(&[*letter])).collect();
                let Some(letter) = letters.get(step % letters.len().max(1)) else { break };
                prop_assert!(matcher.advance(&[*letter]));
            }
            let Some(bytes) = matcher.shortest_end() else {
                prop_assert_eq!(tried(&matcher, 3), None);
                return Ok(());
            };
            let end = matcher.end(bytes).expect("an end of that length");
            prop_assert_eq!(end.len() as u64, bytes);
            prop_assert_eq!(bytes.checked_sub(1).and_then(|less| matcher.end(less)), None);
            prop_assert_eq!(tried(&matcher, bytes.min(3)), (bytes <= 3).then_some(bytes));
            prop_assert!(end.is_empty() || matcher.advance(&end));
            prop_assert!(matcher.may_end());
        }
    }

    #[test]
    fn shortest_end_closes_open_parts_and_adds_required_fields() {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 3},
                "tags": {"type": "array", "items": {"enum": ["wild", "tame"]}, "minItems": 1},
                "note": {"type": "string"},
                "legs": {"type": "integer"},
            },
            "required": ["name", "tags", "legs"],
        });
        let grammar = crate::schema::schema_grammar(&schema, Default::default());
        let end = |begun: &str| {
            let mut matcher = Matcher::new(Arc::new(grammar.clone()));
            assert!(matcher.advance(begun.as_bytes()), "{begun}");
            String::from_utf8(matcher.end(100).unwrap()).unwrap()
        };
        assert_eq!(end("{\"na"), "me\": \"000\", \"tags\": [\"wild\"], \"legs\": 0}");
        assert_eq!(end("{\"name\": \"Rex and \\"), "\\\", \"tags\": [\"wild\"], \"legs\": 0}");
        assert_eq!(end("{\"name\": \"Rex\", \"tags\": [\"tame\", "), "\"wild\"], \"legs\": 0}");
        assert_eq!(end("{\"name\": \"Rex\", \"tags\": [\"tame\"], \"legs\": 4"), "}");
    }

    #[test]
    fn shortest_end_of_a_self_referential_grammar_is_none() {
        let mut b = GrammarBuilder::new();
        let place = b.reserve();
        let letter = b.text("a");
        let again = b.seq(&[letter, place]);
        b.fill(place, again);
        let matcher = Matcher::new(Arc::new(b.finish(place)));
        assert_eq!((matcher.shortest_end(), matcher.end(u64::MAX - 1)), (None, None));
    }
}
