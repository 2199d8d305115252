use runyard_domain::{EventId, Timestamp};
use runyard_store::NewEvent;

fn main() {
    let id = EventId::from_parts(0, &[0; 10]);
    let payload = serde_json::json!({"text": "what no redactor saw"});
    NewEvent::new(id, Timestamp::from_unix_ms(0), "run.message.delta", payload);
}
