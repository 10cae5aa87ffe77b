//! Numbers of the calculator: exact fractions as long as they fit, floating point otherwise.
//!
//! A model that reads 0.1 + 0.2 = 0.30000000000000004 repeats it. Fractions of 128-bit integers keep
//! decimals, percentages and thirds exact; numbers that do not fit or have no exact value become an `f64` and
//! are shown with twelve significant digits.

use std::fmt;

use archon_types::ToolError;

/// A number of the calculator.
#[derive(Clone, Copy, Debug)]
pub struct Number(Form);

#[derive(Clone, Copy, Debug)]
enum Form {
    /// A fraction in lowest terms with a positive denominator.
    Exact { numerator: i128, denominator: i128 },
    /// A finite float.
    Float(f64),
}

/// The result of an operation. Every operation fails if its result is too large or not a real number.
type Outcome = Result<Number, ToolError>;

impl Number {
    /// Creates a whole number.
    pub(crate) fn whole(n: i128) -> Self {
        Self(Form::Exact { numerator: n, denominator: 1 })
    }

    /// Parses a decimal such as `12.50` or `1e-3`; the number is exact if it fits. Returns `None` if the
    /// text is not a finite decimal.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parsed: f64 = text.parse().ok().filter(|n: &f64| n.is_finite())?;
        Some(exact_decimal(text).unwrap_or(Self(Form::Float(parsed))))
    }

    /// Returns the nearest `f64`.
    pub fn to_f64(self) -> f64 {
        match self.0 {
            Form::Exact { numerator, denominator } => numerator as f64 / denominator as f64,
            Form::Float(value) => value,
        }
    }

    /// Returns whether the number is zero.
    pub(crate) fn is_zero(self) -> bool {
        match self.0 {
            Form::Exact { numerator, .. } => numerator == 0,
            Form::Float(value) => value == 0.0,
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self.0 {
            Form::Exact { numerator, denominator } if numerator != i128::MIN => {
                Self(Form::Exact { numerator: -numerator, denominator })
            }
            _ => Self(Form::Float(-self.to_f64())),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Outcome {
        self.combine(
            other,
            |a, b, c, d| ratio(a.checked_mul(d)?.checked_add(c.checked_mul(b)?)?, b.checked_mul(d)?),
            |x, y| x + y,
        )
    }

    pub(crate) fn minus(self, other: Self) -> Outcome {
        self.plus(other.negated())
    }

    pub(crate) fn times(self, other: Self) -> Outcome {
        self.combine(other, |a, b, c, d| ratio(a.checked_mul(c)?, b.checked_mul(d)?), |x, y| x * y)
    }

    /// Returns the quotient; fails for a division by zero.
    pub(crate) fn divided_by(self, other: Self) -> Outcome {
        if other.is_zero() {
            return Err(division_by_zero());
        }
        self.combine(other, |a, b, c, d| ratio(a.checked_mul(d)?, b.checked_mul(c)?), |x, y| x / y)
    }

    /// Returns the remainder with the sign of the divisor; fails for a division by zero.
    pub(crate) fn modulo(self, other: Self) -> Outcome {
        self.minus(other.times(self.divided_by(other)?.floor()?)?)
    }

    /// Returns the number raised to `exponent`; fails for a negative power of zero.
    pub(crate) fn power(self, exponent: Self) -> Outcome {
        if let Form::Exact { numerator, denominator: 1 } = exponent.0 {
            if numerator < 0 && self.is_zero() {
                return Err(division_by_zero());
            }
            if let Some(exact) = self.exact_power(numerator) {
                return Ok(exact);
            }
        }
        finite(self.to_f64().powf(exponent.to_f64()))
    }

    pub(crate) fn floor(self) -> Outcome {
        match self.0 {
            Form::Exact { numerator, denominator } => Ok(Self::whole(numerator.div_euclid(denominator))),
            Form::Float(value) => finite(value.floor()),
        }
    }

    /// Rounds to `digits` decimals, halves away from zero.
    pub(crate) fn rounded(self, digits: u32) -> Outcome {
        let scale = Self::whole(10).power(Self::whole(digits.into()))?;
        let half = Self::whole(1).divided_by(Self::whole(2))?;
        let magnitude = self.magnitude().times(scale)?.plus(half)?.floor()?.divided_by(scale)?;
        Ok(if self.is_negative() { magnitude.negated() } else { magnitude })
    }

    pub(crate) fn magnitude(self) -> Self {
        if self.is_negative() { self.negated() } else { self }
    }

    /// Applies a floating-point function, whose result is not exact in general.
    pub(crate) fn map(self, f: impl FnOnce(f64) -> f64) -> Outcome {
        finite(f(self.to_f64()))
    }

    fn is_negative(self) -> bool {
        match self.0 {
            Form::Exact { numerator, .. } => numerator < 0,
            Form::Float(value) => value < 0.0,
        }
    }

    fn exact_power(self, exponent: i128) -> Option<Self> {
        let Form::Exact { numerator, denominator } = self.0 else { return None };
        let power = u32::try_from(exponent.unsigned_abs()).ok()?;
        let (top, bottom) = (numerator.checked_pow(power)?, denominator.checked_pow(power)?);
        if exponent < 0 { ratio(bottom, top) } else { ratio(top, bottom) }
    }

    /// Returns the exact result if both numbers are exact and the result fits, else the floating-point
    /// result.
    fn combine(
        self,
        other: Self,
        exact: impl FnOnce(i128, i128, i128, i128) -> Option<Self>,
        float: impl FnOnce(f64, f64) -> f64,
    ) -> Outcome {
        if let (Form::Exact { numerator: a, denominator: b }, Form::Exact { numerator: c, denominator: d }) =
            (self.0, other.0)
            && let Some(result) = exact(a, b, c, d)
        {
            return Ok(result);
        }
        finite(float(self.to_f64(), other.to_f64()))
    }
}

/// Prints whole numbers without a point, short decimals exactly, and all other numbers with twelve
/// significant digits.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Form::Exact { numerator, denominator } = self.0 {
            if denominator == 1 {
                return write!(f, "{numerator}");
            }
            if let Some(text) = short_decimal(numerator, denominator) {
                return f.write_str(&text);
            }
        }
        let rounded: f64 = format!("{:.11e}", self.to_f64()).parse().unwrap_or(self.to_f64());
        match rounded.abs() {
            0.0 => f.write_str("0"),
            1e-6..1e21 => write!(f, "{rounded}"),
            _ => write!(f, "{rounded:e}"),
        }
    }
}

