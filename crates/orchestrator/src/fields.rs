//! The fields of an agent: what it needs to know before it can work, how a model is told of them, and what is made of what
//! was given.

use std::{fmt, sync::Arc};

use archon_types::{ContentHash, Json};
use serde_json::{Map, json};

/// One thing that an agent needs to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InputField {
    /// Letters, digits and `_`.
    pub name: String,
    /// What it holds.
    pub kind: FieldKind,
    /// For the model, and for the person who is asked.
    pub description: String,
    /// Whether the agent cannot work without it.
    pub required: bool,
    /// What it is if nobody says.
    pub default: Option<Json>,
    /// What a value has to be, beyond its kind.
    pub validator: Option<Validator>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text that is not empty.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// One of these words.
    OneOf(Vec<String>),
}

/// What a value has to be.
#[derive(Clone)]
pub struct Validator {
    description: String,
    check: Arc<dyn Fn(&Json) -> bool + Send + Sync>,
}

impl InputField {
    /// A field without which the agent cannot work.
    pub fn required(name: impl Into<String>, kind: FieldKind, description: impl Into<String>) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, kind, description, required: true, default: None, validator: None }
    }

    /// A field that may be left out.
    pub fn optional(name: impl Into<String>, kind: FieldKind, description: impl Into<String>) -> Self {
        Self { required: false, ..Self::required(name, kind, description) }
    }

    /// The same field with a value for when nobody says one; it may be left out then.
    pub fn with_default(mut self, value: impl Into<Json>) -> Self {
        (self.default, self.required) = (Some(value.into()), false);
        self
    }

    /// The same field whose values have to pass `check`; `description` says in a few words what that means, for
    /// instance `must contain @`, and is all that the model and people know of it.
    pub fn with_validator(
        mut self,
        description: impl Into<String>,
        check: impl Fn(&Json) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.validator = Some(Validator { description: description.into(), check: Arc::new(check) });
        self
    }

    /// The value, if it can be this field's.
    ///
    /// # Errors
    /// What is wrong with it, in a line.
    pub fn check(&self, value: &Json) -> Result<(), String> {
        let fits = match &self.kind {
            FieldKind::Text => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            FieldKind::Integer => value.is_i64() || value.is_u64(),
            FieldKind::Number => value.is_number(),
            FieldKind::Boolean => value.is_boolean(),
            FieldKind::OneOf(words) => {
                value.as_str().is_some_and(|text| words.iter().any(|word| word == text))
            }
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

    /// What a person wrote, as a value of this field.
    ///
    /// # Errors
    /// As [`check`](Self::check).
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

    /// The field as the model is told of it: a schema of its values. Whoever does not know a required value is to
    /// leave it out, so the schema itself asks for none.
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

/// The parameter for what fits no field.
pub(crate) const INSTRUCTION: &str = "task_instruction";

/// All fields as the parameters of a tool.
pub(crate) fn parameters(fields: &[InputField]) -> Json {
    let mut properties = Map::new();
    for field in fields {
        properties.insert(field.name.clone(), field.schema());
    }
    let instruction = "What else the agent should know, in plain words; what fits no other parameter. \
                       Example: \"Keep the tone friendly, and mention that we met in Lisbon.\"";
    properties.insert(INSTRUCTION.to_owned(), json!({ "type": "string", "description": instruction }));
    json!({ "type": "object", "properties": properties })
}

/// Names the fields: another set, another kind, another rule has another name.
pub(crate) fn version(fields: &[InputField]) -> String {
    let rules = fields.iter().map(|field| {
        let rule = field.validator.as_ref().map(|validator| &validator.description);
        json!([field.name, field.kind.to_string(), field.required, field.default, rule])
    });
    format!("{:016x}", ContentHash::of(&rules.collect::<Vec<_>>()))
}

/// What of an agent's fields is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filled {
    /// Values that fit, defaults included.
    pub(crate) values: Map<String, Json>,
    /// Required fields without one.
    pub(crate) missing: Vec<String>,
    /// What is wrong with values that do not fit.
    pub(crate) problems: Vec<String>,
}

/// Takes what fits, and says what does not and what is missing.
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
