//! A message to the agent.

use archon_types::{AgentMessage, Content, Interruption, Message, Speaker};

use crate::{
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// A message to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageCell {
    /// The text, without what was recalled from memory.
    pub text: String,
    /// The number of images.
    pub images: usize,
    /// True if a person wrote the message.
    pub is_person: bool,
}

impl MessageCell {
    /// Returns the cell of a message; `None` for data of an application, and for the note about an interruption.
    pub(crate) fn of(message: &AgentMessage) -> Option<Self> {
        let llm = message.as_llm()?;
        if Interruption::of(llm).is_some() || !matches!(llm, Message::User(_)) {
            return None;
        }
        let content = llm.own_content();
        let images = content.iter().filter(|block| matches!(block, Content::Image { .. })).count();
        let is_person = message.speaker().is_none_or(|speaker| speaker == Speaker::Person);
        Some(Self { text: Content::join_text(content).into_owned(), images, is_person })
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let look = if self.is_person { Look::Person } else { Look::Dim };
        let style = page.theme.style(look);
        let mut rows = wrap::rows(self.text.trim_end(), style, page.narrowed(2).width);
        if self.images > 0 {
            let s = if self.images == 1 { "" } else { "s" };
            rows.push(Row::of(format!("[{} image{s}]", self.images), Look::Dim, page));
        }
        let sign = |first| if first { SIGN } else { "  " };
        rows.into_iter().enumerate().map(|(number, row)| row.after(sign(number == 0), style)).collect()
    }
}

/// Two columns, as the spaces before the other rows.
const SIGN: &str = "› ";
