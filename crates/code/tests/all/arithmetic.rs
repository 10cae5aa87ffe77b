//! Random programs: both languages evaluate an expression to its mathematical value.

use archon_testkit::{Chance, cases, first_seed};

use crate::fixture::{call, executor};

/// An expression over whole numbers, as text, and its value.
fn expression(chance: &mut Chance, depth: u32) -> (String, i128) {
    if depth == 0 || chance.below(4) == 0 {
        let number = i128::from(chance.below(1_000)) - 500;
        return (format!("({number})"), number);
    }
    let (left, a) = expression(chance, depth - 1);
    let (right, b) = expression(chance, depth - 1);
    match chance.below(4) {
        0 => (format!("({left} + {right})"), a + b),
        1 => (format!("({left} - {right})"), a - b),
        2 => (format!("({left} * {right})"), a * b),
        _ => (format!("(-{left})"), -a),
    }
}

// spec: TE-47
#[tokio::test]
async fn arithmetic_is_exact_in_both_languages() {
    let tool = executor();
    for seed in first_seed()..first_seed() + cases(20, 2_000) {
        let mut chance = Chance(seed);
        let (text, expected) = expression(&mut chance, 3);
        let python = call(&tool, "python", &format!("x = {text}\nx")).await.text();
        assert_eq!(python, expected.to_string(), "seed {seed}: {text}");
        // The numbers of JavaScript are not exact; its BigInts are.
        let digits = with_big_ints(&text);
        let javascript = call(&tool, "javascript", &format!("const x = {digits};\nx")).await.text();
        assert_eq!(javascript, expected.to_string(), "seed {seed}: {digits}");
    }
}

/// The same with an `n` behind each number.
fn with_big_ints(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c.is_ascii_digit() && !chars.peek().is_some_and(char::is_ascii_digit) {
            out.push('n');
        }
    }
    out
}
