//! Logs and progress of a running call, as the client asked for them.

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use runyard_actions::{InvocationEvent, LogEntry, LogLevel};
use serde_json::{Value, json};

/// What a client wants to hear, and how far it has heard.
pub(super) struct Reports {
    peer: Peer<RoleServer>,
    progress: Option<ProgressToken>,
    from: Option<LoggingLevel>,
    logger: String,
    /// A client is promised that it only grows.
    reached: f64,
}

impl Reports {
    pub(super) fn new(
        context: &RequestContext<RoleServer>,
        from: Option<LoggingLevel>,
        logger: &str,
    ) -> Self {
        Reports {
            peer: context.peer.clone(),
            progress: context.meta.get_progress_token(),
            from,
            logger: logger.to_owned(),
            reached: 0.0,
        }
    }

    /// Whether there is nothing that the client wants to hear.
    pub(super) fn is_silent(&self) -> bool {
        self.progress.is_none() && self.from.is_none()
    }

    /// Tells the client. One that is gone is noticed elsewhere: its call is cancelled.
    pub(super) async fn tell(&mut self, event: &InvocationEvent) {
        match event {
            InvocationEvent::Log(log) => self.log(log).await,
            InvocationEvent::Progress(log) => self.progress(log).await,
            InvocationEvent::Artifact(_) | InvocationEvent::Result(_) => {}
        }
    }

    async fn log(&self, log: &LogEntry) {
        let level = match log.level {
            LogLevel::Debug => LoggingLevel::Debug,
            LogLevel::Info => LoggingLevel::Info,
            LogLevel::Warn => LoggingLevel::Warning,
            LogLevel::Error => LoggingLevel::Error,
        };
        if self.from.is_none_or(|from| (level as u8) < from as u8) {
            return;
        }
        let data = json!({"message": log.message, "fields": log.fields, "time": format!("{:.3}", log.time)});
        let said = LoggingMessageNotificationParam::new(level, data).with_logger(self.logger.clone());
        let _ = self.peer.notify_logging_message(said).await;
    }

    async fn progress(&mut self, log: &LogEntry) {
        const LEAST_STEP: f64 = 0.001;
        let Some(token) = self.progress.clone() else { return };
        let percent = log.fields.get("percent").and_then(Value::as_f64);
        self.reached = percent.unwrap_or(self.reached + 1.0).max(self.reached + LEAST_STEP);
        let mut said = ProgressNotificationParam::new(token, self.reached).with_message(log.message.clone());
        if percent.is_some() {
            said = said.with_total(100.0);
        }
        let _ = self.peer.notify_progress(said).await;
    }
}
