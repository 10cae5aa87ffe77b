//! The JSON Schema of the event stream, against what is really written.

use std::collections::BTreeSet;

use archon_types::{Json, event_log_schema};
use expect_test::expect;
use serde_json::json;

use crate::samples::events;

fn valid(line: &Json) -> bool {
    jsonschema::validator_for(&event_log_schema()).unwrap().is_valid(line)
}

fn lines() -> Vec<Json> {
    events().iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

#[test]
fn the_schema_is_versioned_and_a_schema() {
    let schema = event_log_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$id"], "archon:events:v2");
    assert!(jsonschema::meta::is_valid(&schema));
}

#[test]
fn everything_that_is_written_is_valid() {
    let validator = jsonschema::validator_for(&event_log_schema()).unwrap();
    for line in lines() {
        let problems: Vec<_> = validator.iter_errors(&line).map(|e| e.to_string()).collect();
        assert!(problems.is_empty(), "{line}: {problems:?}");
    }
}

/// The kinds of records (0, `type`) or deltas (1, `delta`) that the schema knows.
pub(crate) fn kinds(index: usize, tag: &str) -> BTreeSet<String> {
    let schema = event_log_schema();
    let side = match schema["anyOf"][index].get("$ref") {
        Some(reference) => &schema["$defs"][reference.as_str().unwrap().trim_start_matches("#/$defs/")],
        None => &schema["anyOf"][index],
    };
    let kinds = side["oneOf"].as_array().unwrap().iter();
    kinds.map(|kind| kind["properties"][tag]["const"].as_str().unwrap().to_owned()).collect()
}

// New kinds show up here first: each needs a sample, and a line in a golden log.
#[test]
fn every_kind_in_the_schema_has_a_sample() {
    for (index, tag) in [(0, "type"), (1, "delta")] {
        let sampled = lines().into_iter().filter_map(|line| line.get(tag)?.as_str().map(str::to_owned));
        assert_eq!(kinds(index, tag), sampled.collect());
    }
}

#[test]
fn page_of_events_has_a_valid_line_of_every_kind() {
    let validator = jsonschema::validator_for(&event_log_schema()).unwrap();
    let page = include_str!("../../../../docs/book/reference/events.md");
    let mut shown = [("type", BTreeSet::new()), ("delta", BTreeSet::new())];
    for text in page.lines().filter(|line| line.starts_with("{\"")) {
        let mut line: Json = serde_json::from_str(text).unwrap();
        // As a watcher gets it.
        line["run_id"] = json!("run_1");
        assert!(validator.is_valid(&line), "{text}");
        for (tag, kinds) in &mut shown {
            kinds.extend(line.get(*tag).and_then(Json::as_str).map(str::to_owned));
        }
    }
    for (index, (tag, shown)) in shown.into_iter().enumerate() {
        assert_eq!(kinds(index, tag), shown);
    }
}

#[test]
fn name_of_a_record_is_its_type_in_json() {
    for event in events() {
        if let archon_types::Event::Record { record, .. } = &event {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["type"], record.body.name());
        }
    }
}

#[test]
fn a_broken_line_is_not_valid() {
    let record =
        json!({"run_id": "run_1", "seq": 3, "at": 5, "type": "cancel_requested", "reason": "Ctrl-C"});
    let delta =
        json!({"run_id": "run_1", "command": 0, "attempt": 0, "offset": 0, "delta": "text", "text": "a"});
    assert!(valid(&record) && valid(&delta));
    for line in [&record, &delta] {
        for key in line.as_object().unwrap().keys() {
            let mut without = line.clone();
            without.as_object_mut().unwrap().remove(key);
            assert!(!valid(&without), "without {key}: {without}");
            let mut wrong = line.clone();
            wrong[key] = json!({"x": []});
            assert!(!valid(&wrong), "wrong {key}: {wrong}");
        }
    }
    for line in [json!({}), json!([]), json!("text"), Json::Null] {
        assert!(!valid(&line), "{line}");
    }
}

// Each of these breaks one place that sits under a flattened or untagged type.
#[test]
fn the_schema_sees_into_flattened_types() {
    let broken = [
        ("/message/role", json!("robot"), "message_added"),
        ("/message/content/0/type", json!("video"), "message_added"),
        ("/config/limits/max_turns", json!(-1), "run_started"),
        ("/status", json!("unheard of"), "run_finished"),
        ("/message/stop_reason", json!("unheard of"), "model_call_finished"),
        ("/limit", json!("unheard of"), "limit_reached"),
        ("/run", json!(7), "run_started"),
    ];
    for (place, value, kind) in broken {
        let mut line = lines().into_iter().find(|line| line["type"] == kind).unwrap();
        assert!(valid(&line));
        *line.pointer_mut(place).unwrap_or_else(|| panic!("{kind} has no {place}")) = value;
        assert!(!valid(&line), "{place} of {kind}");
    }
}

#[test]
fn schema_requires_seq_at_and_type_in_each_line() {
    let schema = event_log_schema();
    expect![[r#"["run_id","seq","at"]"#]].assert_eq(&schema["anyOf"][0]["required"].to_string());
}
