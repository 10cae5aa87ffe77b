//! An MCP server as a shell script, for tests of code that starts servers.

use std::fmt;

use archon_types::Json;
use serde_json::json;

/// An MCP server as a shell script. A test starts it as `sh -c SCRIPT sh ARGUMENTS`, without a program to build.
///
/// The commands of a call may use `$line`, the request, and two functions: `say TEXT` answers with a text, and
/// `answer JSON` with any result.
///
/// ```
/// use archon_testkit::McpScript;
/// use serde_json::json;
///
/// let add = json!({ "name": "add", "description": "Adds.", "inputSchema": { "type": "object" } });
/// // Each call adds a line to the file of the first argument.
/// let script = McpScript::new([add]).on_call("echo called >> \"$1\"; say added");
/// assert!(script.to_string().contains("say added"));
/// ```
#[derive(Clone, Debug)]
pub struct McpScript {
    /// The list of tools, as one quoted word of a shell script.
    tools: String,
    capabilities: Json,
    has_handshake: bool,
    on_call: String,
    on_repeated_call: Option<String>,
}

impl McpScript {
    /// Creates a server of the protocol revision 2025-11-25 with these definitions of tools. It answers each call
    /// with the text `done`.
    pub fn new(tools: impl IntoIterator<Item = Json>) -> Self {
        Self::listing(quoted(&tools.into_iter().collect()))
    }

    /// Creates a server that reads its definitions of tools, a JSON array, from a file. The server's first argument
    /// is the path of the file. The server reads the file for each `tools/list` request.
    pub fn with_tools_of_file() -> Self {
        Self::listing(r#""$(cat "$1")""#.to_owned())
    }

    fn listing(tools: String) -> Self {
        let capabilities = json!({ "tools": {} });
        Self {
            tools,
            capabilities,
            has_handshake: true,
            on_call: "say done".to_owned(),
            on_repeated_call: None,
        }
    }

    /// Sets the capabilities of the server. Default: `{"tools":{}}`.
    pub fn with_capabilities(mut self, capabilities: Json) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Makes this a server of the protocol revision 2026-07-28, which has no handshake.
    pub fn without_handshake(mut self) -> Self {
        self.has_handshake = false;
        self
    }

    /// Sets the shell commands that answer a call. Default: `say done`.
    pub fn on_call(mut self, commands: &str) -> Self {
        commands.clone_into(&mut self.on_call);
        self
    }

    /// Sets the shell commands that answer a repeated call, which has the input that the server asked for. Default:
    /// the commands of `on_call`.
    pub fn on_repeated_call(mut self, commands: &str) -> Self {
        self.on_repeated_call = Some(commands.to_owned());
        self
    }
}

/// Writes the script.
impl fmt::Display for McpScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FUNCTIONS)?;
        if self.has_handshake {
            let server = json!({ "name": "s", "version": "1" });
            let first = json!({
                "protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": server,
            });
            writeln!(f, r#"    *\"server/discover\"*) refuse ;;"#)?;
            writeln!(f, r#"    *\"initialize\"*) answer {} ;;"#, quoted(&first))?;
        } else {
            let first = json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": self.capabilities,
            });
            writeln!(f, r#"    *\"server/discover\"*) answer {} ;;"#, quoted(&first))?;
        }
        writeln!(f, r#"    *\"tools/list\"*) answer '{{"tools":'{}'}}' ;;"#, self.tools)?;
        if let Some(commands) = &self.on_repeated_call {
            writeln!(f, r#"    *\"tools/call\"*\"inputResponses\"*) {commands} ;;"#)?;
        }
        writeln!(f, r#"    *\"tools/call\"*) {} ;;"#, self.on_call)?;
        f.write_str("  esac\ndone\n")
    }
}

/// The beginning of each script: the functions, and the start of the loop over the requests.
const FUNCTIONS: &str = r#"
reply() { printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
answer() { reply "\"result\":$1"; }
refuse() { reply '"error":{"code":-32601,"message":"no such method"}'; }
say() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
"#;

/// Returns a value as one quoted word of a shell script.
fn quoted(value: &Json) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };

    use super::*;

    /// Returns the answers of a server to requests, which have the ids 0, 1, ...
    fn answers(script: &McpScript, requests: &[Json]) -> Vec<Json> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &script.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = shell.spawn().expect("a shell");
        let mut input = server.stdin.take().expect("its input");
        for (id, request) in requests.iter().enumerate() {
            let (method, params) = (&request["method"], &request["params"]);
            writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
                .expect("it reads");
        }
        drop(input);
        let output = server.wait_with_output().expect("its end");
        let lines = String::from_utf8(output.stdout).expect("text");
        lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    #[test]
    fn mcp_script_answers_each_request_of_a_client() {
        let tools = [json!({ "name": "add", "description": "It's a \"tool\".\nIt adds." })];
        let requests = [
            json!({ "method": "server/discover" }),
            json!({ "method": "initialize" }),
            json!({ "method": "tools/list" }),
            json!({ "method": "tools/call" }),
            json!({ "method": "tools/call", "params": { "inputResponses": {} } }),
        ];
        let script = McpScript::new(tools.clone()).on_call("say 'one call'");
        let old = answers(&script, &requests);
        assert_eq!(old[0]["error"]["code"], -32601);
        assert_eq!(old[1]["result"]["protocolVersion"], "2025-11-25");
        assert_eq!((&old[2]["id"], &old[2]["result"]["tools"]), (&json!(2), &json!(tools)));
        assert_eq!(old[3]["result"]["content"][0]["text"], "one call");
        assert_eq!(old[4]["result"], old[3]["result"]);
        let script = script.without_handshake().with_capabilities(json!({ "resources": {} }));
        let new = answers(&script.on_repeated_call("answer '{}'"), &requests);
        assert_eq!(new.len(), 4, "there is no answer to `initialize`");
        assert_eq!(new[0]["result"]["capabilities"], json!({ "resources": {} }));
        assert_eq!((&new[2], &new[3]["result"]), (&old[3], &json!({})));
    }
}
