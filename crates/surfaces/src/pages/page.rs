//! The one page with what is filled in: its language, its theme, and a few words about this server.
//!
//! What a browser sends is only ever compared with what is known, never copied: other servers of this machine can set cookies, too.

use axum::http::{HeaderMap, HeaderName, header};
use runyard_ui_assets::{INDEX, asset};
use serde::Serialize;

/// The places of the page that are filled in.
const HTML: &str = "<html lang=\"en\">";
const HEAD_END: &str = "</head>";

const LANGUAGES: [&str; 2] = ["en", "zh"];
const THEMES: [&str; 3] = ["light", "dark", "contrast"];
/// So many languages of a browser are looked at.
const ACCEPTED_MAX: usize = 32;

/// What a page is told of its server before anybody is logged in.
#[derive(Debug, Serialize)]
pub(super) struct About<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// Whether there are runs, or only actions.
    pub(super) hub: bool,
    /// Another one after every start.
    pub(super) instance: &'a str,
}

/// The page for this browser.
pub(super) fn of(about: &About<'_>, headers: &HeaderMap) -> Option<String> {
    let page = std::str::from_utf8(asset(INDEX)?.bytes).ok()?;
    let (language, theme) = (language(headers), theme(headers));
    let theme = theme.map(|theme| format!(" data-theme=\"{theme}\"")).unwrap_or_default();
    // Which shapes Chinese letters have depends on the country.
    let tag = if language == "zh" { "zh-CN" } else { language };
    let html = format!("<html lang=\"{tag}\"{theme}>");
    let boot =
        format!("<script type=\"application/json\" id=\"boot\">{}</script>\n  {HEAD_END}", data(about)?);
    Some(page.replacen(HTML, &html, 1).replacen(HEAD_END, &boot, 1))
}

/// JSON that cannot end the element it stands in.
fn data(about: &About<'_>) -> Option<String> {
    let mut text = String::new();
    for letter in serde_json::to_string(about).ok()?.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            _ => text.push(letter),
        }
    }
    Some(text)
}

/// What the person chose, else what their browser asks for.
fn language(headers: &HeaderMap) -> &'static str {
    cookie(headers, "runyard_language", &LANGUAGES).unwrap_or_else(|| accepted(headers))
}

fn theme(headers: &HeaderMap) -> Option<&'static str> {
    cookie(headers, "runyard_theme", &THEMES)
}

/// The first cookie of this name that is one of the known words.
fn cookie(headers: &HeaderMap, name: &str, known: &[&'static str]) -> Option<&'static str> {
    let mut pairs = texts(headers, header::COOKIE)
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name);
    pairs.find_map(|(_, value)| known.iter().copied().find(|word| *word == value))
}

/// The language that the browser wants most of those that there are.
fn accepted(headers: &HeaderMap) -> &'static str {
    let ranges =
        texts(headers, header::ACCEPT_LANGUAGE).flat_map(|value| value.split(',')).take(ACCEPTED_MAX);
    let mut best = (0.0, LANGUAGES[0]);
    for range in ranges {
        let (tag, weight) = range.split_once(';').unwrap_or((range, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        let primary = tag.trim().split('-').next().unwrap_or_default();
        let known = LANGUAGES.into_iter().find(|language| language.eq_ignore_ascii_case(primary));
        // Of equals the first counts.
        if let Some(language) = known.filter(|_| weight > best.0) {
            best = (weight, language);
        }
    }
    best.1
}

fn texts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn c20_the_language_is_the_persons_choice_else_the_browsers_else_english() {
        let check = |cookie: &str, accept: &str, expected: &str| {
            let found = language(&headers(&[(header::COOKIE, cookie), (header::ACCEPT_LANGUAGE, accept)]));
            assert_eq!(found, expected, "{cookie} {accept}");
        };
        check("", "", "en");
        check("", "zh-CN,zh;q=0.9,en;q=0.8", "zh");
        check("", "de, en;q=0.5, zh;q=0.6", "zh");
        check("", "fr", "en");
        check("", "zh;q=0, en", "en");
        check("", "zh;q=nonsense", "en");
        check("runyard_language=en", "zh", "en");
        check("a=b; runyard_language=zh", "en", "zh");
        check("runyard_language=xx", "zh", "zh");
    }

    #[test]
    fn what_a_cookie_says_is_one_of_the_known_words_or_nothing() {
        for evil in [
            "\"><script>alert(1)</script>",
            "dark\" onload=\"x",
            "Dark",
            "dark ",
            "'dark'",
            "",
            "light dark",
            "%22",
        ] {
            let given =
                headers(&[(header::COOKIE, &format!("runyard_theme={evil}; runyard_language={evil}"))]);
            assert_eq!(
                (theme(&given), language(&given)),
                (evil.trim().eq("dark").then_some("dark"), "en"),
                "{evil}"
            );
        }
        let tossed = headers(&[(header::COOKIE, "runyard_theme=<b>; runyard_theme=contrast")]);
        assert_eq!(theme(&tossed), Some("contrast"));
    }

    #[test]
    fn nothing_in_the_boot_data_can_end_its_element() {
        let name = "</script><script>alert(1)</script><!-- & \u{2028}\"";
        let about = About { name, version: "1", hub: true, instance: "x" };
        let text = data(&about).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back, serde_json::json!({"name": name, "version": "1", "hub": true, "instance": "x"}));
    }

    #[test]
    fn the_page_is_filled_in_at_its_places_and_nowhere_else() {
        let about = About { name: "x", version: "1", hub: false, instance: "i" };
        let given = headers(&[(header::COOKIE, "runyard_theme=dark; runyard_language=zh")]);
        let page = of(&about, &given).unwrap();
        assert!(page.contains("<html lang=\"zh-CN\" data-theme=\"dark\">"), "{page}");
        let boot = r#"<script type="application/json" id="boot">{"name":"x","version":"1","hub":false,"instance":"i"}</script>"#;
        assert_eq!(page.matches(boot).count(), 1);
        assert!(of(&about, &HeaderMap::new()).unwrap().contains(HTML), "without a choice there is no theme");
    }
}
