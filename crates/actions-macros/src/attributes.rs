//! What stands in `#[action(…)]`, read and checked.
//!
//! Each value is checked at its own place. Limits on numbers are left to the definition, which knows them.

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::{Error, LitStr, Path, Result, parse_quote};

use crate::key::{Key, Word, any_of};
use crate::known::{unknown, usage};

const SIDE_EFFECTS: [(&str, &str); 3] =
    [("read", "Read"), ("write", "Write"), ("destructive", "Destructive")];
const IDEMPOTENCY: [(&str, &str); 4] = [
    ("idempotent", "Idempotent"),
    ("non_idempotent", "NonIdempotent"),
    ("conditional", "Conditional"),
    ("unspecified", "Unspecified"),
];
const VISIBILITY: [(&str, &str); 3] = [("public", "Public"), ("local", "Local"), ("private", "Private")];
const TASK: [(&str, &str); 4] =
    [("never", "Never"), ("possible", "Possible"), ("answered", "Answered"), ("required", "Required")];
const SURFACES: [&str; 7] = ["cli", "json", "http", "mcp", "react", "dev", "ai-sdk"];
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// What stands in `#[action(…)]`.
pub(crate) struct Attributes {
    /// Where Runyard is found.
    pub(crate) path: Path,
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) version: Option<LitStr>,
    pub(crate) side_effects: Option<Word>,
    pub(crate) idempotency: Option<Word>,
    pub(crate) owns_idempotency_key: bool,
    pub(crate) visibility: Option<Word>,
    pub(crate) people_only: bool,
    pub(crate) permissions: Option<Vec<LitStr>>,
    pub(crate) surfaces: Option<Vec<LitStr>>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) retry: Option<Retry>,
    pub(crate) requires_confirmation: Option<bool>,
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) deprecated: Option<Deprecated>,
    pub(crate) examples: Vec<LitStr>,
    pub(crate) http: Option<LitStr>,
    pub(crate) resource: Option<LitStr>,
    pub(crate) prompt: bool,
    pub(crate) task: Option<Word>,
}

/// `retry = true`, `retry = false`, `retry(…)`.
pub(crate) enum Retry {
    Usual,
    Never,
    Times { retries: u32, delay_ms: Option<u64> },
}

/// `concurrency(…)`.
pub(crate) struct Concurrency {
    pub(crate) max: u32,
    pub(crate) wait_ms: u64,
}

/// `deprecated = "…"`, `deprecated(…)`.
pub(crate) struct Deprecated {
    pub(crate) message: LitStr,
    pub(crate) since: Option<LitStr>,
    pub(crate) replacement: Option<LitStr>,
}

impl Attributes {
    /// Reads all keys.
    pub(crate) fn parse(arguments: TokenStream) -> Result<Self> {
        let mut attributes = Attributes::empty();
        let mut seen = Vec::new();
        let read = syn::meta::parser(|meta| {
            let key = Key::read(meta, usage)?;
            if key.name != "example" {
                key.once(&mut seen)?;
            }
            attributes.take(&key)
        });
        read.parse2(arguments)?;
        attributes.check_get()?;
        Ok(attributes)
    }

    fn empty() -> Self {
        Attributes {
            path: parse_quote!(::runyard),
            name: None,
            title: None,
            description: None,
            version: None,
            side_effects: None,
            idempotency: None,
            owns_idempotency_key: false,
            visibility: None,
            people_only: false,
            permissions: None,
            surfaces: None,
            timeout_ms: None,
            deadline_ms: None,
            retry: None,
            requires_confirmation: None,
            concurrency: None,
            deprecated: None,
            examples: Vec::new(),
            http: None,
            resource: None,
            prompt: false,
            task: None,
        }
    }

    fn take(&mut self, key: &Key<'_>) -> Result<()> {
        match key.name.as_str() {
            "crate" => self.path = key.text()?.parse()?,
            "name" => self.name = Some(name(key)?),
            "title" => self.title = Some(key.text()?),
            "description" => self.description = Some(description(key)?),
            "version" => self.version = Some(key.text()?),
            "side_effects" => self.side_effects = Some(key.word(&SIDE_EFFECTS)?),
            "idempotency" => self.idempotency = Some(key.word(&IDEMPOTENCY)?),
            "owns_idempotency_key" => self.owns_idempotency_key = key.flag()?,
            "visibility" => self.visibility = Some(key.word(&VISIBILITY)?),
            "people_only" => self.people_only = key.flag()?,
            "permissions" => self.permissions = Some(key.list()?),
            "surfaces" => self.surfaces = Some(surfaces(key)?),
            "timeout_ms" => self.timeout_ms = Some(key.integer()?),
            "deadline_ms" => self.deadline_ms = Some(key.integer()?),
            "retry" => self.retry = Some(retry(key)?),
            "requires_confirmation" => self.requires_confirmation = Some(key.boolean()?),
            "concurrency" => self.concurrency = Some(concurrency(key)?),
            "deprecated" => self.deprecated = Some(deprecated(key)?),
            "example" => self.examples.push(key.text()?),
            "http" => self.http = Some(http(key)?),
            "resource" => self.resource = Some(key.text()?),
            "prompt" => self.prompt = key.flag()?,
            "task" => self.task = Some(key.word(&TASK)?),
            other => return Err(unknown(other, Span::call_site())),
        }
        Ok(())
    }

