//! Rewrites a Python program before it runs: adds functions for the tools, captures the last expression's
//! value, and replaces the interpreter's `json` module, whose memory is not counted.

use std::ops::Range;

use monty_types::MontyException;
use ruff_python_ast::{
    Alias, Stmt,
    statement_visitor::{StatementVisitor, walk_stmt},
};
use ruff_text_size::Ranged;

/// File name of the program in messages and tracebacks.
pub(super) const FILE: &str = "program.py";
/// Name of the only external function.
pub(super) const CALL: &str = "_archon_call";

/// A program with the lines that were added around it.
pub(super) struct Source {
    pub(super) text: String,
    /// Number of lines that were added before the program's own lines.
    before: usize,
    lines: usize,
}

impl Source {
    pub(super) fn new<'f>(code: &str, functions: impl Iterator<Item = &'f str>) -> Self {
        let mut text = BEFORE.to_owned();
        for name in functions {
            text.push_str(&format!("{name} = _archon_tool('{name}')\n"));
        }
        let before = text.lines().count();
        text.push_str(&rewritten(code));
        Self { text, before, lines: code.lines().count() }
    }

    /// Returns the program's own line that an exception comes from: the innermost one.
    pub(super) fn line_of(&self, exception: &MontyException) -> Option<usize> {
        let lines = exception.traceback().iter().rev().map(|frame| frame.start.line as usize);
        lines
            .filter_map(|line| line.checked_sub(self.before))
            .find(|line| (1..=self.lines + 1).contains(line))
    }
}

/// Replaces `json` in the program and captures the value of its last statement if that is an expression. Line
/// numbers do not change. A program that cannot be parsed stays unchanged: the interpreter reports the error.
fn rewritten(code: &str) -> String {
    let Ok(parsed) = ruff_python_parser::parse_module(code) else { return code.to_owned() };
    let body = &parsed.syntax().body;
    let mut imports = Imports { code, edits: Vec::new() };
    imports.visit_body(body);
    let mut edits = imports.edits;
    let mut text = code.to_owned();
    match body.last() {
        Some(Stmt::Expr(last)) => {
            let range = bytes(last);
            edits.push((range.clone(), format!("_archon_value(({}))", &code[range])));
        }
        _ => text.push_str("\nNone\n"),
    }
    // From the end, so that the positions before an edit stay valid.
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, &new);
    }
    text
}

/// Collects the statements that import `json`, and the code that replaces them.
struct Imports<'c> {
    code: &'c str,
    edits: Vec<(Range<usize>, String)>,
}

impl<'a> StatementVisitor<'a> for Imports<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let new = match stmt {
            Stmt::Import(import) if import.names.iter().any(is_json) => {
                import.names.iter().map(|alias| self.imported(alias)).collect::<Vec<_>>().join("; ")
            }
            Stmt::ImportFrom(from)
                if from.level == 0
                    && from.module.as_ref().is_some_and(|module| module.as_str() == "json") =>
            {
                from.names.iter().map(assignments).collect::<Vec<_>>().join("; ")
            }
            other => return walk_stmt(self, other),
        };
        let range = bytes(stmt);
        let lines = self.code[range.clone()].matches('\n').count();
        // Line breaks inside of parentheses keep the number of lines.
        self.edits.push((range, format!("{new}; ({}None)", "\n".repeat(lines))));
    }
}

impl Imports<'_> {
    fn imported(&self, alias: &Alias) -> String {
        match is_json(alias) {
            true => format!("{} = _archon_module", bound_name(alias)),
            false => format!("import {}", &self.code[bytes(alias)]),
        }
    }
}

/// Returns the assignments that replace one name of `from json import …`.
fn assignments(alias: &Alias) -> String {
    match alias.name.as_str() {
        "*" => "loads = _archon_module.loads; dumps = _archon_module.dumps".to_owned(),
        name => format!("{} = _archon_module.{name}", bound_name(alias)),
    }
}

fn bound_name(alias: &Alias) -> &str {
    alias.asname.as_ref().unwrap_or(&alias.name).as_str()
}

fn is_json(alias: &Alias) -> bool {
    alias.name.as_str() == "json"
}

fn bytes(node: &impl Ranged) -> Range<usize> {
    node.start().to_usize()..node.end().to_usize()
}

/// The Python code that is put before the program; `before.py` documents it.
const BEFORE: &str = include_str!("before.py");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_expression_is_shown_and_json_is_ours_on_the_same_lines() {
        let check = |code: &str, expected: &str| assert_eq!(rewritten(code), expected, "{code}");
        check("x = 1\n(x +\n 1)  # two\n", "x = 1\n_archon_value(((x +\n 1)))  # two\n");
        check("1; 2;", "1; _archon_value((2));");
        check("x = 1", "x = 1\nNone\n");
        check("if 1:\n    2", "if 1:\n    2\nNone\n");
        check("x = = 1", "x = = 1");
        check("import json\njson", "json = _archon_module; (None)\n_archon_value((json))");
        check(
            "def f():\n    import math, json as j\n",
            "def f():\n    import math; j = _archon_module; (None)\n\nNone\n",
        );
        check(
            "from json import (\n    loads as l,\n    dumps)\nl",
            "l = _archon_module.loads; dumps = _archon_module.dumps; (\n\nNone)\n_archon_value((l))",
        );
        check("import jsonx\n1", "import jsonx\n_archon_value((1))");
    }
}
