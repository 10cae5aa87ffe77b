//! The server that the official conformance suite of the Model Context Protocol is run against: `PORT` as its argument.
//!
//! Tools that ours can express are offered by our server. What the suite wants beyond that (prompts, resources,
//! content and requests of other kinds) is answered by a handler around it, as a program would that offers more than
//! tools and agents.

#![allow(deprecated, reason = "the suite still asks for what newer revisions have dropped")]

use std::sync::Arc;

use anyhow::{Context as _, Result};
use archon::{
    Archon, RandomIds, Runs,
    mcp_serve::{
        ClientCalls, HttpServerOptions, ToolServer,
        rmcp::{ErrorData, RoleServer, ServerHandler, model::*, service::RequestContext},
        serve_http,
    },
    store::InMemoryJournal,
    tool,
    types::{CancellationToken, Content, Json, ToolContext, ToolError, ToolResult},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;

/// One red point.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Silence.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
/// The state between the rounds of a call; a client that changes it is refused.
const STATE: &str = "state-of-round-1";
const STATE_2: &str = "state-of-round-2";

/// Returns a text.
#[tool(read_only)]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns a picture.
#[tool(read_only)]
async fn test_image_content() -> ToolResult {
    ToolResult::success(Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() })
}

/// Fails.
#[tool(read_only)]
async fn test_error_handling() -> Result<String, ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

/// Reports its progress three times.
#[tool(read_only)]
async fn test_tool_with_progress(context: &ToolContext) -> &'static str {
    for done in [0, 50, 100] {
        context.on_progress(format!("{done} of 100"));
    }
    "done"
}

#[tokio::main]
async fn main() -> Result<()> {
    let port: u16 = std::env::args().nth(1).context("usage: mcp_conformance_server PORT")?.parse()?;
    let calls = Archon::builder()
        .provider(Arc::new(ClientCalls), ClientCalls::MODEL)
        .agent_id("mcp")
        .journal(Arc::new(InMemoryJournal::new()))
        .tool(test_simple_text)
        .tool(test_image_content)
        .tool(test_error_handling)
        .tool(test_tool_with_progress)
        .build()?;
    let toolbox = calls.toolbox().clone();
    let server = ToolServer::new(Arc::new(Runs::new(calls)), Arc::new(RandomIds)).with_tools("mcp", toolbox);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    serve_http(Fixture { server }, listener, &HttpServerOptions::default(), CancellationToken::new()).await?;
    Ok(())
}

/// Our server, and what the suite wants besides.
#[derive(Clone)]
struct Fixture {
    server: ToolServer,
}

/// Reads a complete result of the protocol.
fn complete<T: DeserializeOwned>(mut result: Json) -> Result<T, ErrorData> {
    result["resultType"] = json!("complete");
    of(result)
}

/// Reads a value of the protocol.
fn of<T: DeserializeOwned>(value: Json) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|e| ErrorData::internal_error(format!("the fixture is wrong: {e}"), None))
}

fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text.into())]).into())
}

fn content(blocks: Json) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(of(blocks)?).into())
}

fn form(message: &str, properties: Json, required: &[&str]) -> Json {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

fn name_form() -> Json {
    form("What is your name?", json!({ "name": { "type": "string" } }), &["name"])
}

fn asking(params: Json) -> Json {
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling(text: &str, tokens: u32) -> Json {
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": text } }]);
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": tokens } })
}

fn roots() -> Json {
    json!({ "method": "roots/list", "params": {} })
}

fn input(requests: Json, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(of(requests)?), state.map(str::to_owned)))
}

/// Returns a field of the form that a person filled in.
fn filled(responses: &InputResponses, key: &str, field: &str) -> Option<String> {
    let response = responses.get(key)?;
    (response["action"] == "accept").then(|| response["content"][field].as_str().map(str::to_owned))?
}

