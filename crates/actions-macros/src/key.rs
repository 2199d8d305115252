//! One key of `#[action(…)]` and the shapes its value can have.
//!
//! Whatever is wrong with a value is answered with how the key is written. Which keys there are is not known here.

use std::str::FromStr;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Error, LitBool, LitInt, LitStr, Result, Token, bracketed, token};

/// A key, not yet read any further than its name.
pub(crate) struct Key<'a> {
    meta: ParseNestedMeta<'a>,
    pub(crate) name: String,
    /// How it is written, to be told when it is not.
    usage: &'static str,
}

/// One of a fixed set of words, and the variant that it stands for.
pub(crate) struct Word {
    pub(crate) literal: LitStr,
    pub(crate) variant: &'static str,
}

impl<'a> Key<'a> {
    /// The key here, with how it is written according to `usage`, which may refuse its name.
    pub(crate) fn read(
        meta: ParseNestedMeta<'a>,
        usage: impl Fn(&Ident) -> Result<&'static str>,
    ) -> Result<Self> {
        let ident = meta.path.require_ident()?;
        let (name, usage) = (ident.unraw().to_string(), usage(ident)?);
        Ok(Key { meta, name, usage })
    }

    /// Refuses a key that was there before.
    pub(crate) fn once(&self, seen: &mut Vec<String>) -> Result<()> {
        if seen.contains(&self.name) {
            return Err(self.meta.error(format!("`{}` is given twice", self.name)));
        }
        seen.push(self.name.clone());
        Ok(())
    }

    /// Reads `key = "text"`.
    pub(crate) fn text(&self) -> Result<LitStr> {
        self.value(|input| input.parse())
    }

    /// Reads `key = true`.
    pub(crate) fn boolean(&self) -> Result<bool> {
        self.value(|input| Ok(input.parse::<LitBool>()?.value))
    }

    /// Reads `key = 5000`.
    pub(crate) fn integer<N: FromStr<Err = std::num::ParseIntError>>(&self) -> Result<N> {
        self.value(|input| input.parse::<LitInt>()?.base10_parse())
    }

    /// Reads `key` with nothing after it.
    pub(crate) fn flag(&self) -> Result<bool> {
        if self.at_end() { Ok(true) } else { Err(self.refuse(self.meta.input.span())) }
    }

    /// Reads `key = "word"`, one of these.
    pub(crate) fn word(&self, words: &[(&'static str, &'static str)]) -> Result<Word> {
        let literal = self.text()?;
        match words.iter().find(|(word, _)| *word == literal.value()) {
            Some((_, variant)) => Ok(Word { variant, literal }),
            None => {
                let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
                let message =
                    format!("`{}` cannot be \"{}\": it is {}", self.name, literal.value(), any_of(&known));
                Err(Error::new(literal.span(), message))
            }
        }
    }

    /// Reads `key = ["text", "text"]`.
    pub(crate) fn list(&self) -> Result<Vec<LitStr>> {
        self.value(|input| {
            let content;
            bracketed!(content in input);
            Ok(Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?.into_iter().collect())
        })
    }

    /// Whether it is written `key(…)`.
    pub(crate) fn is_nested(&self) -> bool {
        self.meta.input.peek(token::Paren)
    }

    /// Reads `key(a = …, b = …)`: gives each inner key to `take`, which says whether it knew the name.
    pub(crate) fn nested(&self, mut take: impl FnMut(&Key<'_>) -> Result<bool>) -> Result<()> {
        if !self.is_nested() {
            return Err(self.refuse(self.meta.input.span()));
        }
        let mut seen = Vec::new();
        self.meta.parse_nested_meta(|meta| {
            let inner = Key::read(meta, |_| Ok(self.usage))?;
            inner.once(&mut seen)?;
            match take(&inner)? {
                true => Ok(()),
                false => Err(inner
                    .meta
                    .error(format!("`{}` has no key `{}`: write {}", self.name, inner.name, self.usage))),
            }
        })
    }

    /// What was left out of `key(…)`.
    pub(crate) fn required<T>(&self, inner: &str, value: Option<T>) -> Result<T> {
        let missing = || self.meta.error(format!("`{}` needs `{inner}`: write {}", self.name, self.usage));
        value.ok_or_else(missing)
    }

    fn value<T>(&self, read: impl FnOnce(ParseStream<'_>) -> Result<T>) -> Result<T> {
        let value = self.meta.value().and_then(read);
        value.map_err(|error| self.refuse(error.span()))
    }

    fn refuse(&self, span: Span) -> Error {
        let message = format!("write {}", self.usage);
        // Where nothing follows, the key itself is the best place to point at.
        if self.at_end() { self.meta.error(message) } else { Error::new(span, message) }
    }

    fn at_end(&self) -> bool {
        self.meta.input.is_empty() || self.meta.input.peek(Token![,])
    }
}

/// `a, b or c`.
pub(crate) fn any_of(words: &[String]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.concat(),
    }
}
