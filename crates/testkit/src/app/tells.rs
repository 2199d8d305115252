//! Actions that tell: logs, progress, artifacts, and one that is deprecated.

use runyard::{ActionError, Artifact, Context, Progress, action, fields};
use serde_json::json;

/// Log at every level, with credentials and numbers that are none.
#[action]
pub(super) async fn tell(ctx: &Context) -> Result<(), ActionError> {
    let log = ctx.logger();
    log.debug("no fields", fields! {});
    log.info("fields", fields! { count: 3, list: ["a", "b"], nothing: None::<u8>, text: "ü\u{1f980}" });
    let nested = json!({"apiKey": "hunter22", "list": [{"Set-Cookie": "hunter22"}], "tokens": 12});
    log.warn(
        "credentials",
        fields! { password: "hunter22", access_token: 5, nested: nested, secret: None::<u8> },
    );
    log.error("no numbers", fields! { ratio: f64::NAN, list: [1.0, f64::INFINITY], fine: 0.5 });
    Ok(())
}

/// Report progress, also with fields that are the report's own.
#[action]
pub(super) async fn progress(ctx: &Context) -> Result<(), ActionError> {
    let report = ctx.progress();
    report.report(Progress::percent(0.0));
    report.report(
        Progress::percent(40.0)
            .message("copying")
            .field("type", "mine")
            .field("percent", &99)
            .field("file", "a.txt"),
    );
    report.report(Progress::percent(62.5));
    report.report(Progress::percent(250.0).message("too far"));
    report.report(Progress::percent(f64::NAN).message("no number"));
    report.report(Progress::step("a step").field("token", "hunter22"));
    Ok(())
}

/// Add artifacts, complete and incomplete ones.
#[action]
pub(super) async fn artifacts(ctx: &Context) -> Result<Vec<String>, ActionError> {
    let whole = Artifact::named("report.pdf")
        .kind("document")
        .mime_type("application/pdf")
        .uri("file:///tmp/report.pdf")
        .size_bytes(12)
        .metadata(&json!({"pages": 2, "password": "hunter22"}));
    let added = [
        Artifact { id: "mine".to_owned(), ..whole },
        Artifact::named("bare"),
        Artifact { name: None, ..Artifact::named("") }.metadata(&"a text"),
        Artifact::named("list").metadata(&[1, 2]),
        Artifact::named("no number").metadata(&f64::NAN),
    ];
    // What is returned is what stands in the envelope.
    Ok(added.into_iter().map(|artifact| ctx.artifacts().add(artifact).kind).collect())
}

/// Do it the old way.
#[action(deprecated(message = "It is slow.", since = "2.0.0", replacement = "echo"))]
pub(super) async fn old_way() -> Result<String, ActionError> {
    Ok("done".to_owned())
}
