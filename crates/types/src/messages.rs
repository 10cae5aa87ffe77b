//! Messages, media, tool results, the trust level of a text, the context window, and the redactor.
//!
//! Imports only `values`.

mod cleanup;
mod compaction;
mod content;
mod context_config;
mod interruption;
mod media;
mod message;
mod provenance;
mod redactor;
mod tokens;
mod tool_result;
mod transcript;
mod trust;

pub use cleanup::{CLEANUP_TOOL, CleanedUp, SeenResult};
pub use compaction::{
    Compaction, CompactionInput, CompactionLevel, CompactionStrategy, ContextLevel, Summary, ViewPart,
    WindowItem,
};
pub use content::{CALL_TOOL, Content, MalformedArguments, TOOL_SEARCH, ToolCall};
pub use context_config::{CompactionPolicy, ContextConfig, ResultTokens};
pub use interruption::Interruption;
pub use media::{Media, MediaError, MediaKind, MediaView, sniff};
pub use message::{
    AgentMessage, AssistantMessage, ExtensionMessage, LlmMessage, Message, MessageMetadata, StopReason,
    ToolMark, ToolResultMessage, Usage, UserMessage,
};
pub use provenance::Attributed;
pub use redactor::{RedactedStream, Redactor};
pub use tokens::{
    IMAGE_TOKENS, PDF_PAGE_TOKENS, TOKENS_PER_MESSAGE, TOKENS_PER_NAME, TokenCounter, TokenEstimate,
    Tokenizer, percentage,
};
pub use tool_result::{DataFile, OutputLevel, ToolResult, ToolResultStatus, metadata};
pub use transcript::Transcript;
pub use trust::{RecalledText, Speaker, Trust};

pub(crate) use media::is_listed;
pub(crate) use redactor::Forms;
