//! Two tools for the resources of all servers: one lists resources, one reads a resource. There are not two
//! tools for each server, because each tool costs tokens in every request.

use std::{pin::pin, sync::Arc, time::Duration};

use archon_types::{
    BoxFuture, Context, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
    metadata,
};
use futures_util::future::{Either, select, try_join_all};
use serde_json::json;

use crate::{
    McpError, McpProblem, Phase, Resource,
    connection::Connection,
    result::{failure, resource},
    supervise::{Server, State},
    text::{MESSAGE, one_line},
};

/// The name of the tool that lists resources.
const LIST: &str = "list_mcp_resources";
/// The name of the tool that reads a resource.
const READ: &str = "read_mcp_resource";
/// Maximum number of resources in a list for a model.
const LISTED: usize = 200;
/// Maximum number of characters of a description in the list.
const SHORT: usize = 200;
/// Maximum number of characters of an address, and of a resource's name, kind and size together.
const LONG: usize = 1_000;
/// Time by which a tool's time limit exceeds the sum of the server's time limits, so that a slow server fails
/// with its own error first.
const MARGIN: Duration = Duration::from_secs(5);

/// Makes `list_mcp_resources` and `read_mcp_resource`.
pub(crate) fn tools(servers: &[Arc<Server>]) -> [Arc<dyn Tool>; 2] {
    let longest = |server: &Arc<Server>| {
        let limits = server.settings.timeouts;
        limits.initialize + limits.list + limits.call + MARGIN
    };
    let limit = servers.iter().map(longest).max().unwrap_or(MARGIN);
    let spec = |name: &str, about: &str, parameters: Json| {
        let mut annotations = ToolAnnotations::read_only().with_timeout(limit);
        annotations.deferrable = true;
        ToolSpec::new(name, about, parameters).with_annotations(annotations)
    };
    let (server, uri) = ("The server's name", "The resource's address, as it was listed");
    let list = spec(
        LIST,
        "Lists the resources of MCP servers: files and data that `read_mcp_resource` reads.",
        json!({
            "type": "object", "additionalProperties": false,
            "properties": { "server": { "type": "string", "description": format!("{server}; without it, all") } },
        }),
    );
    let read = spec(
        READ,
        "Reads a resource of an MCP server.",
        json!({
            "type": "object", "additionalProperties": false, "required": ["server", "uri"],
            "properties": {
                "server": { "type": "string", "description": server },
                "uri": { "type": "string", "description": uri },
            },
        }),
    );
    let servers: Arc<[Arc<Server>]> = servers.into();
    [Arc::new(List { spec: list, servers: servers.clone() }), Arc::new(Read { spec: read, servers })]
}

struct List {
    spec: ToolSpec,
    servers: Arc<[Arc<Server>]>,
}

impl List {
    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let named = text(&arguments, "server");
        let asked: Vec<_> = match named {
            "" => self.servers.iter().collect(),
            named => vec![find(&self.servers, named)?],
        };
        let all = try_join_all(asked.iter().map(|server| async move {
            // A server that is not there yet does not delay the others.
            if named.is_empty() && !server.is_ready() {
                return Ok((server, Err(absence(server))));
            }
            let listed = match connection_of(server, context).await? {
                Ok(connection) => server.resources(&connection).await,
                Err(error) => Err(error),
            };
            Ok::<_, ToolError>((server, listed.map_err(|error| error.to_string())))
        }));
        let lists = match select(pin!(all), pin!(context.cancel.cancelled())).await {
            Either::Left((lists, _)) => lists?,
            Either::Right(_) => return Err(ToolError::Cancelled),
        };
        let mut lines = Vec::new();
        for (server, list) in &lists {
            match list {
                Ok(resources) => lines.extend(resources.iter().map(|resource| line(&server.name, resource))),
                Err(why) => {
                    let why = one_line(why, MESSAGE);
                    lines.push(format!("{}: its resources cannot be listed: {why}", server.name));
                }
            }
        }
        let more = lines.len().saturating_sub(LISTED);
        lines.truncate(LISTED);
        match (lines.is_empty(), more) {
            (true, _) => lines.push("(no resources)".to_owned()),
            (_, 0) => {}
            _ => lines.push(format!("({more} more are not shown)")),
        }
        Ok(ToolResult::success(lines.join("\n")).with_metadata(metadata::SOURCE_URL, "mcp://"))
    }
}

