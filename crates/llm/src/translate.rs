//! From the Responses API to chat completions, and back.
//!
//! A client that speaks only Responses can so use a provider that speaks only chat completions: [`to_chat`] makes its
//! request, and a [`Stream`] makes the answer's chunks the events that the client waits for.
//!
//! What cannot be said in chat completions is refused, never left out. It deliberately does not know any provider's taste:
//! if one refuses a model, a picture or a schema, its own answer says so.

mod calls;
mod messages;
mod prose;
mod request;
mod stream;
mod tools;

pub use calls::CALLS_MAX;
pub use request::{Translated, to_chat};
pub use stream::{ANSWER_BYTES_MAX, Stream};
pub use tools::Tools;
