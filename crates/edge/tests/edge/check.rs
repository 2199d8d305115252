//! A backend profile that is looked at: what is there, what is missing, and nothing that may not leave the edge.

use runyard_backend::link::{CheckLine, FromEdge, ToEdge};
use runyard_domain::BackendProfile;

use crate::harness::{Hub, Place};

async fn checked(hub: &mut Hub, profile: BackendProfile) -> Vec<CheckLine> {
    hub.send(ToEdge::Check { id: 7, profile: Box::new(profile) }).await;
    match hub.next().await {
        FromEdge::Checked { id: 7, found } => found,
        other => panic!("no answer: {other:?}"),
    }
}

fn line(check: &str, found: &str) -> CheckLine {
    CheckLine { check: check.to_owned(), ok: true, found: found.to_owned(), next: None }
}

#[tokio::test(start_paused = true)]
async fn b13_a_check_says_what_is_there_and_what_is_missing_with_the_next_step() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = place.open(1).backend_profile;
    let sandbox = line("sandbox", "bubblewrap: writes only in its checkout and home, the machine's network");
    let expected = [line("backend", "puppet 1"), line("secrets", "it needs none"), sandbox];
    assert_eq!(checked(&mut hub, puppet.clone()).await, expected);

    let mut lacking = BackendProfile { required_secret_keys: vec!["auth.json".to_owned()], ..puppet.clone() };
    lacking.settings.insert("missing".to_owned(), place.root().display().to_string());
    let found = checked(&mut hub, lacking).await;
    let told: Vec<_> = found.iter().map(|line| (line.check.as_str(), line.ok, line.next.is_some())).collect();
    assert_eq!(told, [("backend", false, true), ("secrets", false, true), ("sandbox", true, false)]);
    assert!(found[0].found.starts_with("there is no <tmp>"), "no private path leaves the edge: {found:?}");
    assert!(found[1].found.starts_with("auth.json of puppet is missing"), "{found:?}");
    assert_eq!(found[1].next.as_deref(), Some("Run: runyard secrets set puppet auth.json"));

    let unknown = BackendProfile { backend_kind: "kasper".to_owned(), ..puppet };
    let found = checked(&mut hub, unknown).await;
    assert_eq!(found[0].next.as_deref(), Some("Choose one of these kinds: mute, puppet."));
}
