//! The tool `code_executor`: runs a program that a model wrote.

use std::{sync::Arc, time::Duration};

use archon_types::{
    BoxFuture, Context, Json, Preview, Tool, ToolAnnotations, ToolContext, ToolError, ToolResult, ToolSpec,
    Toolbox,
};
use serde::Deserialize;
use serde_json::json;

use crate::{CodeOptions, CodeSetupError, Language, functions::Functions, output::cut, program::Program};

/// Runs programs such as `{"language": "python", "code": "2 + 2"}`. It needs the permission `code_exec`.
///
/// The result has the printed output and the value of the last expression. If the value is JSON, it is also
/// in the result's metadata. An uncaught exception is a failure with the line number and the language's own
/// message. A program cannot use files, the network, environment variables or other programs.
///
/// ```
/// # #[cfg(feature = "python")] {
/// use archon_code::{CodeExecutor, CodeOptions};
/// use archon_types::Tool;
///
/// let tool = CodeExecutor::new(CodeOptions::default());
/// assert_eq!(tool.spec().name, "code_executor");
/// # }
/// ```
pub struct CodeExecutor {
    spec: ToolSpec,
    options: CodeOptions,
    functions: Option<Functions>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    language: String,
    code: String,
    timeout_ms: Option<u64>,
}

impl CodeExecutor {
    /// Creates the tool without functions.
    pub fn new(options: CodeOptions) -> Self {
        let mut annotations = ToolAnnotations::read_only();
        annotations.permissions = vec![PERMISSION.to_owned()];
        // The engine's limit is wall time and the program's is processor time, which may pass slowly on a
        // busy machine.
        annotations.timeout_ms = Some(millis(options.max_time.saturating_mul(4) + SLACK));
        let mut spec =
            ToolSpec::new("code_executor", ABOUT, parameters(&options)).with_annotations(annotations);
        spec.label = "Code".to_owned();
        spec.examples = Language::ALL.iter().map(|language| example(*language)).collect();
        Self { spec, options, functions: None }
    }

    /// Lets programs call these tools of `toolbox` as functions.
    ///
    /// Each call passes all guards of the toolbox, and the permission bound of the engine that runs the program. A
    /// call that needs approval runs only if the toolbox's approver approves it at once. As `toolbox`, give an engine
    /// made by `ToolEngine::for_parts`: its results are for programs, not for a model.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon_code::{CodeExecutor, CodeOptions, CodeSetupError};
    /// fn with_stock(tools: Arc<dyn archon_types::Toolbox>) -> Result<CodeExecutor, CodeSetupError> {
    ///     CodeExecutor::new(CodeOptions::default()).with_tools(tools, ["stock"])
    /// }
    /// ```
    ///
    /// # Errors
    /// A tool is not in the toolbox, or cannot be a function.
    pub fn with_tools<T: Into<String>>(
        mut self,
        toolbox: Arc<dyn Toolbox>,
        names: impl IntoIterator<Item = T>,
    ) -> Result<Self, CodeSetupError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let functions = Functions::new(toolbox, &names)?;
        self.spec.description = format!("{ABOUT}{}", functions.description());
        let mut annotations = functions.annotations.clone();
        annotations.permissions.push(PERMISSION.to_owned());
        annotations.permissions.sort();
        annotations.permissions.dedup();
        annotations.timeout_ms = self.spec.annotations.timeout_ms.max(Some(millis(self.options.with_tools)));
        self.spec.annotations = annotations;
        self.functions = Some(functions);
        Ok(self)
    }

    /// Checks the arguments of a call and makes the program to run.
    fn program(&self, arguments: Json) -> Result<Program, ToolError> {
        let Arguments { language, code, timeout_ms } = serde_json::from_value(arguments)
            .map_err(|e| ToolError::InvalidArgs(format!("Invalid arguments: {e}")))?;
        let language = Language::named(&language).map_err(ToolError::InvalidArgs)?;
        if code.len() > self.options.code {
            return Err(ToolError::InvalidArgs(format!(
                "The code has {} bytes, and may have {}. It was not run. Send less, and data in another way.",
                code.len(),
                self.options.code
            )));
        }
        let time = timeout_ms.map_or(self.options.time, Duration::from_millis).min(self.options.max_time);
        Ok(Program { language, code, time, options: self.options.clone() })
    }

    async fn run(&self, arguments: Json, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let program = self.program(arguments)?;
        let below = context.below(&self.spec.name)?;
        let (language, code, time) = (program.language, program.code.clone(), program.time);
        let outcome = program.run(self.functions.as_ref(), context, &below).await?;
        Ok(outcome.into_result(language, &code, time, &self.options))
    }
}

impl Tool for CodeExecutor {
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

    fn preview(&self, arguments: &Json, _: &Context) -> Result<Option<Preview>, ToolError> {
        let program = self.program(arguments.clone())?;
        let shown = cut(&program.code, SHOWN);
        let mut summary = format!("Run {}:\n{shown}", program.language);
        if let more @ 1.. = program.code[shown.len()..].chars().count() {
            summary.push_str(&format!("\n... {more} more characters in the arguments"));
        }
        Ok(Some(Preview::new(summary)))
    }

    fn calls(&self) -> &[String] {
        self.functions.as_ref().map_or(&[], |functions| &functions.tools)
    }
}

archon_types::debug_fields!(CodeExecutor: spec);

fn parameters(options: &CodeOptions) -> Json {
    let names: Vec<_> = Language::ALL.iter().map(|language| language.name()).collect();
    json!({
        "type": "object",
        "properties": {
            "language": { "type": "string", "enum": names },
            "code": { "type": "string", "description": "The program. The value of its last expression is given back" },
            "timeout_ms": {
                "type": "integer",
                "minimum": 1,
                "description": format!(
                    "Processor time in milliseconds; {} by default, at most {}",
                    millis(options.time),
                    millis(options.max_time)
                ),
            },
        },
        "required": ["language", "code"],
        "additionalProperties": false,
    })
}

fn example(language: Language) -> Json {
    let code = match language {
        #[cfg(feature = "python")]
        Language::Python => "sum(n * n for n in range(10))",
        #[cfg(feature = "javascript")]
        Language::JavaScript => "[3, 1, 2].sort().join(' ')",
    };
    json!({ "language": language.name(), "code": code })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

const PERMISSION: &str = "code_exec";
const ABOUT: &str = "Runs a short program and returns what it prints and the value of its last expression. Use it to \
                     calculate, to sort, filter and count, and to work on texts and JSON. It has no files, no network \
                     and no packages.";
/// The engine's time limit of a call is at least four times the maximum processor time of a program plus this
/// time.
const SLACK: Duration = Duration::from_secs(5);
/// Maximum number of bytes of code in an approval request.
const SHOWN: usize = 2_000;
