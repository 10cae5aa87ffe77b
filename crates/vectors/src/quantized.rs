//! One vector, quantized to one byte per dimension.

/// A vector that was scaled to length 1, stored as one byte per dimension: number `i` is `values[i] * scale`.
/// The original length is lost, but a cosine does not need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// One number from -127 to 127 for each dimension.
    pub values: Box<[i8]>,
    /// The factor by which each value is multiplied.
    pub scale: f32,
}

impl Quantized {
    /// Quantizes a vector. A vector that is zero, or has a value that is not finite, becomes the zero vector,
    /// which no search finds.
    pub fn of(vector: &[f32]) -> Self {
        let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        let largest = vector.iter().fold(0_f32, |most, x| most.max(x.abs()));
        if length == 0.0 || !length.is_finite() || largest == 0.0 {
            return Self { values: vec![0; vector.len()].into(), scale: 0.0 };
        }
        #[allow(clippy::cast_possible_truncation, reason = "rounded to what fits, and a scale is below 1")]
        let values = vector.iter().map(|x| (x / largest * 127.0).round() as i8).collect();
        #[allow(clippy::cast_possible_truncation, reason = "rounded to what fits, and a scale is below 1")]
        let scale = (f64::from(largest) / length / 127.0) as f32;
        Self { values, scale }
    }
}

/// Returns the dot product of a query, with 16 bits per value, and a row. Compilers turn this form into the
/// vector instruction that multiplies and adds pairs. A sum of 130,000 products of bytes fits into 32 bits.
pub(crate) fn dot(question: &[i16], row: &[i8]) -> i32 {
    let (heads, tails) = (question.chunks_exact(32), row.chunks_exact(32));
    let product = |x: &i16, y: &i8| i32::from(*x) * i32::from(*y);
    let rest: i32 = heads.remainder().iter().zip(tails.remainder()).map(|(x, y)| product(x, y)).sum();
    let mut sum = rest;
    for (x, y) in heads.zip(tails) {
        let mut part = 0;
        for i in 0..32 {
            part += product(&x[i], &y[i]);
        }
        sum += part;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_is_the_sum_of_the_products() {
        for length in [0, 1, 31, 32, 33, 384, 1000] {
            let a: Vec<i8> = (0..length).map(|i| i8::try_from(i * 37 % 255 - 127).unwrap()).collect();
            let b: Vec<i8> = (0..length).map(|i| i8::try_from(127 - i * 91 % 255).unwrap()).collect();
            let plain: i32 = a.iter().zip(&b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
            let wide: Vec<i16> = a.iter().map(|x| i16::from(*x)).collect();
            assert_eq!(dot(&wide, &b), plain, "{length}");
        }
    }

    #[test]
    fn quantized_zero_vector_has_similarity_zero() {
        for vector in [vec![0.0; 3], vec![f32::NAN, 1.0], vec![f32::INFINITY], vec![]] {
            let quantized = Quantized::of(&vector);
            assert_eq!((quantized.scale, quantized.values.len()), (0.0, vector.len()));
            assert!(quantized.values.iter().all(|x| *x == 0));
        }
    }
}
