//! Two tools for the resources of all servers: one lists them, one reads them. Two, whatever the number of
//! servers is, because each tool costs tokens in every request.

use std::{pin::pin, sync::Arc, time::Duration};

use archon_types::{
    BoxFuture, Context, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
    metadata,
};
use futures_util::future::{Either, join_all, select};
use serde_json::json;

use crate::{
    Resource,
    result::{failure, resource},
    supervise::Server,
    text::plain,
};

/// The name of the tool that lists resources.
const LIST: &str = "list_mcp_resources";
/// The name of the tool that reads a resource.
const READ: &str = "read_mcp_resource";
/// Maximum number of resources in a list for a model.
const LISTED: usize = 200;
/// Maximum number of characters of a description in the list.
const SHORT: usize = 200;
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
        let all = join_all(asked.iter().map(|server| async move {
            // A server that is not there yet does not delay the others.
            if named.is_empty() && !server.is_ready() {
                return (server, Err("it is not connected".to_owned()));
            }
            context.run.redactor.include(&server.redactor);
            (server, server.resources().await.map_err(|error| error.to_string()))
        }));
        let lists = match select(pin!(all), pin!(context.cancel.cancelled())).await {
            Either::Left((lists, _)) => lists,
            Either::Right(_) => return Err(ToolError::Cancelled),
        };
        let mut lines = Vec::new();
        for (server, list) in &lists {
            match list {
                Ok(resources) => lines.extend(resources.iter().map(|resource| line(&server.name, resource))),
                Err(why) => lines.push(format!("{}: its resources cannot be listed: {why}", server.name)),
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
    let mut line = format!("{server}: {} ({})", plain(&resource.uri, SHORT * 5), about.join(", "));
    if !resource.description.is_empty() {
        line += &format!(": {}", plain(&resource.description, SHORT).replace('\n', " "));
    }
    line
}

struct Read {
    spec: ToolSpec,
    servers: Arc<[Arc<Server>]>,
}

impl Read {
    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let server = find(&self.servers, text(&arguments, "server"))?;
        context.run.redactor.include(&server.redactor);
        let uri = text(&arguments, "uri");
        let source = format!("mcp://{}/{}", server.name, plain(uri, SHORT * 5));
        let work = async { server.ready().await?.connection.read(uri).await };
        let mut result = match select(pin!(work), pin!(context.cancel.cancelled())).await {
            Either::Left((Ok(read), _)) => {
                let mut result = ToolResult::default();
                result.content = read.contents.into_iter().map(resource).collect();
                if result.content.is_empty() {
                    result.content.push("(The resource is empty.)".into());
                }
                result.with_metadata(metadata::SOURCE_URL, source)
            }
            Either::Left((Err(error), _)) => failure(&error, false, &source),
            Either::Right(_) => return Err(ToolError::Cancelled),
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
        let mut preview = Preview::new(format!("Read {} of the MCP server {name}", plain(uri, SHORT * 5)));
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
        let name = plain(name, SHORT);
        ToolError::NotFound(format!("no MCP server is called '{name}'. The servers: {}.", names.join(", ")))
    })
}
