//! Conversations by thread, within a number of bytes. What was used longest ago goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use runyard_llm::inference::{ImageSource, Message, Part};
use serde_json::Value;

/// So many bytes of conversations are kept where nobody says.
pub const CACHE_BYTES_DEFAULT: usize = 64 * 1024 * 1024;
/// About what a message takes beside its text, and a part of it, and a conversation.
const OVERHEAD_BYTES: usize = 128;

/// The beginning of a thread, or all of it, as it is stored.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Which thread of its name it is.
    pub(super) incarnation: u64,
    pub(super) messages: Vec<Arc<Message>>,
    bytes: usize,
}

/// How much was remembered of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) incarnation: u64,
    /// So many of its first messages.
    pub(super) messages: usize,
    bytes: usize,
}

impl Remembered {
    /// The messages, and how much they were.
    pub(super) fn into_known(self) -> (Vec<Arc<Message>>, Known) {
        let known = Known { incarnation: self.incarnation, messages: self.messages.len(), bytes: self.bytes };
        (self.messages, known)
    }
}

impl Known {
    /// Nothing of this thread.
    pub(super) fn nothing(incarnation: u64) -> Self {
        Known { incarnation, messages: 0, bytes: 0 }
    }

    /// The same with what came behind it since. Only that is looked at.
    pub(super) fn with(self, messages: Vec<Arc<Message>>) -> Remembered {
        let new = messages.iter().skip(self.messages).map(|message| size(message));
        let bytes = self.bytes.max(OVERHEAD_BYTES).saturating_add(new.sum());
        Remembered { incarnation: self.incarnation, messages, bytes }
    }
}

/// Conversations by thread.
#[derive(Debug)]
pub(super) struct Cache {
    bytes_max: usize,
    bytes: usize,
    /// Counts uses; the key of the order.
    used: u64,
    entries: HashMap<Arc<str>, (u64, Remembered)>,
    order: BTreeMap<u64, Arc<str>>,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Cache { bytes_max, bytes: 0, used: 0, entries: HashMap::new(), order: BTreeMap::new() }
    }

    /// Takes out what is known of a thread.
    pub(super) fn take(&mut self, thread_id: &str) -> Option<Remembered> {
        let (used, remembered) = self.entries.remove(thread_id)?;
        self.order.remove(&used);
        self.bytes -= remembered.bytes;
        Some(remembered)
    }

    /// Puts it in, and makes room. What is larger than all there is room for is not kept.
    pub(super) fn put(&mut self, thread_id: Arc<str>, remembered: Remembered) {
        drop(self.take(&thread_id));
        if remembered.bytes > self.bytes_max {
            return;
        }
        self.bytes += remembered.bytes;
        self.used += 1;
        self.order.insert(self.used, Arc::clone(&thread_id));
        self.entries.insert(thread_id, (self.used, remembered));
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some((_, gone)) = self.entries.remove(&oldest) {
                self.bytes -= gone.bytes;
            }
        }
    }
}

/// About how much memory a message takes.
fn size(message: &Message) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::Image(image) => match &image.source {
            ImageSource::Data { data, .. } => data.len(),
            ImageSource::Url { url } => url.len(),
        },
        Part::Reasoning(reasoning) => reasoning.text.len() + reasoning.sealed.as_ref().map_or(0, weight),
        Part::ToolCall(call) => call.id.len() + call.name.len() + weight(&call.arguments),
        Part::ToolOutput(output) => output.call_id.len() + output.content.len(),
    };
    OVERHEAD_BYTES + message.content.iter().map(|each| OVERHEAD_BYTES + part(each)).sum::<usize>()
}

/// About how much memory JSON takes. Stored JSON is never deep.
fn weight(value: &Value) -> usize {
    let held = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(parts) => parts.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + 32 + weight(value)).sum(),
    };
    size_of::<Value>() + held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(text: &str) -> Remembered {
        Known::nothing(1).with(vec![Arc::new(Message::user(text))])
    }

    fn held(cache: &Cache) -> (Vec<&str>, usize) {
        let names = cache.order.values().map(|name| &**name).collect();
        let bytes = cache.entries.values().map(|(_, remembered)| remembered.bytes).sum::<usize>();
        assert_eq!((cache.bytes, cache.entries.len()), (bytes, cache.order.len()));
        (names, bytes)
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_the_bytes_are_never_more() {
        let one = remembered(&"x".repeat(1_000)).bytes;
        let mut cache = Cache::new(3 * one);
        for name in ["a", "b", "c"] {
            cache.put(name.into(), remembered(&"x".repeat(1_000)));
        }
        assert_eq!(held(&cache), (vec!["a", "b", "c"], 3 * one));
        let a = cache.take("a").unwrap();
        assert_eq!(a.messages[0].said().len(), 1_000);
        cache.put("a".into(), a);
        cache.put("d".into(), remembered(&"x".repeat(1_000)));
        assert_eq!(held(&cache), (vec!["c", "a", "d"], 3 * one));
        assert!(cache.take("b").is_none());
    }

    #[test]
    fn what_comes_behind_is_added_to_what_was_known() {
        let (mut messages, known) = remembered("first").into_known();
        messages.push(Arc::new(Message::assistant("second")));
        let all = messages.iter().map(|message| size(message)).sum::<usize>();
        assert_eq!(known.with(messages).bytes, OVERHEAD_BYTES + all);
    }

    #[test]
    fn what_there_is_no_room_for_is_not_kept_and_pushes_nothing_out() {
        let mut cache = Cache::new(2_000);
        cache.put("a".into(), remembered("small"));
        cache.put("b".into(), remembered(&"x".repeat(5_000)));
        assert_eq!(held(&cache).0, ["a"]);
        cache.put("a".into(), remembered(&"x".repeat(5_000)));
        assert_eq!(held(&cache), (vec![], 0));
    }
}
