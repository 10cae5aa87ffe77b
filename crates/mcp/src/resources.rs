//! Resources and prompts of servers, as programs see them.

use archon_types::Content;
use rmcp::model::ResourceContents;
use serde::Serialize;

use crate::{McpError, connection::Connection, supervise::Server, text::plain};

/// Maximum number of characters of a name, an address or a description.
const SHORT: usize = 1_000;

/// A resource that a server lists: a file or other data. Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Resource {
    /// The address, by which the resource is read.
    pub uri: String,
    /// The name for people: the title that the server gives the resource, or else its name.
    pub name: String,
    /// The description; empty if there is none.
    pub description: String,
    /// The kind of the data, for instance `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The size in bytes, according to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// A part of a resource that was read. A resource that is a folder has several parts. The data are untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The address of the part.
    pub uri: String,
    /// The kind of the data, for instance `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The data.
    #[serde(flatten)]
    pub data: ResourceData,
}

/// The data of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResourceData {
    /// A text.
    Text(String),
    /// Other data, as base64.
    Base64(String),
}

/// A prompt that a server lists: a template of messages. Its texts are untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The name, by which the prompt is read.
    pub name: String,
    /// The description; empty if there is none.
    pub description: String,
    /// The arguments that fill in the template.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The description; empty if there is none.
    pub description: String,
    /// True if the prompt cannot be read without this argument.
    pub required: bool,
}

/// A message of a prompt. A server wrote it, whatever its role: it is untrusted until a person has read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The role in which the server wants the message to be sent to a model.
    pub role: PromptRole,
    /// The content of the message. Data that a model cannot read, such as audio, are replaced by a description.
    pub content: Content,
}

/// The role of a message of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PromptRole {
    /// The message of a person.
    User,
    /// The answer of a model.
    Assistant,
}

impl Server {
    /// Lists the resources over a connection, and notes their addresses as named by the server.
    pub(crate) async fn resources(&self, connection: &Connection) -> Result<Vec<Resource>, McpError> {
        let listed = connection.resources().await?;
        self.names(listed.iter().map(|resource| resource.uri.clone()));
        Ok(listed.into_iter().map(|resource| resource_of(self, resource)).collect())
    }

    fn short(&self, text: Option<String>) -> String {
        self.redactor.clean(plain(&text.unwrap_or_default(), SHORT))
    }
}

fn resource_of(server: &Server, resource: rmcp::model::Resource) -> Resource {
    Resource {
        // Unchanged, because it is read by it.
        uri: resource.uri,
        name: server.short(resource.title.or(Some(resource.name))),
        description: server.short(resource.description),
        mime_type: resource.mime_type.map(|kind| server.short(Some(kind))),
        size: resource.size,
    }
}

pub(crate) fn content_of(server: &Server, content: ResourceContents) -> Option<ResourceContent> {
    let (uri, mime_type, data) = match content {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            (uri, mime_type, ResourceData::Text(server.redactor.clean(text)))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            (uri, mime_type, ResourceData::Base64(blob))
        }
        _ => return None,
    };
    Some(ResourceContent { uri, mime_type: mime_type.map(|kind| server.short(Some(kind))), data })
}

pub(crate) fn prompt_of(server: &Server, prompt: rmcp::model::Prompt) -> Prompt {
    let argument = |argument: rmcp::model::PromptArgument| PromptArgument {
        name: argument.name,
        description: server.short(argument.description),
        required: argument.required.unwrap_or_default(),
    };
    Prompt {
        name: prompt.name,
        description: server.short(prompt.description.or(prompt.title)),
        arguments: prompt.arguments.unwrap_or_default().into_iter().map(argument).collect(),
    }
}
