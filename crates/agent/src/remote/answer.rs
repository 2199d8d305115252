//! What an agent that runs elsewhere answers.

use runyard_domain::Code;
use serde::{Deserialize, Serialize};

use crate::phase::TerminationReason;
use crate::run::{RecordedUsage, RunEnd};

/// What an agent that runs elsewhere answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RemoteAnswer {
    /// What it said.
    pub text: String,
    /// What it cost, as far as it says.
    pub usage: RecordedUsage,
    /// How many times its model was asked, as far as it says.
    pub rounds: u32,
    /// How it ended; by itself, where that is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<RunEnd>,
}

impl RemoteAnswer {
    /// An agent that said this, and that is all.
    pub fn text(text: impl Into<String>) -> Self {
        RemoteAnswer { text: text.into(), ..RemoteAnswer::default() }
    }

    /// How it ended, in the words of this runtime.
    pub(crate) fn reason(&self) -> TerminationReason {
        let Some(RunEnd { reason, code, detail }) = &self.end else { return TerminationReason::NaturalEnd };
        let said = || detail.clone().unwrap_or_default();
        match reason.as_str() {
            "natural_end" => TerminationReason::NaturalEnd,
            "stopped" => {
                let code = code.clone().unwrap_or_else(|| "stopped".to_owned());
                TerminationReason::Stopped { code, detail: detail.clone() }
            }
            "cancelled" => TerminationReason::Cancelled,
            "blocked" => TerminationReason::Blocked { reason: said() },
            "failed" => {
                let code = code.as_deref().and_then(Code::parse).unwrap_or(Code::InferenceProvider);
                TerminationReason::Failed { code, message: said() }
            }
            other => {
                let message =
                    format!("the remote agent ended with a word that means nothing here: {other:.64}");
                TerminationReason::Failed { code: Code::InferenceProvider, message }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_run_here_reads_back_as_itself() {
        let failed = TerminationReason::Failed { code: Code::InferenceTimeout, message: "late".into() };
        let stopped = TerminationReason::Stopped { code: "max_rounds".into(), detail: Some("2".into()) };
        for reason in [
            TerminationReason::NaturalEnd,
            TerminationReason::Cancelled,
            TerminationReason::Blocked { reason: "no".into() },
            failed,
            stopped,
        ] {
            let answer = RemoteAnswer { end: Some(RunEnd::from(&reason)), ..RemoteAnswer::default() };
            assert_eq!(answer.reason(), reason);
        }
        assert_eq!(RemoteAnswer::default().reason(), TerminationReason::NaturalEnd);
    }

    #[test]
    fn a_wait_elsewhere_is_a_failure_here() {
        let end = RunEnd::from(&TerminationReason::Suspended);
        let answer = RemoteAnswer { end: Some(end), ..RemoteAnswer::default() };
        assert!(matches!(
            answer.reason(),
            TerminationReason::Failed { code: Code::InferenceProvider, message } if message.ends_with("suspended")
        ));
    }
}
