//! Command lines: every command in them is judged, and so is what it does.

use super::{Because, Beyond, Clause, Judge, Note, Part, Verdict, names};
use crate::gate::command::{Assignment, Opening, SimpleCommand, Word, parse};
use crate::gate::deeds::{Deed, Git, Object, Touch, configured, deeds, runs_code};
use crate::gate::paths::{Spot, locate, protected};
use crate::gate::pattern::{Fit, Pattern, wildcard};
use crate::gate::risk::{self, Risk};
use crate::gate::rule::{Effect, Rule, RuleKind};

/// In how many directories a line is thought to work before they count as unknown.
const DIRECTORIES_MAX: usize = 16;

/// The directories that a line may be in; nothing stands for one that is not known.
type Directories = Vec<Option<String>>;

impl Judge<'_> {
    pub(super) fn shell(&self, line: &str, cwd: &str) -> (Vec<Part>, Risk, Vec<Note>) {
        let commands = match parse(line) {
            Ok(commands) => commands,
            Err(why) => {
                let verdict = self.unknown(line, Because::Unparsed { why });
                return (vec![verdict.part(line)], Risk::Medium, Vec::new());
            }
        };
        let mut directories: Directories = vec![Some(cwd.to_owned())];
        let mut parts = Vec::new();
        for command in &commands {
            let verdict = self.command(line, command, &directories);
            parts.push(verdict.part(&command.to_string()));
            follow(command, &mut directories);
        }
        if parts.is_empty() {
            parts.push(self.unknown(line, Because::Default { clause: Clause::Shell }).part(line));
        }
        (parts, risk::of_commands(&commands, &directories), notes(&commands))
    }

    /// Judges what cannot be known: denied if it mentions what a deny rule is about, else asked about.
    fn unknown(&self, line: &str, because: Because) -> Verdict {
        let denies = self.rules(RuleKind::Shell).filter(|rule| rule.effect() == Effect::Deny);
        for rule in denies {
            match rule.pattern() {
                None => return Verdict::rule(rule),
                Some(pattern) if mentions(line, pattern.program()) => {
                    return Verdict::new(Effect::Deny, Because::Mentions { id: rule.id().to_owned() });
                }
                Some(_) => {}
            }
        }
        Verdict::new(Effect::Ask, because)
    }

    fn command(&self, line: &str, command: &SimpleCommand, directories: &Directories) -> Verdict {
        let (shell, allowed_by) = self.run(line, command);
        let deeds = deeds(command);
        let others = deeds.iter().filter_map(|deed| self.deed(deed, allowed_by, directories));
        let beyond = variables(command).map(|name| beyond(Beyond::Variable { name }));
        // The first of the most severe says why.
        let all: Vec<Verdict> = std::iter::once(shell).chain(others).chain(beyond).collect();
        let worst = all.iter().map(|verdict| verdict.effect).max();
        let first = all.into_iter().find(|verdict| Some(verdict.effect) == worst);
        first.unwrap_or(Verdict::ask(Clause::Shell))
    }

    /// Judges a command as a command, by the rules for commands.
    fn run(&self, line: &str, command: &SimpleCommand) -> (Verdict, Option<&Rule>) {
        let mut milder = None;
        let mut allowed_by = None;
        for rule in self.rules(RuleKind::Shell) {
            let fit = rule.pattern().map_or(Fit::Yes, |pattern| fit(pattern, command, rule.effect()));
            match (rule.effect(), fit) {
                (_, Fit::No) | (Effect::Allow, Fit::Maybe) => {}
                (Effect::Deny, Fit::Yes) => return (Verdict::rule(rule), None),
                (Effect::Deny, Fit::Maybe) => {
                    let because = Because::MayMatch { id: rule.id().to_owned() };
                    milder = milder.or(Some(Verdict::new(Effect::Ask, because)));
                }
                (Effect::Ask, _) => milder = milder.or(Some(Verdict::rule(rule))),
                (Effect::Allow, Fit::Yes) => allowed_by = allowed_by.or(Some(rule)),
            }
        }
        let verdict = match (milder, command.opening) {
            (_, Opening::Opaque) => self.unknown(line, Because::Opaque),
            (Some(milder), _) => milder,
            (None, Opening::Opened) => Verdict::new(Effect::Allow, Because::Opened),
            (None, Opening::Plain) => allowed_by.map_or(Verdict::ask(Clause::Shell), Verdict::rule),
        };
        (verdict, allowed_by)
    }

    /// Judges what a command does, where that is more than the command's own rule decides.
    fn deed(&self, deed: &Deed, allowed_by: Option<&Rule>, directories: &Directories) -> Option<Verdict> {
        let mut allowed = None;
        let mut asked = None;
        for rule in self.rules(deed.kind) {
            let fit = rule
                .pattern()
                .map_or(Fit::Yes, |pattern| fit_deed(pattern, deed, rule.effect(), directories));
            match (rule.effect(), fit) {
                (_, Fit::No) | (Effect::Allow, Fit::Maybe) => {}
                (Effect::Deny, Fit::Yes) => return Some(Verdict::rule(rule)),
                (Effect::Deny, Fit::Maybe) => {
                    let because = Because::MayMatch { id: rule.id().to_owned() };
                    asked = asked.or(Some(Verdict::new(Effect::Ask, because)));
                }
                (Effect::Ask, _) => asked = asked.or(Some(Verdict::rule(rule))),
                (Effect::Allow, Fit::Yes) => allowed = allowed.or(Some(rule)),
            }
        }
        let connects = deed.kind == RuleKind::Network && self.subject.network_is_allowed;
        asked.or_else(|| by_default(deed, allowed, allowed_by, directories).filter(|_| !connects))
    }
}

