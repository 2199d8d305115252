//! What a rule about pushing is about: every branch that a command pushes, however it names it.

use crate::support::{allow, check, deny};
use runyard_domain::gate::Effect::{Allow, Ask, Deny};
use runyard_domain::gate::RuleKind::{GitCommit, GitPush, Network, Shell};

#[test]
fn c11_a_rule_about_pushing_is_about_each_branch_however_it_is_written() {
    let all = [allow(Shell, "*"), allow(Network, "*"), allow(GitPush, "*"), deny(GitPush, "origin main")];
    for line in [
        "git push origin main",
        "git push origin dev main",
        "git push origin HEAD:main",
        "git push origin dev:main",
        "git push origin +main",
        "git push origin :main",
        "git push origin --delete main",
        "git push origin refs/heads/main",
        "git push origin x:refs/heads/main",
        "git push origin heads/main",
        "git push -o ci.skip origin main",
        "git push -fo ci.skip origin main",
        "git push -ofoo origin main",
        "git push --push-option ci.skip origin main",
        "git push --push-o=x origin main",
        "git push --repo x origin main",
        "git push --receive-pack=x origin main",
        "git push -- origin main",
        "git -C sub push origin main",
    ] {
        check(&all, line, Deny);
    }
    // What is pushed, or where to, is not known.
    for line in [
        "git push",
        "git push origin",
        "git push --repo=origin",
        "git push --repo origin",
        "git push origin HEAD",
        "git push origin @",
        "git push origin :",
        "git push origin +:",
        "git push origin 'refs/heads/*:refs/heads/*'",
        "git push --all origin",
        "git push --branches origin dev",
        "git push --mirror origin",
        "git push --mirr origin dev",
        "git push origin \"$x\"",
        "git push https://github.com/a/b main",
        "git push https://github.com/a/b dev",
        "git push git@github.com:a/b main",
        "git push ../b main",
        "git push . main",
    ] {
        check(&all, line, Ask);
    }
    for line in [
        "git push origin dev",
        "git push origin main:dev",
        "git push origin dev fix",
        "git push fork main",
        "git push --repo fork main",
        "git push -o main origin dev",
        "git push --tags --force-with-lease=main origin dev",
    ] {
        check(&all, line, Allow);
    }
    let some = [allow(Shell, "*"), allow(Network, "*"), allow(GitPush, "origin dev")];
    for line in ["git push origin dev", "git push origin HEAD:dev", "git push --repo x origin refs/heads/dev"]
    {
        check(&some, line, Allow);
    }
    for line in [
        "git push origin dev main",
        "git push origin dev:main",
        "git push --all origin dev",
        "git push",
        "git push origin",
    ] {
        check(&some, line, Ask);
    }
    let remote = [allow(Shell, "*"), allow(Network, "*"), allow(GitPush, "origin *")];
    for line in
        ["git push origin", "git push origin a b", "git push --all --repo=origin", "git push --mirror origin"]
    {
        check(&remote, line, Allow);
    }
    check(&remote, "git push --all", Ask);
}

#[test]
fn c11_only_what_is_pushed_may_go_anywhere() {
    // A message with a point in it is no address.
    let all = [allow(Shell, "*"), allow(GitCommit, "*"), deny(GitCommit, "wip*")];
    check(&all, "git commit -m 'Fix a.b'", Allow);
    check(&all, "git commit -m 'wip: a.b'", Deny);
}
