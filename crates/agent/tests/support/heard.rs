//! Hears everything that a run tells.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runyard_agent::run::{AgentEvent, Observer};

/// Hears everything.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<AgentEvent>>>);

impl Heard {
    pub(crate) fn events(&self) -> Vec<AgentEvent> {
        self.0.lock().unwrap().clone()
    }

    /// How often the run's end was told.
    pub(crate) fn ends(&self) -> usize {
        self.events().iter().filter(|event| matches!(event, AgentEvent::RunEnded { .. })).count()
    }

    pub(crate) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }
}

#[async_trait]
impl Observer for Heard {
    async fn observe(&self, event: AgentEvent) {
        self.0.lock().unwrap().push(event);
    }
}
