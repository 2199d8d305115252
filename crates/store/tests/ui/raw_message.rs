//! A message that no redactor saw.

use runyard_store::{ThreadId, ThreadWrites};

fn main() {
    let _ = ThreadWrites { messages: vec![serde_json::json!({"role": "user"})], ..ThreadWrites::default() };
    let _ = ThreadId::new("a name from outside".to_owned());
}