fn line(server: &str, resource: &Resource) -> String {
    let mut about = vec![resource.name.clone()];
    about.extend(resource.mime_type.clone());
    about.extend(resource.size.map(|bytes| format!("{bytes} bytes")));
    let about = one_line(&about.join(", "), LONG);
    let mut line = format!("{server}: {} ({about})", one_line(&resource.uri, LONG));
    if !resource.description.is_empty() {
        line += &format!(": {}", one_line(&resource.description, SHORT));
    }
    line
}

/// Returns the reason why the resources of a server that is not connected cannot be listed, with advice.
fn absence(server: &Server) -> String {
    let limit = server.settings.timeouts.initialize.as_secs_f64();
    match server.state() {
        State::Connecting(Some(error)) | State::Down { error, .. } => error.to_string(),
        State::Closed => server.error(Phase::Read, McpProblem::Closed).to_string(),
        State::Connecting(None) | State::Ready(_) => format!(
            "phase {}: the server has not answered yet, and its time limit is {limit} s; name it in `server` \
             to wait for it",
            Phase::Initialize
        ),
    }
}

/// Waits for the connection of a server, and records the server's processes in the run's log, so that they are
/// ended before the run is resumed after a crash. The inner result is the connection or the error of the
/// server.
async fn connection_of(
    server: &Server,
    context: &ToolContext,
) -> Result<Result<Arc<Connection>, McpError>, ToolError> {
    context.run.redactor.include(&server.redactor);
    let connection = match server.ready().await {
        Ok(ready) => ready.connection.clone(),
        Err(error) => return Ok(Err(error)),
    };
    if let (Some(processes), Some(group)) = (&context.processes, connection.group()) {
        processes.uses(group).await?;
    }
    Ok(Ok(connection))
}

struct Read {
    spec: ToolSpec,
    servers: Arc<[Arc<Server>]>,
}

impl Read {
    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let server = find(&self.servers, text(&arguments, "server"))?;
        let uri = text(&arguments, "uri");
        let source = format!("mcp://{}/{}", server.name, one_line(uri, LONG));
        let work = async {
            match connection_of(server, context).await? {
                Ok(connection) => Ok::<_, ToolError>(connection.read(uri).await),
                Err(error) => Ok(Err(error)),
            }
        };
        let read = match select(pin!(work), pin!(context.cancel.cancelled())).await {
            Either::Left((read, _)) => read?,
            Either::Right(_) => return Err(ToolError::Cancelled),
        };
        let mut result = match read {
            Ok(read) => {
                let mut result = ToolResult::default();
                result.content = read.contents.into_iter().map(resource).collect();
                if result.content.is_empty() {
                    result.content.push("(The resource is empty.)".into());
                }
                result.with_metadata(metadata::SOURCE_URL, source)
            }
            Err(error) => failure(&error, false, &source),
        };
        server.redactor.clean_result(&mut result);
        Ok(result)
    }
}

impl Tool for List {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.run(arguments, context))
    }
}

impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(self.run(arguments, context))
    }

    /// Requires approval for an address that the server did not name: a model could write data into the
    /// address, and so send the data to the server.
    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let (name, uri) = (text(arguments, "server"), text(arguments, "uri"));
        if find(&self.servers, name)?.has_named(uri) {
            return Ok(None);
        }
        let mut preview = Preview::new(format!("Read {} of the MCP server {name}", one_line(uri, LONG)));
        preview.warning =
            Some("the server did not list this address, and receives the whole address".to_owned());
        Ok(Some(preview))
    }
}

fn text<'a>(arguments: &'a Json, name: &str) -> &'a str {
    arguments.get(name).and_then(Json::as_str).unwrap_or_default()
}

fn find<'a>(servers: &'a [Arc<Server>], name: &str) -> Result<&'a Arc<Server>, ToolError> {
    servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let names: Vec<_> = servers.iter().map(|server| &*server.name).collect();
        let name = one_line(name, SHORT);
        ToolError::NotFound(format!("no MCP server is called '{name}'. The servers: {}.", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_a_resource_is_one_line_whatever_its_texts_contain() {
        let resource = Resource {
            uri: "note://a\nb: note://b".to_owned(),
            name: "one\ntwo".to_owned(),
            description: "A\n\tnote.".to_owned(),
            mime_type: Some("text\n/plain".to_owned()),
            size: None,
        };
        let expected = "files: note://a b: note://b (one two, text /plain): A  note.";
        assert_eq!(line("files", &resource), expected);
    }
}
