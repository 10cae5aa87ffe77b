//! Reads doc comments: the descriptions of a tool and of its arguments for the model.

use syn::{Attribute, Expr, ExprLit, Lit, Meta, MetaNameValue};

/// Returns the text of the doc comments among `attributes`, without their common indent and without white
/// space at the beginning and the end.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let blocks = attributes.iter().filter_map(doc_text);
    let lines: Vec<String> = blocks.flat_map(|block| unindented(&block)).collect();
    lines.join("\n").trim().to_owned()
}

/// Splits one comment into lines (one for `///`, several for `/** */`) and removes the common indent and
/// leading stars.
fn unindented(block: &str) -> Vec<String> {
    let bare = |line: &str| match line.trim_start().strip_prefix('*') {
        Some(rest) if block.contains('\n') && !rest.starts_with('*') => rest.to_owned(),
        _ => line.to_owned(),
    };
    let lines: Vec<String> = block
        .split('\n')
        .enumerate()
        .map(|(n, line)| if n == 0 { line.to_owned() } else { bare(line) })
        .collect();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let shared = lines.iter().skip(1).filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min();
    let cut = |(n, line): (usize, &String)| {
        let space = if n == 0 { indent(line).min(1) } else { shared.unwrap_or(0).min(indent(line)) };
        line[space..].trim_end().to_owned()
    };
    lines.iter().enumerate().map(cut).collect()
}

/// Returns true if the attribute is a doc comment, written as `///` or as `#[doc]`.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(MetaNameValue { value: Expr::Lit(ExprLit { lit: Lit::Str(line), .. }), .. })
            if is_doc(attribute) =>
        {
            Some(line.value())
        }
        _ => None,
    }
}

/// A function's documentation, split into the parts that a tool needs.
pub(crate) struct Documentation {
    /// Everything before the first heading. The later sections are for people: errors, panics, examples.
    pub(crate) description: String,
    arguments: Vec<(String, String)>,
}

impl Documentation {
    pub(crate) fn parse(docs: &str) -> Self {
        let heading = docs.lines().position(is_heading).unwrap_or(usize::MAX);
        let description = docs.lines().take(heading).collect::<Vec<_>>().join("\n").trim().to_owned();
        Self { description, arguments: argument_list(docs) }
    }

    /// Returns the text about `name` in the list under `# Arguments`.
    pub(crate) fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Returns the first name under `# Arguments` that is not a parameter.
    pub(crate) fn stray_argument(&self, parameters: &[String]) -> Option<&str> {
        let mut names = self.arguments.iter().map(|(name, _)| name.as_str());
        names.find(|name| !parameters.iter().any(|parameter| parameter == name))
    }
}

fn is_heading(line: &str) -> bool {
    line.starts_with('#') && line.trim_start_matches('#').starts_with(' ')
}

/// Parses the list under `# Arguments`: ``- `name`: text``, with `*` or `-`, with or without back-ticks, with
/// `:` or `-` between. Any other line that is not empty continues the item before it.
fn argument_list(docs: &str) -> Vec<(String, String)> {
    let section = docs.lines().skip_while(|line| !is_arguments_heading(line)).skip(1);
    let mut items: Vec<(String, String)> = Vec::new();
    for line in section.take_while(|line| !is_heading(line)) {
        if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
            items.extend(argument_item(item));
        } else if let (Some((_, text)), false) = (items.last_mut(), line.trim().is_empty()) {
            text.push(' ');
            text.push_str(line.trim());
        }
    }
    items
}

fn is_arguments_heading(line: &&str) -> bool {
    is_heading(line) && line.trim_start_matches('#').trim().eq_ignore_ascii_case("arguments")
}

fn argument_item(item: &str) -> Option<(String, String)> {
    let item = item.trim();
    let (name, rest) = match item.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`')?,
        None => item.split_at(item.find(|c: char| !c.is_alphanumeric() && c != '_')?),
    };
    let text = rest.trim_start().strip_prefix([':', '-', '–', '—'])?;
    Some((name.to_owned(), text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(docs: &str, description: &str, arguments: &[(&str, &str)]) {
        let parsed = Documentation::parse(docs);
        assert_eq!(parsed.description, description);
        let found: Vec<_> = parsed.arguments.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        assert_eq!(found, arguments);
    }

    // spec: TE-34
    #[test]
    fn a_comment_reads_the_same_in_every_spelling() {
        let plain: syn::ItemFn = syn::parse_quote! {
            /// Adds.
            ///
            ///   - twice
            fn f() {}
        };
        let block: syn::ItemFn = syn::parse_str("/** Adds.\n\n      - twice\n    */ fn f() {}").unwrap();
        let stars: syn::ItemFn =
            syn::parse_str("/**\n  * Adds.\n  *\n  *   - twice\n  */ fn f() {}").unwrap();
        assert_eq!(text(&plain.attrs), "Adds.\n\n  - twice");
        assert_eq!(text(&block.attrs), "Adds.\n\n- twice");
        assert_eq!(text(&stars.attrs), "Adds.\n\n  - twice");
    }

    // spec: TE-34
    #[test]
    fn the_description_ends_at_the_first_heading_and_the_arguments_are_a_list() {
        check("Adds.", "Adds.", &[]);
        check("Adds.\n\nTwice.\n\n# Errors\nNever.", "Adds.\n\nTwice.", &[]);
        check(
            "Adds.\n\n# Arguments\n* `a` - the first\n- b: the second,\n  which is longer\n\n# Panics\n- c: no",
            "Adds.",
            &[("a", "the first"), ("b", "the second, which is longer")],
        );
        check("Counts #hashtags.", "Counts #hashtags.", &[]);
        check("Adds.\n# Arguments\nnone of them matter\n- ``", "Adds.", &[]);
    }
}
