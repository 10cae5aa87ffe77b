//! The stand-in calculator's arithmetic: `+ - * / ^ ( )`, `15% of 200` and `15%`.

/// The value of an expression; `None` if it is none.
pub(crate) fn evaluate(text: &str) -> Option<f64> {
    let text = text.replace(" of ", "*").replace('×', "*").replace('÷', "/");
    let mut rest: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).rev().collect();
    let value = sum(&mut rest)?;
    (rest.is_empty() && value.is_finite()).then_some(value)
}

/// Characters are taken from the end, because the text is turned round.
fn sum(rest: &mut Vec<char>) -> Option<f64> {
    let mut value = product(rest)?;
    while let Some(sign) = take(rest, &['+', '-']) {
        let next = product(rest)?;
        value = if sign == '+' { value + next } else { value - next };
    }
    Some(value)
}

fn product(rest: &mut Vec<char>) -> Option<f64> {
    let mut value = power(rest)?;
    while let Some(sign) = take(rest, &['*', '/']) {
        let next = power(rest)?;
        value = if sign == '*' { value * next } else { value / next };
    }
    Some(value)
}

fn power(rest: &mut Vec<char>) -> Option<f64> {
    let base = unit(rest)?;
    match take(rest, &['^']) {
        Some(_) => Some(base.powf(power(rest)?)),
        None => Some(base),
    }
}

fn unit(rest: &mut Vec<char>) -> Option<f64> {
    if take(rest, &['-']).is_some() {
        return Some(-unit(rest)?);
    }
    let value = if take(rest, &['(']).is_some() {
        let value = sum(rest)?;
        take(rest, &[')'])?;
        value
    } else {
        let mut digits = String::new();
        while let Some(digit) = rest.last().filter(|c| c.is_ascii_digit() || **c == '.') {
            digits.push(*digit);
            rest.pop();
        }
        digits.parse().ok()?
    };
    Some(if take(rest, &['%']).is_some() { value / 100.0 } else { value })
}

fn take(rest: &mut Vec<char>, wanted: &[char]) -> Option<char> {
    let next = *rest.last()?;
    wanted.contains(&next).then(|| rest.pop()).flatten()
}
