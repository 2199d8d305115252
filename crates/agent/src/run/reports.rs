//! What a tool reports while it runs: told one by one, and nothing left out without a word.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::AgentEvent;
use super::events::Teller;
use crate::checkpoint::CallPlace;
use crate::tool::{Line, Report, Reporter};

/// So many reports of a tool wait to be told. What is said at once beyond that is left out and counted.
const REPORTS_MAX: usize = 64;

/// The reports of one call.
pub(super) struct Reports {
    place: CallPlace,
    teller: Teller,
    line: Arc<Line>,
    said: mpsc::Receiver<Report>,
    /// What is being told.
    telling: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Reports {
    /// Those of a call, and where its tool says them.
    pub(super) fn of(place: CallPlace, teller: Teller) -> (Reporter, Self) {
        let (reporter, line, said) = Reporter::line(REPORTS_MAX);
        (reporter, Reports { place, teller, line, said, telling: None })
    }

    /// Tells the next one when there is one. It may be left at any point, and gone on with.
    pub(super) async fn tell_next(&mut self) {
        let telling = match self.telling.take() {
            Some(telling) => telling,
            None => match self.next() {
                Some(event) => self.telling_of(event),
                None => match self.said.recv().await {
                    Some(report) => self.telling_of(AgentEvent::ToolReported { place: self.place, report }),
                    // Nobody can say anything, and whoever waits for that has something else to wait for.
                    None => return pending().await,
                },
            },
        };
        let telling = self.telling.insert(telling);
        telling.await;
        self.telling = None;
    }

    /// Tells what is left. The tool says nothing more.
    pub(super) async fn tell_rest(&mut self) {
        self.said.close();
        if let Some(telling) = self.telling.take() {
            telling.await;
        }
        while let Some(event) = self.next() {
            self.teller.tell(event).await;
        }
    }

    /// What is to be told now: what was left out comes after what was said before it.
    fn next(&mut self) -> Option<AgentEvent> {
        let place = self.place;
        if let Ok(report) = self.said.try_recv() {
            return Some(AgentEvent::ToolReported { place, report });
        }
        let count = self.line.lost();
        (count > 0).then_some(AgentEvent::ReportsLost { place, count })
    }

    fn telling_of(&self, event: AgentEvent) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let teller = self.teller.clone();
        Box::pin(async move { teller.tell(event).await })
    }
}
