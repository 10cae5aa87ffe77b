//! The nodes of a [`Grammar`](crate::grammar::Grammar), and their ids.

use std::fmt;

/// The id of a node: its index in a [`Grammar`](crate::grammar::Grammar).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    /// Returns the index of the node.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    /// Returns the set of the bytes in these inclusive ranges.
    pub(crate) fn ranges(ranges: &[(u8, u8)]) -> Self {
        let mut set = Self::default();
        for &(low, high) in ranges {
            for byte in low..=high {
                set.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
            }
        }
        set
    }

    /// Returns true if the byte is in the set.
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    /// Returns the only byte of the set; `None` if the set has no byte or several.
    pub(crate) fn single(&self) -> Option<u8> {
        let mut bytes = (0..=u8::MAX).filter(|byte| self.contains(*byte));
        bytes.next().filter(|_| bytes.next().is_none())
    }
}

impl fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..=u8::MAX).filter(|byte| self.contains(*byte)).map(char::from)).finish()
    }
}

/// One node of a grammar: the text that is allowed at this point.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Exactly these bytes.
    Bytes(Box<[u8]>),
    /// One byte of this set.
    Set(ByteSet),
    /// All of these nodes, in this order.
    Seq(Box<[NodeId]>),
    /// One of these nodes.
    Any(Box<[NodeId]>),
    /// This node, between `min` and `max` times.
    Repeat { node: NodeId, min: u32, max: u32 },
}
