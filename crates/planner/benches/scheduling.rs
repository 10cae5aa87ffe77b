//! What scheduling costs: `cargo bench -p archon-planner`.
fn main() {}
