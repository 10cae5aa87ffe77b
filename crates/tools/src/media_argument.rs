//! A tool argument that names a media file of the conversation, such as an attached image or PDF file.

use archon_types::{Media, ToolContext, ToolError};
use serde::{Deserialize, Serialize};

/// An argument of a tool that names a medium of the conversation, such as an attached PDF file. Its schema is a
/// string with the format `media`.
///
/// ```
/// use archon_tools::{MediaArgument, tool};
/// use archon_types::{ToolContext, ToolError};
///
/// /// Counts the bytes of a PDF file.
/// #[tool(read_only, input_mime_types = ["application/pdf"], max_input_size = 1_000_000, crate = archon_tools)]
/// async fn count_bytes(
///     /// The file.
///     file: MediaArgument,
///     context: &ToolContext,
/// ) -> Result<usize, ToolError> {
///     let media = file.get(context)?;
///     Ok(media.data().unwrap_or_default().len())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("format" = "media"))]
pub struct MediaArgument(pub String);

impl MediaArgument {
    /// Returns the media file that the argument names, with its data.
    ///
    /// # Errors
    /// The conversation has no media file with this name. The error text lists those that it has.
    pub fn get(&self, context: &ToolContext) -> Result<Media, ToolError> {
        context.media(&self.0)
    }
}
