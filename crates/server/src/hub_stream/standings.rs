//! Where the runs of a hub stand: the newest, and every one that has not ended.

use std::collections::BTreeMap;

use runyard_engine::{Engine, EngineError, Standing};

/// So many runs are looked at together.
const PAGE: u32 = 256;
/// So many runs of one state are looked at. Those beyond are read by whoever asks for them.
const STATE_RUNS_MAX: usize = 2_048;
/// So many runs are kept in mind; of more, the oldest are forgotten.
const RUNS_MAX: usize = 8_192;
/// The states of a run that has not ended.
const LIVE: [&str; 7] =
    ["created", "planned", "accepted", "preparing", "running", "needs_approval", "applying"];

/// The state and the last sequence of each run, by its id, which begins with the time.
pub(super) type Runs = BTreeMap<String, (&'static str, u64)>;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standings {
    pub(super) runs: Runs,
    /// How many approvals are open and not snoozed.
    pub(super) approvals: usize,
}

/// Looks again.
pub(super) async fn look(engine: &Engine, known: &mut Standings) -> Result<(), EngineError> {
    let (mut found, mut approvals) = (Runs::new(), 0);
    for state in LIVE {
        let mut before = None;
        let mut seen = 0;
        while seen < STATE_RUNS_MAX {
            let (page, more) = engine.runs(Some(state), before, PAGE).await?;
            before = page.last().map(|standing| standing.run.id);
            seen += page.len();
            for standing in page {
                approvals += open_approvals(engine, &standing);
                add(&mut found, &standing);
            }
            if !more {
                break;
            }
        }
    }
    // After those that live, so that one that ends meanwhile is found here at the latest.
    for standing in engine.runs(None, None, PAGE).await?.0 {
        add(&mut found, &standing);
    }
    let is_live = |state: &str| LIVE.contains(&state);
    let missed = known.runs.iter().filter(|(run, (state, _))| is_live(state) && !found.contains_key(*run));
    let missed: Vec<_> = missed.filter_map(|(run, _)| run.parse().ok()).collect();
    for run in missed {
        add(&mut found, &engine.run(run).await?);
    }
    known.runs.append(&mut found);
    known.approvals = approvals;
    while known.runs.len() > RUNS_MAX {
        known.runs.pop_first();
    }
    Ok(())
}

fn add(found: &mut Runs, standing: &Standing) {
    let now = (standing.run.state.name(), standing.sequence);
    let kept = found.entry(standing.run.id.to_string()).or_insert(now);
    // A run that goes from state to state while it is looked at is found twice; the later counts.
    if kept.1 < now.1 {
        *kept = now;
    }
}

fn open_approvals(engine: &Engine, standing: &Standing) -> usize {
    let now = engine.now();
    let open = standing.run.state.open();
    open.filter(|(_, asked)| asked.snoozed_until.is_none_or(|until| until <= now)).count()
}
