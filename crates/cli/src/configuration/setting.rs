//! Every setting that a file, a variable or a flag can give: what it takes, and what narrowing it means.
//!
//! The table says nothing about where a value comes from; that is the layers' matter.

use std::net::SocketAddr;

use hyper::Uri;
use runyard_adapters::native::{
    CONTINUATIONS_MAX, IDLE_MS, IDLE_MS_EVER_MAX, REPETITIONS_EVER_MAX, REPETITIONS_MAX, REPETITIONS_MIN,
    RETRIES_MAX, ROUNDS_MAX, TOOLS as NATIVE_TOOLS,
};
use runyard_domain::ExecutionPolicy;
use runyard_domain::run::{Budget, Dollars};
use runyard_surfaces::http::PageOrigin;
use serde_json::{Value, json};

/// Which table of a file a setting stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// `[hub]`: for the data directory's file, variables and flags only.
    Hub,
    /// `[edge]`: likewise.
    Edge,
    /// `[server]`: likewise.
    Server,
    /// `[policy]`.
    Policy,
    /// `[agent.<id>]`.
    Agent,
    /// `[backend.<name>]`.
    Backend,
    /// `[workspace]`: what prepares checkouts. It widens, whatever it says.
    Workspace,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// An address with its port.
    Address,
    /// Where PostgreSQL is, with its password.
    DatabaseUrl,
    /// A number; the lower is the narrower.
    Number { min: u64, max: u64 },
    /// A number; the lower is the narrower, but for 0, which is no limit.
    NumberOrNone { min: u64, max: u64 },
    /// One of these, the narrowest first.
    Word(&'static [&'static str]),
    /// Some of these; fewer are narrower.
    Words(&'static [&'static str]),
    /// An amount in US dollars; the lower is the narrower, and none is no limit.
    Amount,
    /// True or false.
    Switch,
    /// A text.
    Text,
    /// A text of any use, such as a prompt.
    Prose,
    /// A number with a point, from 0 to 2.
    Decimal,
    /// An absolute path.
    Path,
    /// Where a provider listens; nothing secret is in it.
    Url,
    /// A name of a directory.
    Name,
    /// A program with its arguments.
    Command,
    /// A list of texts.
    Texts,
    /// Names and a text for each.
    Table,
    /// Patterns of paths below a workspace.
    Patterns,
    /// Programs, each with its arguments.
    Commands,
    /// Pages elsewhere, each by its origin.
    Origins,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) section: Section,
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
}

/// An agent's runs that may be active at a time, unless it says otherwise.
const AGENT_RUNS_MAX: u64 = 16;
/// The most that a limit on active runs can be.
const RUNS_MAX: Kind = Kind::Number { min: 1, max: 10_000 };
/// No time is longer than that of a run.
const MILLISECONDS: Kind = Kind::Number { min: 1, max: ExecutionPolicy::TIMEOUT_MS_MAX };
const CHECKOUTS: Kind = Kind::Number { min: CHECKOUTS_BYTES_MIN, max: CHECKOUTS_BYTES_MAX };
const CAPABILITIES: &[&str] =
    &["read", "diff", "write-request", "shell-request", "artifact", "review", "publish"];
/// A year: whoever does not answer by then will not.
const EXPIRY_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1000;
const TEXT_CHARS_MAX: usize = 4_096;
/// How long a prompt may be.
const PROSE_CHARS_MAX: usize = 65_536;
/// How many of something an agent of ours may have.
const COUNT: Kind = Kind::Number { min: 1, max: u32::MAX as u64 };
const WIRES: &[&str] = &["responses", "chat", "messages"];
/// The least that checkouts may have together: a megabyte.
const CHECKOUTS_BYTES_MIN: u64 = 1024 * 1024;
/// The most: what every number format holds exactly.
const CHECKOUTS_BYTES_MAX: u64 = 1 << 53;
/// How many patterns, commands, and arguments of one command there may be.
const LIST_MAX: usize = 256;

/// What only an agent of ours has.
const NATIVE_KEYS: [&str; 9] = [
    "model",
    "fallback_models",
    "prompt",
    "tools",
    "parallel_calls",
    "effort",
    "temperature",
    "provider",
    "limits",
];

pub(crate) const PRESETS: &[&str] = &["strict", "default"];

