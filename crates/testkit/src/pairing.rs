//! The check that every chat-completions request pairs tool calls and results one to one.

use archon_types::Json;

/// Returns the faults in the pairing of tool calls and results of a chat-completions body: each call must
/// have one result, right after the message that holds it, and there must be no other results.
pub fn pairing_faults(body: &Json) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let Some(messages) = body["messages"].as_array() else {
        return vec!["the body has no messages".to_owned()];
    };
    for (place, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|open| open == id) {
                Some(found) => drop(open.remove(found)),
                None => faults.push(format!("message {place} answers {id:?}, which is not an open call")),
            }
            continue;
        }
        faults.extend(open.drain(..).map(|id| format!("call {id:?} has no result before message {place}")));
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned()));
    }
    faults.extend(open.into_iter().map(|id| format!("call {id:?} has no result")));
    faults
}

/// Panics with a list of all faults if the body does not pair tool calls and results one to one.
#[track_caller]
pub fn assert_paired(body: &Json) {
    let faults = pairing_faults(body);
    assert!(faults.is_empty(), "{}\nin {body:#}", faults.join("\n"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_are_found() {
        let user = json!({"role": "user", "content": "hi"});
        let calls = |ids: &[&str]| {
            let calls: Vec<Json> = ids.iter().map(|id| json!({"id": id})).collect();
            json!({"role": "assistant", "tool_calls": calls})
        };
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id});
        let cases = [
            (vec![user.clone()], 0),
            (vec![user.clone(), calls(&["a", "b"]), result("b"), result("a"), user.clone()], 0),
            (vec![calls(&["a"]), result("a"), calls(&["a"]), result("a")], 0),
            (vec![calls(&["a"]), user.clone()], 1),
            (vec![calls(&["a"])], 1),
            (vec![calls(&["a"]), result("a"), result("a")], 1),
            (vec![calls(&["a"]), result("x")], 2),
            (vec![result("a")], 1),
        ];
        for (messages, faults) in cases {
            let body = json!({ "messages": messages });
            assert_eq!(pairing_faults(&body).len(), faults, "{body}");
        }
        assert_eq!(pairing_faults(&json!({})).len(), 1);
    }
}
