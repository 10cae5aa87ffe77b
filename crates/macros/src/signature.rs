//! Reads a function's parameters and refuses signatures that cannot be a tool.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ItemFn, Pat, PatType, PathArguments, Result, ReturnType,
    Type, TypeSlice, ext::IdentExt, spanned::Spanned,
};

use crate::docs;

/// One parameter of the function.
pub(crate) enum Parameter {
    /// An argument that the model sends.
    Argument(Box<Argument>),
    /// The context that the engine passes: `&ToolContext`, or an owned one.
    Context { by_reference: bool },
    /// State that the tool owns: `#[state] db: &Database`.
    State(Box<State>),
}

/// A parameter that is passed when the tool is made.
pub(crate) struct State {
    /// The identifier as written, which may be raw: `r#type`.
    pub(crate) ident: Ident,
    /// The type that the tool owns: `T` for a parameter of type `&T`.
    pub(crate) ty: Type,
}

/// A parameter that the model sends.
pub(crate) struct Argument {
    /// The identifier as written, which may be raw: `r#type`.
    pub(crate) ident: Ident,
    /// The name in the schema.
    pub(crate) name: String,
    /// The argument's doc comment; empty if there is none.
    pub(crate) docs: String,
    /// The owned type that is read from JSON.
    pub(crate) owned: TokenStream,
    /// True if the function takes a reference to `owned`.
    pub(crate) by_reference: bool,
    /// The expression of `#[default(...)]`.
    pub(crate) default: Option<TokenStream>,
}

/// Reads the parameters and removes the attributes that only this macro understands.
pub(crate) fn parameters(function: &mut ItemFn) -> Result<Vec<Parameter>> {
    refuse_unusable(function)?;
    let mut parameters = Vec::new();
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                let text =
                    "`#[tool]` takes a free function; pass its state as a parameter: `#[state] desk: &Desk`";
                return Err(Error::new(receiver.self_token.span(), text));
            }
            FnArg::Typed(typed) => parameters.push(parameter(typed)?),
        }
    }
    Ok(parameters)
}

/// Returns true if the function returns a type called `Result`.
pub(crate) fn returns_result(output: &ReturnType) -> bool {
    matches!(output, ReturnType::Type(_, ty) if last_segment(ty).is_some_and(|name| name == "Result"))
}

fn refuse_unusable(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let refuse = |at: &dyn Spanned, why: &str| Err(Error::new(at.span(), why));
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        return refuse(&signature.generics, "a tool has one schema, so its function cannot be generic");
    }
    if let Some(constness) = &signature.constness {
        return refuse(constness, "a tool's function cannot be `const`");
    }
    if !matches!(signature.safety, syn::Safety::Default) {
        return refuse(&signature.safety, "a model calls the tool, so its function cannot be `unsafe`");
    }
    match &signature.abi {
        Some(abi) => refuse(abi, "a tool's function has the Rust ABI"),
        None => Ok(()),
    }
}

fn parameter(typed: &mut PatType) -> Result<Parameter> {
    let default = take_default(&mut typed.attrs)?;
    let is_state = take_state(&mut typed.attrs)?;
    let docs = docs::text(&typed.attrs);
    typed.attrs.retain(|attribute| !docs::is_doc(attribute));
    if is_state {
        return match default {
            None => Ok(Parameter::State(Box::new(state(typed)?))),
            Some(default) => Err(Error::new(
                default.span(),
                "state is passed when the tool is made, so it cannot have a default",
            )),
        };
    }
    if let Some(by_reference) = is_context(&typed.ty) {
        return Ok(Parameter::Context { by_reference });
    }
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new(
            typed.pat.span(),
            "a tool's parameter needs a name for the model; destructure it inside the function",
        ));
    };
    let (owned, by_reference) = owned_type(&typed.ty)?;
    Ok(Parameter::Argument(Box::new(Argument {
        ident: pattern.ident.clone(),
        name: pattern.ident.unraw().to_string(),
        docs,
        owned,
        by_reference,
        default,
    })))
}

/// Removes the attribute with this name from the attributes, and returns the attribute.
fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let at = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(at))
}

