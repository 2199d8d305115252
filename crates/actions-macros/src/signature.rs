//! The function under `#[action]`: what it takes and gives, and what an action's function cannot be.
//!
//! It sees only what is written, not what a name stands for, so it knows a context by the name `Context`.

use syn::{
    Error, FnArg, GenericArgument, ItemFn, PathArguments, PathSegment, Result, ReturnType, Type,
    TypeReference,
};

const BY_REFERENCE: &str = "take the context by reference: `ctx: &Context`";

/// What the function takes and gives.
pub(crate) struct Signature<'a> {
    /// The type of its input, if it takes one.
    pub(crate) input: Option<&'a Type>,
    /// Whether it takes the context, after the input.
    pub(crate) context: bool,
    /// What it returns.
    pub(crate) returns: &'a Type,
}

impl<'a> Signature<'a> {
    /// Reads and checks the signature.
    pub(crate) fn read(function: &'a ItemFn) -> Result<Self> {
        check_kind(function)?;
        let (input, context) = parameters(function)?;
        let returns = match &function.sig.output {
            ReturnType::Type(_, returns) => returns.as_ref(),
            ReturnType::Default => {
                let message = "say what the action returns, as in `-> Result<Task, ActionError>`";
                return Err(Error::new(function.sig.ident.span(), message));
            }
        };
        Ok(Signature { input, context, returns })
    }

    /// `T` where `Result<T, …>` is what is written as the return type.
    pub(crate) fn output(&self) -> Option<&'a Type> {
        let segment = last_segment(self.returns).filter(|segment| segment.ident == "Result")?;
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
        match arguments.args.first() {
            Some(GenericArgument::Type(output)) => Some(output),
            _ => None,
        }
    }
}

fn check_kind(function: &ItemFn) -> Result<()> {
    let sig = &function.sig;
    if let Some(receiver) = sig.receiver() {
        let message =
            "an action is a free function without `self`: get what it needs with `ctx.service::<T>()`";
        return Err(Error::new_spanned(receiver, message));
    }
    if sig.asyncness.is_none() {
        return Err(Error::new(sig.fn_token.span, "an action is an async function: write `async fn`"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &sig.generics,
            "an action cannot be generic: name the types it takes and gives",
        ));
    }
    if let Some(condition) = &sig.generics.where_clause {
        return Err(Error::new_spanned(condition, "an action cannot be generic, so it needs no `where`"));
    }
    match &sig.unsafety {
        Some(unsafety) => Err(Error::new(unsafety.span, "an action cannot be unsafe: anyone may call it")),
        None => Ok(()),
    }
}

fn parameters(function: &ItemFn) -> Result<(Option<&Type>, bool)> {
    let mut types = Vec::new();
    for parameter in &function.sig.inputs {
        if let FnArg::Typed(typed) = parameter {
            types.push(typed.ty.as_ref());
        }
    }
    match types[..] {
        [] => Ok((None, false)),
        [only] => {
            if is_context(only)? {
                Ok((None, true))
            } else {
                Ok((Some(only), false))
            }
        }
        [first, second] => match (is_context(first)?, is_context(second)?) {
            (false, true) => Ok((Some(first), true)),
            (true, false) => Err(Error::new_spanned(first, "the input comes first, then the context")),
            (true, true) => Err(Error::new_spanned(second, "one context is enough")),
            (false, false) => Err(Error::new_spanned(
                second,
                "an action takes one input: put the fields into one struct (the context would be `ctx: &Context`)",
            )),
        },
        [_, _, third, ..] => Err(Error::new_spanned(
            third,
            "too many parameters: an action takes one input and `ctx: &Context`, or one of them, or none",
        )),
    }
}

/// Whether this is the context; what can be neither context nor input is refused.
fn is_context(parameter: &Type) -> Result<bool> {
    match parameter {
        Type::Reference(TypeReference { mutability: Some(_), elem, .. }) if names_context(elem) => {
            Err(Error::new_spanned(parameter, BY_REFERENCE))
        }
        Type::Reference(reference) if names_context(&reference.elem) => Ok(true),
        Type::Reference(_) => Err(Error::new_spanned(parameter, "take the input by value, not by reference")),
        Type::ImplTrait(_) => {
            Err(Error::new_spanned(parameter, "an action cannot be generic: name the type it takes"))
        }
        Type::Tuple(tuple) if tuple.elems.is_empty() => {
            Err(Error::new_spanned(parameter, "an action without input has no input parameter: leave it out"))
        }
        other if names_context(other) => Err(Error::new_spanned(parameter, BY_REFERENCE)),
        _ => Ok(false),
    }
}

fn names_context(named: &Type) -> bool {
    last_segment(named).is_some_and(|segment| segment.ident == "Context")
}

fn last_segment(named: &Type) -> Option<&PathSegment> {
    match named {
        Type::Path(named) => named.path.segments.last(),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}