/// The tools beyond ours, each with the names of its text arguments.
const TOOLS: &[(&str, &[&str])] = &[
    ("test_audio_content", &[]),
    ("test_embedded_resource", &[]),
    ("test_multiple_content_types", &[]),
    ("test_tool_with_logging", &[]),
    ("test_logging_tool", &[]),
    ("test_sampling", &["prompt"]),
    ("test_elicitation", &["message"]),
    ("test_elicitation_sep1034_defaults", &[]),
    ("test_elicitation_sep1330_enums", &[]),
    ("test_missing_capability", &[]),
    ("test_streaming_elicitation", &[]),
    ("test_input_required_result_elicitation", &[]),
    ("test_input_required_result_sampling", &[]),
    ("test_input_required_result_list_roots", &[]),
    ("test_input_required_result_request_state", &[]),
    ("test_input_required_result_multiple_inputs", &[]),
    ("test_input_required_result_multi_round", &[]),
    ("test_input_required_result_tampered_state", &[]),
    ("test_input_required_result_capabilities", &[]),
];

fn listed() -> Result<Vec<Tool>, ErrorData> {
    let tool = |(name, arguments): &(&str, &[&str])| {
        let properties: serde_json::Map<_, _> =
            arguments.iter().map(|&name| (name.to_owned(), json!({ "type": "string" }))).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": arguments });
        json!({ "name": name, "description": "A tool of the conformance suite.", "inputSchema": schema })
    };
    let mut tools: Vec<Json> = TOOLS.iter().map(tool).collect();
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": {
                "street": { "type": "string" }, "city": { "type": "string" },
            } } },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        },
    }));
    of(Json::Array(tools))
}

impl Fixture {
    /// Answers a call of a tool whose result is fixed, or that asks the client during the call.
    async fn call(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name: &str| {
            request.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default()
        };
        match &*request.name {
            "test_audio_content" => {
                content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]))
            }
            "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            } }])),
            "test_multiple_content_types" => content(json!([
                { "type": "text", "text": "Multiple content types test:" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                { "type": "resource", "resource": {
                    "uri": "test://mixed-content-resource", "mimeType": "application/json",
                    "text": "{\"test\":\"data\",\"value\":123}",
                } },
            ])),
            "test_tool_with_logging" => log(context).await,
            "test_sampling" => {
                let params = sampling(argument("prompt"), 100)["params"].take();
                let request = CreateMessageRequest::new(of(params)?);
                match ask(context, ServerRequest::CreateMessageRequest(request)).await? {
                    ClientResult::CreateMessageResult(said) => {
                        text(format!("LLM response: {}", json!(said.message.content)))
                    }
                    _ => Err(ErrorData::internal_error("no message came back", None)),
                }
            }
            "test_elicitation" => {
                let properties = json!({ "username": { "type": "string" }, "email": { "type": "string" } });
                let params = form(argument("message"), properties, &["username", "email"]);
                text(format!("User response: {}", elicit(context, params).await?))
            }
            "test_elicitation_sep1034_defaults" => {
                text(format!("Elicitation completed: {}", elicit(context, with_defaults()).await?))
            }
            "test_elicitation_sep1330_enums" => {
                text(format!("Elicitation completed: {}", elicit(context, with_enums()).await?))
            }
            "test_logging_tool" => text("logged nothing"),
            _ => self.rounds(request, context),
        }
    }

    /// Answers a call that takes several rounds.
    fn rounds(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let responses = request.input_responses.clone().unwrap_or_default();
        let state = request.request_state.as_deref();
        let stale = || ErrorData::invalid_params("`requestState` was changed", None);
        match &*request.name {
            "test_missing_capability" if capabilities.sampling.is_none() => {
                let needed = json!({ "sampling": {} });
                Err(ErrorData::missing_required_client_capability(of(needed)?))
            }
            "test_missing_capability" => text("the client has it"),
            "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
                match filled(&responses, "user_name", "name") {
                    Some(name) => text(format!("Hello, {name}!")),
                    None => Ok(input(json!({ "user_name": asking(name_form()) }), None)?.into()),
                }
            }
            "test_input_required_result_sampling" => match responses.get("capital_question") {
                Some(said) => text(said["content"]["text"].as_str().unwrap_or_default()),
                None => {
                    let question = sampling("What is the capital of France?", 100);
                    Ok(input(json!({ "capital_question": question }), None)?.into())
                }
            },
            "test_input_required_result_list_roots" => match responses.get("client_roots") {
                Some(given) => text(format!("The roots are {}", given["roots"])),
                None => Ok(input(json!({ "client_roots": roots() }), None)?.into()),
            },
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                match (state, responses.is_empty()) {
                    (Some(STATE), false) => text("state-ok"),
                    (None, _) | (Some(STATE), true) => {
                        let confirm = form("Please confirm", json!({ "ok": { "type": "boolean" } }), &["ok"]);
                        Ok(input(json!({ "confirm": asking(confirm) }), Some(STATE))?.into())
                    }
                    _ => Err(stale()),
                }
            }
            "test_input_required_result_multiple_inputs" => {
                let all = ["user_name", "greeting", "client_roots"];
                match state {
                    Some(STATE) if all.iter().all(|key| responses.contains_key(*key)) => {
                        text("all inputs came")
                    }
                    None | Some(STATE) => {
                        let greeting = sampling("Generate a greeting", 50);
                        let asked = json!({
                            "user_name": asking(name_form()), "greeting": greeting, "client_roots": roots(),
                        });
                        Ok(input(asked, Some(STATE))?.into())
                    }
                    _ => Err(stale()),
                }
            }
            "test_input_required_result_multi_round" => multi_round(state, &responses),
            "test_input_required_result_capabilities" => {
                let mut asked = serde_json::Map::new();
                if capabilities.elicitation.is_some() {
                    asked.insert("user_name".to_owned(), asking(name_form()));
                }
                if capabilities.sampling.is_some() {
                    asked.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
                }
                Ok(input(Json::Object(asked), None)?.into())
            }
            other => Err(ErrorData::invalid_params(format!("there is no tool '{other}'"), None)),
        }
    }
}

