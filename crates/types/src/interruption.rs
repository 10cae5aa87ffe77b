//! What a conversation says where a person stopped the agent, so that the model knows when it goes on.

use serde::{Deserialize, Serialize};

use crate::Message;

/// How a run was stopped. The run that goes on from there finds [`marker`](Self::marker) as a message of
/// the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Interruption {
    /// While the model was asked, or was to be asked again.
    Request,
    /// While tools ran, or right after.
    ToolUse,
    /// After a call of the turn was not permitted.
    PermissionDenial,
    /// Before the model was asked at all.
    Cancelled,
}

impl Interruption {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Request, Self::ToolUse, Self::PermissionDenial, Self::Cancelled];

    /// The text that stands in the conversation.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Request => "[Request interrupted by user]",
            Self::ToolUse => "[Request interrupted by user for tool use]",
            Self::PermissionDenial => "[Request interrupted by user due to permission denial]",
            Self::Cancelled => "[Request cancelled by user]",
        }
    }

    /// Whether a message is a marker: one of the person's, with the exact text and nothing else. Text that
    /// only contains a marker, or that a model or a tool wrote, is none.
    pub fn of(message: &Message) -> Option<Self> {
        let Message::User(user) = message else { return None };
        let [block] = &user.content[..] else { return None };
        Self::ALL.into_iter().find(|one| block.as_text() == Some(one.marker()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssistantMessage, Content, Timestamp};

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
