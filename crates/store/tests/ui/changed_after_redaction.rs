use runyard_redact::Safe;

fn change(text: &mut Safe<String>) {
    text.push_str("what no redactor saw");
}

fn main() {
    change(&mut Safe::from("a literal"));
}
