//! The media that a model reads.

use serde::{Deserialize, Serialize};

use crate::messages::MediaKind;

/// The media that a model reads. A medium is sent to a model of which nothing is known, since its service
/// refuses what it cannot read.
///
/// ```
/// use archon_types::{MediaKind, Reads};
///
/// let reads = Reads { images: Some(true), pdfs: Some(false) };
/// assert!(reads.may_have(MediaKind::Image) && !reads.may_have(MediaKind::Pdf));
/// assert!(Reads::default().may_have(MediaKind::Pdf));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Reads {
    /// True if the model reads images; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// True if the model reads PDF files; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdfs: Option<bool>,
}

impl Reads {
    /// Returns true unless the model is known to be unable to read media of this kind. Always false for
    /// [`MediaKind::Other`], which is sent to no model.
    pub fn may_have(self, kind: MediaKind) -> bool {
        match kind {
            MediaKind::Image => self.images != Some(false),
            MediaKind::Pdf => self.pdfs != Some(false),
            MediaKind::Other => false,
        }
    }
}
