//! The configuration: what is built in, what files, variables and flags say, and where each value came from.
//!
//! The layers, the lowest first: what is built in; `runyard.toml` in the data directory; the project's `runyard.toml` files
//! from the outermost to the innermost; `RUNYARD_` variables; flags. A project's file may only narrow until a person trusts
//! exactly its bytes, and never sets anything of `[hub]`, `[edge]` or `[server]`. It is read once; who wants to know of changes loads it again.

mod environment;
mod layers;
mod narrowing;
mod native;
mod origin;
mod problem;
mod profiles;
mod project;
mod reading;
mod setting;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runyard::Action;
use runyard_domain::gate::{Preset, Rule};
use runyard_domain::{AgentProfile, BackendProfile, Preparation};

pub(crate) use self::environment::{Environment, Flags};
use self::layers::Layers;
pub(crate) use self::layers::{Ignored, Values, Why};
pub(crate) use self::origin::{Origin, Place, Sourced};
use self::problem::Hint;
pub(crate) use self::problem::{ConfigurationProblems, Fault, Problem};
pub(crate) use self::profiles::{Edge, Hub, Server};
pub(crate) use self::project::{FILE_NAME, ProjectLayer, files_above, project_layers};
use crate::home::Home;
use crate::trust::{Standing, TrustRecords, Trusted};

/// Everything that is configured for one directory.
#[derive(Clone)]
pub(crate) struct Configuration {
    data: PathBuf,
    /// What holds without any project.
    base: Layers,
    layers: Layers,
    hub: Hub,
    edge: Edge,
    server: Server,
    agents: BTreeMap<String, AgentProfile>,
    backends: BTreeMap<String, BackendProfile>,
    preparation: Preparation,
}

impl Configuration {
    /// Reads every layer. `data` is the data directory, `project` the directory whose project counts: the current
    /// one, or a workspace's root.
    pub(crate) fn load(
        data: &Path,
        project: Option<&Path>,
        environment: &Environment,
        flags: &Flags,
    ) -> Result<Self, ConfigurationProblems> {
        let mut base = Layers::default();
        let mut problems = add_builtin(&mut base);
        problems.extend(add_data(&mut base, data));
        Configuration::above(base, problems, data, project, environment, flags)
    }

    /// What holds without any file: for a command that only talks to a hub, whose own file counts.
    pub(crate) fn without_files(home: &Home) -> Result<Self, ConfigurationProblems> {
        let mut base = Layers::default();
        let problems = add_builtin(&mut base);
        let (environment, flags) = (Environment::of_process(), Flags::default());
        Configuration::above(base, problems, home.path(), None, &environment, &flags)
    }

    /// The layers above the data directory's file.
    fn above(
        mut base: Layers,
        mut problems: Vec<Problem>,
        data: &Path,
        project: Option<&Path>,
        environment: &Environment,
        flags: &Flags,
    ) -> Result<Self, ConfigurationProblems> {
        for given in [environment.settings(), flags.settings()] {
            match given {
                Ok(values) => values.into_iter().for_each(|(key, value)| base.set(key, value)),
                Err(found) => problems.extend(found),
            }
        }
        for (name, meant) in environment.misspelt() {
            let why = layers::Why::Misspelt { meant };
            base.ignored.push(Ignored { key: name.clone(), origin: Origin::Environment(name), why });
        }
        let mut layers = base.clone();
        problems.extend(project.map_or_else(Vec::new, |root| add_project(&mut layers, data, root)));
        Configuration::of(data.to_owned(), base, layers, problems)
    }

    /// What holds without any project and any flag.
    pub(crate) fn of_data(home: &Home) -> Result<Self, ConfigurationProblems> {
        Configuration::load(home.path(), None, &Environment::of_process(), &Flags::default())
    }

    /// The configuration for what is done in a workspace: this one with the project of the workspace's root in place of any
    /// other. Trust is looked up anew.
    pub(crate) fn in_workspace(&self, root: &Path) -> Result<Self, ConfigurationProblems> {
        let mut layers = self.base.clone();
        let problems = add_project(&mut layers, &self.data, root);
        Configuration::of(self.data.clone(), self.base.clone(), layers, problems)
    }

