//! The context of a call, and short ways to tools and calls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use archon_openapi::{OpenApiConfig, OpenApiTool, OpenApiTools, OperationFilter};
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    BoxFuture, Context, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret,
    TenantId, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::json;

pub(crate) const PETSTORE: &str = include_str!("petstore.yaml");
/// A document of version 2.0.
pub(crate) const SWAGGER: &str = include_str!("swagger.yaml");

pub(crate) fn run() -> Context {
    let ids = Arc::new(SeededIds::new(1));
    Context::new("run".into(), "session".into(), Arc::new(VirtualClock::new()), ids)
}

pub(crate) async fn call_in(
    run: &Context,
    tool: &OpenApiTool,
    arguments: Json,
) -> Result<ToolResult, ToolError> {
    let context = ToolContext::new(run.clone(), "call".into(), tool.spec().name.clone());
    tool.call(arguments, &context).await
}

pub(crate) async fn call(tool: &OpenApiTool, arguments: Json) -> Result<ToolResult, ToolError> {
    call_in(&run(), tool, arguments).await
}

/// Returns the tools of a document, which has no warnings.
pub(crate) fn tools(document: Json, config: OpenApiConfig) -> Vec<Arc<OpenApiTool>> {
    let made = OpenApiTools::from_value(document, config, OperationFilter::All).unwrap();
    assert_eq!(made.warnings, []);
    made.tools
}

/// Returns the tool of a document with one operation, at this server.
pub(crate) fn tool(server: &str, path: &str, method: &str, operation: Json) -> Arc<OpenApiTool> {
    let config = OpenApiConfig::default().with_base_url(server);
    tools(document(path, method, operation), config).remove(0)
}

/// Returns a document with one operation.
pub(crate) fn document(path: &str, method: &str, mut operation: Json) -> Json {
    operation["operationId"] = "act".into();
    json!({ "openapi": "3.1.0", "info": { "title": "Test" }, "paths": { path: { method: operation } } })
}

/// A store in memory.
#[derive(Default)]
pub(crate) struct Accounts(pub(crate) Mutex<BTreeMap<CredentialKey, Secret<Json>>>);

impl CredentialStore for Accounts {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let mut accounts = self.0.lock().unwrap();
        let before = match credentials {
            Some(credentials) => accounts.insert(key.clone(), credentials),
            None => accounts.remove(key),
        };
        Box::pin(std::future::ready(Ok(before.is_some())))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        Box::pin(std::future::ready(Ok(self.0.lock().unwrap().get(key).cloned())))
    }

    fn list<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