/// What holds for a deed that no deny or ask rule is about.
fn by_default(
    deed: &Deed,
    allowed: Option<&Rule>,
    allowed_by: Option<&Rule>,
    directories: &Directories,
) -> Option<Verdict> {
    if let Object::Path { word, how } = &deed.object {
        if deed.kind != RuleKind::Write {
            return None;
        }
        return written(word, *how, allowed, allowed_by, directories);
    }
    let clause = match deed.kind {
        RuleKind::Network => Clause::Network,
        RuleKind::GitCommit => Clause::GitCommit,
        RuleKind::GitPush => Clause::GitPush,
        RuleKind::Publish => Clause::Publish,
        _ => Clause::Deploy,
    };
    let named = allowed_by.is_some_and(|rule| deed.named_by.iter().all(|word| names(rule, word)));
    let covered = deed.named_by.is_empty() || allowed.is_some() || named;
    (!covered).then(|| Verdict::ask(clause))
}

fn written(
    word: &Word,
    how: Touch,
    allowed: Option<&Rule>,
    allowed_by: Option<&Rule>,
    directories: &Directories,
) -> Option<Verdict> {
    let named = allowed_by.is_some_and(|rule| names(rule, word.text()));
    let spots = spots(word, directories);
    for spot in &spots {
        let (Spot::Inside(path) | Spot::Outside(path)) = spot else { continue };
        let Some(part) = protected(path) else { continue };
        if !(named || allowed.is_some_and(|rule| names(rule, part))) {
            return Some(Verdict::new(Effect::Ask, Because::Protected { path: path.clone() }));
        }
    }
    if how == Touch::Redirected && allowed.is_none() {
        return Some(beyond(Beyond::Redirection { path: word.text().to_owned() }));
    }
    let outside = spots.into_iter().find_map(|spot| match spot {
        Spot::Outside(path) => Some(path),
        Spot::Inside(_) | Spot::Unknown => None,
    });
    outside.filter(|_| !named && allowed.is_none()).map(|path| beyond(Beyond::Outside { path }))
}

const fn beyond(what: Beyond) -> Verdict {
    Verdict::new(Effect::Ask, Because::Beyond(what))
}

/// The variables and options of a command that can change what runs.
fn variables(command: &SimpleCommand) -> Option<String> {
    let declares = matches!(command.name(), Some("export" | "declare" | "typeset" | "readonly" | "local"));
    let declared = command.arguments.iter().filter(|_| declares).filter_map(|word| {
        let (name, _) = word.text().split_once('=')?;
        let value = word.literal().and_then(|text| text.split_once('='));
        let value =
            value.map_or(Word::Expanding(String::new()), |(_, value)| Word::Literal(value.to_owned()));
        Some(Assignment { name: name.trim_end_matches('+').to_owned(), value })
    });
    let dangerous = command.assignments.iter().cloned().chain(declared).find(Assignment::is_dangerous);
    let option = || configured(command).filter(|_| command.name() == Some("git"));
    dangerous.map(|set| set.name).or_else(|| option().map(str::to_owned))
}

/// How far a command fits a pattern. Rules that restrict also see through options that stand before a subcommand, through a
/// shell that runs a script, and through a tool that runs a command in an environment.
fn fit(pattern: &Pattern, command: &SimpleCommand, effect: Effect) -> Fit {
    let plain = pattern.fits_command(command);
    if effect == Effect::Allow {
        return if pattern.means_program_of(command) { plain } else { Fit::No };
    }
    if plain == Fit::Yes {
        return plain;
    }
    let git = Git::of(command).filter(|_| command.name() == Some("git"));
    let git = git.map(|git| command.with_arguments(git.words()));
    let readings = git.into_iter().chain(command.script());
    let seen = readings.map(|reading| pattern.fits_command(&reading)).max().unwrap_or(Fit::No);
    // Behind options any word may be the program.
    let launched = command.launched().into_iter().enumerate().map(|(at, reading)| {
        let before = command.arguments.len() - reading.arguments.len() - 1;
        let surely = at == 0 && command.arguments[..before].iter().all(|word| !word.text().starts_with('-'));
        pattern.fits_command(&reading).min(if surely { Fit::Yes } else { Fit::Maybe })
    });
    plain.max(seen).max(launched.max().unwrap_or(Fit::No)).max(past_options(pattern, command))
}

