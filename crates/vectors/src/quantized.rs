//! One vector in a byte per dimension.

/// A vector of length 1 as bytes from -127 to 127 times a factor. Only its direction is kept: that is all that a
/// cosine needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// One value for each dimension.
    pub values: Box<[i8]>,
    /// What a value is to be multiplied with.
    pub scale: f32,
}

impl Quantized {
    /// The direction of a vector. One that is zero, or has a value that is no number, becomes zero, which is near to
    /// nothing.
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

/// The sum of the products. In a form that compilers turn into vector instructions: a product of two bytes fits 16
/// bits, and the sum of 130,000 of them 32.
pub(crate) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let mut sums = [0_i32; 16];
    let (heads, tails) = (a.chunks_exact(16), b.chunks_exact(16));
    let rest: i32 =
        heads.remainder().iter().zip(tails.remainder()).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
    for (x, y) in heads.zip(tails) {
        for i in 0..16 {
            sums[i] += i32::from(i16::from(x[i]) * i16::from(y[i]));
        }
    }
    sums.iter().sum::<i32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_product_is_the_sum_of_the_products() {
        for length in [0, 1, 15, 16, 17, 384, 1000] {
            let a: Vec<i8> = (0..length).map(|i| i8::try_from(i * 37 % 255 - 127).unwrap()).collect();
            let b: Vec<i8> = (0..length).map(|i| i8::try_from(127 - i * 91 % 255).unwrap()).collect();
            let plain: i32 = a.iter().zip(&b).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
            assert_eq!(dot(&a, &b), plain, "{length}");
        }
    }

    #[test]
    fn what_has_no_direction_is_near_to_nothing() {
        for vector in [vec![0.0; 3], vec![f32::NAN, 1.0], vec![f32::INFINITY], vec![]] {
            let quantized = Quantized::of(&vector);
            assert_eq!((quantized.scale, quantized.values.len()), (0.0, vector.len()));
            assert!(quantized.values.iter().all(|x| *x == 0));
        }
    }
}
