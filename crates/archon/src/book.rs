//! Pages with Rust blocks, which are compiled and run as doctests: one line for each page. `cargo xtask book --check`
//! fails if a page is missing. Their code may use all features of the command, so run them together with it:
//! `cargo test --doc -p archon-agents -p archon-agents-cli book`.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {$(
        #[doc = include_str!(concat!("../../../", $path))]
        struct $name;
    )*};
}

pages! {
    Readme: "README.md",
    Bus: "docs/bus.md",
    HowToApprovals: "docs/book/how-to/approvals.md",
    HowToContextWindow: "docs/book/how-to/context-window.md",
    HowToCosts: "docs/book/how-to/costs.md",
    HowToDependOnLess: "docs/book/how-to/depend-on-less.md",
    HowToDeploy: "docs/book/how-to/deploy-and-observe.md",
    HowToLocalModels: "docs/book/how-to/local-models.md",
    HowToMedia: "docs/book/how-to/media.md",
    HowToQuestions: "docs/book/how-to/questions.md",
    HowToRetry: "docs/book/how-to/retry-and-fallback.md",
    HowToSandbox: "docs/book/how-to/sandbox.md",
    HowToShowARun: "docs/book/how-to/show-a-run.md",
    HowToSqlite: "docs/book/how-to/sqlite.md",
    HowToSwap: "docs/book/how-to/swap-a-pillar.md",
    Library: "docs/library.md",
    Pillars: "docs/pillars.md",
    Providers: "docs/providers.md",
    Service: "docs/service.md",
    Testing: "docs/testing.md",
    FromClaudeAgentSdk: "docs/book/coming-from/claude-agent-sdk.md",
    FromLangGraph: "docs/book/coming-from/langgraph.md",
    FromPydanticAi: "docs/book/coming-from/pydantic-ai.md",
    FromRig: "docs/book/coming-from/rig.md",
    ReferenceEvents: "docs/book/reference/events.md",
    TutorialATool: "docs/book/tutorials/a-tool.md",
    TutorialFirstAgent: "docs/book/tutorials/first-agent.md",
    TutorialKillAndResume: "docs/book/tutorials/kill-and-resume.md",
    TutorialMemory: "docs/book/tutorials/memory.md",
    TutorialPlan: "docs/book/tutorials/plan.md",
    TutorialStreaming: "docs/book/tutorials/streaming.md",
    TutorialStructuredOutput: "docs/book/tutorials/structured-output.md",
    TutorialSubAgents: "docs/book/tutorials/sub-agents.md",
    TutorialSupportDesk: "docs/book/tutorials/support-desk.md",
    TutorialTeam: "docs/book/tutorials/team.md",
    TutorialTests: "docs/book/tutorials/tests.md",
}

#[cfg(all(unix, feature = "undo"))]
pages! {
    HowToUndo: "docs/book/how-to/undo.md",
}

#[cfg(all(unix, feature = "hooks"))]
pages! {
    HowToHooks: "docs/book/how-to/hooks.md",
}

#[cfg(all(
    feature = "answers-mail",
    feature = "event-sources-imap",
    feature = "notify-mail",
    feature = "orchestrator",
    feature = "server"
))]
pages! {
    HowToAnswers: "docs/book/how-to/answers.md",
    HowToEventSources: "docs/book/how-to/event-sources.md",
    HowToMailAssistant: "docs/book/how-to/mail-assistant.md",
}

#[cfg(all(feature = "triggers", feature = "notify-mail", feature = "oauth"))]
pages! {
    HowToTriggers: "docs/book/how-to/triggers.md",
}

#[cfg(feature = "server-tls")]
pages! {
    HowToDashboard: "docs/book/how-to/dashboard.md",
}

#[cfg(all(feature = "server-tls", feature = "triggers"))]
pages! {
    HowToServe: "docs/book/how-to/serve-over-http.md",
}

#[cfg(feature = "skills")]
pages! {
    HowToAgentFiles: "docs/book/how-to/agent-files.md",
    HowToSkills: "docs/book/how-to/skills.md",
}

#[cfg(feature = "openai-serve")]
pages! {
    HowToServeModels: "docs/book/how-to/openai-clients.md",
}

#[cfg(feature = "openapi")]
pages! {
    HowToOpenApi: "docs/book/how-to/openapi.md",
}

#[cfg(all(feature = "mcp-sign-in", feature = "mcp-serve"))]
pages! {
    McpServers: "docs/mcp.md",
}
