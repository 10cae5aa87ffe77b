//! The value of a program that finishes, and the error of a program that does not.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{LANGUAGES, javascript, python, run};

async fn check_failure(language: &str, code: &str, expected: Expect) {
    let result = run(language, code).await;
    assert!(result.is_error());
    expected.assert_eq(&result.text());
}

// spec: TE-47
#[tokio::test]
async fn the_value_of_the_last_expression_is_given_back() {
    assert_eq!(python("x = 20\nx * 2 + 2").await, "42");
    assert_eq!(
        python("[1, None, True, 'ä', {'a': (1.5, 2)}]").await,
        r#"[1, null, true, "ä", {"a": [1.5, 2]}]"#
    );
    assert_eq!(python("'a text'").await, "a text");
    assert_eq!(python("{1, 2} - {2}").await, "{1}");
    assert_eq!(python("(\n  1 +\n  2\n)  # three").await, "3");
    assert_eq!(python("2 ** 100").await, "1267650600228229401496703205376");
    assert_eq!(python("def f():\n    return 1\nf").await.split(' ').next(), Some("<function"));
    assert_eq!(javascript("let x = 20; x * 2 + 2").await, "42");
    assert_eq!(
        javascript("[1, null, undefined, true, 'ä', {a: [1.5, 2n], f() {}}]").await,
        r#"[1,null,null,true,"ä",{"a":[1.5,2]}]"#
    );
    assert_eq!(javascript("'a text'").await, "a text");
    assert_eq!(javascript("({a: new Date(0)})").await, r#"{"a":"1970-01-01T00:00:00.000Z"}"#);
    assert_eq!(javascript("[0 / 0, 1e21, -0]").await, "[null,1e+21,0]");
    assert_eq!(javascript("0 / 0").await, "NaN");
    assert_eq!(javascript("Symbol('s')").await, "Symbol(s)");
    assert_eq!(javascript("2n ** 100n").await, "1267650600228229401496703205376");
    let result = run("python", "{'a': [1, 2]}").await;
    assert_eq!(result.metadata["value"], json!({ "a": [1, 2] }));
    assert_eq!(result.metadata["language"], json!("python"));
}

// spec: TE-47
#[tokio::test]
async fn program_result_has_printed_text_before_the_value() {
    assert_eq!(python("print('a', 1, end='!')\nprint()\n3").await, "a 1!\nValue: 3");
    assert_eq!(python("print('only')").await, "only\n");
    assert_eq!(
        javascript("console.log('a', 1, {b: 2n}, [undefined]); 3").await,
        "a 1 {\"b\":2} [null]\nValue: 3"
    );
    assert_eq!(
        javascript("console.error(new RangeError('far'), () => 1)").await,
        "RangeError: far [Function: ]\n"
    );
    for nothing in ["", "x = 1", "None", "# nothing", "\n\n"] {
        assert_eq!(python(nothing).await, "(no output)", "{nothing:?}");
    }
    for nothing in ["", "let x = 1", "undefined", "// nothing", "\n\n"] {
        assert_eq!(javascript(nothing).await, "(no output)", "{nothing:?}");
    }
}

#[tokio::test]
async fn programs_in_javascript_may_await() {
    assert_eq!(javascript("await Promise.resolve(3) + 1").await, "4");
    assert_eq!(javascript("async function main() { await null; return 5 }\nmain()").await, "5");
    check_failure(
        "javascript",
        "async function main() { await null;\n throw new Error('late') }\nmain()",
        expect![[r#"
            Error: line 2: Error: late
                throw new Error('late') }"#]],
    )
    .await;
    check_failure(
        "javascript",
        "await new Promise(() => {})",
        expect!["Error: Error: the program waits for something that never comes"],
    )
    .await;
}

// spec: TE-47
#[tokio::test]
async fn program_error_names_its_line() {
    check_failure(
        "python",
        "def f(x):\n    return 1 / x\nprint('before')\nf(0)",
        expect![[r#"
            Error: line 2: ZeroDivisionError: division by zero
                return 1 / x
            It wrote before:
            before
        "#]],
    )
    .await;
    check_failure(
        "python",
        "x = 1\nif x\n    pass",
        expect![[r#"
            Error: line 2: SyntaxError: Expected `:`, found newline
                if x"#]],
    )
    .await;
    check_failure(
        "javascript",
        "function f(x) {\n  return x.y.z;\n}\nf({})",
        expect![[r#"
            Error: line 2: TypeError: cannot read property 'z' of undefined
                return x.y.z;"#]],
    )
    .await;
    check_failure(
        "javascript",
        "let x = 1;\nlet = = 2;",
        expect![[r#"
            Error: line 2: SyntaxError: unexpected token in expression: '='
                let = = 2;"#]],
    )
    .await;
    check_failure("javascript", "throw {a: 1}", expect![[r#"Error: uncaught: {"a":1}"#]]).await;
}

#[tokio::test]
async fn a_program_that_changes_the_language_harms_itself_only() {
    let changed = "JSON.stringify = () => 'x'; Array.isArray = () => true; Array.prototype.push = null;\
                   Object.keys = () => ['z']; Object.prototype.toJSON = () => 1; [1, {a: 'b'}]";
    assert_eq!(javascript(changed).await, r#"[1,{"a":"b"}]"#);
    let changed =
        "str = list = dict = type = repr = isinstance = int = json = None\n[1, {2: 'a', None: 1.5}]";
    assert_eq!(python(changed).await, r#"[1, {"2": "a", "null": 1.5}]"#);
    assert_eq!(python("repr = None\n{1}").await, "{1}");
}

#[tokio::test]
async fn a_value_that_is_no_json_is_shown_as_the_language_shows_it() {
    assert_eq!(python("a = []\na.append(a)\na").await, "[[...]]");
    assert!(javascript("let a = []; a.push(a); a").await.contains("holds itself"));
    for language in LANGUAGES {
        assert!(!run(language, "'\\ud83d'").await.text().is_empty(), "half a character");
    }
}

#[tokio::test]
async fn json_module_works_as_in_each_language() {
    let code = r#"import json
print(json.dumps({'b': [1, 2.5, None, True, 'ä"'], 'a': {}}))
print(json.dumps({'b': [], 'a': (1,)}, indent=1, sort_keys=True))
print(json.dumps(['ä', float('nan')], ensure_ascii=False, separators=(',', ':')))
try:
    json.loads('{')
except json.JSONDecodeError:
    print('broken')
json.loads('{"a": [1, 18446744073709551616]}')['a'][1]"#;
    let expected = "{\"b\": [1, 2.5, null, true, \"\\u00e4\\\"\"], \"a\": {}}\n{\n \"a\": [\n  1\n ],\n \"b\": []\n}\n\
                    [\"ä\",NaN]\nbroken\nValue: 18446744073709551616";
    assert_eq!(python(code).await, expected);
}
