//! Events, and the patterns and filters that select them.

use archon_types::{Json, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

use crate::expression::{Expression, ExpressionError};

/// Something that happened outside of a run: a webhook, a file that changed, a mail, a message of a bus.
///
/// The data comes from outside and is untrusted: a run gets it as data, and no text in it raises a permission.
///
/// ```
/// use archon_triggers::TriggerEvent;
/// use serde_json::json;
///
/// let order = TriggerEvent::new("o-17", "shop", "order.created", json!({ "sum": 120 })).tenant("anna");
/// assert_eq!((order.source.as_str(), order.kind.as_str()), ("shop", "order.created"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TriggerEvent {
    /// The id, unique within the source. An event that arrives twice with the same id starts one run.
    pub id: String,
    /// The source, such as `shop`. It has no dot.
    pub source: String,
    /// The type, such as `order.created`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The data: any JSON of at most 64 KiB.
    pub data: Json,
    /// The tenant whose tasks may use the event; `None` for `local`, the default tenant of tasks. No event reaches the
    /// tasks of several tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// The time of the event.
    #[serde(default, with = "archon_types::iso8601")]
    pub at: Timestamp,
}

impl TriggerEvent {
    /// Creates an event for the tasks of the tenant `local`.
    pub fn new(
        id: impl Into<String>,
        source: impl Into<String>,
        kind: impl Into<String>,
        data: Json,
    ) -> Self {
        Self {
            id: id.into(),
            source: source.into(),
            kind: kind.into(),
            data,
            tenant: None,
            at: Timestamp::default(),
        }
    }

    /// Sets the tenant whose tasks may use the event. Default: `local`.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the time of the event. Default: 1970-01-01.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }
}

/// A pattern on `SOURCE.TYPE`, such as `shop.order.*`: `*` stands for any text, also with dots, and `?` for one character.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventPattern(String);

impl EventPattern {
    /// Creates a pattern.
    ///
    /// ```
    /// use archon_triggers::EventPattern;
    ///
    /// assert!(EventPattern::new("shop.order.*").matches("shop", "order.created"));
    /// assert!(!EventPattern::new("shop.order.*").matches("shop", "refund"));
    /// ```
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the pattern can match events of this source, depending on their type.
    ///
    /// ```
    /// use archon_triggers::EventPattern;
    ///
    /// assert!(EventPattern::new("shop.order.*").may_match_source("shop"));
    /// assert!(EventPattern::new("*order").may_match_source("shop"));
    /// assert!(!EventPattern::new("shop.order.*").may_match_source("shops"));
    /// ```
    pub fn may_match_source(&self, source: &str) -> bool {
        // A star stands for any text, also with dots: from there on a type may match.
        let start = match (self.0.find('*'), self.0.find('.')) {
            (Some(star), dot) if dot.is_none_or(|dot| star < dot) => &self.0[..=star],
            (_, Some(dot)) => &self.0[..dot],
            _ => return false,
        };
        WildMatch::new(start).matches(source)
    }

    /// Returns true if the pattern matches a source and a type.
    pub fn matches(&self, source: &str, kind: &str) -> bool {
        WildMatch::new(&self.0).matches(&format!("{source}.{kind}"))
    }
}

/// The events that start a task's runs.
///
/// ```
/// use archon_triggers::{EventFilter, Expression, TriggerEvent};
/// use serde_json::json;
///
/// # fn main() -> Result<(), archon_triggers::ExpressionError> {
/// let large = EventFilter::new("shop.order.*").condition(Expression::new("data.sum > 100")?);
/// let order = |sum: i64| TriggerEvent::new("o-17", "shop", "order.created", json!({ "sum": sum }));
/// assert!(large.admits(&order(120))?);
/// assert!(!large.admits(&order(80))?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EventFilter {
    /// The pattern on `SOURCE.TYPE`.
    pub pattern: EventPattern,
    /// The condition that an event must also meet. Its variables are `data` (the data of the event), `source` and
    /// `type` (both texts). An event does not pass if the condition has no value for it, for instance because a field
    /// is missing.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expression>,
}

impl EventFilter {
    /// Creates a filter for all events that match a pattern.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: EventPattern::new(pattern), condition: None }
    }

    /// Sets the condition that an event must also meet, over the variables `data`, `source` and `type`. Default: none.
    #[must_use]
    pub fn condition(mut self, condition: Expression) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Returns true if an event matches the pattern and meets the condition. The tenants of the event and of the task
    /// are not compared.
    ///
    /// # Errors
    /// As [`Expression::is_true_of`].
    pub fn admits(&self, event: &TriggerEvent) -> Result<bool, ExpressionError> {
        if !self.pattern.matches(&event.source, &event.kind) {
            return Ok(false);
        }
        self.is_met_by(event)
    }

    /// Returns true if an event that matches the pattern passes.
    pub(crate) fn is_met_by(&self, event: &TriggerEvent) -> Result<bool, ExpressionError> {
        let Some(condition) = &self.condition else { return Ok(true) };
        let (source, kind) = (Json::from(event.source.as_str()), Json::from(event.kind.as_str()));
        condition.is_true_of([("data", &event.data), ("source", &source), ("type", &kind)])
    }
}
