//! The function that stands in the place of the annotated one: it holds the original and defines the action.
//!
//! The original keeps its name inside, so that messages, backtraces and calls of itself are as they were written.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, ItemFn, Lit, Meta, Result};

use crate::attributes::{Attributes, Retry, check_name};
use crate::signature::Signature;

/// Attributes that belong to the function one sees; any other belongs to the code that runs.
const OUTER: [&str; 10] =
    ["doc", "cfg", "cfg_attr", "allow", "expect", "warn", "deny", "forbid", "deprecated", "must_use"];

/// Writes the function that defines the action.
pub(crate) fn expand(
    attributes: &Attributes,
    signature: &Signature<'_>,
    function: &ItemFn,
) -> Result<TokenStream> {
    let ItemFn { attrs, vis, sig, block } = function;
    let (outer, inner): (Vec<_>, Vec<_>) = attrs.iter().partition(|attribute| is_outer(attribute));
    let name = name(attributes, function)?;
    let description = description(attributes, function)?;
    // A public function without a doc comment is documented by its description.
    let docs = documentation(attrs).is_none().then(|| quote!(#[doc = #description]));

    let (path, ident) = (&attributes.path, &sig.ident);
    let steps = steps(attributes);
    let lists = lists(attributes, &name);
    let handler = handler(attributes, signature, ident);
    Ok(quote_spanned! {Span::mixed_site()=>
        #(#outer)*
        #docs
        #vis fn #ident() -> ::core::result::Result<#path::Action, #path::DefinitionError> {
            #(#inner)*
            #[allow(clippy::unused_async)]
            #sig #block

            let action = #path::Action::define(#name, #description) #(#steps)*;
            #lists
            #handler
        }
    })
}

fn is_outer(attribute: &Attribute) -> bool {
    attribute.path().get_ident().is_some_and(|ident| OUTER.iter().any(|outer| ident == outer))
}

fn name(attributes: &Attributes, function: &ItemFn) -> Result<String> {
    if let Some(name) = &attributes.name {
        return Ok(name.value());
    }
    let ident = &function.sig.ident;
    let name = ident.unraw().to_string();
    check_name(&name, ident.span(), "; or give it another name with `name = \"…\"`")?;
    Ok(name)
}

fn description(attributes: &Attributes, function: &ItemFn) -> Result<String> {
    let given = attributes.description.as_ref().map(|text| text.value().trim().to_owned());
    given.or_else(|| documentation(&function.attrs)).ok_or_else(|| {
        let message =
            "say in a doc comment what the action does, as in `/// Create a task in the user's inbox.`";
        Error::new(function.sig.ident.span(), message)
    })
}

/// The doc comment: the lines of a paragraph in one line, and one line for each paragraph.
fn documentation(attrs: &[Attribute]) -> Option<String> {
    let texts: Vec<String> = attrs.iter().filter_map(doc_text).collect();
    let mut paragraphs = vec![String::new()];
    for line in texts.iter().flat_map(|text| text.split('\n')).map(str::trim) {
        match paragraphs.last_mut() {
            Some(paragraph) if !line.is_empty() => {
                let space = if paragraph.is_empty() { "" } else { " " };
                paragraph.push_str(space);
                paragraph.push_str(line);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n"))
}

fn doc_text(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// The steps of the builder that cannot fail.
fn steps(attributes: &Attributes) -> Vec<TokenStream> {
    let path = &attributes.path;
    let mut steps = Vec::new();
    let texts = [
        ("title", &attributes.title),
        ("version", &attributes.version),
        ("http", &attributes.http),
        ("resource", &attributes.resource),
    ];
    for (step, text) in texts {
        let step = format_ident!("{step}");
        steps.extend(text.iter().map(|text| quote!(.#step(#text))));
    }
    let words = [
        ("side_effects", "SideEffects", &attributes.side_effects),
        ("idempotency", "Idempotency", &attributes.idempotency),
        ("visibility", "Visibility", &attributes.visibility),
        ("task", "TaskUse", &attributes.task),
    ];
    for (step, kind, word) in words {
        let (step, kind) = (format_ident!("{step}"), format_ident!("{kind}"));
        let variant = word.as_ref().map(|word| format_ident!("{}", word.variant));
        steps.extend(variant.iter().map(|variant| quote!(.#step(#path::#kind::#variant))));
    }
    steps.extend(attributes.owns_idempotency_key.then(|| quote!(.owns_idempotency_key())));
    steps.extend(attributes.prompt.then(|| quote!(.prompt())));
    steps.extend(attributes.people_only.then(|| quote!(.people_only())));
    steps.extend(attributes.permissions.iter().map(|list| quote!(.permissions::<&str>([#(#list),*]))));
    steps.extend(attributes.timeout_ms.map(|limit| quote!(.timeout_ms(#limit))));
    steps.extend(attributes.deadline_ms.map(|limit| quote!(.deadline_ms(#limit))));
    steps.extend(attributes.requires_confirmation.map(|required| quote!(.requires_confirmation(#required))));
    steps.extend(attributes.concurrency.as_ref().map(|limit| {
        let (max, wait_ms) = (limit.max, limit.wait_ms);
        quote!(.concurrency(#max, #wait_ms))
    }));
    steps.extend(attributes.retry.as_ref().map(|retry| {
        let policy = match retry {
            Retry::Usual => quote!(#path::RetryPolicy::DEFAULT),
            Retry::Never => quote!(#path::RetryPolicy::NONE),
            Retry::Times { retries, delay_ms: Some(delay_ms) } => {
                quote!(#path::RetryPolicy { retries: #retries, delay_ms: #delay_ms })
            }
            Retry::Times { retries, delay_ms: None } => {
                quote!(#path::RetryPolicy { retries: #retries, ..#path::RetryPolicy::DEFAULT })
            }
        };
        quote!(.retry(#policy))
    }));
    steps.extend(attributes.deprecated.as_ref().map(|deprecated| {
        let text = |text| quote!(::std::string::String::from(#text));
        let message = text(&deprecated.message);
        let [since, replacement] = [&deprecated.since, &deprecated.replacement].map(|part| match part {
            Some(part) => {
                let part = text(part);
                quote!(::core::option::Option::Some(#part))
            }
            None => quote!(::core::option::Option::None),
        });
        quote!(.deprecated(#path::Deprecation { message: #message, since: #since, replacement: #replacement }))
    }));
    steps
}

/// The surfaces and examples, whose text is read when the action is defined.
///
/// `parse` finds its type by the step that takes the value, so neither type need be exported beside the action.
fn lists(attributes: &Attributes, name: &str) -> TokenStream {
    let path = &attributes.path;
    let refuse = |what: String| {
        quote_spanned! {Span::mixed_site()=>
            ::core::result::Result::Err(error) => {
                let reason = ::std::format!("{}: {}", #what, error);
                return ::core::result::Result::Err(#path::DefinitionError::InvalidSchema { reason });
            }
        }
    };
    let surfaces = attributes.surfaces.iter().map(|surfaces| {
        let (count, refuse) = (surfaces.len(), refuse(format!("the surfaces of \"{name}\"")));
        quote_spanned! {Span::mixed_site()=>
            let surfaces: [&str; #count] = [#(#surfaces),*];
            let surfaces = surfaces.into_iter().map(|surface| surface.parse());
            let action = match surfaces.collect::<::core::result::Result<::std::vec::Vec<_>, _>>() {
                ::core::result::Result::Ok(surfaces) => action.surfaces(surfaces),
                #refuse
            };
        }
    });
    let examples = attributes.examples.iter().enumerate().map(|(index, example)| {
        let refuse = refuse(format!("example {} of \"{name}\" is not JSON", index + 1));
        quote_spanned! {Span::mixed_site()=>
            let action = match #example.parse() {
                ::core::result::Result::Ok(example) => action.example(example),
                #refuse
            };
        }
    });
    quote!(#(#surfaces)* #(#examples)*)
}

/// The end of the definition. Its parts point at the types as written, which is where their faults are.
fn handler(attributes: &Attributes, signature: &Signature<'_>, run: &syn::Ident) -> TokenStream {
    let path = &attributes.path;
    let output = match signature.output() {
        Some(output) => quote!(#output),
        None => quote!(_),
    };
    let returns = Span::mixed_site().located_at(signature.returns.span());
    match (signature.input, signature.context) {
        (Some(input), true) => quote_spanned! {returns=>
            action.typed::<#input, #output, _, _, _>(
                |input: #input, context: #path::Context| async move { #run(input, &context).await },
            )
        },
        (Some(input), false) => quote_spanned! {returns=>
            action.typed::<#input, #output, _, _, _>(|input: #input, _: #path::Context| #run(input))
        },
        (None, true) => quote_spanned! {returns=>
            action.typed_without_input::<#output, _, _, _>(
                |context: #path::Context| async move { #run(&context).await },
            )
        },
        (None, false) => quote_spanned! {returns=>
            action.typed_without_input::<#output, _, _, _>(|_: #path::Context| #run())
        },
    }
}