#[rustfmt::skip]
pub(crate) const SETTINGS: [Setting; 61] = [
    Setting { section: Section::Hub, key: "listen", kind: Kind::Address },
    Setting { section: Section::Hub, key: "database_url", kind: Kind::DatabaseUrl },
    Setting { section: Section::Hub, key: "runs_max", kind: RUNS_MAX },
    Setting { section: Section::Hub, key: "park_after_ms", kind: MILLISECONDS },
    Setting { section: Section::Hub, key: "approval_expiry_ms", kind: Kind::Number { min: 1, max: EXPIRY_MS_MAX } },
    Setting { section: Section::Hub, key: "accept_ms", kind: MILLISECONDS },
    Setting { section: Section::Hub, key: "prepare_ms", kind: MILLISECONDS },
    Setting { section: Section::Hub, key: "apply_ms", kind: MILLISECONDS },
    Setting { section: Section::Hub, key: "lease_ms", kind: Kind::Number { min: 100, max: 3_600_000 } },
    Setting { section: Section::Hub, key: "stop_ms", kind: MILLISECONDS },
    Setting { section: Section::Hub, key: "checkouts_max_bytes", kind: CHECKOUTS },
    Setting { section: Section::Edge, key: "secrets_directory", kind: Kind::Path },
    Setting { section: Section::Server, key: "origins", kind: Kind::Origins },
    Setting { section: Section::Workspace, key: "copy", kind: Kind::Patterns },
    Setting { section: Section::Workspace, key: "setup", kind: Kind::Commands },
    Setting { section: Section::Hub, key: "own_runs", kind: Kind::Word(&["refuse", "approve"]) },
    Setting { section: Section::Policy, key: "preset", kind: Kind::Word(PRESETS) },
    Setting { section: Section::Agent, key: "label", kind: Kind::Text },
    Setting { section: Section::Agent, key: "backend", kind: Kind::Text },
    Setting { section: Section::Agent, key: "capabilities", kind: Kind::Words(CAPABILITIES) },
    Setting { section: Section::Agent, key: "preset", kind: Kind::Word(PRESETS) },
    Setting { section: Section::Agent, key: "on_reject", kind: Kind::Word(&["cancel", "continue"]) },
    Setting { section: Section::Agent, key: "runs_max", kind: RUNS_MAX },
    Setting { section: Section::Agent, key: "sandbox", kind: Kind::Word(&["read-only", "workspace-write", "none"]) },
    Setting { section: Section::Agent, key: "network", kind: Kind::Word(&["deny", "ask", "allow"]) },
    Setting { section: Section::Agent, key: "approval", kind: Kind::Word(&["never", "ask"]) },
    Setting { section: Section::Agent, key: "timeout_ms", kind: MILLISECONDS },
    Setting { section: Section::Agent, key: "idle_ms", kind: MILLISECONDS },
    Setting { section: Section::Agent, key: "budget", kind: Kind::Amount },
    Setting { section: Section::Agent, key: "budget_tokens", kind: Kind::Number { min: 1, max: Budget::TOKENS_MAX } },
    Setting { section: Section::Agent, key: "model", kind: Kind::Text },
    Setting { section: Section::Agent, key: "fallback_models", kind: Kind::Texts },
    Setting { section: Section::Agent, key: "prompt", kind: Kind::Prose },
    Setting { section: Section::Agent, key: "tools", kind: Kind::Words(&NATIVE_TOOLS) },
    Setting { section: Section::Agent, key: "parallel_calls", kind: Kind::Switch },
    Setting { section: Section::Agent, key: "effort", kind: Kind::Word(&["low", "medium", "high"]) },
    Setting { section: Section::Agent, key: "temperature", kind: Kind::Decimal },
    Setting { section: Section::Agent, key: "provider.base_url", kind: Kind::Url },
    Setting { section: Section::Agent, key: "provider.wire", kind: Kind::Word(WIRES) },
    Setting { section: Section::Agent, key: "provider.secret", kind: Kind::Name },
    Setting { section: Section::Agent, key: "provider.keyless", kind: Kind::Switch },
    Setting { section: Section::Agent, key: "provider.gateway", kind: Kind::Switch },
    Setting { section: Section::Agent, key: "limits.rounds_max", kind: COUNT },
    Setting { section: Section::Agent, key: "limits.tokens_max", kind: COUNT },
    Setting { section: Section::Agent, key: "limits.time_max_ms", kind: MILLISECONDS },
    Setting { section: Section::Agent, key: "limits.consecutive_errors_max", kind: COUNT },
    Setting { section: Section::Agent, key: "limits.repetitions_max", kind: Kind::NumberOrNone { min: REPETITIONS_MIN as u64, max: REPETITIONS_EVER_MAX as u64 } },
    Setting { section: Section::Agent, key: "limits.continuations_max", kind: Kind::Number { min: 0, max: u32::MAX as u64 } },
    Setting { section: Section::Agent, key: "limits.retries_max", kind: Kind::Number { min: 0, max: 32 } },
    Setting { section: Section::Agent, key: "limits.idle_ms", kind: Kind::Number { min: 1, max: IDLE_MS_EVER_MAX } },
    Setting { section: Section::Agent, key: "limits.output_tokens_max", kind: COUNT },
    Setting { section: Section::Agent, key: "limits.context_tokens_max", kind: COUNT },
    Setting { section: Section::Backend, key: "kind", kind: Kind::Text },
    Setting { section: Section::Backend, key: "command", kind: Kind::Command },
    Setting { section: Section::Backend, key: "base_url", kind: Kind::Url },
    Setting { section: Section::Backend, key: "model", kind: Kind::Text },
    Setting { section: Section::Backend, key: "wire", kind: Kind::Word(WIRES) },
    Setting { section: Section::Backend, key: "gateway", kind: Kind::Switch },
    Setting { section: Section::Backend, key: "debug_raw", kind: Kind::Switch },
    Setting { section: Section::Backend, key: "required_secret_keys", kind: Kind::Texts },
    Setting { section: Section::Backend, key: "settings", kind: Kind::Table },
];

