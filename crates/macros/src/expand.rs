//! Generates the code of `#[tool]`: the tool's type, its constructor and its implementation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Error, ExprArray, ItemFn, LitStr, Result, ext::IdentExt, parse2};

use crate::{
    attribute::{Attribute, Effect, check_function_name},
    docs::{self, Documentation},
    nearest::nearest,
    parameter_names,
    signature::{self, Argument, Parameter, State},
    summary,
};

/// The parsed input from which all parts of the expansion are made.
struct Expansion {
    attribute: Attribute,
    function: ItemFn,
    parameters: Vec<Parameter>,
    documentation: Documentation,
    /// Path of the module that generated code takes all names from.
    support: TokenStream,
}

pub(crate) fn expand(attribute: TokenStream, item: TokenStream, home: &str) -> Result<TokenStream> {
    let attribute = Attribute::parse(attribute)?;
    let mut function: ItemFn = parse2(item)
        .map_err(|e| Error::new(e.span(), format!("`#[tool]` must stand before a free function: {e}")))?;
    let parameters = signature::parameters(&mut function)?;
    let documentation = Documentation::parse(&docs::text(&function.attrs));
    let home = match &attribute.home {
        Some(path) => path.to_token_stream(),
        None => home.parse()?,
    };
    let expansion =
        Expansion { attribute, function, parameters, documentation, support: quote!(#home::macro_support) };
    expansion.check()?;
    Ok(expansion.tokens())
}

impl Expansion {
    fn check(&self) -> Result<()> {
        let ident = &self.function.sig.ident;
        if self.description().is_empty() {
            return Err(Error::new(
                ident.span(),
                "a tool needs a doc comment: the model reads it to decide when to call the tool",
            ));
        }
        let mut names: Vec<String> = self.arguments().map(|argument| argument.name.clone()).collect();
        self.check_summary(&names)?;
        names.extend(self.states().map(|state| state.ident.unraw().to_string()));
        if let Some(stray) = self.documentation.stray_argument(&names) {
            let message = format!("`# Arguments` describes `{stray}`, which is not a parameter");
            return Err(Error::new(ident.span(), message));
        }
        match &self.attribute.name {
            Some(_) => Ok(()),
            None => check_function_name(&ident.unraw().to_string(), ident.span()),
        }
    }

    /// Checks that the summary names only arguments that the model sends.
    fn check_summary(&self, arguments: &[String]) -> Result<()> {
        let Some(summary) = &self.attribute.summary else { return Ok(()) };
        let template = summary.value();
        let refuse = |problem: String| Err(Error::new(summary.span(), problem));
        let named = match summary::names(&template) {
            Ok(named) => named,
            Err(problem) => return refuse(problem.to_owned()),
        };
        let Some(stray) = named.into_iter().find(|name| !arguments.iter().any(|known| known == name)) else {
            return Ok(());
        };
        refuse(match nearest(stray, arguments.iter().map(String::as_str)) {
            Some(meant) => format!("`{stray}` is not an argument of the tool; did you mean `{meant}`?"),
            None => {
                let arguments = listed(arguments);
                format!("`{stray}` is not an argument of the tool: its arguments are {arguments}")
            }
        })
    }

    fn tokens(&self) -> TokenStream {
        let ident = &self.function.sig.ident;
        let vis = &self.function.vis;
        let documents = self.function.attrs.iter().filter(|attribute| docs::is_doc(attribute));
        let (definition, debug) = self.definition();
        let names = self.states().map(|state| &state.ident);
        let fields = self.state_fields();
        let inner = self.inner_function();
        let implementation = self.implementation();
        quote! {
            #definition

            #(#documents)*
            #vis fn #ident(#(#fields),*) -> #ident {
                #ident { #(#names),* }
            }

            impl #ident {
                #inner
            }

            const _: () = {
                #debug
                #implementation
            };
        }
    }

    /// Returns the tool's type and its `Debug` implementation, which hides the state.
    fn definition(&self) -> (TokenStream, TokenStream) {
        let ident = &self.function.sig.ident;
        let vis = &self.function.vis;
        let fields = self.state_fields();
        let docs = format!("The type of the tool [`{ident}()`]; `run` is the function itself.");
        if self.states().next().is_none() {
            let definition = quote! {
                #[doc = #docs]
                #[allow(non_camel_case_types)]
                #[derive(Clone, Copy, Debug)]
                #[non_exhaustive]
                #vis struct #ident {}
            };
            return (definition, TokenStream::new());
        }
        let name = ident.unraw().to_string();
        let definition = quote! {
            #[doc = #docs]
            #[allow(non_camel_case_types)]
            #vis struct #ident { #(#fields),* }
        };
        let debug = quote! {
            #[automatically_derived]
            impl ::core::fmt::Debug for #ident {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.debug_struct(#name).finish_non_exhaustive()
                }
            }
        };
        (definition, debug)
    }

    /// Returns the function as it was written, renamed to `run`.
    fn inner_function(&self) -> ItemFn {
        let mut function = self.function.clone();
        function.sig.ident = Ident::new("run", self.function.sig.ident.span());
        if self.states().next().is_some() {
            // The tool owns a `String` or `Vec`, so the parameter cannot be a slice.
            function.attrs.push(syn::parse_quote!(#[allow(clippy::ptr_arg)]));
        }
        function
    }

    fn implementation(&self) -> TokenStream {
        let ident = &self.function.sig.ident;
        let support = &self.support;
        let arguments = self.arguments_struct();
        let defaults = self.default_functions();
        let spec = self.spec();
        let call = self.call();
        let preview = self.preview();
        quote! {
            #(#defaults)*
            #arguments

            #[automatically_derived]
            impl #support::Tool for #ident {
                fn spec(&self) -> &#support::ToolSpec {
                    static SPEC: ::std::sync::LazyLock<#support::ToolSpec> = ::std::sync::LazyLock::new(|| { #spec });
                    &SPEC
                }

                fn call<'a>(
                    &'a self,
                    arguments: #support::Json,
                    context: &'a #support::ToolContext,
                ) -> #support::BoxFuture<'a, ::core::result::Result<#support::ToolResult, #support::ToolError>> {
                    ::std::boxed::Box::pin(async move { #call })
                }

                #preview
            }
        }
    }

    /// Implements `Tool::preview` with the attribute's `summary`, if there is one.
    fn preview(&self) -> Option<TokenStream> {
        let (support, summary) = (&self.support, self.attribute.summary.as_ref()?);
        Some(quote! {
            fn preview(
                &self,
                arguments: &#support::Json,
                _: &#support::Context,
            ) -> ::core::result::Result<::core::option::Option<#support::Preview>, #support::ToolError> {
                let summary = #support::summary(#summary, arguments, #support::Tool::spec(self));
                ::core::result::Result::Ok(::core::option::Option::Some(#support::Preview::new(summary)))
            }
        })
    }

    /// Returns the struct that the arguments are parsed into and that the schema is derived from.
    fn arguments_struct(&self) -> TokenStream {
        let support = &self.support;
        let serde = path_text(&quote!(#support::serde));
        let schemars = path_text(&quote!(#support::schemars));
        let fields = self.arguments().enumerate().map(|(index, argument)| {
            let Argument { ident, owned, .. } = argument;
            let docs = self.argument_docs(argument).map(|text| quote!(#[doc = #text]));
            let default = argument.default.as_ref().map(|_| {
                let function = default_function(index).to_string();
                quote!(#[serde(default = #function)])
            });
            quote!(#docs #default #ident: #owned)
        });
        quote! {
            #[derive(#support::serde::Deserialize, #support::schemars::JsonSchema)]
            #[serde(crate = #serde, deny_unknown_fields)]
            #[schemars(crate = #schemars)]
            struct Arguments { #(#fields),* }
        }
    }

    fn default_functions(&self) -> Vec<TokenStream> {
        let functions = self.arguments().enumerate().filter_map(|(index, argument)| {
            let value = argument.default.as_ref()?;
            let (name, owned) = (default_function(index), &argument.owned);
            let value = if argument.by_reference { quote!((#value).into()) } else { value.clone() };
            Some(quote!(fn #name() -> #owned { #value }))
        });
        functions.collect()
    }

    fn spec(&self) -> TokenStream {
        let support = &self.support;
        let name = match &self.attribute.name {
            Some(name) => name.clone(),
            None => LitStr::new(&self.function.sig.ident.unraw().to_string(), Span::call_site()),
        };
        let description = self.description();
        let version = self.attribute.version.as_ref().map(|version| quote!(spec.version = #version.into();));
        let effect = self.attribute.effect.map(|effect| match effect {
            Effect::ReadOnly => quote!(spec.annotations = #support::ToolAnnotations::read_only();),
            Effect::Idempotent => quote!(spec.annotations.effect = #support::Effect::Idempotent;),
        });
        let flags = self.flags().into_iter().map(|flag| quote!(spec.annotations.#flag = true;));
        let set_timeout = |ms| quote!(spec.annotations.timeout_ms = ::core::option::Option::Some(#ms););
        let timeout = self.attribute.timeout_ms.map(set_timeout);
        let set_types = |field: &str, types: &ExprArray| {
            let field = Ident::new(field, Span::call_site());
            quote!(spec.annotations.#field = ::std::vec::Vec::from(#types.map(::std::string::String::from));)
        };
        let input =
            self.attribute.input_mime_types.as_ref().map(|types| set_types("input_mime_types", types));
        let output =
            self.attribute.output_mime_types.as_ref().map(|types| set_types("output_mime_types", types));
        let set_size =
            |bytes| quote!(spec.annotations.max_input_size = ::core::option::Option::Some(#bytes););
        let size = self.attribute.max_input_size.as_ref().map(set_size);
        quote! {
            #[allow(unused_mut)]
            let mut spec = #support::spec::<Arguments>(#name, #description);
            #version
            #effect
            #(#flags)*
            #timeout
            #input
            #output
            #size
            spec
        }
    }

    /// Returns the annotations to set. A function that is not async is `blocking`.
    fn flags(&self) -> Vec<Ident> {
        let implied = self.function.sig.asyncness.is_none().then_some("blocking");
        let mut words: Vec<&str> = self.attribute.flags.iter().copied().chain(implied).collect();
        words.sort_unstable();
        words.dedup();
        words.into_iter().map(|word| Ident::new(word, Span::call_site())).collect()
    }

    fn call(&self) -> TokenStream {
        let support = &self.support;
        let tool = &self.function.sig.ident;
        let fields = self.arguments().map(|argument| &argument.ident);
        let passed = self.parameters.iter().map(|parameter| match parameter {
            Parameter::State(state) => {
                let ident = &state.ident;
                quote!(&self.#ident)
            }
            Parameter::Context { by_reference: true } => quote!(context),
            Parameter::Context { by_reference: false } => quote!(::core::clone::Clone::clone(context)),
            Parameter::Argument(argument) => {
                let ident = &argument.ident;
                if argument.by_reference { quote!(&#ident) } else { quote!(#ident) }
            }
        });
        let wait = self.function.sig.asyncness.map(|_| quote!(.await));
        let success = quote!((&#support::Returned::new(returned)).take_result());
        let finish = match signature::returns_result(&self.function.sig.output) {
            true => quote! {
                match returned {
                    ::core::result::Result::Ok(returned) => #success,
                    ::core::result::Result::Err(failed) => {
                        ::core::result::Result::Err((&#support::Failed::new(failed)).take_error())
                    }
                }
            },
            false => success,
        };
        quote! {
            #[allow(unused_imports)]
            use #support::{IntoErrorDirectly as _, IntoErrorFromText as _, IntoResultDirectly as _, IntoResultFromJson as _};
            let Arguments { #(#fields),* } = #support::arguments(arguments)?;
            #[allow(clippy::let_unit_value)]
            let returned = #tool::run(#(#passed),*) #wait;
            #finish
        }
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Argument(argument) => Some(&**argument),
            Parameter::Context { .. } | Parameter::State(_) => None,
        })
    }

    fn states(&self) -> impl Iterator<Item = &State> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::State(state) => Some(&**state),
            _ => None,
        })
    }

    /// Returns the state parameters as `name: Type`, for the fields of the tool's type and the parameters of
    /// its constructor.
    fn state_fields(&self) -> impl Iterator<Item = TokenStream> {
        self.states().map(|State { ident, ty }| quote!(#ident: #ty))
    }

    /// Returns the argument's description: the argument's own doc comment, else its text under `# Arguments`
    /// in the function's docs, else the usual meaning of its name.
    fn argument_docs(&self, argument: &Argument) -> Option<String> {
        if !argument.docs.is_empty() {
            return Some(argument.docs.clone());
        }
        let listed = self.documentation.argument(&argument.name);
        listed.or_else(|| parameter_names::meaning(&argument.name)).map(str::to_owned)
    }

    fn description(&self) -> String {
        match &self.attribute.description {
            Some(description) => description.value(),
            None => self.documentation.description.clone(),
        }
    }
}

/// Joins the names into a list for an error message.
fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

fn default_function(index: usize) -> Ident {
    format_ident!("default_{index}")
}

/// Returns a Rust path as text without spaces, as the attributes of serde and schemars need it.
fn path_text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(attribute: TokenStream, item: TokenStream, expected: &str) {
        let message = match expand(attribute, item, "::archon_tools") {
            Ok(tokens) => panic!("no error: {tokens}"),
            Err(e) => e.to_string(),
        };
        assert_eq!(message, expected);
    }

    fn check_function(item: TokenStream, expected: &str) {
        check(quote!(), item, expected);
    }

    // spec: TE-34
    #[test]
    fn tool_macro_unsupported_functions_fail_with_the_reason() {
        check_function(
            quote!(
                fn f() {}
            ),
            "a tool needs a doc comment: the model reads it to decide when to call the tool",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f(&self) {}
            ),
            "`#[tool]` takes a free function; pass its state as a parameter: `#[state] desk: &Desk`",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f<T>(t: T) {}
            ),
            "a tool has one schema, so its function cannot be generic",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f((a, b): (u8, u8)) {}
            ),
            "a tool's parameter needs a name for the model; destructure it inside the function",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f(a: &Thing) {}
            ),
            "a tool owns its arguments: take the type itself (`&str`, `&[T]` and `&ToolContext` are fine too)",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f(a: Option<&str>) {}
            ),
            "a tool owns its arguments: use an owned type inside, for instance `String`",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f(a: impl Into<String>) {}
            ),
            "a tool has one schema: name the type instead of `impl Trait`",
        );
        check_function(
            quote!(
                /** Doc. */
                unsafe fn f() {}
            ),
            "a model calls the tool, so its function cannot be `unsafe`",
        );
        check_function(
            quote!(
                /** Doc. */
                fn f(#[default] a: u8) {}
            ),
            "write the value: `#[default(10)]`",
        );
        check_function(
            quote!(
                /** Doc.
                # Arguments
                - `b`: no parameter
                */
                fn f(a: u8) {}
            ),
            "`# Arguments` describes `b`, which is not a parameter",
        );
        check_function(
            quote!(
                /** Doc. */
                fn größe() {}
            ),
            "a tool's name is made of letters, digits, `_`, `-` and `.`; set the name with `name = \"...\"`",
        );
    }

    // spec: TE-34
    #[test]
    fn tool_macro_unknown_attribute_words_are_errors() {
        let check = |attribute, expected| {
            check(
                attribute,
                quote!(
                    /** Doc. */
                    fn f() {}
                ),
                expected,
            )
        };
        check(
            quote!(readonly),
            "did you mean `read_only`? `#[tool]` accepts: name, description, version, summary, read_only, idempotent, \
             destructive, concurrency_safe, requires_confirmation, blocking, timeout_ms, input_mime_types, \
             output_mime_types, max_input_size, crate",
        );
        check(
            quote!(retries = 3),
            "`#[tool]` accepts: name, description, version, summary, read_only, idempotent, destructive, \
             concurrency_safe, requires_confirmation, blocking, timeout_ms, input_mime_types, output_mime_types, \
             max_input_size, crate",
        );
        check(quote!(name = "a b"), "a tool's name is made of letters, digits, `_`, `-` and `.`");
        check(
            quote!(timeout_ms = 0),
            "a time limit of 0 ms stops every call; leave out `timeout_ms` for the default",
        );
        check(
            quote!(read_only, idempotent),
            "a tool is either `read_only` or `idempotent`; `read_only` is the stronger one",
        );
    }

    // spec: TE-34
    #[test]
    fn state_that_a_tool_cannot_keep_is_an_error_with_the_remedy() {
        let unsized_state = "a tool owns its state, so the type must be sized: take `&String`, `&Vec<T>` or `&Arc<dyn Trait>`";
        for (parameter, expected) in [
            (
                quote!(#[state] db: Db),
                "a tool owns its state: take it by reference, `#[state] db: &Database`",
            ),
            (
                quote!(#[state] db: &mut Db),
                "calls share the state: take `&T`, and put data that change behind a lock",
            ),
            (quote!(#[state] db: &dyn Db), unsized_state),
            (quote!(#[state] db: &str), unsized_state),
            (quote!(#[state] db: &[Db]), unsized_state),
            (quote!(#[state] db: &impl Db), "a tool has one type: name the type instead of `impl Trait`"),
            (quote!(#[state] Db { pool }: &Db), "state needs a name: `#[state] db: &Database`"),
            (quote!(#[state(db)] db: &Db), "write `#[state]` alone: `#[state] db: &Database`"),
            (
                quote!(#[state] #[default(1)] db: &Db),
                "state is passed when the tool is made, so it cannot have a default",
            ),
            (
                quote!(#[state] context: &ToolContext),
                "the engine passes the context of each call: leave `#[state]` out",
            ),
        ] {
            check_function(
                quote!(
                    /** Doc. */
                    fn f(#parameter) {}
                ),
                expected,
            );
        }
    }

    #[test]
    fn summary_that_names_no_argument_is_an_error_with_the_nearest_name() {
        let check = |summary: &str, expected| {
            check(
                quote!(summary = #summary),
                quote!(
                    /** Doc. */
                    fn f(#[state] db: &Db, order: String, cents: u64) {}
                ),
                expected,
            );
        };
        check("Refund {ordr}", "`ordr` is not an argument of the tool; did you mean `order`?");
        check("Refund in {db}", "`db` is not an argument of the tool: its arguments are `order`, `cents`");
        check(
            "Refund {}",
            "there is no name between `{` and `}`; write the name of an argument, such as `{order}`",
        );
        check("Refund {order", "a `{` has no `}` after it; write `{{` for the character itself");
    }

    #[test]
    fn tool_macro_crate_path_option_is_used_in_generated_paths() {
        for (attribute, path) in [
            (quote!(), ":: archon_tools :: macro_support"),
            (quote!(crate = my::tools), "my :: tools :: macro_support"),
        ] {
            let tokens = expand(
                attribute,
                quote!(
                    /** Doc. */
                    fn f() {}
                ),
                "::archon_tools",
            )
            .map(|t| t.to_string());
            assert!(tokens.unwrap_or_default().contains(path));
        }
    }
}
