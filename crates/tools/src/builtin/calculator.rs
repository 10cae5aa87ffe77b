//! The tool `calculator`: evaluates arithmetic.

use archon_types::{Json, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::{Number, evaluate};

/// Evaluates `{"expression": "12 * (3 + 4)"}`, or one operation: `{"operation": "add", "a": 2, "b":
/// 3}`, `{"operation": "percentage", "value": 250, "percentage": 18}`. The result is the number.
#[derive(Clone, Debug)]
pub struct Calculator {
    spec: ToolSpec,
}

/// Arguments of a call. If an expression and an operation are given, the expression is used unless it is
/// blank.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    expression: Option<String>,
    operation: Option<Operation>,
    a: Option<serde_json::Number>,
    b: Option<serde_json::Number>,
    value: Option<serde_json::Number>,
    percentage: Option<serde_json::Number>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Percentage,
}

impl Calculator {
    /// Creates the tool.
    pub fn new() -> Self {
        let mut spec = ToolSpec::new(
            "calculator",
            "Evaluates arithmetic and returns the number. Use it for every calculation.",
            parameters(),
        )
        .with_annotations(ToolAnnotations::read_only());
        spec.label = "Calculator".to_owned();
        spec.examples = vec![
            json!({ "expression": "12 * (3 + 4)" }),
            json!({ "operation": "percentage", "value": 250, "percentage": 18 }),
            json!({ "operation": "add", "a": 2, "b": 3 }),
        ];
        Self { spec }
    }

    fn run(&self, arguments: Json, _: &ToolContext) -> Result<ToolResult, ToolError> {
        calculate(arguments).map(|number| ToolResult::success(number.to_string()))
    }
}

default_is_new!(Calculator);

impl Tool for Calculator {
    tool_methods!(run at once);
}

fn calculate(arguments: Json) -> Result<Number, ToolError> {
    let arguments: Arguments = crate::macro_support::arguments(arguments)?;
    let operation = match (&arguments.expression, arguments.operation) {
        (Some(expression), operation) if !expression.trim().is_empty() || operation.is_none() => {
            return evaluate(expression);
        }
        (_, Some(operation)) => operation,
        (_, None) => {
            return Err(ToolError::InvalidArgs(
                "Send an expression. Example: calculator(expression=\"12 * (3 + 4)\")".to_owned(),
            ));
        }
    };
    let need = |name: &str, number: &Option<serde_json::Number>| match number {
        Some(number) => Number::parse(&number.to_string()).ok_or_else(|| {
            ToolError::InvalidArgs(format!("'{name}' is out of range: {number}. Send a smaller number."))
        }),
        None => Err(ToolError::InvalidArgs(format!(
            "This operation needs '{name}'. Add, subtract, multiply, divide and power need 'a' and 'b'; percentage \
             needs 'value' and 'percentage'."
        ))),
    };
    let (first, second) = match operation {
        Operation::Percentage => {
            (need("value", &arguments.value)?, need("percentage", &arguments.percentage)?)
        }
        _ => (need("a", &arguments.a)?, need("b", &arguments.b)?),
    };
    match operation {
        Operation::Add => first.plus(second),
        Operation::Subtract => first.minus(second),
        Operation::Multiply => first.times(second),
        Operation::Divide => first.divided_by(second),
        Operation::Power => first.power(second),
        Operation::Percentage => first.times(second)?.divided_by(Number::whole(100)),
    }
}

/// Returns the JSON Schema of the arguments. It is one flat object, because small models handle optional
/// properties better than alternatives.
fn parameters() -> Json {
    json!({
        "type": "object",
        "properties": {
            "expression": {
                "type": "string",
                "description": "Arithmetic, for example 12 * (3 + 4) or 15% of 200",
            },
            "operation": {
                "type": "string",
                "enum": ["add", "subtract", "multiply", "divide", "power", "percentage"],
                "description": "Instead of an expression: one operation on a and b, or on value and percentage",
            },
            "a": { "type": "number" },
            "b": { "type": "number" },
            "value": { "type": "number" },
            "percentage": { "type": "number" },
        },
        "anyOf": [{ "required": ["expression"] }, { "required": ["operation"] }],
        "additionalProperties": false,
    })
}
