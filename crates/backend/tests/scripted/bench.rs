//! A bench for the scripted backend.

use std::collections::BTreeMap;
use std::sync::Arc;

use runyard_backend::conformance::{Bench, Part, Scene, Stage};
use runyard_backend::{Backend, ScriptedBackend, Scripts};
use runyard_domain::BackendProfile;
use runyard_domain::run::Task;

pub(crate) struct ScriptedBench;

pub(crate) fn scripts() -> Scripts {
    let scripts = [
        ("talk", include_str!("scripts/talk.toml")),
        ("act", include_str!("scripts/act.toml")),
        ("linger", include_str!("scripts/linger.toml")),
        ("chatter", include_str!("scripts/chatter.toml")),
    ];
    let embedded = Scripts::embedded().unwrap();
    scripts.into_iter().fold(embedded, |all, (name, text)| all.with(name, text).unwrap())
}

pub(crate) fn profile(settings: &[(&str, &str)]) -> BackendProfile {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    BackendProfile {
        profile: "scripted".to_owned(),
        backend_kind: "scripted".to_owned(),
        required_secret_keys: Vec::new(),
        settings: BTreeMap::from_iter(settings),
        ..BackendProfile::default()
    }
}

pub(crate) fn part(script: &str) -> Part {
    let task = Task::Text { text: "count the files".to_owned(), redacted: false };
    Part { profile: profile(&[("script", script)]), task }
}

impl Bench for ScriptedBench {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(ScriptedBackend::new(scripts()))
    }

    fn part(&self, scene: Scene, _stage: &Stage) -> Part {
        part(match scene {
            Scene::Talk => "talk",
            Scene::Act => "act",
            Scene::Linger => "linger",
            Scene::Chatter => "chatter",
        })
    }
}