fn multi_round(state: Option<&str>, responses: &InputResponses) -> Result<CallToolResponse, ErrorData> {
    let (name, color) = (filled(responses, "step1", "name"), filled(responses, "step2", "color"));
    match (state, name, color) {
        (Some(STATE_2), _, Some(color)) => text(format!("Your color is {color}.")),
        (Some(STATE), Some(_), _) | (Some(STATE_2), ..) => {
            let form = form(
                "Step 2: What is your favorite color?",
                json!({ "color": { "type": "string" } }),
                &["color"],
            );
            Ok(input(json!({ "step2": asking(form) }), Some(STATE_2))?.into())
        }
        (None | Some(STATE), ..) => {
            let form = form("Step 1: What is your name?", json!({ "name": { "type": "string" } }), &["name"]);
            Ok(input(json!({ "step1": asking(form) }), Some(STATE))?.into())
        }
        _ => Err(ErrorData::invalid_params("`requestState` was changed", None)),
    }
}

fn with_defaults() -> Json {
    let properties = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    form("Check these values", properties, &[])
}

fn with_enums() -> Json {
    let titled = |first: &str, second: &str, third: &str| {
        json!([
            { "const": "value1", "title": first }, { "const": "value2", "title": second },
            { "const": "value3", "title": third },
        ])
    };
    let plain = json!(["option1", "option2", "option3"]);
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": plain },
        "titledSingle": { "type": "string", "oneOf": titled("First Option", "Second Option", "Third Option") },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
        "titledMulti": {
            "type": "array", "items": { "anyOf": titled("First Choice", "Second Choice", "Third Choice") },
        },
    });
    form("Choose", properties, &[])
}

async fn ask(
    context: &RequestContext<RoleServer>,
    request: ServerRequest,
) -> Result<ClientResult, ErrorData> {
    let answer = context.peer.send_request(request).await;
    answer.map_err(|e| ErrorData::internal_error(format!("the client did not answer: {e}"), None))
}

