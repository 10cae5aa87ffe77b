//! Media: the pictures, PDF files and other data in messages that are not text.
//!
//! A log refers to the data by its hash, and a journal keeps the data apart from the log. A message in memory
//! has the data, so that it can be sent to a model.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{Deserialize, Serialize};

use crate::values::{is_hidden, one_line};

/// A picture, a PDF file or other data in a message, with its name and its hash.
///
/// The type follows from the data where [`sniff`] knows it, so that a service is never sent data under a wrong
/// type. Two media are equal if their hash, type and name are equal.
///
/// ```
/// use archon_types::{Content, Media, Message, Timestamp, UserMessage};
///
/// let pdf = Media::new(b"%PDF-1.7 ...", Some("report.pdf"))?;
/// assert_eq!(pdf.mime_type(), "application/pdf");
/// let mut question = UserMessage::new(vec![Content::text("Summarise it.")], Timestamp::default());
/// question.attach("report.pdf", pdf.into());
/// let question = Message::User(question);
/// # Ok::<(), archon_types::MediaError>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "MediaForm")]
pub struct Media {
    /// SHA-256 of the data, as 64 lower-case hexadecimal digits.
    sha256: String,
    /// The media type, for instance `application/pdf`.
    mime_type: String,
    /// The size of the data in bytes.
    bytes: u64,
    /// The name of the file, without a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The estimated number of pages of a PDF file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u32>,
    /// The data in base64. Absent in a log, which refers to the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Arc<str>>,
}

/// The kind of a file. It decides if a model can read the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaKind {
    /// A picture: any type `image/*`.
    Image,
    /// A PDF file.
    Pdf,
    /// Data that is sent to no model, such as sound. Tools can use it.
    Other,
}

impl MediaKind {
    /// Returns the kind of files with a media type such as `image/png`.
    pub fn of(mime_type: &str) -> Self {
        match mime_type {
            PDF => Self::Pdf,
            other if other.starts_with("image/") => Self::Image,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for MediaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Image => "images",
            Self::Pdf => "PDF files",
            Self::Other => "files of this type",
        })
    }
}

/// The reason why data cannot become a [`Media`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// There is no data.
    #[error("the file is empty")]
    Empty,
    /// The data is larger than [`Media::MAX_BYTES`].
    #[error("the file has {bytes} bytes, and at most {} are possible", Media::MAX_BYTES)]
    TooLarge {
        /// The size in bytes.
        bytes: u64,
    },
    /// The data is of none of the types that [`sniff`] knows.
    #[error("the file is neither PNG, JPEG, GIF or WebP nor PDF")]
    UnknownType,
    /// The data is not base64 with padding.
    #[error("the data of the file is not base64 with padding")]
    NotBase64,
    /// There is no data, and the hash or the size of the data is missing or malformed.
    #[error("the file has no data: give `data`, or `bytes` and `sha256` (64 lower-case hexadecimal digits)")]
    NoData,
    /// The data does not match the hash, the size or the type that was given with it. The text names which of
    /// these.
    #[error("the data of the file does not match the stated {0}")]
    Mismatch(&'static str),
}

impl Media {
    /// The maximum size of the data in bytes: 20 MiB.
    pub const MAX_BYTES: usize = 20 * 1024 * 1024;

    /// Creates a picture or a PDF file from its data. `name` is the name of the file; folders before it are
    /// removed.
    ///
    /// # Errors
    ///
    /// The data is empty, larger than [`MAX_BYTES`](Self::MAX_BYTES), or of another type than PNG, JPEG, GIF,
    /// WebP and PDF.
    pub fn new(bytes: &[u8], name: Option<&str>) -> Result<Self, MediaError> {
        let known = sniff(bytes).unwrap_or_default();
        match Self::of_type(bytes, known, name)? {
            media if media.mime_type.is_empty() => Err(MediaError::UnknownType),
            media => Ok(media),
        }
    }

    /// Creates a value from data of any type, such as sound. `mime_type` counts only if the data is of no
    /// type that [`sniff`] knows.
    ///
    /// # Errors
    ///
    /// The data is empty or larger than [`MAX_BYTES`](Self::MAX_BYTES), or `mime_type` is a type that
    /// [`sniff`] knows but the data is not of this type.
    pub fn of_type(bytes: &[u8], mime_type: &str, name: Option<&str>) -> Result<Self, MediaError> {
        if bytes.is_empty() {
            return Err(MediaError::Empty);
        }
        if bytes.len() > Self::MAX_BYTES {
            return Err(MediaError::TooLarge { bytes: bytes.len() as u64 });
        }
        let mime_type = match sniff(bytes) {
            Some(known) => known.to_owned(),
            None if TYPES.contains(&mime_type) => return Err(MediaError::Mismatch("type")),
            None => one_line(mime_type, NAME).to_ascii_lowercase(),
        };
        Ok(Self {
            sha256: hash(bytes),
            pages: (mime_type == PDF).then(|| pages(bytes)),
            mime_type,
            bytes: bytes.len() as u64,
            name: name.and_then(file_name),
            data: Some(BASE64.encode(bytes).into()),
        })
    }

