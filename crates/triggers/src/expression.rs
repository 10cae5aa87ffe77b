//! Expressions over JSON: filters of events, and conditions.

use std::{fmt, sync::Arc};

use archon_types::Json;
use cel::{Context, Program, Value};
use serde::{Deserialize, Serialize};

/// A condition in the Common Expression Language (CEL), such as `data.amount > 100 && data.paid == false`.
///
/// An expression reads the variables that its user names, and nothing else: it has no access to files, networks or the
/// time.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Expression {
    text: String,
    program: Arc<Program>,
}

/// An error of an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// The text is no expression.
    #[error("the expression {text:?} cannot be read: {problem}")]
    Unreadable {
        /// The text.
        text: String,
        /// The problem, with the place in the text.
        problem: String,
    },
    /// The expression has no value for the data, for instance because a field is missing.
    #[error("the expression {text:?} has no value: {problem}")]
    NoValue {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
    },
    /// The value is neither true nor false.
    #[error("the expression {text:?} is neither true nor false but {value}")]
    NoCondition {
        /// The text.
        text: String,
        /// The value.
        value: String,
    },
}

impl Expression {
    /// Reads an expression.
    ///
    /// ```
    /// use archon_triggers::Expression;
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), archon_triggers::ExpressionError> {
    /// let is_large = Expression::new("data.amount > 100")?;
    /// assert!(is_large.is_true_of([("data", &json!({ "amount": 120 }))])?);
    /// assert!(is_large.is_true_of([("data", &json!({}))]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ExpressionError::Unreadable`].
    pub fn new(text: impl Into<String>) -> Result<Self, ExpressionError> {
        let text = text.into();
        match Program::compile(&text) {
            Ok(program) => Ok(Self { text, program: Arc::new(program) }),
            Err(errors) => {
                let problem = errors.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                Err(ExpressionError::Unreadable { text, problem })
            }
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the value of the condition for these variables.
    ///
    /// # Errors
    /// [`ExpressionError::NoValue`] and [`ExpressionError::NoCondition`].
    pub fn is_true_of<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a str, &'a Json)>,
    ) -> Result<bool, ExpressionError> {
        let mut context = Context::default();
        for (name, value) in variables {
            context.add_variable_from_value(name, value_of(value));
        }
        match self.program.execute(&context) {
            Ok(Value::Bool(value)) => Ok(value),
            Ok(value) => {
                Err(ExpressionError::NoCondition { text: self.text.clone(), value: format!("{value:?}") })
            }
            Err(error) => {
                Err(ExpressionError::NoValue { text: self.text.clone(), problem: error.to_string() })
            }
        }
    }
}

impl TryFrom<String> for Expression {
    type Error = ExpressionError;

    fn try_from(text: String) -> Result<Self, ExpressionError> {
        Self::new(text)
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.text
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// Returns JSON as a value of CEL. Whole numbers become signed ones, so that they can be compared with each other and with
/// the numbers of an expression.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(value_of).collect::<Vec<_>>().into(),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), value_of(value)));
            fields.collect::<std::collections::HashMap<_, _>>().into()
        }
    }
}
