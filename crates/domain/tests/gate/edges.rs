//! Judgements at the edges of what a rule says, where the smallest change of the gate would turn them round.

use crate::support::{allow, deny, policy, read, subject};
use runyard_domain::gate::{Effect, RuleKind, judge};

// clause: C11
#[test]
fn a_rule_about_everything_inside_says_nothing_about_what_is_outside() {
    let policy = policy(&[allow(RuleKind::Read, "/usr/**"), deny(RuleKind::Read, "**")]);
    assert_eq!(judge(&policy, &subject(), &read("/usr/include/a.h")).effect, Effect::Allow);
    assert_eq!(judge(&policy, &subject(), &read("src/a.h")).effect, Effect::Deny);
}
