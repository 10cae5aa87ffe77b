//! The agent with a scripted model: no network, no key.

use std::sync::Arc;

use archon::{
    Archon,
    providers::{ScriptedProvider, Step},
};
use serde_json::json;

use super::equip;

#[tokio::test]
async fn template_agent_answers_with_the_tools_count() {
    let model = ScriptedProvider::new([
        Step::call("call_1", "count_words", json!({"text": "to be or not to be"})),
        // The last message is the tool's result.
        Step::reply(|request| {
            let counted = request.messages.last().map(|message| message.text()).unwrap_or_default();
            Step::text(format!("It has {counted} words."))
        }),
    ]);
    let agent = equip(Archon::builder().provider(Arc::new(model), "scripted")).build().unwrap();
    let reply = agent.run("How many words has: to be or not to be").await.unwrap();
    assert_eq!(reply.into_text().unwrap(), "It has 6 words.");
}