/// Whether the pattern's words stand in order behind options, some of which may have values.
fn past_options(pattern: &Pattern, command: &SimpleCommand) -> Fit {
    let is_program = command.name().is_some_and(|name| wildcard(pattern.program(), name));
    let begins_with_option =
        command.arguments.first().is_some_and(|word| word.text().starts_with(['-', '+']));
    let mut words = command.arguments.iter();
    let mut wanted = pattern.arguments().iter().filter(|word| *word != "*").peekable();
    let any = wanted.peek().is_some();
    let stands =
        wanted.all(|wanted| words.any(|word| word.literal().is_none_or(|text| wildcard(wanted, text))));
    if is_program && begins_with_option && any && stands { Fit::Maybe } else { Fit::No }
}

fn fit_deed(pattern: &Pattern, deed: &Deed, effect: Effect, directories: &Directories) -> Fit {
    match &deed.object {
        Object::Host(Some(host)) => Fit::of(pattern.matches_host(host)),
        Object::Host(None) if pattern.text() == "*" => Fit::Yes,
        Object::Host(None) => Fit::Maybe,
        Object::Words(words) => pattern.fits_words(words),
        Object::Path { word, how } => {
            let fits =
                spots(word, directories).into_iter().map(|spot| fit_spot(pattern, &spot, *how, effect));
            // What allows must hold wherever the command may be; what restricts, anywhere.
            let fit = if effect == Effect::Allow { fits.min() } else { fits.max() };
            let fit = fit.unwrap_or(Fit::No);
            // Nearly every word that expands could become any path; only a write of one is worth asking for.
            if fit == Fit::Maybe && deed.kind == RuleKind::Read && word.literal().is_none() {
                Fit::No
            } else {
                fit
            }
        }
    }
}

fn fit_spot(pattern: &Pattern, spot: &Spot, how: Touch, effect: Effect) -> Fit {
    let path = match spot {
        Spot::Unknown => return Fit::Maybe,
        Spot::Inside(path) | Spot::Outside(path) => path,
    };
    if effect == Effect::Allow {
        return Fit::of(pattern.matches_path(path));
    }
    // The workspace's own place on the machine is not known, so an absolute path may lead into it.
    let tails = path.match_indices('/').filter(|_| path.starts_with('/')).map(|(at, _)| &path[at + 1..]);
    let covered = pattern.covers_path(path) || tails.into_iter().any(|tail| pattern.covers_path(tail));
    match (covered, how) {
        (true, _) => Fit::Yes,
        (false, Touch::Tree) if pattern.reaches_below(path) => Fit::Maybe,
        (false, _) => Fit::No,
    }
}

pub(in crate::gate) fn spots(word: &Word, directories: &Directories) -> Vec<Spot> {
    directories.iter().map(|directory| locate(directory.as_deref(), word)).collect()
}

/// Adds the directories that a command may change to.
fn follow(command: &SimpleCommand, directories: &mut Directories) {
    if !matches!(command.name(), Some("cd" | "pushd" | "chdir")) {
        return;
    }
    let target = command.arguments.iter().find(|word| !word.text().starts_with('-'));
    let targets: Directories = match target {
        None => vec![None],
        Some(word) => spots(word, directories)
            .into_iter()
            .map(|spot| match spot {
                Spot::Inside(path) | Spot::Outside(path) => {
                    Some(if path.is_empty() { ".".to_owned() } else { path })
                }
                Spot::Unknown => None,
            })
            .collect(),
    };
    for target in targets {
        let target = if directories.len() < DIRECTORIES_MAX { target } else { None };
        if !directories.contains(&target) {
            directories.push(target);
        }
    }
}

/// Whether the text holds the program's name as a word, quotes, backslashes and continued lines aside.
fn mentions(line: &str, program: &str) -> bool {
    let joined = line.replace("\\\n", "");
    let unquoted: String = joined.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    [line, unquoted.as_str()].iter().any(|text| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let found = text.match_indices(program).any(|(at, _)| {
            !text[..at].ends_with(is_part) && !text[at + program.len()..].starts_with(is_part)
        });
        let is_edge = |c: char| c.is_whitespace() || ";&|()<>{}`$/\"'\\".contains(c);
        found || (program.contains(['*', '?']) && text.split(is_edge).any(|word| wildcard(program, word)))
    })
}

fn notes(commands: &[SimpleCommand]) -> Vec<Note> {
    let mut notes = Vec::new();
    for command in commands.iter().filter(|command| command.opening != Opening::Opened && runs_code(command))
    {
        let program = command.name().unwrap_or_default().to_owned();
        let note = Note::BoundedBySandboxOnly { program };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if risk::runs_what_it_fetched(commands) {
        notes.push(Note::RunsWhatItFetched);
    }
    notes
}
