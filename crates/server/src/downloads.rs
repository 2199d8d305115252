//! What an artifact holds, as a file to download.
//!
//! What comes out of a run is nobody's to trust: only a few media types are named, a browser is told to run, embed and guess
//! nothing, and everything is an attachment unless it is a picture or plain text that was asked for inline. What is kept was checked
//! against its digest when it was read. An unusable `Range` is passed over, as the standard allows: then all of it comes.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use runyard_control::artifact_content;
use runyard_surfaces::http::{ActionError, Actor, Code, Visit, refusal};

use crate::Shared;
use crate::frames::Frames;

/// The longest name of a file in plain letters.
const PLAIN_NAME_MAX: usize = 100;
/// So much is handed over before it is looked again whether whoever asked may have more.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// What a browser may show by itself, if it is asked to.
const INLINE: [(&str, &str); 5] = [
    ("image/png", "image/png"),
    ("image/jpeg", "image/jpeg"),
    ("image/gif", "image/gif"),
    ("image/webp", "image/webp"),
    ("text/plain", "text/plain; charset=utf-8"),
];

/// `GET /api/v1/runs/{id}/artifacts/{artifact}/content`.
pub(crate) async fn download(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Arc<Actor>>,
    Extension(visit): Extension<Visit>,
    Path((run, artifact)): Path<(String, String)>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let asked = Asked { actor: &actor, visit: &visit, run: &run, artifact: &artifact, headers: &headers };
    match answer(&shared, asked, uri.query()).await {
        Ok(response) => response,
        Err(error) => refusal(visit.surface(), None, error),
    }
}

struct Asked<'a> {
    actor: &'a Actor,
    visit: &'a Visit,
    run: &'a str,
    artifact: &'a str,
    headers: &'a HeaderMap,
}

async fn answer(shared: &Shared, asked: Asked<'_>, query: Option<&str>) -> Result<Response, ActionError> {
    let wants_inline = match query {
        None | Some("") => false,
        Some("inline" | "inline=" | "inline=true") => true,
        Some(_) => {
            let message = "A download takes one parameter: inline, for a picture or plain text.";
            return Err(ActionError::new(Code::InvalidRequest, message));
        }
    };
    let (artifact, mut content) =
        artifact_content(&shared.engine, asked.actor, asked.run, asked.artifact).await?;
    let found = artifact.content.as_ref().map_or("", |content| content.media_type.as_str());
    let (media_type, inline) = served(found);
    let etag = artifact.content.as_ref().map(|content| format!("\"{}\"", content.blob)).unwrap_or_default();
    let private = artifact.facts.as_ref().is_some_and(|facts| facts.needs_review());
    let mut response = if matches(asked.headers, &header::IF_NONE_MATCH, &etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let all = content.len();
        let range = range(asked.headers, &etag, all);
        if let Some(range) = &range {
            content.truncate(range.end);
            content.drain(..range.start);
        }
        let length = content.len();
        let visit = asked.visit.clone();
        let mut response =
            Body::from_stream(pieces(content.into(), move || visit.is_valid())).into_response();
        set(&mut response, header::CONTENT_LENGTH, &length.to_string())?;
        if let Some(Range { start, end }) = range {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            set(&mut response, header::CONTENT_RANGE, &format!("bytes {start}-{}/{all}", end - 1))?;
        }
        response
    };
    let kept = if private { "private, no-store" } else { "private, max-age=31536000, immutable" };
    let disposition = disposition(inline && wants_inline, artifact.name.as_deref().unwrap_or("artifact"));
    let values = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, &disposition),
        (header::ETAG, &etag),
        (header::CACHE_CONTROL, kept),
        (header::ACCEPT_RANGES, "bytes"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in values {
        set(&mut response, name, value)?;
    }
    Ok(response)
}

/// The content piece by piece, for as long as whoever asked would be let in. One that is cut off is shorter than was said, which no
/// client takes for the whole.
fn pieces(mut content: Bytes, is_let_in: impl Fn() -> bool + Send + 'static) -> Frames {
    Frames::of(move |out| async move {
        while !content.is_empty() && is_let_in() {
            out.put(content.split_to(PIECE_BYTES_MAX.min(content.len()))).await;
        }
    })
}

fn set(response: &mut Response, name: HeaderName, value: &str) -> Result<(), ActionError> {
    let value = HeaderValue::from_str(value).map_err(|error| ActionError::internal(error.to_string()))?;
    response.headers_mut().insert(name, value);
    Ok(())
}

/// The media type that is named for what was found, and whether a browser may show it by itself.
fn served(found: &str) -> (&'static str, bool) {
    match INLINE.iter().find(|(name, _)| *name == found) {
        Some((_, named)) => (named, true),
        None if found == "application/pdf" => ("application/pdf", false),
        None => ("application/octet-stream", false),
    }
}

/// Whether a header names what is kept.
fn matches(headers: &HeaderMap, name: &HeaderName, etag: &str) -> bool {
    let given = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|value| value.split(','));
    tags.any(|tag| matches!(tag.trim().trim_start_matches("W/"), tag if tag == etag || tag == "*"))
}

