//! Lets the model give up tool results: each result is marked with the id of its call, so that the model
//! can name it, and a note replaces a result that is given up. The log keeps the original result.

use archon_types::{
    CLEANUP_TOOL, CleanedUp, Content, Message, SeenResult, TokenCounter, ToolCallId, ViewPart, WindowItem,
};

use super::entries::{changed, rewritten};

/// Returns the tool result with a mark at its start (the id of its call) and, if the model may not need the
/// result, a hint at its end. `None` if the message is no result, or a result that the model cannot remove.
pub(crate) fn marked(message: &Message, counter: &dyn TokenCounter) -> Option<Message> {
    let Message::ToolResult(result) = message else { return None };
    if result.tool_name == CLEANUP_TOOL {
        return None;
    }
    let mut result = result.clone();
    let hint = hint(&message.text(), &result.tool_call_id, counter);
    let mark = format!("{MARK}{}]\n", result.tool_call_id);
    match result.content.first_mut() {
        Some(Content::Text { text }) => text.insert_str(0, &mark),
        _ => result.content.insert(0, Content::text(mark)),
    }
    if let Some(hint) = hint {
        match result.content.last_mut() {
            Some(Content::Text { text }) => text.push_str(&hint),
            _ => result.content.push(Content::text(hint)),
        }
    }
    Some(Message::ToolResult(result))
}

/// Returns the text of a result without the additions of [`marked`].
pub(crate) fn unmarked(text: &str) -> &str {
    let Some((_, rest)) = text.strip_prefix(MARK).and_then(|rest| rest.split_once("]\n")) else {
        return text;
    };
    rest.rfind(HINT).map_or(rest, |at| &rest[..at])
}

/// Returns true if two results have the same content, apart from their marks.
pub(crate) fn is_same(one: &Message, other: &Message) -> bool {
    let rest = |message: &Message| -> Vec<Content> {
        message.content().iter().filter(|block| block.as_text().is_none()).cloned().collect()
    };
    unmarked(&one.text()) == unmarked(&other.text()) && rest(one) == rest(other)
}

/// Returns the tool results among the messages that the model sees, without the pinned ones, which the model cannot
/// give up.
pub(crate) fn tool_results(items: &[WindowItem], counter: &dyn TokenCounter) -> Vec<SeenResult> {
    let tokens = |item: &WindowItem| match item.tokens {
        // Items have no token count in a window without a limit.
        0 => counter.count_message(&item.message),
        tokens => tokens,
    };
    let may_go = items.iter().filter(|item| !item.pinned);
    may_go.filter_map(|item| SeenResult::of(&item.message, tokens(item))).collect()
}

/// Replaces a result that the model gave up by a note. If several results have the same id, replaces the
/// newest of those without a note. Returns false if there is no such result.
pub(crate) fn give_up(items: &mut [WindowItem], result: &CleanedUp, counter: &dyn TokenCounter) -> bool {
    let is_it = |item: &&mut WindowItem| {
        let seen = SeenResult::of(&item.message, 0).filter(|_| !item.pinned);
        seen.is_some_and(|r| r.call == result.tool_call_id && !r.is_cleaned_up)
    };
    let Some(item) = items.iter_mut().rev().find(is_it) else { return false };
    let part = ViewPart::Rewrite { at: item.part.range().start, text: result.note() };
    *item = changed(&part, rewritten(&item.message, &result.note()), counter);
    true
}

/// Returns true if the model gave up this result.
pub(crate) fn is_cleaned_up(message: &Message) -> bool {
    SeenResult::of(message, 0).is_some_and(|result| result.is_cleaned_up)
}

/// Returns the hint for the end of a result that the model may not need; `None` if the result needs no hint.
fn hint(text: &str, call: &ToolCallId, counter: &dyn TokenCounter) -> Option<String> {
    let reason = if UNHELPFUL.iter().any(|sign| text.contains(sign)) {
        "no results"
    } else if counter.count(text) > LONG {
        "not relevant to task"
    } else {
        return None;
    };
    Some(format!(
        "{HINT}{CLEANUP_TOOL}(tool_call_ids=[\"{call}\"], summary=\"Brief 1-2 sentence description\", \
         reason=\"{reason}\")"
    ))
}

/// The start of the mark; the id of the call follows.
const MARK: &str = "[tool_call_id: ";
/// The start of the hint.
const HINT: &str = "\n\nIf this result isn't helpful, free context space with:\n";
/// Texts in results that found nothing.
const UNHELPFUL: [&str; 7] = [
    "No matches found",
    "No files found",
    "No items found",
    "Found 0 ",
    "not found",
    "does not exist",
    "No such file",
];
/// Number of tokens above which a result gets the hint.
const LONG: u64 = 500;

#[cfg(test)]
mod tests {
    use archon_types::{Timestamp, TokenEstimate, ToolCall, ToolResult};
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn enters(text: &str) -> String {
        let call = ToolCall::new("c1", "search", json!({}));
        let message = Message::tool_result(&call, &ToolResult::success(text), Timestamp::default());
        let entered = marked(&message, &TokenEstimate).unwrap().text();
        assert_eq!(unmarked(&entered), text);
        entered
    }

    // spec: TE-50, TE-51
    #[test]
    fn tool_result_has_its_call_id_and_a_cleanup_hint_if_it_is_useless() {
        let check = |text: &str, expected: Expect| expected.assert_eq(&enters(text));
        check(
            "three lines",
            expect![[r#"
            [tool_call_id: c1]
            three lines"#]],
        );
        check(
            "No matches found.",
            expect![[r#"
            [tool_call_id: c1]
            No matches found.

            If this result isn't helpful, free context space with:
            cleanup_tool_call(tool_call_ids=["c1"], summary="Brief 1-2 sentence description", reason="no results")"#]],
        );
        for sign in UNHELPFUL {
            assert!(enters(&format!("Well: {sign}x")).ends_with(r#"reason="no results")"#), "{sign}");
        }
        let long =
            |tokens: usize| enters(&"x".repeat((tokens as f64 * TokenEstimate::CHARS_PER_TOKEN) as usize));
        assert!(!long(499).contains(HINT));
        assert!(long(505).ends_with(r#"reason="not relevant to task")"#));
    }

    #[test]
    fn marked_image_result_has_its_own_id_line_and_other_messages_none() {
        let call = ToolCall::new("c1", "look", json!({}));
        let mut result = ToolResult::success("");
        result.content = vec![Content::Image { data: "AA==".into(), mime_type: "image/png".into() }];
        let message =
            marked(&Message::tool_result(&call, &result, Timestamp::default()), &TokenEstimate).unwrap();
        assert_eq!(message.content()[0].as_text(), Some("[tool_call_id: c1]\n"));
        assert_eq!(message.content().len(), 2);
        assert_eq!(marked(&Message::user("[x", Timestamp::default()), &TokenEstimate), None);
        let own = ToolCall::new("c2", CLEANUP_TOOL, json!({}));
        let message = Message::tool_result(&own, &ToolResult::success("not found"), Timestamp::default());
        assert_eq!(marked(&message, &TokenEstimate), None);
    }
}
