//! The requests that came in, for a test to read and to wait for.
//!
//! Bounded in number and in bytes: the oldest go first. It keeps keys in clear, which is its purpose.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::watch;

const REQUESTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// One request that reached the provider.
#[derive(Clone)]
pub struct Recorded {
    /// The how-many-th request this was, from 1.
    pub number: u64,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Every header, in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: String,
    /// The scenario and its step (from 0) that were played; `None` where no scenario was looked for.
    pub played: Option<(String, usize)>,
    /// The status of the answer; `None` where none is ever given.
    pub status: Option<u16>,
}

impl Recorded {
    /// The body as JSON; null if it is not.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The key that was sent, in whichever header the wire has for it.
    pub fn key(&self) -> Option<&str> {
        self.bearer().or_else(|| self.header("x-api-key"))
    }

    /// The bearer key that was sent.
    pub fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }
}

// Without headers and body: a failed assertion must not print a key.
impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("number", &self.number)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("played", &self.played)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Kept {
    requests: VecDeque<Recorded>,
    bytes: usize,
    count: u64,
}

pub(crate) struct RequestLog {
    kept: Mutex<Kept>,
    count: watch::Sender<u64>,
}

impl RequestLog {
    pub(crate) fn new() -> Self {
        Self { kept: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Keeps a request, gives it its number, and wakes who waits.
    pub(crate) fn keep(&self, mut request: Recorded) -> u64 {
        let number = {
            let mut kept = self.lock();
            kept.count += 1;
            request.number = kept.count;
            kept.bytes += request.body.len();
            kept.requests.push_back(request);
            while kept.requests.len() > REQUESTS_MAX || (kept.bytes > BYTES_MAX && kept.requests.len() > 1) {
                let oldest = kept.requests.pop_front().map_or(0, |oldest| oldest.body.len());
                kept.bytes -= oldest;
            }
            kept.count
        };
        self.count.send_replace(number);
        number
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.lock().requests.iter().cloned().collect()
    }

    /// The first kept request that matches, now or later.
    pub(crate) async fn wait_for(&self, matches: impl Fn(&Recorded) -> bool) -> Recorded {
        let mut count = self.count.subscribe();
        loop {
            // Marked as seen before looking, so that what comes while looking wakes this again.
            count.mark_unchanged();
            if let Some(found) = self.lock().requests.iter().find(|request| matches(request)) {
                return found.clone();
            }
            // The sender is a field of `self`, so it cannot be gone.
            let _ = count.changed().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: String) -> Recorded {
        Recorded {
            number: 0,
            method: "POST".into(),
            path: "/".into(),
            headers: vec![("authorization".into(), "Bearer planted-key".into())],
            body,
            played: None,
            status: Some(200),
        }
    }

    #[test]
    fn the_log_is_bounded_in_number_and_in_bytes_and_always_keeps_the_newest() {
        let log = RequestLog::new();
        for _ in 0..=REQUESTS_MAX {
            log.keep(request(String::new()));
        }
        let numbers: Vec<_> = log.all().iter().map(|kept| kept.number).collect();
        assert_eq!(numbers, (2..=REQUESTS_MAX as u64 + 1).collect::<Vec<_>>());

        let newest = log.keep(request("x".repeat(BYTES_MAX + 1)));
        assert_eq!(log.all().iter().map(|kept| kept.number).collect::<Vec<_>>(), [newest]);
        log.keep(request(String::new()));
        assert_eq!(log.all().iter().map(|kept| kept.number).collect::<Vec<_>>(), [newest + 1]);
    }

    #[test]
    fn a_printed_request_does_not_show_its_key() {
        let printed = format!("{:?}", request("the body".into()));
        assert!(!printed.contains("planted-key") && !printed.contains("the body"), "{printed}");
        assert_eq!(request(String::new()).bearer(), Some("planted-key"));
    }
}
