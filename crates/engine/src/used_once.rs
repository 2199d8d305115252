//! Rules that hold for one time: used up before what they allow is recorded, and nothing is allowed by one that is gone.

use std::borrow::Cow;
use std::collections::BTreeSet;

use runyard_backend::Answer;
use runyard_backend::link::Report;
use runyard_domain::Code;
use runyard_domain::gate::mark;
use runyard_domain::run::Run;

use crate::{Engine, InstallationError};

/// Why what a rule allowed is refused all the same.
const GONE: &str = "the rule that allows it was for one time, and is used up or removed";

/// An edge's reports as they are to be recorded, and what is refused of what it allowed itself.
pub(crate) struct Checked<'a> {
    pub(crate) reports: Cow<'a, [Report]>,
    /// The requests by their names, with what the backend is told.
    pub(crate) refused: Vec<(String, Answer)>,
}

impl<'a> Checked<'a> {
    /// All of it as it came.
    pub(crate) fn of(reports: &'a [Report]) -> Self {
        Checked { reports: Cow::Borrowed(reports), refused: Vec::new() }
    }
}

impl Engine {
    /// Uses up the rules by which an edge allowed something for one time. An edge knows only of its own runs: of two edges that use
    /// the same rule one was first, and the other's request is refused. A rule of the base serves once in each run, and it is the
    /// run's log that says so.
    pub(crate) async fn use_rules<'a>(
        &self,
        run: &Run,
        reports: &'a [Report],
    ) -> Result<Checked<'a>, InstallationError> {
        let mut checked = Checked::of(reports);
        let mut used = false;
        let mut used_in_run: BTreeSet<String> = run.rules_used.iter().cloned().collect();
        for (index, report) in reports.iter().enumerate() {
            let Report::Judged { key, rule_used: Some(rule), .. } = report else { continue };
            let serves = if self.policy().is_once_in_each_run(rule) {
                used_in_run.insert(mark(rule))
            } else {
                used = true;
                self.uses_up(rule).await?
            };
            if serves {
                continue;
            }
            let why = format!("{}: {GONE}", Code::PermissionDenied.as_str());
            if let Some(Report::Judged { allowed, reason, rule_used, .. }) =
                checked.reports.to_mut().get_mut(index)
            {
                (*allowed, *reason, *rule_used) = (false, why.clone(), None);
            }
            checked.refused.push((key.clone(), Answer { approved: false, reason: Some(why), answer: None }));
        }
        if used {
            self.policy_changed().await;
        }
        Ok(checked)
    }

    /// Whether the rule served for the first time. Where the store cannot say so nothing is allowed or refused yet.
    async fn uses_up(&self, rule: &str) -> Result<bool, InstallationError> {
        match self.installation().use_once(rule).await {
            // It is used up, and only not gone here yet.
            Ok(()) | Err(InstallationError::NotInForceYet(_)) => Ok(true),
            Err(error @ InstallationError::Storage(_)) => Err(error),
            Err(error) => {
                tracing::warn!(%error, rule, "what a rule allowed for one time is refused");
                Ok(false)
            }
        }
    }
}
