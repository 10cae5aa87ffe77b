//! Tools as functions of a program. Each call passes all guards of the toolbox that the tool comes from.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, Context, Executed, Json, Prepared, ToolAnnotations, ToolCall, ToolResult, ToolSpec,
    Toolbox, metadata,
};

use crate::{CodeSetupError, Language, output::shortened};

/// The tools that a program can call as functions.
pub(crate) struct Functions {
    toolbox: Arc<dyn Toolbox>,
    pub(crate) list: Arc<[Function]>,
    pub(crate) tools: Vec<String>,
    pub(crate) annotations: ToolAnnotations,
}

/// One tool as a function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// Name in the program: the tool's name, with `_` in place of characters that a name may not have.
    pub(crate) name: String,
    tool: String,
    /// The tool's parameters, in the order of its schema; `true` marks required ones.
    parameters: Vec<(String, bool)>,
    description: String,
}

/// A call that failed, as the program sees it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Stable code of the error, as in [`ToolError::code`](archon_types::ToolError::code).
    pub(crate) kind: String,
    pub(crate) text: String,
}

impl Functions {
    /// Makes functions of the named tools.
    pub(crate) fn new(toolbox: Arc<dyn Toolbox>, names: &[String]) -> Result<Self, CodeSetupError> {
        let specs = toolbox.specs();
        let spec_of = |name: &String| {
            specs.iter().find(|spec| spec.name == *name).ok_or_else(|| CodeSetupError::UnknownTool {
                tool: name.clone(),
                known: specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>().join(", "),
            })
        };
        let specs: Vec<&ToolSpec> = names.iter().map(spec_of).collect::<Result<_, _>>()?;
        let mut list: Vec<Function> = Vec::new();
        for spec in &specs {
            let function = Function::new(spec);
            if let Some(language) = Language::ALL.iter().find(|language| language.is_reserved(&function.name))
            {
                let (tool, function) = (function.tool, function.name);
                return Err(CodeSetupError::Reserved { tool, function, language: language.name() });
            }
            match list.iter().find(|other| other.name == function.name) {
                Some(other) if other.tool == function.tool => {}
                Some(other) => {
                    return Err(CodeSetupError::SameFunction {
                        first: other.tool.clone(),
                        second: function.tool,
                        function: function.name,
                    });
                }
                None => list.push(function),
            }
        }
        let annotations = ToolAnnotations::as_harmful_as(specs.iter().map(|spec| &spec.annotations));
        let tools = list.iter().map(|function| function.tool.clone()).collect();
        Ok(Self { toolbox, list: list.into(), tools, annotations })
    }

    /// Returns the part of the tool's description that lists the functions for the model.
    pub(crate) fn description(&self) -> String {
        let mut text =
            "\nThese tools are functions in it. In Python: name(a, b=1). In JavaScript: name({a: 1, b: 2}), \
                        which needs no await. A result that is JSON is a value; a failure is an exception. In Python they cannot be \
                        handed to map(), filter() or a key: use a loop."
                .to_owned();
        for function in self.list.iter() {
            let parameters: Vec<_> = function
                .parameters
                .iter()
                .map(|(name, is_needed)| if *is_needed { name.clone() } else { format!("{name}?") })
                .collect();
            let about = shortened(function.description.lines().next().unwrap_or_default(), DESCRIPTION);
            text.push_str(&format!("\n- {}({}): {about}", function.name, parameters.join(", ")));
        }
        text
    }

    /// Calls the tool as an agent's loop does. Returns every problem as a [`Failure`], even the need for a person's
    /// answer.
    pub(crate) async fn call(
        &self,
        function: usize,
        arguments: Json,
        run: &Context,
    ) -> Result<Json, Failure> {
        let Some(function) = self.list.get(function) else {
            return Err(Failure::new("not_found", "there is no such function"));
        };
        let call = ToolCall::new(run.ids.fresh("call"), function.tool.clone(), arguments);
        let asked = |summary: &str| {
            let text = format!("{summary}: a person has to decide first. It was not run.");
            Failure::new("permission_denied", text)
        };
        let unknown = |text: &str| Failure::new("execution_error", text);
        // The call has no position in the run's log.
        let id = CallId::new(CommandId(0), 0);
        let result = match self.toolbox.prepare(id, &call, run).await {
            Prepared::Ready(ready) => match self.toolbox.execute(ready, run).await {
                Executed::Done(result) => result,
                Executed::Suspended(question) => return Err(asked(&question.action_summary)),
                _ => return Err(unknown("the toolbox ended the call in an unknown way")),
            },
            Prepared::Refused(result) => result,
            Prepared::Ask(question) => return Err(asked(&question.action_summary)),
            _ => return Err(unknown("the toolbox prepared the call in an unknown way")),
        };
        if result.is_error() { Err(Failure::of(&result)) } else { Ok(value(&result)) }
    }
}

impl Function {
    fn new(spec: &ToolSpec) -> Self {
        let properties = spec.parameters.get("properties").and_then(Json::as_object);
        let required = spec.parameters.get("required").and_then(Json::as_array);
        let is_needed = |name: &str| {
            required.is_some_and(|names| names.iter().any(|needed| needed.as_str() == Some(name)))
        };
        let names = properties.into_iter().flat_map(|all| all.keys());
        Self {
            name: identifier(&spec.name),
            tool: spec.name.clone(),
            parameters: names.map(|name| (name.clone(), is_needed(name))).collect(),
            description: spec.description.clone(),
        }
    }

    /// Builds the arguments of a call from positional and named ones.
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
    pub(crate) fn arguments(
        &self,
        by_place: Vec<Json>,
        mut named: serde_json::Map<String, Json>,
    ) -> Result<Json, String> {
        if by_place.len() > self.parameters.len() {
            return Err(format!(
                "{}() takes {} arguments by their place, and {} were given",
                self.name,
                self.parameters.len(),
                by_place.len()
            ));
        }
        for ((name, _), value) in self.parameters.iter().zip(by_place) {
            if named.insert(name.clone(), value).is_some() {
                return Err(format!("{}() got the argument '{name}' twice", self.name));
            }
        }
        Ok(named.into())
    }
}

impl Failure {
    pub(crate) fn new(kind: &str, text: impl Into<String>) -> Self {
        Self { kind: kind.to_owned(), text: text.into() }
    }

    fn of(result: &ToolResult) -> Self {
        let kind =
            result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str).unwrap_or("execution_error");
        let text = result.text();
        Self::new(kind, text.strip_prefix("Error: ").unwrap_or(&text))
    }
}

/// Parses a result as JSON; if it is not JSON, returns its text as a string.
fn value(result: &ToolResult) -> Json {
    let text = result.text();
    crate::exact_json::exact_json(&text).unwrap_or_else(|_| Json::from(text))
}

/// Makes a function's name of a tool's name: `mcp.read-file` becomes `mcp_read_file`.
fn identifier(tool: &str) -> String {
    let mut name: String =
        tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// Maximum length of a tool's description in the list of functions, in bytes.
const DESCRIPTION: usize = 200;
