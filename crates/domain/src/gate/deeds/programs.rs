//! Well-known programs and what they do.

use super::{Deed, Touch, git, plain_host, url_host};
use crate::gate::command::{SimpleCommand, Word, is_shell};
use crate::gate::rule::RuleKind;

/// Programs that reach the host that is their first operand, or that stands in an address.
const NETWORK: [&str; 26] = [
    "curl", "wget", "http", "https", "xh", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet",
    "ftp", "socat", "ping", "dig", "nslookup", "host", "whois", "aria2c", "lynx", "w3m", "mosh", "openssl",
    "gh",
];

/// Programs that run other people's code, or code that the agent wrote.
const INTERPRETERS: [&str; 63] = [
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "luajit",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "make",
    "gmake",
    "cmake",
    "ninja",
    "npm",
    "npx",
    "pnpm",
    "yarn",
    "cargo",
    "go",
    "java",
    "dotnet",
    "Rscript",
    "osascript",
    "tclsh",
    "guile",
    "sbcl",
    "julia",
    "scala",
    "kotlin",
    "swift",
    "pytest",
    "tox",
    "nox",
    "jest",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "just",
    "task",
    "rake",
    "bundle",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "source",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "m4",
    "dc",
    "gnuplot",
    "sqlite3",
];

/// Programs with the words that make them publish.
const PUBLISH: [&[&str]; 24] = [
    &["npm", "publish"],
    &["pnpm", "publish"],
    &["yarn", "publish"],
    &["bun", "publish"],
    &["cargo", "publish"],
    &["twine", "upload"],
    &["gem", "push"],
    &["docker", "push"],
    &["podman", "push"],
    &["buildah", "push"],
    &["helm", "push"],
    &["poetry", "publish"],
    &["uv", "publish"],
    &["flit", "publish"],
    &["hatch", "publish"],
    &["gradle", "publish"],
    &["gh", "release"],
    &["gh", "pr"],
    &["gh", "gist"],
    &["gh", "issue"],
    &["vsce", "publish"],
    &["dotnet", "push"],
    &["goreleaser", "release"],
    &["sendmail"],
];

/// Programs with the words that make them deploy.
const DEPLOY: [&[&str]; 40] = [
    &["kubectl", "apply"],
    &["kubectl", "create"],
    &["kubectl", "delete"],
    &["kubectl", "replace"],
    &["kubectl", "patch"],
    &["kubectl", "scale"],
    &["kubectl", "rollout"],
    &["kubectl", "set"],
    &["kubectl", "edit"],
    &["kubectl", "run"],
    &["helm", "install"],
    &["helm", "upgrade"],
    &["helm", "uninstall"],
    &["helm", "rollback"],
    &["terraform", "apply"],
    &["terraform", "destroy"],
    &["tofu", "apply"],
    &["tofu", "destroy"],
    &["pulumi", "up"],
    &["pulumi", "destroy"],
    &["ansible-playbook"],
    &["vercel"],
    &["netlify", "deploy"],
    &["fly", "deploy"],
    &["flyctl", "deploy"],
    &["heroku"],
    &["serverless", "deploy"],
    &["sls", "deploy"],
    &["cdk", "deploy"],
    &["sam", "deploy"],
    &["gcloud", "deploy"],
    &["firebase", "deploy"],
    &["wrangler", "deploy"],
    &["wrangler", "publish"],
    &["aws", "deploy"],
    &["docker", "deploy"],
    &["nomad", "run"],
    &["eb", "deploy"],
    &["mvn", "deploy"],
    &["railway", "up"],
];

/// Whether the program reaches the network by its nature.
pub(in crate::gate) fn is_network(name: &str) -> bool {
    NETWORK.contains(&name)
}

/// Whether the program runs a command as somebody else.
pub(in crate::gate) fn raises_rights(name: &str) -> bool {
    matches!(name, "sudo" | "doas" | "su" | "pkexec" | "runuser")
}

/// Whether what the command does stands in code that is not in the line.
pub(in crate::gate) fn runs_code(command: &SimpleCommand) -> bool {
    let (Some(name), Some(program)) = (command.name(), &command.program) else { return false };
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let is_system = |path: &str| {
        ["/bin/", "/sbin/", "/usr/", "/opt/homebrew/"].iter().any(|directory| path.starts_with(directory))
    };
    let is_script = program.text().contains('/') && !is_system(program.text());
    is_script || name == "." || is_shell(name) || INTERPRETERS.contains(&unversioned)
}

pub(super) fn deeds(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    if name == "git" {
        git::deeds(command, deeds);
    }
    if !matches!(name, "echo" | "printf") {
        named_paths(command, deeds);
    }
    writes(name, command, deeds);
    reached(name, command, deeds);
    for (kind, table) in [(RuleKind::Publish, PUBLISH.as_slice()), (RuleKind::Deploy, DEPLOY.as_slice())] {
        if let Some(row) = table.iter().find(|row| row[0] == name && in_order(&row[1..], &command.arguments))
        {
            let text = if command.arguments.iter().all(|word| word.literal().is_some()) {
                Word::Literal(command.to_string())
            } else {
                Word::Expanding(command.to_string())
            };
            deeds.push(Deed::words(kind, vec![text], row));
        }
    }
}

/// Whether the words stand among the arguments, in this order.
fn in_order(words: &[&str], arguments: &[Word]) -> bool {
    let mut arguments = arguments.iter();
    words.iter().all(|word| arguments.any(|argument| argument.literal() == Some(word)))
}