impl Section {
    /// The sections that no project says anything about, each with its name.
    pub(crate) const OWN: [(Section, &'static str); 3] =
        [(Section::Hub, "hub"), (Section::Edge, "edge"), (Section::Server, "server")];

    /// Whether a full key is one of those that no project sets.
    pub(crate) fn is_own(full_key: &str) -> bool {
        let section = full_key.split('.').next();
        Section::OWN.iter().any(|(_, name)| section == Some(name))
    }

    pub(crate) fn settings(self) -> impl Iterator<Item = &'static Setting> {
        SETTINGS.iter().filter(move |setting| setting.section == self)
    }

    pub(crate) fn setting(self, key: &str) -> Option<&'static Setting> {
        self.settings().find(|setting| setting.key == key)
    }
}

impl Setting {
    /// The setting behind a full key, such as `agent.codex.sandbox`.
    pub(crate) fn of(full_key: &str) -> Option<&'static Setting> {
        let (section, key) = full_key.split_once('.')?;
        let of_named = |key: &'_ str| key.split_once('.').map(|(_, key)| key.to_owned());
        match section {
            "hub" => Section::Hub.setting(key),
            "edge" => Section::Edge.setting(key),
            "server" => Section::Server.setting(key),
            "policy" => Section::Policy.setting(key),
            "workspace" => Section::Workspace.setting(key),
            "agent" => Section::Agent.setting(&of_named(key)?),
            // What stands in a table of texts belongs to the table.
            "backend" => Section::Backend.setting(of_named(key)?.split('.').next()?),
            _ => None,
        }
    }

    /// Whether it says what an agent of ours is, and so counts for no other.
    pub(crate) fn is_native(&self) -> bool {
        let of_agent = self.section == Section::Agent;
        of_agent && NATIVE_KEYS.iter().any(|key| *key == self.key.split('.').next().unwrap_or_default())
    }

    /// Whether it limits what a run uses: what has no limit unless it is given one.
    pub(crate) fn is_limit(&self) -> bool {
        let is_own = self.key.starts_with("limits.") && self.is_ordered();
        matches!(self.key, "budget" | "budget_tokens") || is_own
    }

    /// What it is for an agent of ours that does not say.
    pub(crate) fn native_default(&self) -> Option<Value> {
        match self.key {
            "tools" => Some(json!(NATIVE_TOOLS)),
            "limits.rounds_max" => Some(json!(ROUNDS_MAX)),
            "limits.repetitions_max" => Some(json!(REPETITIONS_MAX)),
            "limits.continuations_max" => Some(json!(CONTINUATIONS_MAX)),
            "limits.retries_max" => Some(json!(RETRIES_MAX)),
            "limits.idle_ms" => Some(json!(IDLE_MS)),
            _ => None,
        }
    }

    /// What it is for an agent that does not say.
    pub(crate) fn agent_default(&self, agent: &str) -> Option<Value> {
        let policy = ExecutionPolicy::default();
        match self.key {
            "label" => Some(json!(agent)),
            "capabilities" => Some(json!(["read", "diff", "write-request", "shell-request", "artifact"])),
            "on_reject" => Some(json!("cancel")),
            "runs_max" => Some(json!(AGENT_RUNS_MAX)),
            "sandbox" => Some(json!(policy.sandbox)),
            "network" => Some(json!(policy.network)),
            "approval" => Some(json!(policy.approval)),
            "timeout_ms" => Some(json!(policy.timeout_ms)),
            "idle_ms" => Some(json!(policy.idle_ms)),
            _ => None,
        }
    }

    /// What is expected, in words.
    pub(crate) fn expected(&self) -> String {
        match self.kind {
            Kind::Address => "an address with its port, as in \"127.0.0.1:4710\"".to_owned(),
            Kind::DatabaseUrl => "a URL that begins with postgres:// or postgresql://".to_owned(),
            Kind::Number { min, max } => format!("a whole number from {min} to {max}"),
            Kind::NumberOrNone { min, max } => format!("a whole number from {min} to {max}, or 0 for no limit"),
            Kind::Word(words) => format!("one of {}", quoted(words)),
            Kind::Words(words) => format!("a list of some of {}", quoted(words)),
            Kind::Amount => "an amount in US dollars as a text, as in \"2.50\"".to_owned(),
            Kind::Switch => "true or false".to_owned(),
            Kind::Text => format!("a text of 1 to {TEXT_CHARS_MAX} characters"),
            Kind::Prose => format!("a text of 1 to {PROSE_CHARS_MAX} characters"),
            Kind::Decimal => "a number from 0 to 2, as in 0.2".to_owned(),
            Kind::Name => {
                "a name of lower case letters, digits, \"-\" and \"_\", at most 64".to_owned()
            }
            Kind::Path => "an absolute path".to_owned(),
            Kind::Url => {
                "a URL that begins with http:// or https://, without user, password, query and fragment, as in \
                 \"https://api.example.com/v1\""
                    .to_owned()
            }
            Kind::Command => {
                "a list of a program, by its name or absolute path, and its arguments, as in [\"/opt/bin/codex\"]".to_owned()
            }
            Kind::Texts => "a list of texts".to_owned(),
            Kind::Table => "a table of texts".to_owned(),
            Kind::Patterns => {
                "a list of relative paths or patterns, without \"..\", as in [\"node_modules\"]".to_owned()
            }
            Kind::Commands => {
                "a list of commands, each a list of a program and its arguments, as in [[\"npm\", \"ci\"]]"
                    .to_owned()
            }
            Kind::Origins => {
                "a list of origins without a path: https:// and a host, or http:// and localhost, 127.0.0.1 or [::1], with a port \
                 that is not the scheme's own, as in [\"http://localhost:5173\"]"
                    .to_owned()
            }
        }
    }

    /// Whether a value of the right type is also one of those that it takes.
    pub(crate) fn takes(&self, value: &Value) -> bool {
        let text = value.as_str();
        let is_text = |text: &str| !text.is_empty() && text.chars().count() <= TEXT_CHARS_MAX;
        let all = |fits: &dyn Fn(&str) -> bool| {
            value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some_and(fits)))
        };
        match self.kind {
            Kind::Address => text.is_some_and(|text| text.parse::<SocketAddr>().is_ok()),
            Kind::DatabaseUrl => text.is_some_and(|text| {
                ["postgres://", "postgresql://"].iter().any(|start| text.starts_with(start))
            }),
            Kind::Number { min, max } => value.as_u64().is_some_and(|number| (min..=max).contains(&number)),
            Kind::NumberOrNone { min, max } => {
                value.as_u64().is_some_and(|number| number == 0 || (min..=max).contains(&number))
            }
            Kind::Word(words) => text.is_some_and(|text| words.contains(&text)),
            Kind::Words(words) => all(&|text| words.contains(&text)),
            Kind::Amount => text.is_some_and(|text| text.parse::<Dollars>().is_ok()),
            Kind::Switch => value.is_boolean(),
            Kind::Text | Kind::Table => text.is_some_and(is_text),
            Kind::Prose => {
                text.is_some_and(|text| !text.is_empty() && text.chars().count() <= PROSE_CHARS_MAX)
            }
            Kind::Decimal => {
                let number = text.map_or_else(|| value.as_f64(), |text| text.replace('_', "").parse().ok());
                number.is_some_and(|number: f64| (0.0..=2.0).contains(&number))
            }
            Kind::Name => text.is_some_and(is_name),
            Kind::Path => {
                text.is_some_and(|text| is_text(text) && text.starts_with('/') && !text.contains('\0'))
            }
            Kind::Url => text.is_some_and(|text| is_text(text) && is_provider_url(text)),
            Kind::Command => is_command(value) && is_named_from_the_root(value),
            Kind::Texts => all(&is_text),
            Kind::Patterns => all(&|text| is_text(text) && is_pattern(text)) && is_bounded(value),
            Kind::Commands => {
                is_bounded(value) && value.as_array().is_some_and(|all| all.iter().all(is_command))
            }
            Kind::Origins => is_bounded(value) && all(&|text| text.parse::<PageOrigin>().is_ok()),
        }
    }

    /// Whether `value` allows no more than `base`. Where there is no order, only the same does.
    pub(crate) fn is_within(&self, value: &Value, base: &Value) -> bool {
        value == base || (self.is_ordered() && self.is_lower(value, base))
    }

    /// Whether less of it is narrower. Another wire is another provider, and less to read or to say only costs more questions.
    fn is_ordered(&self) -> bool {
        let other = ["provider.wire", "limits.output_tokens_max", "limits.context_tokens_max"];
        matches!(self.section, Section::Policy | Section::Agent) && !other.contains(&self.key)
    }

    fn is_lower(&self, value: &Value, base: &Value) -> bool {
        match self.kind {
            Kind::Number { .. } => value.as_u64() <= base.as_u64(),
            Kind::NumberOrNone { .. } => {
                let most = |value: &Value| value.as_u64().filter(|most| *most > 0).unwrap_or(u64::MAX);
                most(value) <= most(base)
            }
            Kind::Word(words) => {
                let place = |value: &Value| words.iter().position(|word| value.as_str() == Some(word));
                matches!((place(value), place(base)), (Some(value), Some(base)) if value <= base)
            }
            Kind::Words(_) => match (value.as_array(), base.as_array()) {
                (Some(some), Some(all)) => some.iter().all(|one| all.contains(one)),
                _ => false,
            },
            Kind::Amount => {
                let amount = |value: &Value| value.as_str()?.parse::<Dollars>().ok();
                matches!((amount(value), amount(base)), (Some(value), Some(base)) if value <= base)
            }
            Kind::Address | Kind::DatabaseUrl | Kind::Text | Kind::Texts | Kind::Table => false,
            Kind::Switch | Kind::Path | Kind::Url | Kind::Command => false,
            Kind::Prose | Kind::Decimal | Kind::Name => false,
            Kind::Patterns | Kind::Commands | Kind::Origins => false,
        }
    }

    /// What is left of `given` where no more than `base` may be allowed; nothing where it may not count at all.
    pub(crate) fn narrowed(&self, given: &Value, base: Option<&Value>) -> Option<Value> {
        let Some(base) = base else {
            // A limit where there was none.
            return self.is_limit().then(|| given.clone());
        };
        if self.is_within(given, base) {
            return Some(given.clone());
        }
        match (self.kind, given.as_array(), base.as_array()) {
            (Kind::Words(_), Some(given), Some(base)) => {
                Some(base.iter().filter(|one| given.contains(one)).cloned().collect())
            }
            _ => None,
        }
    }
}

