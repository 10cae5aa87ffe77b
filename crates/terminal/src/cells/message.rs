//! A message to the agent.

use archon_types::{AgentMessage, Content, Interruption, Message, Speaker};

use crate::{
    attached::AttachedFile,
    row::Row,
    theme::{Look, Page},
    wrap,
};

/// A message to the agent, with the names of the files that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageCell {
    /// The text, without recalled memories and without the attached files.
    pub text: String,
    /// The paths of the text files that the message carries, and the names of its images and PDF files.
    pub files: Vec<String>,
    /// The number of images that have no name, so that `files` does not list them.
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
        let is_person = message.speaker().is_none_or(|speaker| speaker == Speaker::Person);
        let (text, files) = AttachedFile::split(content);
        let mut files: Vec<String> = files.into_iter().map(|file| file.path.to_owned()).collect();
        let media: Vec<_> = content.iter().filter_map(Content::as_media).collect();
        files.extend(media.iter().filter_map(|media| media.name().map(str::to_owned)));
        let images = media.iter().filter(|media| media.name().is_none()).count();
        Some(Self { text, files, images, is_person })
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        let look = if self.is_person { Look::Person } else { Look::Dim };
        let style = page.theme.style(look);
        let mut rows = wrap::rows(self.text.trim_end(), style, page.narrowed(2).width);
        rows.extend(self.files.iter().map(|path| Row::of(format!("[file {path}]"), Look::Dim, page)));
        if self.images > 0 {
            let s = if self.images == 1 { "" } else { "s" };
            rows.push(Row::of(format!("[{} image{s}]", self.images), Look::Dim, page));
        }
        let sign = |first| if first { SIGN } else { "  " };
        let rows = rows.into_iter().enumerate();
        rows.map(|(number, row)| row.after(sign(number == 0), style).cut(page.width)).collect()
    }
}

/// The sign before the first row; as wide as the two spaces before the other rows.
const SIGN: &str = "› ";
