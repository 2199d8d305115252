//! What a request asks of an action: path, query, body and headers as an input and options.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use runyard_actions::{Action, ActionError, HttpRoute, InvocationOptions, Issue, PathSegment};
use runyard_domain::{Code, Surface};
use serde_json::{Map, Value};

use crate::json_text::json_reason;
use crate::llm_tools::{Format, ToolRequest};
use crate::{FieldKind, InputField, input_fields, set_field};

/// A body may be so large; the input in it is limited further by the runtime.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// A body must arrive within this time.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// A body that is refused is read on, up to this many bytes and so long.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);
/// A query may give so many parameters.
const QUERY_PARAMETERS_MAX: usize = 1000;

/// An input with its options.
pub(crate) struct Asked {
    pub(crate) input: Value,
    pub(crate) options: InvocationOptions,
}

/// The surface of a call: that of its entry, or `ai-sdk` where a header says that a model wrote it. The browser's surfaces are not a
/// token's to claim, nor `http` a session's.
pub(super) fn surface(entry: Surface, headers: &HeaderMap) -> Result<Surface, ActionError> {
    match at_most_one(headers, &HeaderName::from_static("runyard-surface")) {
        Ok(None) => Ok(entry),
        Ok(Some(named)) if named == entry.as_str() => Ok(entry),
        Ok(Some("ai-sdk")) => Ok(Surface::AiSdk),
        other => {
            let named: String = other.ok().flatten().unwrap_or("?").chars().take(32).collect();
            let with = if entry == Surface::Http { "with a token" } else { "in a browser session" };
            let message =
                format!("The surface \"{named}\" cannot be called {with}; \"{entry}\" and \"ai-sdk\" can.");
            Err(ActionError::new(Code::UnsupportedSurface, message))
        }
    }
}

/// The body of `POST …/invoke`: `{input, confirm?, idempotencyKey?, timeoutMs?, retry?}`.
pub(crate) async fn invoke(headers: &HeaderMap, body: Body) -> Result<Asked, ActionError> {
    let mut payload = object(read_json(headers, body).await?)?;
    let (input, mut options) = crate::json_runner::take_call(&mut payload);
    header_options(headers, &mut options);
    Ok(Asked { input, options })
}

/// The body of `POST …/tools/call`.
pub(super) async fn tool_call(headers: &HeaderMap, body: Body) -> Result<ToolRequest, ActionError> {
    let mut asked = ToolRequest::from_payload(object(read_json(headers, body).await?)?, None)?;
    header_options(headers, &mut asked.options);
    Ok(asked)
}

/// The query of `GET …/tools`: `format=…` and nothing else.
pub(super) fn tool_format(query: &str) -> Result<Format, ActionError> {
    let (mut format, mut issues) = (None, Vec::new());
    for (name, texts) in grouped(query)? {
        match (name.as_str(), texts.as_slice()) {
            ("format", [word]) => format = Some(word.parse::<Format>()),
            ("format", _) => issues.push(Issue::at("format", "Given more than once.")),
            (other, _) => issues.push(Issue::at(other, format!("Unexpected property \"{other}\"."))),
        }
    }
    match format {
        Some(Ok(format)) if issues.is_empty() => return Ok(format),
        Some(Ok(_)) => {}
        Some(Err(unknown)) => issues.push(Issue::at("format", unknown.to_string())),
        None if issues.is_empty() => issues.push(Issue::at("format", "Required value is missing.")),
        None => {}
    }
    Err(ActionError::new(Code::ValidationError, "Invalid query.").with_issues(issues))
}

