//! The media of messages, as protocols send them.

use std::borrow::Cow;

use archon_types::Content;

/// Returns the blocks with a text about each medium instead of the medium.
pub(crate) fn as_notes(content: &[Content]) -> Cow<'_, [Content]> {
    if !content.iter().any(|block| matches!(block, Content::Media(_))) {
        return Cow::Borrowed(content);
    }
    let note = |block: &Content| match block {
        Content::Media(_) => {
            let note = block.as_media().map(|media| media.note("cannot be shown here"));
            Content::text(note.unwrap_or_default())
        }
        other => other.clone(),
    };
    content.iter().map(note).collect()
}