/// The part that is asked for, if it is one that there is.
fn range(headers: &HeaderMap, etag: &str, all: usize) -> Option<Range<usize>> {
    if headers.contains_key(header::IF_RANGE) && !matches(headers, &header::IF_RANGE, etag) {
        return None;
    }
    let (from, to) = headers.get(header::RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (from, to) {
        ("", last) => all.saturating_sub(last.parse().ok()?)..all,
        (from, "") => from.parse().ok()?..all,
        (from, to) => from.parse().ok()?..to.parse::<usize>().ok()?.saturating_add(1).min(all),
    };
    (range.start < range.end).then_some(range)
}

/// What to do with it, and its name: in plain letters for all, and as it is for whoever reads that (RFC 6266).
fn disposition(inline: bool, name: &str) -> String {
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => letter,
        _ => '_',
    };
    let shown: String = name.chars().map(plain).take(PLAIN_NAME_MAX).collect();
    // What begins with a dot would be hidden where it is saved.
    let shown = shown.strip_prefix('.').map_or(shown.clone(), |rest| format!("_{rest}"));
    let mut text = format!("{}; filename=\"{shown}\"", if inline { "inline" } else { "attachment" });
    if shown != name {
        text.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
                // Writing to a text does not fail.
                _ => drop(write!(text, "%{byte:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn c24_a_download_breaks_off_when_whoever_asked_would_not_be_let_in_any_more() {
        use std::future::poll_fn;
        use std::pin::Pin;
        use std::sync::atomic::{AtomicUsize, Ordering};

        use futures_core::Stream;

        let content = Bytes::from(vec![b'x'; 3 * PIECE_BYTES_MAX + 1]);
        for (looks_granted, expected) in
            [(0, 0), (2, 2 * PIECE_BYTES_MAX), (usize::MAX, 3 * PIECE_BYTES_MAX + 1)]
        {
            let looks = AtomicUsize::new(0);
            let mut frames =
                pieces(content.clone(), move || looks.fetch_add(1, Ordering::Relaxed) < looks_granted);
            let mut given = 0;
            while let Some(Ok(piece)) = poll_fn(|task| Pin::new(&mut frames).poll_next(task)).await {
                given += piece.len();
            }
            assert_eq!(given, expected, "{looks_granted}");
        }
    }

    #[test]
    fn only_pictures_and_plain_text_may_be_shown_and_what_runs_is_not_even_named() {
        for found in ["image/png", "image/jpeg", "image/gif", "image/webp"] {
            assert_eq!(served(found), (found, true));
        }
        assert_eq!(served("text/plain"), ("text/plain; charset=utf-8", true));
        assert_eq!(served("application/pdf"), ("application/pdf", false));
        for found in
            ["text/html", "image/svg+xml", "text/javascript", "text/css", "application/json", "x", ""]
        {
            assert_eq!(served(found), ("application/octet-stream", false), "{found}");
        }
    }

    #[test]
    fn a_name_is_safe_in_a_header_whatever_it_is() {
        #[track_caller]
        fn check(name: &str, expected: &str) {
            let said = disposition(false, name);
            assert_eq!(said, format!("attachment; {expected}"));
            assert!(HeaderValue::from_str(&said).is_ok() && said.is_ascii());
        }
        check("report.txt", "filename=\"report.txt\"");
        check("a b.txt", "filename=\"a_b.txt\"; filename*=UTF-8''a%20b.txt");
        check("für.md", "filename=\"f_r.md\"; filename*=UTF-8''f%C3%BCr.md");
        check("\"; x=\"y", "filename=\"___x__y\"; filename*=UTF-8''%22%3B%20x%3D%22y");
        check(".bashrc", "filename=\"_bashrc\"; filename*=UTF-8''.bashrc");
        check(
            "a\r\nSet-Cookie: x",
            "filename=\"a__Set-Cookie__x\"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20x",
        );
        assert!(disposition(true, "a.png").starts_with("inline; "));
    }

    #[test]
    fn a_range_is_one_part_that_there_is_or_is_passed_over() {
        let of = |value: &str| {
            let headers = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_str(value).unwrap())]);
            range(&headers, "\"e\"", 10)
        };
        assert_eq!(of("bytes=0-0"), Some(0..1));
        assert_eq!(of("bytes=2-5"), Some(2..6));
        assert_eq!(of("bytes=7-"), Some(7..10));
        assert_eq!(of("bytes=-3"), Some(7..10));
        assert_eq!(of("bytes=-30"), Some(0..10));
        assert_eq!(of("bytes=8-99999999999999999999"), None);
        assert_eq!(of("bytes=8-99"), Some(8..10));
        for unusable in
            ["bytes=10-", "bytes=5-2", "bytes=-0", "bytes=-", "bytes=0-1,3-4", "lines=0-1", "bytes"]
        {
            assert_eq!(of(unusable), None, "{unusable}");
        }
        let mut changed = HeaderMap::from_iter([(header::RANGE, HeaderValue::from_static("bytes=0-0"))]);
        changed.insert(header::IF_RANGE, HeaderValue::from_static("\"other\""));
        assert_eq!(range(&changed, "\"e\"", 10), None);
    }
}
