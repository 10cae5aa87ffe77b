//! A layered layout: each box of a graph is below all boxes that lead to it, and long edges go between the boxes.

use std::collections::BTreeSet;

/// The width and the height of a box, in pixels.
pub(crate) const BOX: (u32, u32) = (220, 56);
/// The pixels between the boxes of a row, and between rows.
const GAP: (u32, u32) = (24, 56);
/// The margin around the drawing, in pixels.
const MARGIN: u32 = 16;
/// The width of a passage in pixels. A passage is the place in a row through which a longer edge leads.
const PASSAGE: u32 = 8;
/// The number of sweeps that reorder rows. More sweeps hardly change the layout.
const SWEEPS: usize = 4;
/// The maximum number of passages. Further edges are straight, and may cross boxes.
const MOST_PASSAGES: usize = 20_000;

/// A graph with the positions of its boxes and edges.
#[derive(Debug, Default)]
pub(crate) struct Layered {
    /// The upper left corner of each box.
    pub(crate) places: Vec<(u32, u32)>,
    /// The edges, each with its points from the upper box down to the lower one.
    pub(crate) edges: Vec<PlacedEdge>,
    /// The boxes in topological order: each box comes after the boxes that lead to it.
    pub(crate) order: Vec<usize>,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

#[derive(Debug)]
pub(crate) struct PlacedEdge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) points: Vec<(u32, u32)>,
}

/// Lays out `count` boxes. Each edge is a pair of box indexes. Edges that lead back in a cycle are left out. Equal
/// graphs get equal layouts.
pub(crate) fn lay_out(count: usize, edges: &[(usize, usize)]) -> Layered {
    let wanted: BTreeSet<(usize, usize)> = edges.iter().copied().collect();
    let order = order(count, &wanted);
    let mut number = vec![0; count];
    order.iter().enumerate().for_each(|(at, node)| number[*node] = at);
    let edges: Vec<_> = wanted.into_iter().filter(|(from, to)| number[*from] < number[*to]).collect();
    let mut grid = Grid::new(rows(count, &order, &edges));
    let passages: Vec<Vec<usize>> = edges.iter().map(|(from, to)| grid.connect(*from, *to)).collect();
    grid.untangle();
    let (xs, width) = grid.columns();
    let top = |row: usize| MARGIN + row as u32 * (BOX.1 + GAP.1);
    let places = (0..count).map(|node| (xs[node], top(grid.rows[node]))).collect();
    let place_edge = |((from, to), passages): (&(usize, usize), Vec<usize>)| {
        let mut points = vec![(xs[*from] + BOX.0 / 2, top(grid.rows[*from]) + BOX.1)];
        for passage in passages {
            let (x, y) = (xs[passage] + PASSAGE / 2, top(grid.rows[passage]));
            points.extend([(x, y), (x, y + BOX.1)]);
        }
        points.push((xs[*to] + BOX.0 / 2, top(grid.rows[*to])));
        PlacedEdge { from: *from, to: *to, points }
    };
    let placed = edges.iter().zip(passages).map(place_edge).collect();
    let height = match grid.by_row.len() as u32 {
        0 => 0,
        rows => top(0) + rows * BOX.1 + (rows - 1) * GAP.1 + MARGIN,
    };
    Layered { places, edges: placed, order, width, height }
}

/// Returns the boxes in topological order: each box comes after the boxes that lead to it, and otherwise the lower
/// index comes first. A cycle is entered at its first box.
fn order(count: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let (mut waiting, mut after) = (vec![0_usize; count], vec![Vec::new(); count]);
    for (from, to) in edges.iter().filter(|(from, to)| from != to) {
        waiting[*to] += 1;
        after[*from].push(*to);
    }
    let mut open: BTreeSet<usize> = (0..count).collect();
    let mut ready: BTreeSet<usize> = (0..count).filter(|node| waiting[*node] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(node) = ready.pop_first().or_else(|| open.first().copied()) {
        open.remove(&node);
        order.push(node);
        for next in &after[node] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 && open.contains(next) {
                ready.insert(*next);
            }
        }
    }
    order
}

/// Returns the row of each box: the number of edges on the longest path to it.
fn rows(count: usize, order: &[usize], edges: &[(usize, usize)]) -> Vec<usize> {
    let mut after = vec![Vec::new(); count];
    edges.iter().for_each(|(from, to)| after[*from].push(*to));
    let mut rows = vec![0; count];
    for node in order {
        for next in &after[*node] {
            rows[*next] = rows[*next].max(rows[*node] + 1);
        }
    }
    rows
}

/// The boxes and the passages of long edges, in rows. The boxes have the first indexes, the passages the next.
struct Grid {
    /// The number of boxes.
    boxes: usize,
    /// The row of each box and passage.
    rows: Vec<usize>,
    by_row: Vec<Vec<usize>>,
    /// The boxes and passages that each box and passage is connected with: first those above, then those below.
    near: [Vec<Vec<usize>>; 2],
}