/// A declared route: path, query and body are the input, the options stand beside it.
pub(super) async fn routed(
    action: &Action,
    route: &HttpRoute,
    path: Vec<(String, String)>,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Asked, ActionError> {
    let takes_body = !matches!(route.method, "GET" | "DELETE");
    let (mut input, mut options) = if takes_body {
        let mut payload = match read_optional_json(headers, body).await? {
            None => Map::new(),
            Some(json) => object(json)?,
        };
        let options = InvocationOptions::take_from(&mut payload);
        (payload, options)
    } else {
        refuse_body(headers, body).await?;
        (Map::new(), InvocationOptions::default())
    };
    header_options(headers, &mut options);
    let fields = input_fields(&action.spec().input);
    for (name, texts) in grouped(query.unwrap_or_default())? {
        place(&mut input, &mut options, &fields, &name, &texts);
    }
    for (name, text) in path {
        place(&mut input, &mut options, &fields, &name, &[text]);
    }
    Ok(Asked { input: Value::Object(input), options })
}

/// Sets a parameter in the input; one that is there already would silently win or lose, so it is refused.
fn place(
    input: &mut Map<String, Value>,
    options: &mut InvocationOptions,
    fields: &[InputField],
    name: &str,
    texts: &[String],
) {
    let field = fields.iter().find(|field| field.path.join(".") == name);
    let path = field.map_or_else(|| vec![name.to_owned()], |field| field.path.clone());
    let list = field.is_some_and(|field| matches!(field.kind, FieldKind::List(_)));
    if is_given(input, &path) || (texts.len() > 1 && !list) {
        let path = path.into_iter().map(PathSegment::Key).collect();
        return options.refuse(Issue { path, message: "Given more than once.".to_owned() });
    }
    let value = match field {
        Some(field) => field.kind.read_all(texts.iter().map(String::as_str)),
        // An unknown one goes on, for the validation to name.
        None => Value::String(texts.concat()),
    };
    set_field(input, &path, value);
}

/// Whether something stands at a path already, or in the way to it.
fn is_given(input: &Map<String, Value>, path: &[String]) -> bool {
    let Some((key, rest)) = path.split_first() else { return true };
    match input.get(key) {
        None => false,
        Some(Value::Object(child)) if !rest.is_empty() => is_given(child, rest),
        Some(_) => true,
    }
}

/// `Idempotency-Key` and `Runyard-Confirm: true`, for routes without a body and wherever they are handy.
fn header_options(headers: &HeaderMap, options: &mut InvocationOptions) {
    options.confirm |= at_most_one(headers, &HeaderName::from_static("runyard-confirm")) == Ok(Some("true"));
    let problem = match at_most_one(headers, &HeaderName::from_static("idempotency-key")) {
        Ok(None) => return,
        Ok(Some(key)) if options.idempotency_key.is_none() => {
            options.idempotency_key = Some(key.to_owned());
            return;
        }
        Ok(Some(key)) if options.idempotency_key.as_deref() == Some(key) => return,
        Ok(Some(_)) => "Header and body give different keys.",
        Err(Unclear) => "Expected one header of visible ASCII characters.",
    };
    options.refuse(Issue::at("idempotencyKey", problem));
}

/// A header that is there twice, or that is no text.
#[derive(PartialEq, Eq)]
struct Unclear;

/// The value of a header that may be left out.
fn at_most_one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Unclear> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Unclear),
        (Some(_), Some(_)) => Err(Unclear),
    }
}

fn object(json: Value) -> Result<Map<String, Value>, ActionError> {
    match json {
        Value::Object(object) => Ok(object),
        _ => Err(ActionError::invalid_input(vec![Issue::root("Expected object.")])),
    }
}

/// A body that may be left out, with or without a content type.
pub(super) async fn read_optional_json(
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<Value>, ActionError> {
    let announced = headers.contains_key(header::CONTENT_TYPE);
    if announced && !is_json(headers) {
        discard(headers, body).await;
        return Err(not_json());
    }
    let bytes = read(headers, body).await?;
    match bytes.is_empty() {
        true => Ok(None),
        false if announced => parse(&bytes).map(Some),
        false => Err(not_json()),
    }
}

pub(super) async fn read_json(headers: &HeaderMap, body: Body) -> Result<Value, ActionError> {
    if !is_json(headers) {
        discard(headers, body).await;
        return Err(not_json());
    }
    parse(&read(headers, body).await?)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = at_most_one(headers, &header::CONTENT_TYPE).ok().flatten().unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn parse(bytes: &[u8]) -> Result<Value, ActionError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column, reason) = (error.line(), error.column(), json_reason(&error));
        let message = format!("The body is not valid JSON at line {line}, column {column}: {reason}.");
        ActionError::new(Code::InvalidJsonBody, message)
    })
}

