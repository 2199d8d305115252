//! Who looks after the processes of a run: the port that sessions use, and the real thing behind it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_backend::Processes;

use crate::custody::{Supervised, wait_until_gone};
use crate::sandbox::Confinement;

/// What is left of an earlier session for longer than this cannot be stopped.
const SETTLED_MAX: Duration = Duration::from_secs(60);

/// Looks after the processes of runs. Each run has a lock file: as long as anything that was started under it is left, it is
/// held, also by an edge that is dead by now.
#[async_trait]
pub trait Supervision: Send + Sync {
    /// Starts processes under this lock, confined so.
    fn under(&self, lock: &Path, confinement: Confinement) -> Arc<dyn Processes>;

    /// The same for programs that are not asked to stop first: what is over with them may begin anew at once.
    fn at_once(&self, lock: &Path, confinement: Confinement) -> Arc<dyn Processes> {
        self.under(lock, confinement)
    }

    /// Waits until nothing that was started under this lock is left.
    async fn settled(&self, lock: &Path) -> io::Result<()>;
}

/// Supervisors that are processes of their own ([`custody`](crate::custody)).
#[derive(Clone, Debug, Default)]
pub struct Supervisors {
    program: Option<PathBuf>,
}

impl Supervisors {
    /// Supervisors that are this very binary.
    pub fn new() -> Self {
        Supervisors::default()
    }

    /// Supervisors that are another binary.
    pub fn with_program(program: impl Into<PathBuf>) -> Self {
        Supervisors { program: Some(program.into()) }
    }

    fn supervised(&self, lock: &Path, confinement: Confinement) -> Supervised {
        let supervised = Supervised::new(lock).confined(confinement);
        match &self.program {
            Some(program) => supervised.with_program(program),
            None => supervised,
        }
    }
}

#[async_trait]
impl Supervision for Supervisors {
    fn under(&self, lock: &Path, confinement: Confinement) -> Arc<dyn Processes> {
        Arc::new(self.supervised(lock, confinement))
    }

    fn at_once(&self, lock: &Path, confinement: Confinement) -> Arc<dyn Processes> {
        Arc::new(self.supervised(lock, confinement).with_grace(Duration::ZERO))
    }

    async fn settled(&self, lock: &Path) -> io::Result<()> {
        wait_until_gone(lock, SETTLED_MAX).await
    }
}
