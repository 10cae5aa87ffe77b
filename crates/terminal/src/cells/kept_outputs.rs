//! The whole outputs of calls, which an unfolded page shows. In a long conversation only the newest ones are kept.

use std::collections::VecDeque;

use super::{CellId, CellKind, Cells};

/// The maximum size of all kept outputs together, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// The cells whose whole outputs are kept, the oldest first, and the sizes of these outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptOutputs {
    outputs: VecDeque<(CellId, usize)>,
    bytes: usize,
}

impl KeptOutputs {
    fn add(&mut self, cell: CellId, bytes: usize) {
        self.outputs.push_back((cell, bytes));
        self.bytes += bytes;
    }

    /// Removes the oldest output if all outputs together have too many bytes; returns its cell.
    fn take_excess(&mut self) -> Option<CellId> {
        if self.bytes <= MOST_BYTES {
            return None;
        }
        let (cell, bytes) = self.outputs.pop_front()?;
        self.bytes -= bytes;
        Some(cell)
    }
}

impl Cells {
    /// Keeps the whole output of a call, and drops the oldest outputs while all outputs together have too many bytes.
    pub(super) fn keep_output(&mut self, id: CellId) {
        let Some(CellKind::Call(call)) = self.get(id).map(|cell| &cell.kind) else { return };
        let Some(bytes) = call.whole.as_ref().map(String::len) else { return };
        self.kept.add(id, bytes);
        while let Some(oldest) = self.kept.take_excess() {
            if let Some(CellKind::Call(call)) = self.cells.get_mut(oldest.0).map(|cell| &mut cell.kind) {
                call.whole = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn take_excess_takes_the_oldest_outputs_until_the_rest_is_small_enough() {
        let mut kept = KeptOutputs::default();
        for number in 0..5 {
            kept.add(CellId(number), MOST_BYTES / 3);
        }
        let taken: Vec<CellId> = std::iter::from_fn(|| kept.take_excess()).collect();
        assert_eq!(taken, [CellId(0), CellId(1)]);
        kept.add(CellId(5), MOST_BYTES + 1);
        let taken: Vec<CellId> = std::iter::from_fn(|| kept.take_excess()).collect();
        assert_eq!(taken, [2, 3, 4, 5].map(CellId), "an output that is too large alone is not kept");
    }
}
