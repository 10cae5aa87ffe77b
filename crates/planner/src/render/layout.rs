//! Lays out the boxes of a drawn plan. The row of a box is the length of the longest path to the box. Within a row,
//! boxes are near their dependencies.

/// The layout of a graph: the centres of nodes and the total size, in pixels.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// The centre of each node.
    pub(super) places: Vec<(f64, f64)>,
    /// The row of each node, from the top.
    pub(super) rows: Vec<usize>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Pixels between the boxes of a row, and between rows.
const GAP: (f64, f64) = (24.0, 56.0);
/// Pixels around the whole drawing.
const MARGIN: f64 = 16.0;
/// Number of sweeps that reorder rows. More sweeps hardly change the layout.
const SWEEPS: usize = 4;

/// Lays out nodes with these widths and the same height, in pixels. Edges go from dependency to
/// dependent. Edges from nodes on or after a cycle are ignored.
pub(super) fn layout(widths: &[f64], height: f64, edges: &[(usize, usize)]) -> Layout {
    let rows = rows(widths.len(), edges);
    let count = rows.iter().max().map_or(0, |last| last + 1);
    let mut by_row: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (node, row) in rows.iter().enumerate() {
        by_row[*row].push(node);
    }
    untangle(&mut by_row, widths.len(), edges);
    let of_row = |row: &Vec<usize>| {
        let boxes: f64 = row.iter().map(|node| widths[*node]).sum();
        boxes + GAP.0 * row.len().saturating_sub(1) as f64
    };
    let widest = by_row.iter().map(of_row).fold(0.0, f64::max);
    let mut places = vec![(0.0, 0.0); widths.len()];
    for (number, row) in by_row.iter().enumerate() {
        let y = MARGIN + height / 2.0 + number as f64 * (height + GAP.1);
        let mut x = MARGIN + (widest - of_row(row)) / 2.0;
        for node in row {
            places[*node] = (x + widths[*node] / 2.0, y);
            x += widths[*node] + GAP.0;
        }
    }
    let gaps = GAP.1 * count.saturating_sub(1) as f64;
    Layout { places, rows, width: widest + 2.0 * MARGIN, height: count as f64 * height + gaps + 2.0 * MARGIN }
}

/// Returns the length of the longest path to each node, in edges.
fn rows(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut waiting = vec![0; count];
    let mut after = vec![Vec::new(); count];
    for (from, to) in edges {
        waiting[*to] += 1;
        after[*from].push(*to);
    }
    let mut rows = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| waiting[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for next in &after[node] {
            rows[*next] = rows[*next].max(rows[node] + 1);
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    rows
}

/// Orders each row by the average position of its dependencies, then of its dependents, so that fewer
/// edges cross.
fn untangle(by_row: &mut [Vec<usize>], count: usize, edges: &[(usize, usize)]) {
    let mut neighbours = [vec![Vec::new(); count], vec![Vec::new(); count]];
    for (from, to) in edges {
        neighbours[0][*to].push(*from);
        neighbours[1][*from].push(*to);
    }
    let mut place = vec![0.0; count];
    let note = |row: &[usize], place: &mut Vec<f64>| {
        let middle = (row.len() as f64 - 1.0) / 2.0;
        row.iter().enumerate().for_each(|(at, node)| place[*node] = at as f64 - middle);
    };
    by_row.iter().for_each(|row| note(row, &mut place));
    for sweep in 0..SWEEPS {
        let near = &neighbours[sweep % 2];
        let mut order: Vec<usize> = (0..by_row.len()).collect();
        if sweep % 2 == 1 {
            order.reverse();
        }
        for row in order {
            let middle = |node: &usize| match near[*node].as_slice() {
                [] => place[*node],
                of => of.iter().map(|other| place[*other]).sum::<f64>() / of.len() as f64,
            };
            // A stable sort, so that equal plans are drawn equally.
            let mut keyed: Vec<(f64, usize)> = by_row[row].iter().map(|node| (middle(node), *node)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            by_row[row] = keyed.into_iter().map(|(_, node)| node).collect();
            note(&by_row[row], &mut place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_places_dependents_below_without_overlap() {
        // A chain with a shortcut, and a node without edges.
        let widths = [100.0, 60.0, 80.0, 120.0, 50.0];
        let drawn = layout(&widths, 40.0, &[(0, 1), (1, 2), (0, 2), (0, 3)]);
        assert_eq!(drawn.rows, [0, 1, 2, 1, 0]);
        for (a, (x, y)) in drawn.places.iter().enumerate() {
            assert!(
                x - widths[a] / 2.0 >= 0.0 && x + widths[a] / 2.0 <= drawn.width && y + 20.0 <= drawn.height
            );
            for (b, (other, row)) in drawn.places.iter().enumerate().filter(|(b, _)| *b != a) {
                let apart = (x - other).abs() >= (widths[a] + widths[b]) / 2.0;
                assert!((y - row).abs() >= 40.0 || apart, "{a} and {b} overlap: {drawn:?}");
            }
        }
    }

    #[test]
    fn edges_cross_less_after_a_while() {
        // Without it, the two edges cross.
        let drawn = layout(&[10.0; 4], 10.0, &[(0, 3), (1, 2)]);
        assert!(drawn.places[3].0 < drawn.places[2].0, "{drawn:?}");
        let circle = layout(&[10.0; 2], 10.0, &[(0, 1), (1, 0)]);
        assert_eq!(circle.rows, [0, 0]);
        assert_eq!(layout(&[], 10.0, &[]).places, []);
    }
}
