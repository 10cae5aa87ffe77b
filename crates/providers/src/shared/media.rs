//! Decides in which form a block of media is sent: as an image, as a PDF, or as a note in its place.

use archon_types::{Content, Media, MediaKind, Reads};

/// The beginning of the text before the media of a tool's result, in a protocol whose results have only text. The
/// media then stand after all results, in a message of the user.
pub(crate) const RESULT_MEDIA: &str = "[From a result of the tool ";

/// The types of images that most services accept.
pub(crate) const COMMON_IMAGES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The media type of a PDF file.
pub(crate) const PDF: &str = "application/pdf";

/// The form in which a block of media is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// An image of an accepted type, with its data in base64.
    Image { mime_type: &'a str, data: &'a str },
    /// A PDF file, with its name and its data in base64.
    Pdf { name: Option<&'a str>, data: &'a str },
    /// The note that replaces media that the service or the model cannot read.
    Note(String),
}

/// The media that a message can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Takes {
    /// The media types of images.
    pub(crate) images: &'static [&'static str],
    /// True if PDF files are accepted.
    pub(crate) pdfs: bool,
}

impl Takes {
    /// No media at all.
    pub(crate) const NONE: Self = Self { images: &[], pdfs: false };

    /// Returns the media that a model with these abilities reads too.
    pub(crate) fn read_by(self, reads: Reads) -> Self {
        Self {
            images: if reads.may_have(MediaKind::Image) { self.images } else { &[] },
            pdfs: self.pdfs && reads.may_have(MediaKind::Pdf),
        }
    }

    /// Returns the form of a block; `None` for a block that is not media.
    pub(crate) fn shown<'a>(&self, block: &'a Content) -> Option<Shown<'a>> {
        let media = block.as_media()?;
        let mime_type = if media.mime_type == "image/jpg" { "image/jpeg" } else { media.mime_type };
        let is_image = self.images.contains(&mime_type);
        Some(match media.base64 {
            Some(data) if is_image => Shown::Image { mime_type, data },
            Some(data) if self.pdfs && mime_type == PDF => {
                Shown::Pdf { name: media.media.and_then(Media::name), data }
            }
            _ => Shown::Note(media.note("cannot be shown here")),
        })
    }

    /// Returns true if the block is sent as an image or a PDF.
    pub(crate) fn sends(&self, block: &Content) -> bool {
        self.shown(block).is_some_and(|shown| !matches!(shown, Shown::Note(_)))
    }
}

/// Returns the texts of a tool's result, with a note for each block of media that is not sent.
pub(crate) fn text_and_notes(content: &[Content], takes: &Takes) -> String {
    let text = |block: &Content| match (block, takes.shown(block)) {
        (Content::Text { text }, _) => Some(text.clone()),
        (_, Some(Shown::Note(note))) => Some(note),
        _ => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// Returns the text before the media of a result of this tool.
pub(crate) fn result_media(tool: &str) -> String {
    format!("{RESULT_MEDIA}{tool}; no person wrote it]")
}

/// Returns the data URL of media.
pub(crate) fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}
