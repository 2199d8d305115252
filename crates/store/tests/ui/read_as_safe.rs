use runyard_redact::Safe;

fn main() {
    let _: Safe<String> = serde_json::from_str("\"what no redactor saw\"").unwrap();
}
