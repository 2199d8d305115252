//! When a provider says to come back: seconds, milliseconds, or a date.

use std::time::{Duration, SystemTime};

use hyper::header::{HeaderMap, RETRY_AFTER};

/// A provider that says to come back later than this is asked again after this.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// The same in milliseconds, which some providers say as well and which is more exact.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// What the headers say, as a time from `now` on. A date that is over is no time at all.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let exact = text(RETRY_AFTER_MS).and_then(|text| text.parse().ok());
    exact.and_then(|ms: f64| bounded(ms / 1000.0)).or_else(|| said(text(RETRY_AFTER.as_str())?, now))
}

fn said(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return bounded(seconds);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// So many seconds, where that is a time to wait.
pub(super) fn bounded(seconds: f64) -> Option<Duration> {
    (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(RETRY_AFTER_MAX.as_secs_f64())))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], expected: Option<Duration>) {
        // Wed, 21 Oct 2015 07:28:00 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        assert_eq!(retry_after(&headers, now), expected, "{headers:?}");
    }

    #[test]
    fn d08_retry_after_is_seconds_or_milliseconds_or_a_date_and_bounded() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        check(&[], None);
        check(&[("retry-after", "7")], seconds(7));
        check(&[("retry-after", " 0 ")], seconds(0));
        check(&[("retry-after", "1.5")], Some(Duration::from_millis(1500)));
        check(&[("retry-after", "301")], seconds(300));
        check(&[("retry-after", "1e99")], seconds(300));
        check(&[("retry-after", "inf")], seconds(300));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")], seconds(90));
        check(&[("retry-after", "Wednesday, 21-Oct-15 07:29:30 GMT")], seconds(90));
        check(&[("retry-after", "Wed Oct 21 07:29:30 2015")], seconds(90));
        check(&[("retry-after", "Tue, 31 Dec 2999 23:59:59 GMT")], seconds(300));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")], seconds(0));
        for nothing in ["", "-1", "NaN", "soon", "21 Oct"] {
            check(&[("retry-after", nothing)], None);
        }
        check(&[("retry-after", "7"), ("retry-after-ms", "250")], Some(Duration::from_millis(250)));
        check(&[("retry-after", "7"), ("retry-after-ms", "-1")], seconds(7));
        check(&[("retry-after-ms", "9999999")], seconds(300));
    }
}