fn not_json() -> ActionError {
    ActionError::new(Code::UnsupportedMediaType, "The body must be JSON: Content-Type: application/json.")
}

async fn refuse_body(headers: &HeaderMap, body: Body) -> Result<(), ActionError> {
    if read(headers, body).await?.is_empty() {
        return Ok(());
    }
    Err(ActionError::new(
        Code::InvalidRequest,
        "This method takes no body; give the input in path and query.",
    ))
}

async fn read(headers: &HeaderMap, mut body: Body) -> Result<Vec<u8>, ActionError> {
    let too_large = || {
        let message = format!("The body is larger than {BODY_BYTES_MAX} bytes.");
        Err(ActionError::new(Code::PayloadTooLarge, message))
    };
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        discard(headers, body).await;
        return too_large();
    }
    let collected = Limited::new(&mut body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIME_MAX, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes().into()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            drain(body).await;
            too_large()
        }
        Ok(Err(_)) => Err(ActionError::new(Code::InvalidRequest, "The body did not arrive whole.")),
        Err(_) => Err(ActionError::new(Code::RequestTimeout, "The body did not arrive in time.")),
    }
}

/// Reads a body that is refused unseen and forgets it.
///
/// A connection that is closed with bytes unread is reset, and the client may never see why it was refused.
pub(crate) async fn discard(headers: &HeaderMap, body: Body) {
    // Who asks first has sent nothing yet, and then need not.
    if !headers.contains_key(header::EXPECT) {
        drain(body).await;
    }
}

async fn drain(body: Body) {
    let mut body = Limited::new(body, DISCARDED_BYTES_MAX);
    let to_its_end = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, to_its_end).await;
}

/// The parameters of a query by name, in the order of their first appearance.
fn grouped(query: &str) -> Result<Vec<(String, Vec<String>)>, ActionError> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (count, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        if count >= QUERY_PARAMETERS_MAX {
            return Err(ActionError::new(Code::InvalidRequest, "The query has too many parameters."));
        }
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name, Plus::IsSpace)?, decode(value, Plus::IsSpace)?);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => groups.push((name, vec![value])),
        }
    }
    Ok(groups)
}

/// What a plus sign means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    IsSpace,
    IsPlus,
}

/// Undoes percent encoding. An escape that is none, or that gives no UTF-8, is refused rather than guessed at.
pub(crate) fn decode(text: &str, plus: Plus) -> Result<String, ActionError> {
    let refused =
        || ActionError::new(Code::InvalidRequest, "The address holds a percent escape that is not valid.");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        (rest, bytes) = match first {
            b'%' => {
                let (pair, tail) = tail.split_at_checked(2).ok_or_else(refused)?;
                let hex =
                    std::str::from_utf8(pair).ok().filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
                bytes.push(u8::from_str_radix(hex.ok_or_else(refused)?, 16).map_err(|_| refused())?);
                (tail, bytes)
            }
            b'+' if plus == Plus::IsSpace => {
                bytes.push(b' ');
                (tail, bytes)
            }
            other => {
                bytes.push(*other);
                (tail, bytes)
            }
        };
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_escape_that_is_none_is_refused() {
        assert_eq!(decode("a%20b+c", Plus::IsSpace).unwrap(), "a b c");
        assert_eq!(decode("%C3%BC+", Plus::IsPlus).unwrap(), "ü+");
        for broken in ["%", "%2", "%zz", "%ff", "%+1"] {
            assert_eq!(*decode(broken, Plus::IsSpace).unwrap_err().code(), Code::InvalidRequest, "{broken}");
        }
    }
}