    fn of(
        data: PathBuf,
        base: Layers,
        layers: Layers,
        mut problems: Vec<Problem>,
    ) -> Result<Self, ConfigurationProblems> {
        let values = layers.completed();
        let own = Hub::of(&values).and_then(|hub| Ok((hub, Edge::of(&values, &data)?, Server::of(&values)?)));
        let typed = (own, profiles::agents(&values), profiles::backends(&values));
        // What a file that could not be read would have said is not missed again.
        let ((hub, edge, server), agents, backends) = match typed {
            (Ok(own), Ok(agents), Ok(backends)) => (own, agents, backends),
            (own, agents, backends) => {
                problems.extend(own.err());
                problems.extend(agents.err().into_iter().chain(backends.err()).flatten());
                return Err(ConfigurationProblems(problems));
            }
        };
        let preparation = match profiles::preparation(&values) {
            Ok(preparation) => preparation,
            Err(problem) => {
                problems.push(problem);
                Preparation::default()
            }
        };
        problems.extend(layers.rules.iter().filter_map(|rule| of_unknown_agent(rule, &agents)));
        if !problems.is_empty() {
            return Err(ConfigurationProblems(problems));
        }
        Ok(Configuration { data, base, layers, hub, edge, server, agents, backends, preparation })
    }

    /// The data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What the hub is told.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// What the edge in the hub's own process is told.
    pub(crate) fn edge(&self) -> &Edge {
        &self.edge
    }

    /// What the server in front of the hub is told.
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The agent profiles by their id.
    pub(crate) fn agents(&self) -> &BTreeMap<String, AgentProfile> {
        &self.agents
    }

    /// The backend profiles by their name.
    pub(crate) fn backends(&self) -> &BTreeMap<String, BackendProfile> {
        &self.backends
    }

    /// Whether it is said which secrets a backend profile needs, be it none; else its kind says so.
    pub(crate) fn names_secrets(&self, profile: &str) -> bool {
        profiles::names_secrets(&self.layers.completed(), profile)
    }

    /// What prepares the checkouts of runs in this directory.
    pub(crate) fn preparation(&self) -> &Preparation {
        &self.preparation
    }

    /// The rules of all layers.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        self.layers.rules.iter().map(|rule| rule.value.clone()).collect()
    }

    /// What decides where no rule speaks.
    pub(crate) fn preset(&self) -> Preset {
        let preset = self.values().get("policy.preset").map(|preset| preset.value.clone());
        preset.and_then(|preset| serde_json::from_value(preset).ok()).unwrap_or(Preset::Strict)
    }

    /// What decides an agent's requests, as far as files say. An agent that is not known has the strictest preset.
    #[cfg(test)]
    pub(crate) fn policy(&self, agent: &str) -> runyard_domain::gate::Policy {
        let preset = self.agents.get(agent).map_or(Preset::Strict, |agent| agent.preset);
        runyard_domain::gate::Policy { preset, rules: self.rules(), ..Default::default() }
    }

    /// The declared actions that count.
    pub(crate) fn actions(&self) -> Vec<Action> {
        self.layers.actions.iter().map(|action| action.value.clone()).collect()
    }

    /// Every value with its origin.
    pub(crate) fn values(&self) -> Values {
        let mut values = self.layers.completed();
        Edge::complete(&mut values, &self.data);
        values
    }

    /// The rules and actions with their origin.
    pub(crate) fn sourced(&self) -> (&[Sourced<Rule>], &[Sourced<Action>]) {
        (&self.layers.rules, &self.layers.actions)
    }

    /// What was said and does not count.
    pub(crate) fn ignored(&self) -> &[Ignored] {
        &self.layers.ignored
    }

    /// What a person trusted and so counts here as a whole: for the audit of what is done with it.
    pub(crate) fn trusted(&self) -> &[Trusted] {
        &self.layers.trusted
    }

    /// Refuses backend profiles of a kind that nothing here can run, or with a setting that their kind does not know. Given are
    /// the kinds, each with the names of its settings.
    pub(crate) fn check_kinds(&self, known: &[(&str, &[&str])]) -> Result<(), ConfigurationProblems> {
        let values = self.values();
        let origin = |key: &str| values.get(key).map_or(Origin::Default, |value| value.origin.clone());
        let mut problems = Vec::new();
        for backend in self.backends.values() {
            let BackendProfile { profile, backend_kind, settings, .. } = backend;
            let Some((_, own)) = known.iter().find(|(kind, _)| kind == backend_kind) else {
                let key = format!("backend.{profile}.kind");
                let hint = Hint::of(backend_kind, known.iter().map(|(kind, _)| *kind));
                let origin = origin(&key);
                problems.push(Problem {
                    origin,
                    fault: Fault::UnknownName { key, what: "kind of backend", hint },
                });
                continue;
            };
            for name in settings.keys().filter(|name| !own.contains(&name.as_str())) {
                let key = format!("backend.{profile}.settings.{name}");
                let (origin, hint) = (origin(&key), Hint::of(name, own.iter().copied()));
                problems.push(Problem { origin, fault: Fault::UnknownKey { key, hint } });
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigurationProblems(problems)) }
    }
}

