//! Command lines: every command in them is judged, and so is what it does.

use super::{Because, Beyond, Clause, Judge, Note, Part, Verdict, names};
use crate::gate::command::{Assignment, Git, Launched, Opening, SimpleCommand, Word, parse};
use crate::gate::deeds::{Deed, Object, Touch, deeds, runs_code, to_anywhere};
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
                let verdict = unknown(self.mentioned(line).first(), Because::Unparsed { why });
                return (vec![verdict.part(line)], Risk::Medium, Vec::new());
            }
        };
        let mut directories: Directories = vec![Some(cwd.to_owned())];
        let mut parts = Vec::new();
        let is_known = |command: &SimpleCommand| command.opening != Opening::Opaque;
        let mentioned = if commands.iter().all(is_known) { Vec::new() } else { self.mentioned(line) };
        for command in &commands {
            let verdict = self.command(&mentioned, command, &directories);
            parts.push(verdict.part(&command.to_string()));
            follow(command, &mut directories);
        }
        if parts.is_empty() {
            let because = Because::Default { clause: Clause::Shell };
            parts.push(unknown(self.mentioned(line).first(), because).part(line));
        }
        (parts, risk::of_commands(&commands, &directories), notes(&commands))
    }

    /// The deny rules about programs that the line names anywhere.
    fn mentioned(&self, line: &str) -> Vec<&Rule> {
        let texts = [line.to_owned(), unquoted(line)];
        let is_named =
            |rule: &&Rule| rule.pattern().is_none_or(|pattern| mentions(&texts, pattern.program()));
        let denies = self.rules(RuleKind::Shell).filter(|rule| rule.effect() == Effect::Deny);
        denies.filter(is_named).collect()
    }

    fn command(&self, mentioned: &[&Rule], command: &SimpleCommand, directories: &Directories) -> Verdict {
        let (shell, allowed_by) = self.run(mentioned, command);
        let deeds = deeds(command);
        let others = deeds.iter().filter_map(|deed| self.deed(deed, allowed_by, directories));
        let beyond = variables(command).map(|name| beyond(Beyond::Variable { name }));
        // The first of the most severe says why.
        let all: Vec<Verdict> = std::iter::once(shell).chain(others).chain(beyond).collect();
        let worst = all.iter().map(|verdict| verdict.effect).max();
        let first = all.into_iter().find(|verdict| Some(verdict.effect) == worst);
        match first.unwrap_or(Verdict::ask(Clause::Shell)) {
            Verdict { effect: Effect::Deny, because: Because::Rule { id, .. } }
                if command.launched == Launched::Perhaps =>
            {
                Verdict::new(Effect::Ask, Because::MayMatch { id })
            }
            verdict => verdict,
        }
    }

    /// Judges a command as a command, by the rules for commands.
    fn run(&self, mentioned: &[&Rule], command: &SimpleCommand) -> (Verdict, Option<&Rule>) {
        let mut milder = None;
        let mut allowed_by = None;
        let readings = readings(command);
        for rule in self.rules(RuleKind::Shell) {
            let fit =
                rule.pattern().map_or(Fit::Yes, |pattern| fit(pattern, command, &readings, rule.effect()));
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
            (milder, Opening::Opaque) => {
                // What a rule says about this very program was judged word by word.
                let is_other = |rule: &&&Rule| {
                    rule.pattern()
                        .is_none_or(|pattern| command.name().is_none_or(|name| pattern.program() != name))
                };
                let unknown = unknown(mentioned.iter().find(is_other), Because::Opaque);
                if unknown.effect == Effect::Deny { unknown } else { milder.unwrap_or(unknown) }
            }
            (Some(milder), _) => milder,
            (None, Opening::Opened) => Verdict::new(Effect::Allow, Because::Opened),
            (None, Opening::Plain) if command.launched != Launched::No => {
                Verdict::new(Effect::Allow, Because::Opened)
            }
            (None, Opening::Plain) => allowed_by.map_or(Verdict::ask(Clause::Shell), Verdict::rule),
        };
        (verdict, allowed_by)
    }

    /// Judges what a command does, where that is more than the command's own rule decides.
    fn deed(&self, deed: &Deed, allowed_by: Option<&Rule>, directories: &Directories) -> Option<Verdict> {
        let mut allowed = None;
        let mut asked = None;
        let places = places(deed, directories);
        for rule in self.rules(deed.kind) {
            let fit =
                rule.pattern().map_or(Fit::Yes, |pattern| fit_deed(pattern, deed, &places, rule.effect()));
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
    let declared = command.arguments.iter().filter(|_| declares).filter_map(Assignment::declared);
    let dangerous = command.assignments.iter().cloned().chain(declared).find(Assignment::is_dangerous);
    let option = || Git::of(command)?.configuration.map(str::to_owned);
    dangerous.map(|set| set.name).or_else(option)
}

/// The command as rules that restrict see it too: without options that stand before a subcommand, and as the script that a shell
/// runs.
fn readings(command: &SimpleCommand) -> Vec<SimpleCommand> {
    let git = Git::of(command).map(|git| command.with_arguments(git.words.to_vec()));
    git.into_iter().chain(command.script()).collect()
}

/// How far a command fits a pattern.
fn fit(pattern: &Pattern, command: &SimpleCommand, readings: &[SimpleCommand], effect: Effect) -> Fit {
    let plain = pattern.fits_command(command);
    if effect == Effect::Allow {
        return if pattern.means_program_of(command) { plain } else { Fit::No };
    }
    let seen = readings.iter().map(|reading| pattern.fits_command(reading)).max().unwrap_or(Fit::No);
    plain.max(seen).max(past_options(pattern, command))
}

/// What cannot be known is denied if it mentions what a deny rule is about, else asked about.
fn unknown(mentioned: Option<&&Rule>, because: Because) -> Verdict {
    match mentioned {
        Some(rule) if rule.pattern().is_none() => Verdict::rule(rule),
        Some(rule) => Verdict::new(Effect::Deny, Because::Mentions { id: rule.id().to_owned() }),
        None => Verdict::new(Effect::Ask, because),
    }
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

/// Where the path of a deed may lead.
struct Places {
    spots: Vec<Spot>,
    /// The same where the shell finds it by a pattern, which is read as it stands.
    globs: Option<Vec<Spot>>,
}

fn places(deed: &Deed, directories: &Directories) -> Places {
    let Object::Path { word, .. } = &deed.object else { return Places { spots: Vec::new(), globs: None } };
    let globs = word.glob().map(|glob| spots(&Word::Literal(glob.to_owned()), directories));
    Places { spots: spots(word, directories), globs }
}

fn fit_deed(pattern: &Pattern, deed: &Deed, places: &Places, effect: Effect) -> Fit {
    match (&deed.object, &places.globs) {
        (Object::Host(Some(host)), _) => Fit::of(pattern.matches_host(host)),
        (Object::Host(None), _) if pattern.text() == "*" => Fit::Yes,
        (Object::Host(None), _) => Fit::Maybe,
        (Object::Words(words), _) => {
            let restricts = effect != Effect::Allow && deed.kind == RuleKind::GitPush;
            let anywhere = restricts.then(|| to_anywhere(words)).flatten();
            let there = anywhere.map_or(Fit::No, |words| pattern.fits_words(&words));
            pattern.fits_words(words).max(there)
        }
        // What allows must be sure of the path, so either answer is none for it.
        (Object::Path { .. }, Some(globs)) => {
            let may = |spot: &Spot| !matches!(spot, Spot::Inside(path) if !pattern.may_meet(path));
            if globs.iter().any(may) { Fit::Maybe } else { Fit::No }
        }
        (Object::Path { how, .. }, _) => {
            let fits = places.spots.iter().map(|spot| fit_spot(pattern, spot, *how, effect));
            // What allows must hold wherever the command may be; what restricts, anywhere.
            let fit = if effect == Effect::Allow { fits.min() } else { fits.max() };
            fit.unwrap_or(Fit::No)
        }
    }
}

fn fit_spot(pattern: &Pattern, spot: &Spot, how: Touch, effect: Effect) -> Fit {
    let path = match spot {
        Spot::Unknown => return Fit::Maybe,
        Spot::Inside(path) | Spot::Outside(path) => path,
    };
    if effect == Effect::Allow {
        // What is above the workspace or at home is not in it, however a pattern for the inside reads.
        let is_named = matches!(spot, Spot::Inside(_)) || path.starts_with('/');
        return Fit::of(is_named && pattern.matches_path(path));
    }
    // The workspace's own place on the machine is not known, so a path outside may lead into it.
    let is_outside = matches!(spot, Spot::Outside(_));
    if path.starts_with('~') && path.contains(['*', '?', '[', '{', '$', '`', '"', '\'', '\\']) {
        return Fit::Maybe;
    }
    // Nor is the place of a home, and what is above the workspace has it inside.
    let is_placed =
        path.starts_with('/') || !(pattern.is_absolute() || path.split('/').all(|part| part == ".."));
    if is_outside && !is_placed {
        return Fit::Maybe;
    }
    let covered = pattern.covers_path(path) || (is_outside && pattern.covers_path_below(path));
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

/// The text without quotes, backslashes and ends of continued lines.
fn unquoted(line: &str) -> String {
    let joined = line.replace("\\\n", "");
    joined.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()
}

/// Whether one of the texts holds the program's name as a word.
fn mentions(texts: &[String], program: &str) -> bool {
    texts.iter().any(|text| {
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
