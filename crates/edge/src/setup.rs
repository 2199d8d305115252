//! The steps that bring a checkout to where an agent can begin, in the run's sandbox and under its custody.
//!
//! What they print is in the run's log, redacted like everything. What they made is part of what the checkout began as, so that
//! it is no change of the agent. They know nothing of the hub, and nothing is asked: that somebody trusted the configuration was
//! the approval.

use std::sync::Arc;
use std::time::Duration;

use runyard_backend::{Exit, Launch, Processes, Signal, Stream, failpoint};
use runyard_checkout::{Limits, Retaken, retake};
use runyard_domain::Code;
use runyard_domain::run::{Failure, ToolOutcome};
use runyard_redact::Redactor;
use serde_json::json;
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::outbox::Outbox;
use crate::places::Places;
use crate::prepare::{Unprepared, own_fault};
use crate::sandbox::{Step, run_step};
use crate::scribe::Scribe;

/// How long one step may take at most; all of preparing has a deadline of its own.
const STEP_MAX: Duration = Duration::from_secs(30 * 60);

/// What steps are run with.
pub(crate) struct Setup<'a> {
    pub(crate) steps: &'a [Vec<String>],
    /// Those of the run.
    pub(crate) processes: Arc<dyn Processes>,
    /// Where the program of a step, and its arguments, are still to be put in.
    pub(crate) launch: Launch,
    pub(crate) redactor: Redactor,
}

impl Setup<'_> {
    /// Runs the steps one after the other, and then takes what they made for the beginning. Says in words what came of it.
    pub(crate) async fn run(
        &self,
        places: &Places,
        outbox: &mut Outbox,
        living: &Arc<watch::Sender<()>>,
    ) -> Result<String, Unprepared> {
        for (number, command) in (1..).zip(self.steps) {
            self.step(number, command, outbox).await?;
        }
        let (checkout, base) = (places.checkout(), places.base());
        let retaken = blocking(living, move |stop| retake(&checkout, &base, &Limits::default(), stop)).await;
        let Retaken { changed, added, removed, problems } = match retaken {
            Ok(retaken) => retaken.map_err(|error| Failure::new(error.code(), error.to_string()))?,
            Err(error) => return Err(own_fault("what was set up could not be looked at", &error).into()),
        };
        failpoint::reach("setup.done");
        let steps = self.steps.len();
        let mut said = format!("{steps} steps; files made {added}, changed {changed}, removed {removed}");
        if problems > 0 {
            said.push_str(&format!("; {problems} can be no files of a workspace"));
        }
        Ok(said)
    }

    /// Runs one step. Its beginning is durable before it begins, and its end before the next one does.
    async fn step(&self, number: usize, command: &[String], outbox: &mut Outbox) -> Result<(), Unprepared> {
        let mut scribe = Scribe::new(self.redactor.clone());
        let (call, shown) = (format!("setup-{number}"), command.join(" "));
        let begun = Signal::ToolCall {
            call: call.clone(),
            tool: "setup".to_owned(),
            summary: shown.clone(),
            arguments: json!({"command": command}),
            // Where a process dies meanwhile, everything is prepared anew.
            idempotent: true,
        };
        let mut reports = scribe.write(begun).unwrap_or_default();
        outbox.put(std::mem::take(&mut reports)).await?;
        let mut parts = command.iter().cloned();
        let program = parts.next().unwrap_or_default().into();
        let launch = Launch { program, arguments: parts.collect(), ..self.launch.clone() };
        let ran = run_step(&*self.processes, launch, STEP_MAX).await;
        failpoint::reach("setup.ran");
        let (outcome, summary) = match &ran {
            Ok(Step { exit: Some(Exit::Code(0)), .. }) => (ToolOutcome::Succeeded, "exit code 0".to_owned()),
            Ok(Step { exit: Some(Exit::Code(code)), .. }) => {
                (ToolOutcome::Failed, format!("exit code {code}"))
            }
            Ok(Step { exit: Some(Exit::Signal(signal)), .. }) => {
                (ToolOutcome::Failed, format!("ended by signal {signal}"))
            }
            Ok(Step { exit: None, .. }) => {
                (ToolOutcome::Failed, format!("stopped after {} minutes", STEP_MAX.as_secs() / 60))
            }
            Err(error) => (ToolOutcome::Failed, error.to_string()),
        };
        if let Ok(step) = &ran
            && let Some(text) = printed(step)
        {
            let output = Signal::ToolOutput { call: call.clone(), stream: Stream::Stdout, text };
            reports.extend(scribe.write(output).unwrap_or_default());
        }
        let ended = Signal::ToolResult { call, outcome, code: None, summary: summary.clone() };
        reports.extend(scribe.write(ended).unwrap_or_default());
        outbox.put(reports).await?;
        match outcome {
            ToolOutcome::Succeeded => Ok(()),
            _ => {
                let message = format!("Setup step {number} ({shown}) failed: {summary}.");
                Err(Failure::new(Code::SetupFailed, scribe.line(&message)).into())
            }
        }
    }
}

/// What a step printed, as text; none where it printed nothing.
fn printed(step: &Step) -> Option<String> {
    let text = String::from_utf8_lossy(&step.output);
    match step.left_out {
        _ if text.is_empty() => None,
        0 => Some(text.into_owned()),
        bytes => Some(format!("({bytes} bytes before this are left out)\n{text}")),
    }
}
