//! Tools as functions of a program.

use std::sync::Arc;

use archon_code::{CodeExecutor, CodeSetupError};
use archon_types::{Effect, Json, Tool, ToolAnnotations, ToolResult, ToolSpec};
use serde_json::json;

use crate::fixture::{Answering, call, context, echo, executor, spec};

/// The arguments that a program gets back, and the arguments that the tool got.
async fn check(language: &str, code: &str, seen: Json, expected: &str) {
    let tools = echo();
    let result = call(&tools.executor(&["echo"]), language, code).await;
    assert_eq!(result.text(), expected, "{code}");
    assert_eq!(tools.take(), [seen], "{code}");
}

// spec: TE-47
#[tokio::test]
async fn arguments_and_results_keep_their_types() {
    check("python", "echo(1, 'x')", json!({ "a": 1, "b": "x" }), r#"{"a": 1, "b": "x"}"#).await;
    check(
        "python",
        "echo(b=None, a=[1, [2.5, True]])",
        json!({ "a": [1, [2.5, true]], "b": null }),
        r#"{"b": null, "a": [1, [2.5, true]]}"#,
    )
    .await;
    check(
        "python",
        "echo(2 ** 63, b=2 ** 53 + 1)['a'] - 2 ** 63",
        json!({ "a": 1_u64 << 63, "b": (1_u64 << 53) + 1 }),
        "0",
    )
    .await;
    check("python", "r = echo(a={'k': ()})\nr['a']['k'] == []", json!({ "a": { "k": [] } }), "true").await;
    check("javascript", "echo({a: 1, b: 'x'})", json!({ "a": 1, "b": "x" }), r#"{"a":1,"b":"x"}"#).await;
    check(
        "javascript",
        "const r = echo({a: [1, [2.5, true]], b: null}); r.b === null && r.a[1][0]",
        json!({ "a": [1, [2.5, true]], "b": null }),
        "2.5",
    )
    .await;
    check(
        "javascript",
        "const r = echo({a: 2n ** 63n, b: -(2n ** 53n) - 1n}); [typeof r.a, r.a - 2n ** 63n, r.b]",
        json!({ "a": 1_u64 << 63, "b": -(1_i64 << 53) - 1 }),
        r#"["bigint",0,-9007199254740993]"#,
    )
    .await;
    check("javascript", "typeof echo({a: 2 ** 53 - 1}).a", json!({ "a": (1_u64 << 53) - 1 }), "number").await;
    check("javascript", "(await echo({a: 1})).a", json!({ "a": 1 }), "1").await;
    check(
        "javascript",
        "echo({a: [undefined, () => 1], b: undefined}).a",
        json!({ "a": [null, null] }),
        "[null,null]",
    )
    .await;
}

// spec: TE-47
#[tokio::test]
async fn tool_functions_can_be_called_from_nested_and_async_code() {
    let tools = echo();
    let tool = tools.executor(&["echo"]);
    for (language, code) in [
        ("python", "sum(echo(n)['a'] for n in range(3))"),
        ("python", "[echo(n)['a'] for n in range(3)][1] + 2"),
        ("python", "def f(n):\n    return echo(n)['a']\nf(1) + f(2)"),
        ("javascript", "[0, 1, 2].map((a) => echo({a}).a).reduce((x, y) => x + y)"),
        ("javascript", "(await Promise.all([1, 2].map(async (a) => echo({a}).a))).reduce((x, y) => x + y)"),
    ] {
        assert_eq!(call(&tool, language, code).await.text(), "3", "{code}");
    }
    tools.take();
    let handed_on = call(&tool, "python", "list(map(echo, [1, 2]))").await.text();
    assert!(handed_on.contains("NotImplementedError: map(): "), "{handed_on}");
    assert_eq!(tools.take(), [Json::Null; 0]);
}

// spec: TE-47
#[tokio::test]
async fn a_result_that_is_no_json_is_a_text() {
    let tools = Answering::new(vec![spec("page")], |_, _| Ok("<p>a page</p>".into()));
    assert_eq!(call(&tools.executor(&["page"]), "python", "page(1).upper()").await.text(), "<P>A PAGE</P>");
    assert_eq!(call(&tools.executor(&["page"]), "javascript", "page({a: 1}).length").await.text(), "13");
}

// spec: TE-47
#[tokio::test]
async fn wrong_arguments_are_exceptions_and_no_call() {
    for (code, words) in [
        ("echo(1, 2, 3)", "TypeError: echo() takes 2 arguments by their place, and 3 were given"),
        ("echo(1, a=2)", "TypeError: echo() got the argument 'a' twice"),
        (
            "echo(2 ** 64)",
            "TypeError: the number 18446744073709551616 does not fit into 64 bits; pass it as a text",
        ),
        ("echo({1})", "TypeError: Object of type set is not JSON serializable"),
        ("echo({(1, 2): 3})", "TypeError: keys must be str, int, float, bool or None, not tuple"),
        ("echo(float('nan'))", "ValueError: Out of range float values are not JSON compliant: nan"),
        (
            "echo('x' * 2_000_000)",
            "ValueError: echo() was given 2000010 bytes of arguments, and may be given 1000000",
        ),
        ("a = []\na.append(a)\necho(a)", "ValueError: the value holds itself"),
        ("_archon_call('nothing', '[[], {}]')", "NameError: there is no function 'nothing'"),
        ("_archon_call('echo', '[[], []]')", "TypeError: "),
        ("_archon_call('echo', 1)", "TypeError: "),
        ("_archon_call()", "TypeError: "),
    ] {
        check_wrong("python", code, words).await;
    }
    for (code, words) in [
        ("echo(1)", "TypeError: echo() takes an object with its arguments, for instance echo({key: 1})"),
        ("echo([1])", "TypeError: echo() takes an object"),
        ("echo(null)", "TypeError: echo() takes an object"),
        ("echo({a: 2n ** 64n})", "TypeError: the number 18446744073709551616 does not fit into 64 bits"),
        ("echo({a: 'x'.repeat(2e6)})", "RangeError: echo() was given 2000008 bytes of arguments"),
        ("let a = []; a.push(a); echo({a})", "TypeError: the value holds itself, or is too deep to be JSON"),
    ] {
        check_wrong("javascript", code, words).await;
    }
}

async fn check_wrong(language: &str, code: &str, words: &str) {
    let tools = echo();
    let result = call(&tools.executor(&["echo"]), language, code).await;
    assert!(result.is_error() && result.text().contains(words), "{code}: {}", result.text());
    assert_eq!(tools.take(), [Json::Null; 0], "{code}");
}

// spec: TE-47
#[tokio::test]
async fn a_failure_is_an_exception_that_can_be_caught() {
    let tools = Answering::new(vec![spec("fails"), spec("denied")], |name, _| match name {
        "fails" => Ok(ToolResult::error("no such page")),
        _ => Err(Box::new(
            ToolResult::error("a rule denies it").with_metadata("error_type", "permission_denied"),
        )),
    });
    let tool = tools.executor(&["fails", "denied"]);
    let text = async |language, code| call(&tool, language, code).await.text();
    let caught = "try:\n    fails(1)\nexcept RuntimeError as e:\n    print(e)\ntry:\n    denied(1)\nexcept PermissionError as e:\n    print(e)";
    assert_eq!(text("python", caught).await, "fails: no such page\ndenied: a rule denies it\n");
    let caught = "for (const f of [fails, denied]) try { f({a: 1}) } catch (e) { console.log(e.message) }";
    assert_eq!(text("javascript", caught).await, "fails: no such page\ndenied: a rule denies it\n");
    assert_eq!(
        text("python", "x = 1\nfails(1)").await,
        "Error: line 2: RuntimeError: fails: no such page\n    fails(1)"
    );
    assert_eq!(
        text("javascript", "let x = 1;\nfails({})").await,
        "Error: line 2: Error: fails: no such page\n    fails({})"
    );
}

// spec: TE-47
#[tokio::test]
async fn calls_are_counted() {
    let tools = echo();
    let mut options = crate::fixture::roomy();
    options.calls = 3;
    for (language, code) in
        [("python", "for i in range(9): echo(i)"), ("javascript", "for (let i = 0; ; i++) echo({a: i})")]
    {
        let tool = CodeExecutor::new(options.clone()).with_tools(Arc::new(tools.clone()), ["echo"]).unwrap();
        let result = call(&tool, language, code).await;
        assert!(result.text().contains("a program may make 3 calls"), "{}", result.text());
        assert_eq!((tools.take().len(), &result.metadata["calls"]), (3, &json!(3)), "{language}");
    }
}

// spec: TE-47
#[tokio::test]
async fn code_executor_spec_lists_its_functions_and_has_the_worst_effect() {
    let mut writes = spec("files.write-all");
    writes.annotations = ToolAnnotations::default();
    writes.annotations.permissions = vec!["fs_write".to_owned()];
    let mut reads = spec("echo");
    reads.annotations = ToolAnnotations::read_only();
    let tools = Answering::new(vec![writes, reads], |name, _| Ok(format!("{name}!").into()));
    let tool = tools.executor(&["echo", "files.write-all"]);
    let spec = tool.spec();
    assert!(spec.description.ends_with("\n- echo(a, b?): Gives back what it was given.\n- files_write_all(a, b?): Gives back what it was given."), "{}", spec.description);
    assert_eq!(spec.annotations.permissions, ["code_exec", "fs_write"]);
    assert_eq!((spec.annotations.effect, spec.annotations.concurrency_safe), (Effect::SideEffect, false));
    assert_eq!(tool.calls(), ["echo", "files.write-all"]);
    assert_eq!(call(&tool, "python", "files_write_all(1)").await.text(), "files.write-all!");
    let alone = executor();
    assert_eq!((alone.spec().annotations.effect, alone.calls().len()), (Effect::ReadOnly, 0));
    let unknown = call(&alone, "python", "echo(1)").await.text();
    assert!(unknown.contains("NameError: name 'echo' is not defined"), "{unknown}");
}

// spec: TE-47
#[test]
fn tools_that_cannot_be_functions_are_refused() {
    let with = |names: &[&str], exposed: &[&str]| {
        let specs: Vec<ToolSpec> = names.iter().map(|name| spec(name)).collect();
        let tools = Arc::new(Answering::new(specs, |_, _| Ok("".into())));
        executor().with_tools(tools, exposed.iter().copied()).map(drop)
    };
    assert_eq!(with(&["a", "b"], &["a", "a", "b"]), Ok(()));
    let unknown = with(&["a", "b"], &["c"]).unwrap_err();
    assert_eq!(unknown.to_string(), "the toolbox has no tool 'c'; its tools are: a, b");
    assert!(matches!(with(&["a.b", "a-b"], &["a.b", "a-b"]), Err(CodeSetupError::SameFunction { .. })));
    for word in ["class", "print", "let", "console"] {
        assert!(matches!(with(&[word], &[word]), Err(CodeSetupError::Reserved { .. })), "{word}");
    }
}

// spec: TE-47, EX-04
#[tokio::test]
async fn a_tool_that_calls_itself_is_refused() {
    let mut above = context();
    above.run.tools_above = vec!["code_executor".to_owned()].into();
    let refused = executor().call(json!({ "language": "python", "code": "1" }), &above).await.unwrap_err();
    assert!(refused.to_string().contains("in a circle: code_executor → code_executor"), "{refused}");
}
