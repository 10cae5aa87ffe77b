//! Markers in a conversation at the points where the user stopped a run. The model reads the markers later.

use serde::{Deserialize, Serialize};

use super::message::Message;

/// The point at which the user stopped a run. A run that continues the conversation gets
/// [`marker`](Self::marker) as a user message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interruption {
    /// The user stopped the run during a model call, or before the next one.
    Request,
    /// The user stopped the run during tool calls, or directly after them.
    ToolUse,
    /// The user stopped the run after a call of the turn was not permitted.
    PermissionDenial,
    /// The user stopped the run before the first model call.
    Cancelled,
}

impl Interruption {
    /// All interruptions.
    pub const ALL: [Self; 4] = [Self::Request, Self::ToolUse, Self::PermissionDenial, Self::Cancelled];

    /// Returns the text of the marker, which the model reads.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Request => "[Request interrupted by user]",
            Self::ToolUse => "[Request interrupted by user for tool use]",
            Self::PermissionDenial => "[Request interrupted by user due to permission denial]",
            Self::Cancelled => "[Request cancelled by user]",
        }
    }

    /// Returns the interruption that a message marks. A marker is a user message with exactly the text of
    /// [`marker`](Self::marker); returns `None` for a user message with more text, and for messages of models
    /// and tools.
    pub fn of(message: &Message) -> Option<Self> {
        let Message::User(user) = message else { return None };
        let [block] = &user.content[..] else { return None };
        Self::ALL.into_iter().find(|one| block.as_text() == Some(one.marker()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        messages::{AssistantMessage, Content},
        values::Timestamp,
    };

    // spec: CL-08
    #[test]
    fn markers_are_compared_exactly() {
        let user = |text: &str| Message::user(text, Timestamp::default());
        for one in Interruption::ALL {
            assert_eq!(Interruption::of(&user(one.marker())), Some(one));
            for other in
                [format!(" {}", one.marker()), format!("{}.", one.marker()), one.marker().to_lowercase()]
            {
                assert_eq!(Interruption::of(&user(&other)), None, "{other}");
            }
            let content = vec![Content::text(one.marker())];
            let model = Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
            assert_eq!(Interruption::of(&model), None);
        }
    }
}
