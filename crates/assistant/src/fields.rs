//! Input fields of an agent: types, checks, JSON Schema for the model, and the values of a call.

use std::{fmt, sync::Arc};

use archon_types::{ContentHash, Json};
use serde_json::{Map, json};

/// One input field of an agent.
///
/// ```
/// use archon_assistant::{FieldKind, InputField};
///
/// let cents = InputField::optional("cents", FieldKind::Integer, "Amount in cents.")
///     .with_validator("must be above 0", |value| value.as_i64().is_some_and(|cents| cents > 0))
///     .with_default(100);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputField {
    /// Name of the field: letters, digits and `_`.
    pub name: String,
    /// Type of the value.
    pub kind: FieldKind,
    /// Description of the field, for the model and for the person who is asked.
    pub description: String,
    /// True if the agent cannot work without a value for this field.
    pub required: bool,
    /// The value if the call has none.
    pub default: Option<Json>,
    /// A check of the value beyond its type.
    pub validator: Option<Validator>,
}

/// Type of a field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// A text that is not empty.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A boolean: yes or no.
    Boolean,
    /// One of these words.
    OneOf(Vec<String>),
}

/// A check of a value, which [`InputField::with_validator`] adds to a field.
#[derive(Clone)]
pub struct Validator {
    description: String,
    check: Arc<dyn Fn(&Json) -> bool + Send + Sync>,
}

impl InputField {
    /// Creates a required field: the agent cannot work without a value.
    pub fn required(name: impl Into<String>, kind: FieldKind, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, kind, description, required: true, default: None, validator: None }
    }

    /// Creates an optional field.
    pub fn optional(name: impl Into<String>, kind: FieldKind, description: impl Into<String>) -> Self {
        Self { required: false, ..Self::required(name, kind, description) }
    }

    /// Sets a default value, which makes the field optional.
    pub fn with_default(mut self, value: impl Into<Json>) -> Self {
        (self.default, self.required) = (Some(value.into()), false);
        self
    }

    /// Adds a check of the value. The model and people see only `description`: the requirement in a few
    /// words, for instance `must contain @`.
    pub fn with_validator(
        mut self,
        description: impl Into<String>,
        check: impl Fn(&Json) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.validator = Some(Validator { description: description.into(), check: Arc::new(check) });
        self
    }

    /// Checks the type of a value, and then applies the field's validator.
    ///
    /// # Errors
    /// The value has the wrong type, or the validator refuses it. The text is one line.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let fits = match &self.kind {
            FieldKind::Text => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            FieldKind::Integer => value.is_i64() || value.is_u64(),
            FieldKind::Number => value.is_number(),
            FieldKind::Boolean => value.is_boolean(),
            FieldKind::OneOf(words) => words.iter().any(|word| value == word),
        };
        if !fits {
            return Err(format!("`{}` must be {}, and {value} is not", self.name, self.kind));
        }
        match &self.validator {
            Some(validator) if !(validator.check)(value) => {
                Err(format!("`{}` cannot be {value}: {}", self.name, validator.description))
            }
            _ => Ok(()),
        }
    }

    /// Reads a person's text as a value of this field.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check).
    pub fn read(&self, text: &str) -> Result<Json, String> {
        let text = text.trim();
        let plain = || Json::from(text);
        let value = match &self.kind {
            FieldKind::Text => plain(),
            FieldKind::Integer => text.parse::<i64>().map_or_else(|_| plain(), Json::from),
            FieldKind::Number => text.parse::<f64>().map_or_else(|_| plain(), Json::from),
            FieldKind::Boolean => match text.to_lowercase().as_str() {
                "yes" | "y" | "true" => json!(true),
                "no" | "n" | "false" => json!(false),
                _ => plain(),
            },
            FieldKind::OneOf(words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                word.map_or_else(plain, |word| json!(word))
            }
        };
        self.check(&value).map(|()| value)
    }

    /// Returns the JSON Schema of the field for the model. No field is required by the schema, so that a
    /// model can leave out a value that it does not know.
    fn schema(&self) -> Json {
        let mut description = self.description.clone();
        if let Some(validator) = &self.validator {
            description.push_str(&format!(" ({})", validator.description));
        }
        if self.required {
            description.push_str(" Required. Leave it out if nobody said it: the person is asked.");
        }
        let mut schema = match &self.kind {
            FieldKind::Text => json!({ "type": "string" }),
            FieldKind::Integer => json!({ "type": "integer" }),
            FieldKind::Number => json!({ "type": "number" }),
            FieldKind::Boolean => json!({ "type": "boolean" }),
            FieldKind::OneOf(words) => json!({ "type": "string", "enum": words }),
        };
        schema["description"] = json!(description);
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        schema
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a text"),
            Self::Integer => f.write_str("a whole number"),
            Self::Number => f.write_str("a number"),
            Self::Boolean => f.write_str("yes or no"),
            Self::OneOf(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Validator").field(&self.description).finish()
    }
}

/// Name of the parameter for the part of the instruction that fits no field.
pub(crate) const INSTRUCTION: &str = "task_instruction";

/// Returns the JSON Schema of all fields, as the parameters of a tool.
pub(crate) fn parameters(fields: &[InputField]) -> Json {
    let mut properties: Map<_, _> = fields.iter().map(|field| (field.name.clone(), field.schema())).collect();
    let instruction = "What else the agent should know, in plain words; what fits no other parameter. \
                       Example: \"Keep the tone friendly, and mention that we met in Lisbon.\"";
    properties.insert(INSTRUCTION.to_owned(), json!({ "type": "string", "description": instruction }));
    json!({ "type": "object", "properties": properties })
}

/// Returns a hash of the fields: their names, types, defaults, required flags and descriptions of checks.
pub(crate) fn version(fields: &[InputField]) -> String {
    let rules = fields.iter().map(|field| {
        let rule = field.validator.as_ref().map(|validator| &validator.description);
        json!([field.name, field.kind.to_string(), field.required, field.default, rule])
    });
    format!("{:016x}", ContentHash::of(&rules.collect::<Vec<_>>()))
}

/// The values of an agent's fields, as far as a call has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filled {
    /// Valid values, defaults included.
    pub(crate) values: Map<String, Json>,
    /// Names of the required fields without a value.
    pub(crate) missing: Vec<String>,
    /// Problems with invalid values.
    pub(crate) problems: Vec<String>,
}

/// Collects the valid values, the problems and the missing fields.
pub(crate) fn fill(fields: &[InputField], given: &Map<String, Json>) -> Filled {
    let mut filled = Filled::default();
    for field in fields {
        match given.get(&field.name).filter(|value| !value.is_null()) {
            Some(value) => match field.check(value) {
                Ok(()) => drop(filled.values.insert(field.name.clone(), value.clone())),
                Err(problem) => filled.problems.push(problem),
            },
            None => match &field.default {
                Some(default) => drop(filled.values.insert(field.name.clone(), default.clone())),
                None if field.required => filled.missing.push(field.name.clone()),
                None => {}
            },
        }
    }
    filled
}