/// Removes `#[state]` from the attributes and returns true if it was there.
fn take_state(attributes: &mut Vec<Attribute>) -> Result<bool> {
    let Some(attribute) = take(attributes, "state") else { return Ok(false) };
    match attribute.meta.require_path_only() {
        Ok(_) => Ok(true),
        Err(_) => Err(Error::new(attribute.span(), "write `#[state]` alone: `#[state] db: &Database`")),
    }
}

/// Reads a parameter with `#[state]`: it must be `&T`, and the tool owns a `T`.
fn state(typed: &PatType) -> Result<State> {
    let refuse = |why: &str| Err(Error::new(typed.ty.span(), why));
    let Pat::Ident(pattern) = &*typed.pat else {
        return Err(Error::new(typed.pat.span(), "state needs a name: `#[state] db: &Database`"));
    };
    if is_context(&typed.ty).is_some() {
        return refuse("the engine passes the context of each call: leave `#[state]` out");
    }
    let Type::Reference(reference) = &*typed.ty else {
        return refuse("a tool owns its state: take it by reference, `#[state] db: &Database`");
    };
    if reference.mutability.is_some() {
        return refuse("calls share the state: take `&T`, and put data that change behind a lock");
    }
    match &*reference.elem {
        Type::ImplTrait(_) => refuse("a tool has one type: name the type instead of `impl Trait`"),
        Type::TraitObject(_) | Type::Slice(_) => refuse(UNSIZED),
        elem if is_str(elem) => refuse(UNSIZED),
        elem => Ok(State { ident: pattern.ident.clone(), ty: elem.clone() }),
    }
}

const UNSIZED: &str =
    "a tool owns its state, so the type must be sized: take `&String`, `&Vec<T>` or `&Arc<dyn Trait>`";

fn take_default(attributes: &mut Vec<Attribute>) -> Result<Option<TokenStream>> {
    let Some(attribute) = take(attributes, "default") else { return Ok(None) };
    match attribute.meta.require_list() {
        Ok(list) if !list.tokens.is_empty() => Ok(Some(list.tokens.clone())),
        _ => Err(Error::new(attribute.span(), "write the value: `#[default(10)]`")),
    }
}

/// Returns `Some` if the type is a tool context: true for a reference to it, false for an owned one.
fn is_context(ty: &Type) -> Option<bool> {
    match ty {
        Type::Reference(reference) => {
            (reference.mutability.is_none() && is_context(&reference.elem) == Some(false)).then_some(true)
        }
        _ => (last_segment(ty)? == "ToolContext").then_some(false),
    }
}

/// Returns the type that is parsed from JSON for a parameter of type `ty`, and whether the function takes a
/// reference to it.
fn owned_type(ty: &Type) -> Result<(TokenStream, bool)> {
    let refuse = |why: &str| Err(Error::new(ty.span(), why));
    match ty {
        Type::Reference(reference) => match &*reference.elem {
            elem if reference.mutability.is_none() && is_str(elem) => {
                Ok((quote!(::std::string::String), true))
            }
            Type::Slice(TypeSlice { elem, .. }) if reference.mutability.is_none() => {
                Ok((quote!(::std::vec::Vec<#elem>), true))
            }
            _ => refuse(
                "a tool owns its arguments: take the type itself (`&str`, `&[T]` and `&ToolContext` are fine too)",
            ),
        },
        Type::ImplTrait(_) => refuse("a tool has one schema: name the type instead of `impl Trait`"),
        _ if holds_reference(ty) => {
            refuse("a tool owns its arguments: use an owned type inside, for instance `String`")
        }
        _ => Ok((quote!(#ty), false)),
    }
}

/// Returns true if a type argument of `ty` is a reference, as in `Option<&str>`.
fn holds_reference(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.iter().any(|segment| match &segment.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().any(|argument| {
            matches!(argument, GenericArgument::Type(inner) if matches!(inner, Type::Reference(_)) || holds_reference(inner))
        }),
        _ => false,
    })
}

fn is_str(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|name| name == "str")
}

fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}
