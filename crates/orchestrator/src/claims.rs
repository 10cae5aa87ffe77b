//! Compares claims: finds contradictions, and groups claims that agree.

use archon_types::{Claim, Json};

/// Returns whether two values contradict each other: numbers that differ by more than `tolerance` (a
/// fraction) of the larger one, lists and objects with contradicting or missing parts, and all other values
/// that are unequal. Case, white space and the order of keys are ignored, and `30 %` is a number.
///
/// ```
/// use archon_orchestrator::contradict;
/// use serde_json::json;
///
/// assert!(contradict(&json!("30%"), &json!(0.15), 0.05));
/// assert!(!contradict(&json!(100), &json!(103), 0.05));
/// assert!(!contradict(&json!("Paris "), &json!("paris"), 0.05));
/// assert!(!contradict(&json!({"trend": 30}), &json!({"trend": 30.2}), 0.05));
/// ```
pub fn contradict(one: &Json, other: &Json, tolerance: f64) -> bool {
    let differ = |(one, other): (&Json, &Json)| contradict(one, other, tolerance);
    match (one, other) {
        (Json::Array(one), Json::Array(other)) => {
            one.len() != other.len() || one.iter().zip(other).any(differ)
        }
        (Json::Object(one), Json::Object(other)) => {
            let lacks_or_differs =
                |(key, value): (&String, &Json)| other.get(key).is_none_or(|other| differ((value, other)));
            one.len() != other.len() || one.iter().any(lacks_or_differs)
        }
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => (one - other).abs() > tolerance * one.abs().max(other.abs()),
            _ => plain(one) != plain(other),
        },
    }
}

/// Groups the claims that agree. A claim joins the first group in which it agrees with all claims, so there
/// is one group exactly if no two claims contradict each other.
pub(crate) fn groups(claims: &[Claim], tolerance: f64) -> Vec<Vec<&Claim>> {
    let mut groups: Vec<Vec<&Claim>> = Vec::new();
    for claim in claims {
        match groups.iter_mut().find(|group| agrees(group, claim, tolerance)) {
            Some(group) => group.push(claim),
            None => groups.push(vec![claim]),
        }
    }
    groups
}

/// Returns whether a claim agrees with all claims of a group. Equal texts are compared with the first claim
/// only. Numbers are compared with every claim: two can be near a third, but far from each other.
fn agrees(group: &[&Claim], claim: &Claim, tolerance: f64) -> bool {
    let may_be_near = |value: &Json| value.is_array() || value.is_object() || number(value).is_some();
    let is_any = may_be_near(&claim.value) || may_be_near(&group[0].value);
    let compared = if is_any { group } else { &group[..1] };
    compared.iter().all(|other| !contradict(&other.value, &claim.value, tolerance))
}

fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => {
            let percent = text.trim().strip_suffix('%');
            let number: f64 = percent.unwrap_or(text).trim().parse().ok()?;
            let part = if percent.is_some() { 0.01 } else { 1.0 };
            number.is_finite().then_some(number * part)
        }
        _ => None,
    }
}

fn plain(value: &Json) -> String {
    let text = crate::response::text_of(value).to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