/// Asks the person at the client, and describes the answer.
async fn elicit(context: &RequestContext<RoleServer>, params: Json) -> Result<String, ErrorData> {
    match ask(context, ServerRequest::ElicitRequest(ElicitRequest::new(of(params)?))).await? {
        ClientResult::ElicitResult(answer) => {
            Ok(format!("action={}, content={}", json!(answer.action), json!(answer.content)))
        }
        _ => Err(ErrorData::internal_error("no answer to a form came back", None)),
    }
}

async fn log(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = of(json!({ "level": "info", "data": line }))?;
        let sent = context.peer.notify_logging_message(params).await;
        sent.map_err(|e| ErrorData::internal_error(format!("the log was not sent: {e}"), None))?;
    }
    text("logged")
}

fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument =
        |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
    let said = |text: String| json!({ "role": "user", "content": { "type": "text", "text": text } });
    let messages = match &*request.name {
        "test_simple_prompt" => json!([said("This is a simple prompt for testing.".to_owned())]),
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            json!([said(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))])
        }
        "test_prompt_with_embedded_resource" => json!([
            { "role": "user", "content": { "type": "resource", "resource": {
                "uri": argument("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            } } },
            said("Please process the embedded resource above.".to_owned()),
        ]),
        "test_prompt_with_image" => json!([
            { "role": "user", "content": { "type": "image", "data": PNG, "mimeType": "image/png" } },
            said("Please analyze the image above.".to_owned()),
        ]),
        "test_input_required_result_prompt" => {
            let responses = request.input_responses.clone().unwrap_or_default();
            let Some(context) = filled(&responses, "user_context", "context") else {
                let question = "What context should the prompt use?";
                let form = form(question, json!({ "context": { "type": "string" } }), &["context"]);
                return Ok(input(json!({ "user_context": asking(form) }), None)?.into());
            };
            json!([said(format!("The context is {context}."))])
        }
        other => return Err(ErrorData::invalid_params(format!("there is no prompt '{other}'"), None)),
    };
    let result: GetPromptResult = complete(json!({ "messages": messages }))?;
    Ok(result.into())
}

fn resource(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            json!({ "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "mimeType": "image/png", "blob": PNG }),
        "test://watched-resource" => json!({ "mimeType": "text/plain", "text": "It never changes." }),
        _ => {
            let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id else {
                return Err(ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))));
            };
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            json!({ "mimeType": "application/json", "text": data.to_string() })
        }
    };
    let mut contents = contents;
    contents["uri"] = json!(uri);
    complete(json!({ "contents": [contents] }))
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities).with_server_info(self.server.get_info().server_info)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.server.list_tools(page, context).await?;
        tools.tools.extend(listed()?);
        Ok(tools)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let beyond = || listed().ok()?.into_iter().find(|tool| tool.name == name);
        self.server.get_tool(name).or_else(beyond)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.server.get_tool(&request.name) {
            Some(_) => self.server.call_tool(request, context).await,
            None => self.call(&request, &context).await,
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments: Vec<_> =
                arguments.iter().map(|name| json!({ "name": name, "required": true })).collect();
            json!({ "name": name, "description": "A prompt of the conformance suite.", "arguments": arguments })
        };
        complete(json!({ "prompts": [
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
            prompt("test_input_required_result_prompt", &[]),
        ] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompt(&request)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |uri: &str, kind: &str| {
            let description = "A resource of the conformance suite.";
            json!({ "uri": uri, "name": uri, "description": description, "mimeType": kind })
        };
        complete(json!({ "resources": [
            resource("test://static-text", "text/plain"),
            resource("test://static-binary", "image/png"),
            resource("test://watched-resource", "text/plain"),
        ] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        complete(json!({ "resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data", "name": "template",
            "description": "A template of the conformance suite.", "mimeType": "application/json",
        }] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resource(&request.uri)?.into())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        complete(
            json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
        )
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // Newer revisions have dropped the request.
        match context.protocol_version() {
            Some(version) if version >= ProtocolVersion::V_2026_07_28 => {
                Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
            }
            _ => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}