/// A rule of the data directory for an agent that there is not: misspelt, it would silently decide nothing.
fn of_unknown_agent(rule: &Sourced<Rule>, agents: &BTreeMap<String, AgentProfile>) -> Option<Problem> {
    let agent = rule.value.text().agent.as_deref()?;
    if agents.contains_key(agent) || !matches!(rule.origin, Origin::Data(_)) {
        return None;
    }
    let hint = Hint::of(agent, agents.keys().map(String::as_str));
    let fault = Fault::UnknownName { key: "policy.rule.agent".to_owned(), what: "agent profile", hint };
    Some(Problem { origin: rule.origin.clone(), fault })
}

fn add_builtin(layers: &mut Layers) -> Vec<Problem> {
    let file = Arc::new(PathBuf::from("built-in"));
    add(layers, &file, include_str!("configuration/builtin.toml"), |_| Origin::Default)
}

fn add_data(layers: &mut Layers, data: &Path) -> Vec<Problem> {
    let file = Arc::new(data.join(FILE_NAME));
    let whole = |fault| vec![Problem { origin: Origin::Data(Place::new(&file, 1)), fault }];
    match project::read_limited(&file) {
        Err(Fault::Unreadable(error)) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(fault) => whole(fault),
        // It names commands to run, so nobody else may be able to write it.
        Ok((_, true)) => whole(Fault::WritableByOthers),
        Ok((text, false)) => add(layers, &file, &text, Origin::Data),
    }
}

fn add(layers: &mut Layers, file: &Arc<PathBuf>, text: &str, origin: fn(Place) -> Origin) -> Vec<Problem> {
    match reading::read(file, text) {
        Ok(content) => layers.add(content, file.parent().unwrap_or(Path::new("/")), origin),
        Err(findings) => {
            let problem =
                |finding: reading::Finding| Problem { origin: origin(finding.place), fault: finding.fault };
            findings.into_iter().map(problem).collect()
        }
    }
}

fn add_project(layers: &mut Layers, data: &Path, root: &Path) -> Vec<Problem> {
    let trust = match TrustRecords::read(data) {
        Ok(trust) => trust,
        Err(problem) => return vec![problem],
    };
    let project = match project_layers(root, data, &trust) {
        Ok(project) => project,
        Err(problems) => return problems.0,
    };
    let mut problems = Vec::new();
    for layer in project {
        let ProjectLayer { file, standing, content, .. } = layer;
        match standing {
            Standing::Trusted => {
                layers.trusted.extend(trust.of(&file).cloned());
                let base = file.parent().unwrap_or(Path::new("/"));
                problems.extend(layers.add(content, base, Origin::Project));
            }
            standing => layers.narrow(content, standing),
        }
    }
    problems
}

#[cfg(test)]
mod tests;
