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