    /// Does the same as [`of_type`](Self::of_type), for data in base64.
    ///
    /// # Errors
    ///
    /// See [`of_type`](Self::of_type); or the text is not base64 with padding.
    pub fn from_base64(data: &str, mime_type: &str, name: Option<&str>) -> Result<Self, MediaError> {
        let bytes = BASE64.decode(data.as_bytes()).map_err(|_| MediaError::NotBase64)?;
        Self::of_type(&bytes, mime_type, name)
    }

    /// Returns the SHA-256 of the data, as 64 lower-case hexadecimal digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the media type, for instance `image/png`.
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// Returns the kind of the data: a picture, a PDF file or something else.
    pub fn kind(&self) -> MediaKind {
        MediaKind::of(&self.mime_type)
    }

    /// Returns the size of the data in bytes.
    pub fn size(&self) -> u64 {
        self.bytes
    }

    /// Returns the name of the file, without a folder; `None` if the file has no name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the estimated number of pages of a PDF file, at least 1; `None` for other media.
    pub fn pages(&self) -> Option<u32> {
        self.pages
    }

    /// Returns the data in base64; `None` if the value only refers to the data, as in a log.
    pub fn base64(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// Returns the data; `None` if the value only refers to the data, as in a log.
    pub fn data(&self) -> Option<Vec<u8>> {
        BASE64.decode(self.data.as_deref()?.as_bytes()).ok()
    }

    /// Returns the word by which a model names this file in the arguments of a tool: `media:` and the first
    /// 16 digits of the hash.
    pub fn reference(&self) -> String {
        format!("{REFERENCE}{}", &self.sha256[..16])
    }

    /// Returns a line with the name, the type, the [`reference`](Self::reference) and the size.
    ///
    /// ```
    /// use archon_types::Media;
    ///
    /// let report = Media::new(b"%PDF-1.7 ...", Some("report.pdf"))?;
    /// assert_eq!(report.label(), "report.pdf, application/pdf, media:cd98c5bce101ab55, 12 bytes");
    /// # Ok::<(), archon_types::MediaError>(())
    /// ```
    pub fn label(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("{name}, ")).unwrap_or_default();
        format!("{name}{}, {}, {} bytes", self.mime_type, self.reference(), self.bytes)
    }

    /// Returns true if `reference` names this file: `media:` and the first 16 or more digits of its hash.
    pub fn is_named(&self, reference: &str) -> bool {
        let digits = reference.strip_prefix(REFERENCE);
        digits.is_some_and(|digits| digits.len() >= 16 && self.sha256.starts_with(digits))
    }

    /// Returns a copy without the data, in the form in which logs refer to the data.
    pub fn without_data(&self) -> Self {
        Self {
            sha256: self.sha256.clone(),
            mime_type: self.mime_type.clone(),
            bytes: self.bytes,
            name: self.name.clone(),
            pages: self.pages,
            data: None,
        }
    }

    /// Adds the data to a value without data, for instance one that was read from a log.
    ///
    /// # Errors
    ///
    /// The data does not match the size or the hash.
    pub fn set_data(&mut self, bytes: &[u8]) -> Result<(), MediaError> {
        if bytes.len() as u64 != self.bytes {
            return Err(MediaError::Mismatch("size"));
        }
        if hash(bytes) != self.sha256 {
            return Err(MediaError::Mismatch("hash"));
        }
        self.data = Some(BASE64.encode(bytes).into());
        Ok(())
    }

    pub(crate) fn name_mut(&mut self) -> &mut Option<String> {
        &mut self.name
    }
}

impl PartialEq for Media {
    fn eq(&self, other: &Self) -> bool {
        (&self.sha256, &self.mime_type, &self.name) == (&other.sha256, &other.mime_type, &other.name)
    }
}

impl fmt::Debug for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Media")
            .field("reference", &self.reference())
            .field("mime_type", &self.mime_type)
            .field("bytes", &self.bytes)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A medium as JSON has it. With `data`, the other members follow from the data, and only the media type must
/// be given.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MediaForm {
    sha256: Option<String>,
    mime_type: String,
    bytes: Option<u64>,
    name: Option<String>,
    pages: Option<u32>,
    data: Option<Arc<str>>,
}

impl TryFrom<MediaForm> for Media {
    type Error = MediaError;