/// Names stand in keys, on the command line and in URLs.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

fn is_bounded(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.len() <= LIST_MAX)
}

/// Whether it names something below the workspace. What a `.gitignore` would take for a comment or an exception does not.
fn is_pattern(text: &str) -> bool {
    let leads_out = text.split('/').any(|part| matches!(part, "." | ".."));
    !text.starts_with(['/', '!', '#']) && !text.contains(['\\', '\n', '\r', '\0']) && !leads_out
}

/// Whether it is a program with its arguments; only an argument may be empty.
fn is_command(value: &Value) -> bool {
    let is_argument = |part: &Value| {
        part.as_str().is_some_and(|text| text.chars().count() <= TEXT_CHARS_MAX && !text.contains('\0'))
    };
    let program = value.as_array().and_then(|parts| parts.first()?.as_str());
    program.is_some_and(|program| !program.is_empty())
        && is_bounded(value)
        && value.as_array().is_some_and(|parts| parts.iter().all(is_argument))
}

/// Whether its program means the same wherever it is looked for.
fn is_named_from_the_root(command: &Value) -> bool {
    command[0].as_str().is_some_and(|program| program.starts_with('/') || !program.contains('/'))
}

/// Whether it says where a provider listens, and holds no place for a secret.
fn is_provider_url(text: &str) -> bool {
    let Ok(url) = text.parse::<Uri>() else { return false };
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let has_host = url.host().is_some_and(|host| !host.is_empty());
    is_web && has_host && !text.contains(['@', '?', '#', '\\'])
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
