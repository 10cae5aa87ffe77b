//! Finds the nearest of many vectors by comparing all of them: there is no approximate index, and no dependency.
//!
//! Use this crate alone to search a few hundred thousand vectors in memory.
//!
//! A [`VectorIndex`] keeps a copy of each vector with one byte per dimension and scans all of them. A search of 100,000
//! vectors of 384 dimensions takes milliseconds, a removed vector is gone at once, and a search reads only the vectors
//! of the requested groups. The cosines of the copies are wrong by up to about 0.01. For exact results, request more
//! rows than needed and sort them by the exact [`cosine`], as [`VectorIndex::nearest`] says.
//!
//! # Example
//!
//! ```
//! use archon_vectors::{GroupRange, VectorIndex};
//!
//! let mut index = VectorIndex::new(2);
//! index.insert("notes:paris", 1, &[1.0, 0.0]);
//! index.insert("notes:rome", 2, &[0.0, 1.0]);
//!
//! let near = index.nearest(&GroupRange::of("notes"), &[0.9, 0.1], 1, |_| true);
//! assert_eq!(near[0].row, 1);
//! ```

mod index;
mod quantized;

pub use index::{GroupRange, Near, VectorIndex};
pub use quantized::Quantized;

/// Returns the cosine similarity of two vectors, from -1 to 1; 0 if one of them is zero or not finite, or if
/// they have different numbers of dimensions.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length == 0.0 || !length.is_finite() {
        return 0.0;
    }
    #[allow(clippy::cast_possible_truncation, reason = "a cosine is between -1 and 1")]
    let cosine = (dot(a, b) / length) as f32;
    cosine.clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-06
    #[test]
    fn cosines() {
        let table: [(&[f32], &[f32], f32); 6] = [
            (&[1.0, 0.0], &[2.0, 0.0], 1.0),
            (&[1.0, 0.0], &[0.0, 3.0], 0.0),
            (&[1.0, 0.0], &[-1.0, 0.0], -1.0),
            (&[0.0, 0.0], &[1.0, 0.0], 0.0),
            (&[1.0], &[1.0, 0.0], 0.0),
            (&[f32::MAX, f32::MAX], &[f32::MAX, 0.0], std::f32::consts::FRAC_1_SQRT_2),
        ];
        for (a, b, expected) in table {
            assert!((cosine(a, b) - expected).abs() < 1e-6, "{a:?} {b:?}");
        }
    }
}
