//! `errors.ts`: the error table.

use std::fmt::Write;

use runyard_domain::Code;

use super::emitter::key;

/// The whole file.
pub fn errors() -> String {
    let mut text = format!("{}\n/** What each code means. */\nexport const ERRORS = {{\n", super::HEAD);
    for code in Code::ALL {
        let row = code.row();
        let (class, retry, status, group) = (row.class.as_str(), row.retry.as_str(), row.http, code.group());
        let row = format!("{{ class: {class:?}, retry: {retry:?}, status: {status}, group: {group:?} }}");
        let _ = writeln!(text, "  {}: {row},", key(code.as_str()));
    }
    text += "} as const;\n\n/** A code of Runyard's own. An application has further ones. */\nexport type Code = keyof typeof ERRORS;\n";
    text += "\n/** What kind of failure it is, and so what can be done about it. */\n";
    text += "export type ErrorClass = (typeof ERRORS)[Code][\"class\"];\n";
    text += "\n/** Whether, and how, to repeat what failed. */\nexport type Retry = (typeof ERRORS)[Code][\"retry\"];\n";
    text +=
        "\n/** What a person can do first, in English. */\nexport const RECOVERY: Record<Code, string> = {\n";
    for code in Code::ALL {
        let _ = writeln!(text, "  {}: {:?},", key(code.as_str()), code.row().recovery);
    }
    text + "};\n"
}