/// Returns the fraction as a terminating decimal, or `None` if that has more than fifteen digits.
fn short_decimal(numerator: i128, denominator: i128) -> Option<String> {
    let places = (1..=15_u32).find(|places| 10_i128.pow(*places) % denominator == 0)?;
    let digits = numerator.checked_mul(10_i128.pow(places) / denominator)?;
    let sign = if digits < 0 { "-" } else { "" };
    let (digits, places) = (digits.unsigned_abs().to_string(), places as usize);
    if digits.len() > 15 {
        return None;
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    Some(format!("{sign}{whole}.{fraction}"))
}

fn exact_decimal(text: &str) -> Option<Number> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let scale = 10_i128.checked_pow(shift.unsigned_abs())?;
    if shift < 0 { ratio(digits, scale) } else { ratio(digits.checked_mul(scale)?, 1) }
}

/// Returns the fraction in lowest terms, or `None` if its numbers do not fit. The denominator must not be
/// zero.
fn ratio(numerator: i128, denominator: i128) -> Option<Number> {
    let divisor = i128::try_from(gcd(numerator.unsigned_abs(), denominator.unsigned_abs())).ok()?;
    let sign = if denominator < 0 { -1 } else { 1 };
    let numerator = numerator.checked_div(divisor)?.checked_mul(sign)?;
    let denominator = denominator.checked_div(divisor)?.checked_mul(sign)?;
    Some(Number(Form::Exact { numerator, denominator }))
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn finite(value: f64) -> Outcome {
    match value {
        v if v.is_nan() => Err(ToolError::Failed("The result is not a real number".to_owned())),
        v if v.is_infinite() => Err(ToolError::Failed("The result is too large".to_owned())),
        v => Ok(Number(Form::Float(v))),
    }
}

fn division_by_zero() -> ToolError {
    ToolError::Failed("Division by zero".to_owned())
}
