//! Nothing leaks: secrets of every form in every row of a thread, and none of them may be anywhere afterwards.

use std::sync::Arc;
use std::time::Duration;

use runyard_redact::Kind;
use serde_json::json;

use super::super::fixtures::{fresh_append, safe_text};
use super::super::leaks::{assert_holds_none, needles, redactor_of_secrets, texts_with_secrets};
use super::steps::{fresh_agent_run, granted, whole};
use crate::{
    ClaimAfter, JournalWrite, KeyDigest, RunWrite, Scope, ThreadCommit, ThreadId, ThreadRunStore,
    ThreadWrites, ValueWrite,
};

/// Plants secrets in every row of threads, checks what is read back, and gives what must be found nowhere.
pub async fn plant_thread_secrets(store: Arc<dyn ThreadRunStore>) -> Vec<Vec<u8>> {
    let (redactor, needles) = (redactor_of_secrets(), needles());
    let mut read = Vec::new();
    for (text, number) in texts_with_secrets().iter().zip(0..) {
        let nested = || redactor.json(json!({"text": text, "deep": [{"list": [text, 1]}], text: "as a key"}));
        let plain = || redactor.text(Kind::Text, text);
        // Where the redacted name is no id, another one is used: an id must not hold everything.
        let thread = ThreadId::new(plain())
            .unwrap_or_else(|_| ThreadId::new(safe_text(&format!("thread {number}"))).unwrap());
        let thread = match store.thread(&thread).await.unwrap() {
            Some(_) => ThreadId::new(safe_text(&format!("other thread {number}"))).unwrap(),
            None => thread,
        };
        let run = fresh_agent_run();
        store.create_thread(&thread, nested()).await.unwrap();
        let owner = redactor.text(Kind::Text, &format!("owner with {text}"));
        // A name that redaction leaves a zero in is refused, whatever it says.
        let owner = if owner.contains('\0') { "owner".into() } else { owner };
        let claim = granted(store.claim(&thread, &run, owner, Duration::ZERO).await.unwrap());
        let key = || if plain().contains('\0') { "key".into() } else { plain() };
        let writes = ThreadWrites {
            messages: vec![nested(), plain().into()],
            values: [Scope::Thread, Scope::Run]
                .map(|scope| ValueWrite::Set { scope, key: key(), value: nested() })
                .to_vec(),
            journal: vec![
                JournalWrite::Intent { call: key(), key: KeyDigest::of(&[text]), payload: nested() },
                JournalWrite::Result { call: key(), payload: nested() },
            ],
            record: Some(RunWrite { status: "running", finished: false, payload: nested() }),
        };
        let commit = ThreadCommit {
            thread: thread.clone(),
            run: run.clone(),
            append: fresh_append(),
            generation: claim.generation,
            expected: 0,
            writes,
            claim: ClaimAfter::Kept,
        };
        store.commit(commit).await.unwrap();
        let whole = whole(&*store, &thread, &run).await;
        read.extend(whole.messages.iter().flat_map(|message| message.body.to_vec()));
        read.extend(whole.values.iter().chain(&whole.run_values).flat_map(|value| value.value.clone()));
        read.extend(format!("{:?} {:?} {:?}", whole.thread, whole.values, whole.calls).into_bytes());
    }
    assert!(read.windows(10).any(|part| part == b"[REDACTED:"), "nothing was taken out");
    assert_holds_none("what is read of threads", &read, &needles);
    needles
}
