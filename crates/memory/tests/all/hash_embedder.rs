//! The embedder without a model.

use archon_memory::HashEmbedder;
use archon_vectors::cosine;

// spec: M-05
#[test]
fn vectors_are_always_the_same_and_alike_for_like_texts() {
    let vector = HashEmbedder::vector("Alice prefers summaries in bullet points.");
    assert_eq!(vector.len(), 384);
    // Pinned: what is stored today is compared with what is made tomorrow.
    let largest = (0..384).max_by(|a, b| vector[*a].abs().total_cmp(&vector[*b].abs()));
    assert_eq!(largest, Some(350));
    let like = |a: &str, b: &str| cosine(&HashEmbedder::vector(a), &HashEmbedder::vector(b));
    assert!(like("user preferences", "Alice prefers summaries") > like("user preferences", "The cat is out"));
    assert!(like("segfault in gdb", "gdb showed the segfault") > 0.6);
    assert_eq!(like("", "anything"), 0.0);
}
