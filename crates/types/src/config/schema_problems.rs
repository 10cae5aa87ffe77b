//! Checks an answer against the JSON schema of a structured output.

use crate::{Json, models::ResponseFormat, values::shorten};

use super::structured_output::SchemaProblem;

impl ResponseFormat {
    /// Checks an answer against the schema. Returns the first problems, at most 10; empty if the answer is
    /// valid. Without the feature `structured-output` no answer is valid.
    pub fn problems(&self, answer: &str) -> Vec<SchemaProblem> {
        problems(self, answer)
    }

    /// Returns the reason why the schema cannot be used: it has an error, or this build lacks the feature
    /// `structured-output`. `None` if the schema can be used.
    pub fn schema_problem(&self) -> Option<String> {
        schema::schema_problems(&self.schema, &Json::Null).err()
    }
}

/// Returns the first problems of an answer.
fn problems(form: &ResponseFormat, answer: &str) -> Vec<SchemaProblem> {
    let value: Json = match serde_json::from_str(answer) {
        Ok(value) => value,
        Err(_) if answer.trim().is_empty() => return whole("it is empty"),
        Err(error) => return whole(&format!("it is not JSON: {error}")),
    };
    schema::schema_problems(&form.schema, &value).unwrap_or_else(|problem| {
        whole(&format!("the value cannot be checked against its schema: {problem}"))
    })
}

#[cfg(feature = "structured-output")]
mod schema {
    use super::{MOST, clip};
    use crate::{Json, config::SchemaProblem};

    /// Returns the first problems of a value, or the error in the schema.
    pub(super) fn schema_problems(schema: &Json, value: &Json) -> Result<Vec<SchemaProblem>, String> {
        let options = jsonschema::options().should_validate_formats(false);
        let validator = options.build(schema).map_err(|e| clip(&e.to_string()))?;
        let problem = |error: jsonschema::ValidationError<'_>| {
            SchemaProblem::new(error.instance_path().to_string(), clip(&error.to_string()))
        };
        // Sorted, because the order of a schema's keywords depends on how the program was built.
        let mut problems: Vec<_> = validator.iter_errors(value).take(MOST * 10).map(problem).collect();
        problems.sort_by(|a, b| (&a.path, &a.problem).cmp(&(&b.path, &b.problem)));
        problems.truncate(MOST);
        Ok(problems)
    }
}

#[cfg(not(feature = "structured-output"))]
mod schema {
    use crate::{Json, config::SchemaProblem};

    /// Returns an error, because this build has no schema validation.
    pub(super) fn schema_problems(_: &Json, _: &Json) -> Result<Vec<SchemaProblem>, String> {
        Err("this build cannot validate JSON schemas: turn on the feature `structured-output` of archon-agents-types"
            .to_owned())
    }
}

fn whole(problem: &str) -> Vec<SchemaProblem> {
    vec![SchemaProblem::new("", clip(problem))]
}

fn clip(text: &str) -> String {
    shorten(text, LONGEST, "…")
}

/// The maximum number of problems that are reported.
#[cfg(feature = "structured-output")]
const MOST: usize = 10;

/// The maximum number of characters of a problem.
const LONGEST: usize = 300;

#[cfg(all(test, feature = "structured-output"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn misfits_name_the_path_and_the_problem() {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
            "required": ["city"]
        });
        let form = ResponseFormat { name: "trip".into(), schema };
        let said = |answer: &str| problems(&form, answer).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(said(r#"{"city": "Paris", "days": [1]}"#), [""; 0]);
        assert_eq!(
            said(r#"{"days": [1, "two"]}"#),
            [r#""city" is a required property"#, r#"at /days/1: "two" is not of type "integer""#]
        );
        assert_eq!(said(""), ["it is empty"]);
        assert!(said("Paris")[0].starts_with("it is not JSON: "));
        let long = json!({"city": vec!["x"; 999]}).to_string();
        assert!(said(&long)[0].chars().count() < 350);
        let many = json!({"city": "x", "days": vec!["x"; 999]}).to_string();
        assert_eq!(said(&many).len(), MOST);
        assert_eq!(form.schema_problem(), None);
        let odd = ResponseFormat { name: "odd".into(), schema: json!({"type": "thing"}) };
        assert!(odd.schema_problem().is_some());
    }
}
