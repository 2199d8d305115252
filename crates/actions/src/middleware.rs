//! Middleware: wraps the running of an action once per invocation, retries included.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::{Action, ActionError, Context};

/// What a middleware is called with.
#[derive(Clone, Copy, Debug)]
pub struct MiddlewareCall<'a> {
    /// The action.
    pub action: &'a Action,
    /// Its validated input, defaults applied.
    pub input: &'a Value,
    /// The invocation.
    pub context: &'a Context,
}

/// Wraps the running of an action. The first one registered is the outermost.
#[async_trait]
pub trait Middleware: Send + Sync {
    /// Calls `next.run()` at most once, or not at all; may replace the result, which is still checked.
    async fn call(&self, call: MiddlewareCall<'_>, next: Next<'_>) -> Result<Value, ActionError>;
}

type Innermost<'a> = Pin<Box<dyn Future<Output = Result<Value, ActionError>> + Send + 'a>>;

/// The rest of the chain.
pub struct Next<'a> {
    chain: &'a [Arc<dyn Middleware>],
    call: MiddlewareCall<'a>,
    /// Handed inwards on the first run.
    innermost: Mutex<Option<Innermost<'a>>>,
    ran_twice: Arc<AtomicBool>,
}

impl Next<'_> {
    /// Runs the rest of the chain. A second call is a fault of the middleware and ends in `INTERNAL_ERROR`.
    pub async fn run(&self) -> Result<Value, ActionError> {
        let innermost = self.innermost.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (innermost, self.chain.split_first()) {
            (Some(innermost), Some((first, chain))) => {
                let (innermost, ran_twice) = (Mutex::new(Some(innermost)), Arc::clone(&self.ran_twice));
                first.call(self.call, Next { chain, call: self.call, innermost, ran_twice }).await
            }
            (Some(innermost), None) => innermost.await,
            (None, _) => {
                self.ran_twice.store(true, Ordering::Relaxed);
                Err(twice())
            }
        }
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next({} more)", self.chain.len())
    }
}

fn twice() -> ActionError {
    ActionError::internal("a middleware called next more than once")
}

/// Runs `innermost` inside the chain.
pub(crate) async fn run_chain<'a>(
    chain: &'a [Arc<dyn Middleware>],
    call: MiddlewareCall<'a>,
    innermost: impl Future<Output = Result<Value, ActionError>> + Send + 'a,
) -> Result<Value, ActionError> {
    let ran_twice = Arc::new(AtomicBool::new(false));
    let innermost: Mutex<Option<Innermost<'a>>> = Mutex::new(Some(Box::pin(innermost)));
    let result = Next { chain, call, innermost, ran_twice: Arc::clone(&ran_twice) }.run().await;
    // A middleware that swallows the error of its second call has still broken the rule.
    if ran_twice.load(Ordering::Relaxed) { Err(twice()) } else { result }
}
