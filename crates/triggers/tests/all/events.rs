//! Patterns, filters and expressions of events.

use archon_triggers::{EventFilter, EventPattern, Expression, ExpressionError, TriggerEvent};
use serde_json::json;

// spec: TR-08
#[test]
fn pattern_matches_source_and_type() {
    for (pattern, source, kind, is_match) in [
        ("*", "shop", "order.created", true),
        ("shop.*", "shop", "order.created", true),
        ("shop.order.*", "shop", "refund.created", false),
        ("*.created", "shop", "order.created", true),
        ("shop.order.created", "shop", "order.created", true),
        ("shop.order", "shop", "order.created", false),
        ("shop.order.?reated", "shop", "order.created", true),
    ] {
        assert_eq!(EventPattern::new(pattern).matches(source, kind), is_match, "{pattern} {source}.{kind}");
    }
}

// spec: TR-04
#[test]
fn filter_admits_events_by_pattern_and_condition() {
    let filter = EventFilter::new("shop.order.*").condition(Expression::new("data.amount > 100").unwrap());
    let order = |amount: f64| TriggerEvent::new("1", "shop", "order.created", json!({ "amount": amount }));
    assert_eq!(filter.admits(&order(100.5)), Ok(true));
    assert_eq!(filter.admits(&order(100.0)), Ok(false));
    assert_eq!(filter.admits(&TriggerEvent::new("1", "shop", "refund", json!({}))), Ok(false));
    let without = TriggerEvent::new("1", "shop", "order.created", json!({}));
    assert!(matches!(filter.admits(&without), Err(ExpressionError::NoValue { .. })));
}

#[test]
fn expression_compares_json_of_each_kind() {
    let data = json!({ "n": 3, "x": 1.5, "s": "a", "list": ["a", "b"], "big": 5_000_000_000_u64, "gone": null, "yes": true });
    for text in [
        "data.n == 3 && data.n < 4 && data.big > data.n",
        "data.x < 2.0",
        "data.s == 'a' && data.s in data.list",
        "size(data.list) == 2",
        "data.gone == null",
        "data.yes && !has(data.other)",
        "data.list.exists(item, item == 'b')",
    ] {
        assert_eq!(Expression::new(text).unwrap().is_true_of([("data", &data)]), Ok(true), "{text}");
    }
    let number = Expression::new("data.n + 1").unwrap();
    assert!(matches!(number.is_true_of([("data", &data)]), Err(ExpressionError::NoCondition { .. })));
}

#[test]
fn text_that_is_no_expression_is_refused_with_the_problem() {
    let error = Expression::new("data.amount >").unwrap_err().to_string();
    assert!(error.starts_with("the expression \"data.amount >\" cannot be read: "), "{error}");
    assert!(!error.contains('\n'));
}

// spec: TR-04, TR-05
#[test]
fn expression_that_could_take_too_long_for_its_data_is_not_evaluated() {
    let numbers: Vec<u32> = (0..20_000).collect();
    let large = json!({ "numbers": numbers, "text": "x".repeat(30_000) });
    let small = json!({ "numbers": [1, 2, 3], "text": "x" });
    let grow = ".map(s, s + s)".repeat(20);
    for text in [
        "data.numbers.all(a, data.numbers.all(b, a + b >= 0))".to_owned(),
        "data.numbers.all(a, !data.text.contains('y') && !(data.text + data.text).contains('z'))".to_owned(),
        format!("size([data.text]{grow}) == 1"),
    ] {
        let expression = Expression::new(text).unwrap();
        let error = expression.is_true_of([("data", &large)]).unwrap_err();
        assert!(matches!(error, ExpressionError::TooCostly { most: 5_000_000, .. }), "{error}");
        if !expression.text().contains(&grow) {
            assert_eq!(expression.is_true_of([("data", &small)]), Ok(true));
        }
    }
}

// spec: TR-04
#[test]
fn expression_with_loops_over_a_large_event_is_evaluated() {
    let item = |n: u32| json!({ "sku": format!("S-{n:04}"), "tags": ["new", "red", "large"], "sum": n });
    let data = json!({ "sku": "S-0799", "items": (0..800).map(item).collect::<Vec<_>>() });
    assert!(data.to_string().len() > 40_000);
    for text in [
        "data.items.exists(item, item.sku == data.sku && item.sum > 100)",
        "data.items.exists(item, item.tags.exists(tag, tag == 'red'))",
        "data.items.filter(item, 'red' in item.tags).map(item, item.sum).exists(sum, sum == 799)",
        "size(data.items) == 800 && data.items[0].sku.startsWith('S-')",
    ] {
        assert_eq!(Expression::new(text).unwrap().is_true_of([("data", &data)]), Ok(true), "{text}");
    }
}

#[test]
fn expression_that_is_too_long_or_too_deep_is_refused() {
    for (text, problem) in [
        (format!("'{}' == ''", "x".repeat(2_000)), "it has more than 2000 bytes"),
        (vec!["1"; 900].join("+"), "it has more than 32 levels"),
        (format!("{}true{}", "(".repeat(200), ")".repeat(200)), "Recursion limit"),
    ] {
        let error = Expression::new(text).unwrap_err().to_string();
        assert!(error.contains(problem) && error.len() < 10_000, "{error}");
    }
    // Levels up to the limit fit into the stack of a thread.
    let deep = Expression::new(vec!["1"; 30].join("+") + " == 30").unwrap();
    assert_eq!(deep.is_true_of([("data", &json!({}))]), Ok(true));
}
