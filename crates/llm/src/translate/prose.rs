//! What the model thinks and says: the items that are text.

use crate::responses::{ContentPart, Event, OutputItem, Status, SummaryPart};

/// Whether the model thinks or speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Thought,
    Speech,
}

/// An item of text that is not whole yet.
#[derive(Debug)]
pub(super) struct Prose {
    pub(super) voice: Voice,
    id: String,
    output_index: usize,
    text: String,
}

impl Prose {
    pub(super) fn begin(voice: Voice, answer: &str, output_index: usize, events: &mut Vec<Event>) -> Self {
        let stem = match voice {
            Voice::Thought => "rs",
            Voice::Speech => "msg",
        };
        let id = format!("{stem}_{answer}_{output_index}");
        let prose = Self { voice, id: id.clone(), output_index, text: String::new() };
        let item = match voice {
            Voice::Thought => OutputItem::Reasoning { id: id.clone(), summary: Vec::new() },
            Voice::Speech => message(id.clone(), Status::InProgress, Vec::new()),
        };
        events.push(Event::ItemAdded { output_index, item });
        events.push(match voice {
            Voice::Thought => {
                Event::SummaryAdded { item_id: id, output_index, summary_index: 0, part: prose.summary() }
            }
            Voice::Speech => {
                Event::PartAdded { item_id: id, output_index, content_index: 0, part: prose.part() }
            }
        });
        prose
    }

    pub(super) fn add(&mut self, delta: String) -> Event {
        self.text.push_str(&delta);
        let (item_id, output_index) = (self.id.clone(), self.output_index);
        match self.voice {
            Voice::Thought => Event::SummaryTextDelta { item_id, output_index, summary_index: 0, delta },
            Voice::Speech => Event::TextDelta { item_id, output_index, content_index: 0, delta },
        }
    }

    /// Ends the item and gives it whole, with its place.
    pub(super) fn end(self, events: &mut Vec<Event>) -> (usize, OutputItem) {
        let (item_id, output_index) = (self.id.clone(), self.output_index);
        let text = self.text.clone();
        let item = match self.voice {
            Voice::Thought => {
                let (summary_index, part) = (0, self.summary());
                events.push(Event::SummaryTextDone {
                    item_id: item_id.clone(),
                    output_index,
                    summary_index,
                    text,
                });
                events.push(Event::SummaryDone { item_id, output_index, summary_index, part: part.clone() });
                OutputItem::Reasoning { id: self.id, summary: vec![part] }
            }
            Voice::Speech => {
                let (content_index, part) = (0, self.part());
                events.push(Event::TextDone { item_id: item_id.clone(), output_index, content_index, text });
                events.push(Event::PartDone { item_id, output_index, content_index, part: part.clone() });
                message(self.id, Status::Completed, vec![part])
            }
        };
        events.push(Event::ItemDone { output_index, item: item.clone() });
        (output_index, item)
    }

    fn part(&self) -> ContentPart {
        ContentPart::OutputText { text: self.text.clone(), annotations: [] }
    }

    fn summary(&self) -> SummaryPart {
        SummaryPart::SummaryText { text: self.text.clone() }
    }
}

fn message(id: String, status: Status, content: Vec<ContentPart>) -> OutputItem {
    OutputItem::Message { id, status, role: "assistant", content }
}
