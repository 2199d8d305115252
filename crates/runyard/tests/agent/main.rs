//! The example of an agent does what it says, and is as short as the documents say.

include!("guide.rs.in");

#[test]
fn the_example_runs() {
    main().unwrap();
}

#[test]
fn the_example_has_twenty_lines() {
    let lines = include_str!("guide.rs.in").lines().filter(|line| !line.is_empty());
    assert_eq!(lines.count(), 20);
}

#[test]
fn the_readme_has_the_example_as_it_is() {
    assert!(include_str!("../../../../README.md").contains(include_str!("guide.rs.in")));
}
