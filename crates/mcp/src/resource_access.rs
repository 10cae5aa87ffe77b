//! Lists and reads the resources and prompts of servers, for programs.

use archon_types::Content;
use rmcp::model::Role;
use serde_json::{Map, Value};

use crate::{
    McpError, McpProblem, McpServers, Phase, Prompt, PromptMessage, PromptRole, Resource, ResourceContent,
    resources::{content_of, prompt_of},
    result,
    supervise::Server,
};

impl McpServers {
    /// Lists the resources of a server. Waits until the server is connected, but fails at once if the
    /// server is down.
    ///
    /// # Errors
    /// There is no such server, it is not connected, or it failed.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, McpError> {
        let server = self.named(server)?;
        server.resources(&server.ready().await?.connection).await
    }

    /// Reads a resource of a server: one that it lists, or any other address that it may know.
    ///
    /// # Errors
    /// There is no such server, it is not connected, or it failed.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Vec<ResourceContent>, McpError> {
        let server = self.named(server)?;
        let read = server.ready().await?.connection.read(uri).await?;
        Ok(read.contents.into_iter().filter_map(|content| content_of(server, content)).collect())
    }

    /// Lists the prompts of a server. Waits until the server is connected, but fails at once if the
    /// server is down.
    ///
    /// # Errors
    /// There is no such server, it is not connected, or it failed.
    pub async fn prompts(&self, server: &str) -> Result<Vec<Prompt>, McpError> {
        let server = self.named(server)?;
        let prompts = server.ready().await?.connection.prompts().await?;
        Ok(prompts.into_iter().map(|prompt| prompt_of(server, prompt)).collect())
    }

    /// Returns a prompt of a server, with its arguments filled in.
    ///
    /// # Errors
    /// There is no such server, it is not connected, or it failed; for instance, an argument is missing.
    pub async fn prompt<K: Into<String>, V: Into<String>>(
        &self,
        server: &str,
        name: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Vec<PromptMessage>, McpError> {
        let server = self.named(server)?;
        let arguments: Map<String, Value> =
            arguments.into_iter().map(|(name, value)| (name.into(), Value::String(value.into()))).collect();
        let prompt = server.ready().await?.connection.prompt(name, arguments).await?;
        let message = |message: rmcp::model::PromptMessage| PromptMessage {
            role: if message.role == Role::User { PromptRole::User } else { PromptRole::Assistant },
            content: match result::block(message.content) {
                Content::Text { text } => Content::Text { text: server.redactor.clean(text) },
                other => other,
            },
        };
        Ok(prompt.messages.into_iter().map(message).collect())
    }

    fn named(&self, name: &str) -> Result<&Server, McpError> {
        let problem = || {
            let names: Vec<_> = self.servers.iter().map(|server| &*server.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            McpProblem::Invalid(format!("no server has this name; the configured servers: {known}"))
        };
        let found = self.servers.iter().find(|server| server.name == name);
        found.map(|server| &**server).ok_or_else(|| McpError::new(name, Phase::Settings, problem()))
    }
}
