//! The OpenAPI document of the routes. The document is written by hand; a test compares it with the table of
//! routes.

/// The OpenAPI 3.1 document of [`ROUTES`](crate::ROUTES), as JSON.
pub const OPENAPI: &str = include_str!("../openapi.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use archon_types::Json;

    use super::*;
    use crate::route::{Needs, ROUTES};

    fn document() -> Json {
        serde_json::from_str(OPENAPI).unwrap()
    }

    /// Returns the method, the path and the operation of each operation.
    fn operations(document: &Json) -> Vec<(String, String, &Json)> {
        let mut found = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                found.push((method.to_uppercase(), path.clone(), operation));
            }
        }
        found
    }

    // spec: EX-09
    #[test]
    fn openapi_has_exactly_the_routes_each_with_its_right() {
        let document = document();
        let right = |needs| match needs {
            Needs::Nothing => "none",
            Needs::Token => "token",
            Needs::Bearer => "bearer",
            Needs::Right(right) => right.as_str(),
        };
        let expected: BTreeSet<_> = ROUTES
            .iter()
            .map(|route| (route.method.to_string(), route.path.to_owned(), right(route.needs).to_owned()))
            .collect();
        let found: BTreeSet<_> = operations(&document)
            .into_iter()
            .map(|(method, path, operation)| {
                (method, path, operation["x-archon-right"].as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn openapi_operations_have_their_parameters_an_id_and_a_problem() {
        let document = document();
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations(&document) {
            let in_path: BTreeSet<&str> =
                path.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let parameters: Vec<Json> =
                parameters.iter().map(|one| resolved(&document, one).clone()).collect();
            let declared: BTreeSet<&str> = parameters
                .iter()
                .filter(|one| one["in"] == "path" && one["required"] == true)
                .filter_map(|one| one["name"].as_str())
                .collect();
            assert_eq!(declared, in_path, "{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
            assert_eq!(operation["responses"]["default"]["$ref"], "#/components/responses/Problem");
        }
    }

    #[test]
    fn openapi_references_lead_to_something() {
        let document = document();
        let mut open = vec![&document];
        let mut count = 0;
        while let Some(value) = open.pop() {
            if value.get("$ref").is_some() {
                resolved(&document, value);
                count += 1;
            }
            match value {
                Json::Object(fields) => open.extend(fields.values()),
                Json::Array(items) => open.extend(items),
                _ => {}
            }
        }
        assert!(count > 20, "{count} references");
    }

    /// Returns what a reference leads to, or the value itself.
    fn resolved<'a>(document: &'a Json, value: &'a Json) -> &'a Json {
        let Some(path) = value["$ref"].as_str() else { return value };
        let found = document.pointer(path.strip_prefix('#').unwrap());
        found.unwrap_or_else(|| panic!("{value} leads nowhere"))
    }
}
