//! Tools that prepare an environment and run a command in it: `rm x` for `uv run rm x`. A rule for the tool covers the command, so
//! only what restricts is judged for it.

use super::{Launched, SimpleCommand, Word};

/// A tool, the word that says that it runs a command, and how many words stand before that.
type Launcher = (&'static str, &'static str, usize);

#[rustfmt::skip]
const LAUNCHERS: [Launcher; 37] = [
    ("uv", "run", 0), ("poetry", "run", 0), ("pipenv", "run", 0), ("hatch", "run", 0), ("pdm", "run", 0),
    ("rye", "run", 0), ("pixi", "run", 0), ("pipx", "run", 0), ("devbox", "run", 0), ("conda", "run", 0),
    ("mamba", "run", 0), ("volta", "run", 0), ("bundle", "exec", 0), ("npm", "exec", 0), ("npm", "x", 0),
    ("pnpm", "exec", 0), ("pnpm", "dlx", 0), ("yarn", "exec", 0), ("yarn", "dlx", 0), ("yarn", "run", 0),
    ("bun", "x", 0), ("direnv", "exec", 1), ("mise", "exec", 1), ("mise", "x", 1), ("asdf", "exec", 0),
    ("rbenv", "exec", 0), ("pyenv", "exec", 0), ("nvm", "exec", 1), ("nix", "develop", 1), ("nix", "shell", 1),
    ("npx", "", 0), ("pnpx", "", 0), ("bunx", "", 0), ("uvx", "", 0), ("cross-env", "", 0), ("dotenv", "", 0),
    ("env-cmd", "", 0),
];

/// Whether a word that is not known may be the one that makes the tool run something.
pub(super) fn is_unclear(command: &SimpleCommand) -> bool {
    let is_launcher = |launcher: &Launcher| command.name() == Some(launcher.0);
    LAUNCHERS.iter().any(is_launcher) && command.hides_its_verb()
}

/// Whether the word is this verb of the program, which may know it by its beginning too.
pub(in crate::gate) fn is_verb(name: &str, word: &Word, verb: &str) -> bool {
    let Some(text) = word.literal() else { return false };
    text == verb || (name == "npm" && text.len() > 1 && verb.starts_with(text))
}

/// What the tool runs, read from each word that may be the program.
pub(super) fn launched(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let is_launcher = |launcher: &&Launcher| command.name() == Some(launcher.0);
    let found = LAUNCHERS.iter().filter(is_launcher).find_map(|(_, verb, operands)| {
        if verb.is_empty() {
            return Some((0, *operands));
        }
        let name = command.name().unwrap_or_default();
        let at = command.arguments.iter().position(|word| is_verb(name, word, verb))?;
        Some((at + 1, *operands))
    });
    let Some((begin, operands)) = found else { return Vec::new() };
    let (before, words) = command.arguments.split_at(begin);
    let is_plain = operands == 0 && before.iter().all(|word| !word.text().starts_with('-'));
    let mut launched = Vec::new();
    let mut options = 0;
    let mut dashes = false;
    for (at, word) in words.iter().enumerate() {
        let is_option = word.text().starts_with('-');
        // Every option before it may have taken one of the words for its value.
        let is_program = !is_option && !sets(word) && (launched.len() <= options + operands || dashes);
        dashes = word.text() == "--";
        options += usize::from(is_option);
        if is_program {
            let is_sure = at == 0 && is_plain;
            launched.push(SimpleCommand {
                program: Some(word.clone()),
                arguments: words[at + 1..].to_vec(),
                launched: if is_sure { Launched::Surely } else { Launched::Perhaps },
                piped: command.piped,
                disputed: command.disputed,
                ..SimpleCommand::default()
            });
            if is_sure {
                break;
            }
        }
    }
    launched
}

/// Whether the word is a variable that the tool sets.
fn sets(word: &Word) -> bool {
    word.literal().is_some_and(|text| text.contains('='))
}
