//! Well-known programs and what they do.

use super::{Deed, git, paths, plain_host, url_host};
use crate::gate::command::{Opening, SimpleCommand, Word, is_shell, is_verb};
use crate::gate::rule::RuleKind;

/// Programs that reach the host that is their first operand, or that stands in an address.
const NETWORK: [&str; 26] = [
    "curl", "wget", "http", "https", "xh", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet",
    "ftp", "socat", "ping", "dig", "nslookup", "host", "whois", "aria2c", "lynx", "w3m", "mosh", "openssl",
    "gh",
];

/// Programs that run other people's code, or code that the agent wrote.
const INTERPRETERS: [&str; 66] = [
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
    "docker",
    "podman",
    "nerdctl",
];

/// Programs that do what their first word says, and nothing else.
const VERB_FIRST: [&str; 14] = [
    "npm",
    "pnpm",
    "bun",
    "cargo",
    "uv",
    "poetry",
    "gh",
    "kubectl",
    "helm",
    "terraform",
    "tofu",
    "twine",
    "gem",
    "hatch",
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
    let is_told = matches!(name, "sed" | "gsed") && command.opening == Opening::Opaque;
    is_script || is_told || name == "." || is_shell(name) || INTERPRETERS.contains(&unversioned)
}

pub(super) fn deeds(name: &str, command: &SimpleCommand, deeds: &mut Vec<Deed>) {
    if name == "git" {
        git::deeds(command, deeds);
    }
    if !matches!(name, "echo" | "printf") {
        paths::named(command, deeds);
    }
    paths::written(name, command, deeds);
    reached(name, command, deeds);
    for (kind, table) in [(RuleKind::Publish, PUBLISH.as_slice()), (RuleKind::Deploy, DEPLOY.as_slice())] {
        if let Some(row) = table.iter().find(|row| row[0] == name && says(&row[1..], command)) {
            let text = if command.arguments.iter().all(|word| word.literal().is_some()) {
                Word::Literal(command.to_string())
            } else {
                Word::Expanding(command.to_string())
            };
            deeds.push(Deed::words(kind, vec![text], row));
        }
    }
}

/// Whether the words stand among the arguments, in this order; where one may be the verb that is not known, they may.
fn says(words: &[&str], command: &SimpleCommand) -> bool {
    let name = command.name().unwrap_or_default();
    let is_hidden = command.hides_its_verb() || (!VERB_FIRST.contains(&name) && command.may_be_told());
    let mut arguments = command.arguments.iter();
    let stand = words.iter().all(|word| arguments.any(|argument| is_verb(name, argument, word)));
    stand || (is_hidden && !words.is_empty())
}

/// What does not stand among the options.
pub(super) fn operands(command: &SimpleCommand) -> Vec<&Word> {
    let dashes = command.arguments.iter().position(|word| word.text() == "--");
    let (before, after) = command.arguments.split_at(dashes.unwrap_or(command.arguments.len()));
    before.iter().filter(|word| !word.text().starts_with('-')).chain(after.iter().skip(1)).collect()
}

pub(super) fn has_letter(command: &SimpleCommand, letters: &[char]) -> bool {
    let is_cluster = |text: &&str| text.starts_with('-') && !text.starts_with("--");
    command.arguments.iter().map(Word::text).filter(is_cluster).any(|text| text.contains(letters))
}

/// Whether the command takes everything below its operands with it.
pub(in crate::gate) fn is_recursive(command: &SimpleCommand) -> bool {
    let long = command.arguments.iter().any(|word| word.text() == "--recursive");
    long || has_letter(command, &['r', 'R'])
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
