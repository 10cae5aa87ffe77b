//! Parses the arguments of `#[tool(...)]`.

use crate::nearest::nearest;
use proc_macro2::{Span, TokenStream};
use syn::{Error, ExprArray, LitInt, LitStr, Path, Result, meta::ParseNestedMeta, parse::Parser};

/// The settings of a tool that are not in its signature.
#[derive(Default)]
pub(crate) struct Attribute {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) summary: Option<LitStr>,
    pub(crate) effect: Option<Effect>,
    pub(crate) flags: Vec<&'static str>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) input_mime_types: Option<ExprArray>,
    pub(crate) output_mime_types: Option<ExprArray>,
    pub(crate) max_input_size: Option<LitInt>,
    pub(crate) home: Option<Path>,
}

/// The variant of `archon_types::Effect` that the attribute names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    ReadOnly,
    Idempotent,
}

/// Words of the attribute that set the field of the same name in the tool's annotations.
const FLAGS: &[&str] = &["blocking", "concurrency_safe", "destructive", "requires_confirmation"];

/// All words that the attribute accepts, for error texts.
const KNOWN: &str = "name, description, version, summary, read_only, idempotent, destructive, concurrency_safe, \
                     requires_confirmation, blocking, timeout_ms, input_mime_types, output_mime_types, max_input_size, crate";

impl Attribute {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut attribute = Self::default();
        syn::meta::parser(|meta| attribute.entry(&meta)).parse2(tokens)?;
        Ok(attribute)
    }

    fn entry(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("crate") {
            self.home = Some(meta.value()?.call(Path::parse_mod_style)?);
            return Ok(());
        }
        let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match word.as_str() {
            "name" => self.name = Some(tool_name(meta.value()?.parse()?)?),
            "description" => self.description = Some(meta.value()?.parse()?),
            "version" => self.version = Some(meta.value()?.parse()?),
            "summary" => self.summary = Some(meta.value()?.parse()?),
            "timeout_ms" => self.timeout_ms = Some(timeout(&meta.value()?.parse()?)?),
            "input_mime_types" => self.input_mime_types = Some(meta.value()?.parse()?),
            "output_mime_types" => self.output_mime_types = Some(meta.value()?.parse()?),
            "max_input_size" => self.max_input_size = Some(meta.value()?.parse()?),
            "read_only" => self.effect(Effect::ReadOnly, meta)?,
            "idempotent" => self.effect(Effect::Idempotent, meta)?,
            other => match FLAGS.iter().find(|flag| **flag == other) {
                Some(flag) => self.flags.push(flag),
                None => return Err(meta.error(unknown(other))),
            },
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if self.effect.is_some_and(|known| known != effect) {
            return Err(
                meta.error("a tool is either `read_only` or `idempotent`; `read_only` is the stronger one")
            );
        }
        self.effect = Some(effect);
        Ok(())
    }
}

/// Returns the error text for an unknown word, with a suggestion.
fn unknown(word: &str) -> String {
    match nearest(word, KNOWN.split(", ")) {
        Some(meant) => format!("did you mean `{meant}`? `#[tool]` accepts: {KNOWN}"),
        None => format!("`#[tool]` accepts: {KNOWN}"),
    }
}

/// Checks the tool's name against what all model providers accept; `.` separates namespaces.
fn tool_name(name: LitStr) -> Result<LitStr> {
    match name_problem(&name.value()) {
        Some(problem) => Err(Error::new(name.span(), problem)),
        None => Ok(name),
    }
}

/// Returns the problem with a tool's name, if it has one.
fn name_problem(name: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match name {
        "" => Some("a tool needs a name"),
        _ if name.len() > 64 => Some("a tool's name has at most 64 characters"),
        _ if !name.chars().all(allowed) => Some("a tool's name is made of letters, digits, `_`, `-` and `.`"),
        _ => None,
    }
}

/// Checks the name of a function that becomes a tool's name.
pub(crate) fn check_function_name(name: &str, span: Span) -> Result<()> {
    match name_problem(name) {
        Some(problem) => Err(Error::new(span, format!("{problem}; set the name with `name = \"...\"`"))),
        None => Ok(()),
    }
}

fn timeout(limit: &LitInt) -> Result<u64> {
    match limit.base10_parse()? {
        0 => Err(Error::new(
            limit.span(),
            "a time limit of 0 ms stops every call; leave out `timeout_ms` for the default",
        )),
        ms => Ok(ms),
    }
}