impl Grid {
    fn new(rows: Vec<usize>) -> Self {
        let mut by_row = vec![Vec::new(); rows.iter().max().map_or(0, |last| last + 1)];
        rows.iter().enumerate().for_each(|(node, row)| by_row[*row].push(node));
        let none = vec![Vec::new(); rows.len()];
        Self { boxes: rows.len(), rows, by_row, near: [none.clone(), none] }
    }

    /// Connects two boxes, and returns the passages in the rows between them.
    fn connect(&mut self, from: usize, to: usize) -> Vec<usize> {
        let mut passages = Vec::new();
        let mut last = from;
        let between = self.rows[from] + 1..self.rows[to];
        if self.rows.len() + between.len() <= self.boxes + MOST_PASSAGES {
            for row in between {
                let passage = self.rows.len();
                self.rows.push(row);
                self.by_row[row].push(passage);
                self.near.iter_mut().for_each(|near| near.push(Vec::new()));
                self.link(last, passage);
                passages.push(passage);
                last = passage;
            }
        }
        self.link(last, to);
        passages
    }

    fn link(&mut self, above: usize, below: usize) {
        self.near[0][below].push(above);
        self.near[1][above].push(below);
    }

    /// Orders each row by the average position of its neighbours above, then of its neighbours below, so that fewer
    /// edges cross.
    fn untangle(&mut self) {
        let mut place = vec![0; self.rows.len()];
        self.by_row.iter().for_each(|row| note(row, &mut place));
        for sweep in 0..SWEEPS {
            let near = &self.near[sweep % 2];
            let count = self.by_row.len();
            for step in 0..count {
                let row = if sweep % 2 == 0 { step } else { count - 1 - step };
                // A stable sort, so that equal graphs get equal layouts.
                self.by_row[row].sort_by_cached_key(|node| match near[*node].as_slice() {
                    [] => place[*node] * FINE,
                    of => of.iter().map(|other| place[*other]).sum::<i64>() * FINE / of.len() as i64,
                });
                note(&self.by_row[row], &mut place);
            }
        }
    }

    /// Returns the left edge of each box and passage, and the width of the drawing. Rows are centred.
    fn columns(&self) -> (Vec<u32>, u32) {
        let width = |item: usize| if item < self.boxes { BOX.0 } else { PASSAGE };
        let of_row = |row: &Vec<usize>| {
            let boxes: u32 = row.iter().map(|item| width(*item)).sum();
            boxes + GAP.0 * row.len().saturating_sub(1) as u32
        };
        let widest = self.by_row.iter().map(of_row).max().unwrap_or(0);
        let mut xs = vec![0; self.rows.len()];
        for row in &self.by_row {
            let mut x = MARGIN + (widest - of_row(row)) / 2;
            for item in row {
                xs[*item] = x;
                x += width(*item) + GAP.0;
            }
        }
        (xs, if self.by_row.is_empty() { 0 } else { widest + 2 * MARGIN })
    }
}

/// The factor that averages of positions are multiplied by, because they are kept as integers.
const FINE: i64 = 1_024;

/// Writes the position of each item of a row into `place`: twice the distance from the middle of the row.
fn note(row: &[usize], place: &mut [i64]) {
    let last = row.len() as i64 - 1;
    row.iter().enumerate().for_each(|(at, item)| place[*item] = 2 * at as i64 - last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lay_out_puts_a_diamond_into_three_rows_and_uncrosses_edges() {
        let drawn = lay_out(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        let rows: Vec<u32> = drawn.places.iter().map(|(_, y)| *y).collect();
        assert_eq!(rows, [16, 128, 128, 240]);
        assert_eq!((drawn.width, drawn.height), (2 * 220 + 24 + 32, 3 * 56 + 2 * 56 + 32));
        let crossed = lay_out(4, &[(0, 3), (1, 2)]);
        assert!(crossed.places[3].0 < crossed.places[2].0, "{crossed:?}");
    }

    #[test]
    fn lay_out_leads_a_long_edge_past_the_rows_between() {
        let drawn = lay_out(3, &[(0, 1), (1, 2), (0, 2)]);
        let long = drawn.edges.iter().find(|edge| (edge.from, edge.to) == (0, 2)).unwrap();
        let ys: Vec<u32> = long.points.iter().map(|(_, y)| *y).collect();
        assert_eq!(ys, [72, 128, 184, 240]);
        let (left, right) = (drawn.places[1].0, drawn.places[1].0 + BOX.0);
        assert!(long.points[1].0 < left || long.points[1].0 > right, "{drawn:?}");
    }

    #[test]
    fn lay_out_leaves_the_edges_out_that_lead_back() {
        let drawn = lay_out(2, &[(0, 1), (1, 0), (1, 1)]);
        let edges: Vec<_> = drawn.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!((edges, drawn.order), (vec![(0, 1)], vec![0, 1]));
        let nothing = lay_out(0, &[]);
        assert_eq!((nothing.width, nothing.height, nothing.places.len()), (0, 0, 0));
    }
}