/// Every argument may be a path that is read: `x`, `--file=x`, `@x`, and `-x` after `--`.
fn named_paths(command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let mut options_ended = false;
    for word in &command.arguments {
        let text = word.text();
        let text = text.split_once('=').map_or(text, |(_, value)| value);
        let text = text.strip_prefix('@').unwrap_or(text);
        let is_option = text.starts_with('-') && text == word.text() && !options_ended;
        options_ended |= word.text() == "--";
        if text.is_empty() || is_option {
            continue;
        }
        let word = match word {
            Word::Literal(_) => Word::Literal(text.to_owned()),
            Word::Expanding(_) => Word::Expanding(text.to_owned()),
        };
        deeds.push(Deed::path(RuleKind::Read, word, Touch::Named));
    }
}

fn operands(command: &SimpleCommand) -> Vec<&Word> {
    let dashes = command.arguments.iter().position(|word| word.text() == "--");
    let (before, after) = command.arguments.split_at(dashes.unwrap_or(command.arguments.len()));
    before.iter().filter(|word| !word.text().starts_with('-')).chain(after.iter().skip(1)).collect()
}

fn has_letter(command: &SimpleCommand, letters: &[char]) -> bool {
    let is_cluster = |text: &&str| text.starts_with('-') && !text.starts_with("--");
    command.arguments.iter().map(Word::text).filter(is_cluster).any(|text| text.contains(letters))
}

/// Whether the command takes everything below its operands with it.
pub(in crate::gate) fn is_recursive(command: &SimpleCommand) -> bool {
    let long = command.arguments.iter().any(|word| word.text() == "--recursive");
    long || has_letter(command, &['r', 'R'])
}

fn writes(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let operands = operands(command);
    let how = if name == "mv" || is_recursive(command) { Touch::Tree } else { Touch::Named };
    let written: Vec<Word> = match name {
        "rm" | "rmdir" | "unlink" | "shred" | "tee" | "touch" | "mkdir" | "truncate" | "mkfifo" | "mv"
        | "patch" => operands.into_iter().cloned().collect(),
        "chmod" | "chown" | "chgrp" => operands.into_iter().skip(1).cloned().collect(),
        "sed" | "perl" if has_letter(command, &['i']) => operands.into_iter().cloned().collect(),
        "cp" | "ln" | "install" | "rsync" => copied(command, &operands),
        "dd" => operands.into_iter().filter_map(|word| after(word, "of=")).collect(),
        "curl" | "wget" | "sort" => output_option(command),
        _ => Vec::new(),
    };
    deeds.extend(written.into_iter().map(|word| Deed::path(RuleKind::Write, word, how)));
}

/// The last operand, and what it holds afterwards if it is a directory.
fn copied(command: &SimpleCommand, operands: &[&Word]) -> Vec<Word> {
    let mut arguments = command.arguments.iter();
    let named = arguments.find_map(|word| after(word, "--target-directory="));
    let next = || command.arguments.iter().skip_while(|word| word.text() != "-t").nth(1).cloned();
    let Some(target) = named.or_else(next).or_else(|| operands.last().map(|word| (*word).clone())) else {
        return Vec::new();
    };
    let inside = operands.iter().filter_map(|word| {
        let name = word.literal()?.trim_end_matches('/').rsplit('/').next()?;
        Some(Word::Literal(format!("{}/{name}", target.literal()?)))
    });
    let inside: Vec<Word> = inside.collect();
    std::iter::once(target.clone()).chain(inside).collect()
}

fn after(word: &Word, prefix: &str) -> Option<Word> {
    match word {
        Word::Literal(text) => text.strip_prefix(prefix).map(|rest| Word::Literal(rest.to_owned())),
        Word::Expanding(text) => text.strip_prefix(prefix).map(|rest| Word::Expanding(rest.to_owned())),
    }
}

fn output_option(command: &SimpleCommand) -> Vec<Word> {
    let is_option = |word: &Word| matches!(word.text(), "-o" | "-O" | "--output" | "--output-document");
    let pairs = command.arguments.windows(2).filter(|pair| is_option(&pair[0])).map(|pair| pair[1].clone());
    let joined = command
        .arguments
        .iter()
        .filter_map(|word| after(word, "--output=").or_else(|| after(word, "--output-document=")));
    pairs.chain(joined).collect()
}

/// Hosts in addresses count for every program; a bare host only where the program takes one.
fn reached(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    let hosts: Vec<Option<String>> =
        command.arguments.iter().filter_map(|word| url_host(word.text())).collect();
    if !is_network(name) {
        if !matches!(name, "echo" | "printf") {
            deeds.extend(hosts.into_iter().map(|host| Deed::host(host, &[])));
        }
        return;
    }
    let named = [name];
    let bare = operands(command).into_iter().filter(|word| !word.text().contains("://"));
    let bare: Vec<Option<String>> =
        bare.map(|word| plain_host(word.text().split('/').next().unwrap_or_default())).collect();
    let before = deeds.len();
    deeds.extend(hosts.into_iter().map(|host| Deed::host(host, &named)));
    // Any operand may be the host, and an option's value may hide it.
    deeds.extend(bare.into_iter().map(|host| Deed::host(host, &named)));
    if deeds.len() == before {
        deeds.push(Deed::host(None, &named));
    }
}
