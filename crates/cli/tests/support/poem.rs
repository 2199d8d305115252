//! A text of twelve lines, and an agent that changes it in two places.

/// Changes the first and the last line of the text, makes a file, and writes one that configures agents; then makes it better.
pub(crate) const EDITS: &str = r#"
[[turn]]
[[turn.step]]
write = "poem.txt"
content = """
ONE
two
three
four
five
six
seven
eight
nine
ten
eleven
TWELVE
"""
[[turn.step]]
write = "docs/new.md"
content = "new\n"
[[turn.step]]
write = ".mcp.json"
content = "{}\n"
[[turn]]
[[turn.step]]
write = "docs/new.md"
content = "newer\n"
"#;

/// The text.
pub(crate) const POEM: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n";
