use runyard_redact::Safe;

fn main() {
    let text = String::from("what no redactor saw");
    let _: Safe<String> = Safe::from(text.as_str());
}