    fn check_get(&self) -> Result<()> {
        match (&self.http, &self.side_effects) {
            (Some(route), Some(effects))
                if route.value().starts_with("GET ") && effects.variant != "Read" =>
            {
                let message = format!(
                    "a GET route is for actions that only read, and this one has `side_effects = \"{}\"`: use POST, PUT, PATCH or DELETE",
                    effects.literal.value()
                );
                Err(Error::new(route.span(), message))
            }
            _ => Ok(()),
        }
    }
}

/// Whether this can be the name of an action.
pub(crate) fn check_name(name: &str, span: Span, hint: &str) -> Result<()> {
    let well_formed = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if well_formed {
        return Ok(());
    }
    let rule = "use lower case letters, digits and underscores, a letter first";
    Err(Error::new(span, format!("\"{name}\" is not a name for an action: {rule}{hint}")))
}

fn name(key: &Key<'_>) -> Result<LitStr> {
    let name = key.text()?;
    check_name(&name.value(), name.span(), "")?;
    Ok(name)
}

fn description(key: &Key<'_>) -> Result<LitStr> {
    let text = key.text()?;
    if text.value().trim().is_empty() {
        return Err(Error::new(text.span(), "the description is empty: say what the action does"));
    }
    Ok(text)
}

fn surfaces(key: &Key<'_>) -> Result<Vec<LitStr>> {
    let surfaces = key.list()?;
    match surfaces.iter().find(|surface| !SURFACES.contains(&surface.value().as_str())) {
        None => Ok(surfaces),
        Some(wrong) => {
            let known: Vec<_> = SURFACES.iter().map(|surface| format!("\"{surface}\"")).collect();
            let message = format!("\"{}\" is not a surface: use {}", wrong.value(), any_of(&known));
            Err(Error::new(wrong.span(), message))
        }
    }
}

fn retry(key: &Key<'_>) -> Result<Retry> {
    if !key.is_nested() {
        return Ok(if key.boolean()? { Retry::Usual } else { Retry::Never });
    }
    let (mut retries, mut delay_ms) = (None, None);
    key.nested(|inner| {
        match inner.name.as_str() {
            "retries" => retries = Some(inner.integer()?),
            "delay_ms" => delay_ms = Some(inner.integer()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Retry::Times { retries: key.required("retries", retries)?, delay_ms })
}

fn concurrency(key: &Key<'_>) -> Result<Concurrency> {
    let (mut max, mut wait_ms) = (None, 0);
    key.nested(|inner| {
        match inner.name.as_str() {
            "max" => max = Some(inner.integer()?),
            "wait_ms" => wait_ms = inner.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Concurrency { max: key.required("max", max)?, wait_ms })
}

fn deprecated(key: &Key<'_>) -> Result<Deprecated> {
    if !key.is_nested() {
        return Ok(Deprecated { message: key.text()?, since: None, replacement: None });
    }
    let (mut message, mut since, mut replacement) = (None, None, None);
    key.nested(|inner| {
        match inner.name.as_str() {
            "message" => message = Some(inner.text()?),
            "since" => since = Some(inner.text()?),
            "replacement" => replacement = Some(inner.text()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Deprecated { message: key.required("message", message)?, since, replacement })
}

fn http(key: &Key<'_>) -> Result<LitStr> {
    let route = key.text()?;
    let text = route.value();
    let well_formed = text
        .split_once(' ')
        .is_some_and(|(method, path)| METHODS.contains(&method) && path.starts_with('/') && path.len() > 1);
    if well_formed {
        return Ok(route);
    }
    let rule = "write GET, POST, PUT, PATCH or DELETE and a path, as in \"POST /api/v1/tasks/{id}\"";
    Err(Error::new(route.span(), format!("\"{text}\" is not a route: {rule}")))
}
