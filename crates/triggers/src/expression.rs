//! Expressions over JSON: filters of events, and conditions.

use std::{fmt, sync::Arc};

use archon_types::Json;
use cel::{Context, Program, Value};
use serde::{Deserialize, Serialize};

mod cost;

/// The most bytes of the text of an expression.
const MOST_BYTES: usize = 2_000;

/// The most levels of an expression.
const MOST_LEVELS: usize = 32;

/// The stack for the parser, which takes more than 100 KB for a pair of brackets in a build without optimisation. The parser
/// refuses more than 96 pairs.
const STACK: usize = 32 << 20;

/// The most steps of an evaluation, which take at most about half a second.
const MOST_STEPS: u64 = 5_000_000;

/// A condition in the Common Expression Language (CEL), such as `data.amount > 100 && data.paid == false`.
///
/// An expression reads the variables that its user names, and nothing else: it has no access to files, networks or the
/// time. It has at most 2,000 bytes and 32 levels, and one that could take more than five million steps for its data, for
/// instance because of a loop in a loop, is not evaluated.
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
    /// The expression could take too long for the data.
    #[error(
        "the expression {text:?} could take {steps} steps for these data, and {most} are the limit: use fewer loops, or \
         smaller data"
    )]
    TooCostly {
        /// The text.
        text: String,
        /// The most steps that it could take.
        steps: u64,
        /// The limit.
        most: u64,
    },
}

impl Expression {
    /// Parses an expression.
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
        if text.len() > MOST_BYTES {
            let problem = format!("it has more than {MOST_BYTES} bytes");
            let text = text.chars().take(100).collect();
            return Err(ExpressionError::Unreadable { text, problem });
        }
        let problem = match compile(&text) {
            Ok(program) if cost::is_within_depth(program.expression(), MOST_LEVELS) => {
                return Ok(Self { text, program: Arc::new(program) });
            }
            Ok(_) => format!("it has more than {MOST_LEVELS} levels"),
            Err(problem) => problem,
        };
        Err(ExpressionError::Unreadable { text, problem })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the condition with these variables, each a name and a value, and returns true if it is met.
    ///
    /// # Errors
    /// [`ExpressionError::TooCostly`], [`ExpressionError::NoValue`] and [`ExpressionError::NoCondition`].
    pub fn is_true_of<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a str, &'a Json)>,
    ) -> Result<bool, ExpressionError> {
        let variables: Vec<_> = variables.into_iter().collect();
        let steps = cost::most_steps(self.program.expression(), &variables);
        if steps > MOST_STEPS {
            return Err(ExpressionError::TooCostly { text: self.text.clone(), steps, most: MOST_STEPS });
        }
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

/// Parses an expression in a thread with a large stack, since a text of another program may have many brackets.
fn compile(text: &str) -> Result<Program, String> {
    let parse = || {
        Program::compile(text)
            .map_err(|errors| errors.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, parse);
        let parser = thread.map_err(|error| format!("no thread can be started for it: {error}"))?;
        parser.join().unwrap_or_else(|_| Err("the parser of expressions panicked".to_owned()))
    })
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
