//! Servers with a sandbox: they start in it or not at all.

use std::{io, process::Command};

use archon_mcp::{McpServer, McpServers};
use archon_process::{ProcessSandbox, SandboxedStart};

use crate::support::{call, failure, options, server, start, tool};

/// A sandbox that limits nothing, or refuses every command.
#[derive(Debug)]
struct FakeSandbox {
    refuses: bool,
}

impl ProcessSandbox for FakeSandbox {
    fn prepare(&self, _: &Command, _: u32) -> io::Result<SandboxedStart> {
        match self.refuses {
            true => Err(io::Error::other("the kernel has no Landlock")),
            false => Ok(SandboxedStart {
                variables: vec![("HOME".into(), "/of-the-sandbox".into())],
                restrict: Box::new(|_| Ok(())),
                resources: Box::new(()),
            }),
        }
    }
}

#[tokio::test]
async fn server_starts_in_its_sandbox() {
    let servers = start([("fake", server("acts").with_sandbox(FakeSandbox { refuses: false }))]);
    let act = tool(&servers, "fake__act").await;
    let said = call(&*act, "home").await.text();
    assert!(said.contains("done: /of-the-sandbox"), "{said}");
    servers.close().await;
}

#[tokio::test]
async fn server_that_cannot_be_sandboxed_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let refused = server("well").with_sandbox(FakeSandbox { refuses: true });
    let servers = start([("fake", refused.with_variable("FAKE_LOG", log.display().to_string()))]);
    let said = failure(&servers, "fake").await;
    let expected = "MCP server 'fake', phase start: the server's process cannot be sandboxed: the kernel has no \
                    Landlock. Correct the grants of the server's sandbox";
    assert!(said.starts_with(expected), "{said}");
    servers.close().await;
    assert!(!log.exists());
}

#[tokio::test]
async fn server_at_a_web_address_has_no_sandbox() {
    let server = McpServer::http("http://127.0.0.1:1/mcp").with_sandbox(FakeSandbox { refuses: false });
    let servers = McpServers::start([("web".to_owned(), server)], &options()).unwrap();
    let said = failure(&servers, "web").await;
    assert!(said.contains("only a server that is started with a command can have a sandbox"), "{said}");
    servers.close().await;
}