    fn try_from(form: MediaForm) -> Result<Self, MediaError> {
        let name = form.name.as_deref();
        let Some(data) = form.data else {
            let sha256 = form.sha256.ok_or(MediaError::NoData)?;
            let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
            // The hash names a file of a journal.
            if sha256.len() != 64 || !sha256.bytes().all(is_digit) {
                return Err(MediaError::NoData);
            }
            let (mime_type, bytes) = (form.mime_type, form.bytes.ok_or(MediaError::NoData)?);
            return Ok(Self {
                sha256,
                mime_type,
                bytes,
                name: name.and_then(file_name),
                pages: form.pages,
                data: None,
            });
        };
        let media = Self::from_base64(&data, &form.mime_type, name)?;
        let problem = match () {
            () if form.sha256.is_some_and(|sha256| sha256 != media.sha256) => "hash",
            () if form.bytes.is_some_and(|bytes| bytes != media.bytes) => "size",
            () if form.mime_type != media.mime_type => "type",
            () => return Ok(media),
        };
        Err(MediaError::Mismatch(problem))
    }
}

/// Returns true if a media type is in a list of patterns. A pattern is a media type, or `image/*` for all types of
/// images, and so on.
pub(crate) fn is_listed(patterns: &[String], mime_type: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => mime_type.starts_with(start),
        None => pattern == mime_type,
    })
}

/// Returns the media type of data that begins with these bytes: PNG, JPEG, GIF, WebP or PDF. `None` for any
/// other data.
pub fn sniff(head: &[u8]) -> Option<&'static str> {
    const PDF_BEGINS_WITHIN: usize = 1024;
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => {
            let head = &head[..head.len().min(PDF_BEGINS_WITHIN)];
            head.windows(5).any(|start| start == b"%PDF-").then_some(PDF)
        }
    }
}

/// The picture, PDF file or other data of a message block, for the code that sends or shows it.
#[derive(Clone, Copy, Debug)]
pub struct MediaView<'a> {
    /// The media type, for instance `image/png`.
    pub mime_type: &'a str,
    /// The data in base64; `None` if the block only refers to the data, as in a log.
    pub base64: Option<&'a str>,
    /// The [`Media`] of the block, which has the name and the hash; `None` for a block
    /// [`Content::Image`](super::Content::Image).
    pub media: Option<&'a Media>,
}

impl MediaView<'_> {
    /// Returns the kind of the data: a picture, a PDF file or something else.
    pub fn kind(&self) -> MediaKind {
        MediaKind::of(self.mime_type)
    }

    /// Returns the name of the file, without a folder; `None` if the file has no name.
    pub fn name(&self) -> Option<&str> {
        self.media.and_then(Media::name)
    }

    /// Returns a text that stands for the data in a place that cannot show or send it. `about` is the last
    /// part of the text, such as the reason.
    ///
    /// ```
    /// use archon_types::{Content, Media};
    ///
    /// let block = Content::from(Media::new(b"%PDF-1.7 ...", Some("report.pdf"))?);
    /// let note = block.as_media().map(|media| media.note("left out"));
    /// let label = "report.pdf, application/pdf, media:cd98c5bce101ab55, 12 bytes";
    /// assert_eq!(note, Some(format!("[{label}: left out]")));
    /// # Ok::<(), archon_types::MediaError>(())
    /// ```
    pub fn note(&self, about: &str) -> String {
        match self.media {
            Some(media) => format!("[{}: {about}]", media.label()),
            None => format!("[{}: {about}]", self.mime_type),
        }
    }
}

const PDF: &str = "application/pdf";
/// The types that [`sniff`] knows.
const TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", PDF];
const REFERENCE: &str = "media:";
/// The maximum number of characters of a name and of a media type.
const NAME: usize = 120;
/// The size of one page of a PDF file that hides its pages in compressed streams.
const BYTES_PER_PAGE: usize = 50_000;

/// Estimates the number of pages of a PDF file from the page objects that stand in it uncompressed, or from
/// its size.
fn pages(pdf: &[u8]) -> u32 {
    let is_page = |at: usize| {
        let rest = pdf[at + b"/Type".len()..].trim_ascii_start();
        rest.strip_prefix(b"/Page")
            .is_some_and(|rest| rest.first().is_none_or(|b| !b.is_ascii_alphanumeric()))
    };
    let types = pdf.windows(b"/Type".len()).enumerate().filter(|(_, text)| text == b"/Type");
    let pages = match types.filter(|(at, _)| is_page(*at)).count() {
        0 => pdf.len().div_ceil(BYTES_PER_PAGE),
        pages => pages,
    };
    u32::try_from(pages).unwrap_or(u32::MAX)
}

/// Returns the name of a file without its folders and hidden characters, as one short line; `None` if nothing is left.
fn file_name(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    // Not by their numbers, which have a backslash: a name must stay the same when it is read again.
    let name = one_line(&name.replace(is_hidden, " "), NAME);
    (!name.is_empty()).then_some(name)
}

fn hash(bytes: &[u8]) -> String {
    hmac_sha256::Hash::hash(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
