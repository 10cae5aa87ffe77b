//! How long a search takes at 100,000 vectors, and how much of the exact answer it finds.
//! `cargo bench -p archon-vectors`.

#![allow(clippy::print_stdout, missing_docs, reason = "a bench prints")]

use std::time::{Duration, Instant};

use archon_vectors::{GroupRange, VectorIndex, cosine};

const ROWS: usize = 100_000;
const DIMENSIONS: usize = 384;

fn main() {
    let mut state = 7_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    };
    // In clusters, as texts are: neighbours differ by less than strangers do.
    let centres: Vec<Vec<f32>> = (0..500).map(|_| (0..DIMENSIONS).map(|_| next()).collect()).collect();
    let mut near = |i: usize| -> Vec<f32> { centres[i % 500].iter().map(|x| x + next() * 0.8).collect() };
    let vectors: Vec<Vec<f32>> = (0..ROWS).map(&mut near).collect();
    let mut index = VectorIndex::new(DIMENSIONS);
    for (row, vector) in (0..).zip(&vectors) {
        index.insert("all", row, vector);
    }
    let (mut times, mut same) = (Vec::new(), 0);
    for i in 0..100 {
        let query = near(i * 7);
        let start = Instant::now();
        let found = index.nearest(&GroupRange::of("all"), &query, 56, |_| true);
        let mut found: Vec<_> =
            found.iter().map(|n| (cosine(&query, &vectors[n.row as usize]), n.row)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        times.push(start.elapsed());
        let mut exact: Vec<_> =
            vectors.iter().zip(0_u64..).map(|(v, row)| (cosine(&query, v), row)).collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0));
        same += exact[..10].iter().filter(|e| found[..10].iter().any(|f| f.1 == e.1)).count();
    }
    times.sort();
    let p95: Duration = times[95];
    println!(
        "{ROWS} x {DIMENSIONS}: median {:?}, p95 {p95:?}, recall@10 {}",
        times[50],
        same as f64 / 1000.0
    );
    assert!(same >= 980, "recall@10 has to be 0.98");
}
