//! The calculator: the expressions that it accepts and refuses, and the correctness of its results.

use archon_tools::builtin::{Calculator, evaluate};
use archon_types::{Json, Tool};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::call_directly;

fn shown(expression: &str) -> String {
    match evaluate(expression) {
        Ok(number) => number.to_string(),
        Err(error) => format!("{}: {error}", error.code()),
    }
}

// spec: TE-45
#[test]
fn expressions_have_the_values_that_people_expect() {
    for (expression, value) in [
        ("2+2", "4"),
        ("15% of 200", "30"),
        ("15 % of 200", "30"),
        ("15% * 200", "30"),
        ("200 + 15%", "230"),
        ("200 - 10%", "180"),
        ("5% + 3%", "0.08"),
        ("(10 + 20)%", "0.3"),
        ("-10%", "-0.1"),
        ("17 % 5", "2"),
        ("17%5", "2"),
        ("-7 % 3", "2"),
        ("7 mod 4", "3"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "0.333333333333"),
        ("1/3*3", "1"),
        ("2/3", "0.666666666667"),
        ("10/4", "2.5"),
        ("1,250.50 * 2", "2501"),
        ("1,000,000 / 4", "250000"),
        ("1_000 + 1", "1001"),
        ("7.5 × 4", "30"),
        ("144 ÷ 9", "16"),
        ("10 − 4", "6"),
        ("23 x 47", "1081"),
        ("23x47", "1081"),
        ("2^10", "1024"),
        ("2**10", "1024"),
        ("2 ** -1", "0.5"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^0.5", "1.41421356237"),
        ("--3", "3"),
        ("2 - -3", "5"),
        ("+4", "4"),
        ("(12 + 8) * 3", "60"),
        ("2 + 3 * 4 - 6 / 2", "11"),
        (" 2+2 = ", "4"),
        ("2+2=?", "4"),
        ("sqrt(16)", "4"),
        ("sqrt(2)", "1.41421356237"),
        ("abs(-3.5)", "3.5"),
        ("min(3, 1, 2)", "1"),
        ("max(1,234)", "234"),
        ("max((1,234), 5)", "1234"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(3.14159, 2)", "3.14"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("ln(e)", "1"),
        ("log(1000)", "3"),
        ("log(8, 2)", "3"),
        ("2 * pi", "6.28318530718"),
        ("PI", "3.14159265359"),
        ("1e3 + 1", "1001"),
        ("1.5e-3", "0.0015"),
        ("123456789 * 987654321", "121932631112635269"),
        ("2^100", "1267650600228229401496703205376"),
        ("2^200", "1.60693804426e60"),
        ("1/1e9", "0.000000001"),
        ("1/7e9", "1.42857142857e-10"),
        ("0 * -1", "0"),
        ("99.99 * 3", "299.97"),
        ("0^0", "1"),
        (".5 + 5.", "5.5"),
    ] {
        assert_eq!(shown(expression), value, "{expression}");
    }
}

// spec: TE-45
#[test]
fn calculator_error_has_the_reason_and_the_position() {
    let check = |expression: &str, expected: Expect| expected.assert_eq(&shown(expression));
    check("1/0", expect!["execution_error: Division by zero"]);
    check("5 % 0", expect!["execution_error: Division by zero"]);
    check("0^-1", expect!["execution_error: Division by zero"]);
    check("sqrt(-1)", expect!["execution_error: The result is not a real number"]);
    check("(-8)^(1/3)", expect!["execution_error: The result is not a real number"]);
    check("10^400", expect!["execution_error: The result is too large"]);
    check(
        "",
        expect![
            "invalid_parameters: The expression cannot be read at its start: expected a number, it ends. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "2 +",
        expect![
            "invalid_parameters: The expression cannot be read after '2 +': expected a number, it ends. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "2 3",
        expect![
            "invalid_parameters: The expression cannot be read after '2': expected an operator, found '3'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "(2 + 3",
        expect![
            "invalid_parameters: The expression cannot be read after '(2 + 3': expected ')', it ends. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "2 + 3)",
        expect![
            "invalid_parameters: The expression cannot be read after '2 + 3': expected an operator, found ')'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "3,14 * 2",
        expect![
            "invalid_parameters: The expression cannot be read after '3': expected an operator, found ',14 * 2'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "price * 2",
        expect![
            "invalid_parameters: The expression cannot be read at its start: expected a number, found 'price * 2'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "sqrt 4",
        expect![
            "invalid_parameters: The expression cannot be read after 'sqrt': expected '(', found '4'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "min()",
        expect![
            "invalid_parameters: The expression cannot be read after 'min(': expected a number, found ')'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(
        "abs(1, 2)",
        expect![
            "invalid_parameters: 'abs' does not take 2 arguments. Give it one; 'round' and 'log' may have two, 'min' and 'max' any number."
        ],
    );
    check(
        "import os",
        expect![
            "invalid_parameters: The expression cannot be read at its start: expected a number, found 'import os'. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check(&"(".repeat(500), expect!["invalid_parameters: The expression is nested deeper than 64 levels"]);
    check(&"-".repeat(500), expect!["invalid_parameters: The expression is nested deeper than 64 levels"]);
    check(
        &"1+".repeat(2_000),
        expect![
            "invalid_parameters: The expression has 4000 characters; 2000 are allowed. Calculate it in parts."
        ],
    );
}

fn check_call(arguments: Json, expected: Expect) {
    let shown = match call_directly(&Calculator::new(), arguments) {
        Ok(result) => result.text(),
        Err(error) => format!("{}: {error}", error.code()),
    };
    expected.assert_eq(&shown);
}

// spec: TE-45
#[test]
fn an_operation_may_be_named_instead() {
    check_call(json!({ "expression": "2+2" }), expect!["4"]);
    check_call(json!({ "operation": "percentage", "value": 250, "percentage": 18 }), expect!["45"]);
    check_call(json!({ "operation": "add", "a": 2, "b": 3 }), expect!["5"]);
    check_call(json!({ "operation": "subtract", "a": 0.3, "b": 0.1 }), expect!["0.2"]);
    check_call(json!({ "operation": "multiply", "a": 1.1, "b": 1.1 }), expect!["1.21"]);
    check_call(
        json!({ "operation": "divide", "a": 1, "b": 0 }),
        expect!["execution_error: Division by zero"],
    );
    check_call(json!({ "operation": "power", "a": 2, "b": 8 }), expect!["256"]);
    check_call(
        json!({ "operation": "add", "a": 2 }),
        expect![
            "invalid_parameters: This operation needs 'b'. Add, subtract, multiply, divide and power need 'a' and 'b'; percentage needs 'value' and 'percentage'."
        ],
    );
    check_call(
        json!({ "expression": "" }),
        expect![
            "invalid_parameters: The expression cannot be read at its start: expected a number, it ends. Use numbers, + - * / ^ % ( ) and sqrt, abs, min, max, round."
        ],
    );
    check_call(json!({ "expression": "", "operation": "add", "a": 1, "b": 1 }), expect!["2"]);
}

// spec: TE-34
#[test]
fn the_schema_is_one_flat_object() {
    expect![[r#"{"type":"object","properties":{"expression":{"type":"string","description":"Arithmetic, for example 12 * (3 + 4) or 15% of 200"},"operation":{"type":"string","enum":["add","subtract","multiply","divide","power","percentage"],"description":"Instead of an expression: one operation on a and b, or on value and percentage"},"a":{"type":"number"},"b":{"type":"number"},"value":{"type":"number"},"percentage":{"type":"number"}},"anyOf":[{"required":["expression"]},{"required":["operation"]}],"additionalProperties":false}"#]].assert_eq(&Calculator::new().spec().parameters.to_string());
}

/// An expression with its value, calculated in another way than the calculator does: a tree of
/// `f64`, evaluated by Rust.
#[derive(Clone, Debug)]
struct Sample {
    text: String,
    value: f64,
    /// The largest magnitude on the way, which bounds the rounding error of `f64`.
    largest: f64,
}

fn sample() -> impl Strategy<Value = Sample> {
    let number = (0_u32..100_000, 0_u32..3).prop_map(|(digits, places)| {
        let value = f64::from(digits) / 10_f64.powi(places as i32);
        Sample { text: format!("{value}"), value, largest: value }
    });
    number.prop_recursive(5, 40, 2, |inner| {
        let pair = (inner.clone(), 0_usize..6, inner.clone(), 1_u32..99, any::<bool>());
        prop_oneof![
            pair.prop_map(|(left, operator, right, n, spaced)| combined(&left, operator, &right, n, spaced)),
            inner.prop_map(|of| Sample { text: format!("-({})", of.text), value: -of.value, ..of }),
        ]
    })
}

fn combined(left: &Sample, operator: usize, right: &Sample, n: u32, spaced: bool) -> Sample {
    let (a, b, divisor) = (left.value, right.value, f64::from(n) + 0.5);
    let space = if spaced { " " } else { "" };
    let join = |sign: &str| format!("({}){space}{sign}{space}({})", left.text, right.text);
    let (text, value) = match operator {
        0 => (join("+"), a + b),
        1 => (join("-"), a - b),
        2 if a.abs().max(b.abs()) < 1e6 => (join("*"), a * b),
        3 => (format!("({}){space}/{space}{divisor}", left.text), a / divisor),
        4 if a.abs() < 1e4 => (format!("({})^2", left.text), a * a),
        _ => (format!("{n}% of ({})", right.text), f64::from(n) / 100.0 * b),
    };
    Sample { text, value, largest: left.largest.max(right.largest).max(value.abs()) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    // spec: TE-45
    #[test]
    fn any_expression_has_the_value_that_another_way_of_calculating_gives(sample in sample()) {
        prop_assume!(sample.text.len() < 2_000);
        let value = evaluate(&sample.text).unwrap();
        let allowed = 1e-9 * (1.0 + sample.largest);
        prop_assert!((value.to_f64() - sample.value).abs() <= allowed, "{} = {value}, not {}", sample.text, sample.value);
        let printed: f64 = value.to_string().parse().unwrap();
        prop_assert!((printed - value.to_f64()).abs() <= 1e-11 * value.to_f64().abs(), "{value}");
    }

    // spec: TE-45
    #[test]
    fn calculator_of_any_text_does_not_panic(text in "[-0-9a-z.,_+*/^%() ×π−]{0,60}|.{0,60}") {
        let _ = evaluate(&text);
    }
}
