//! Storing what no redactor saw does not compile.

// clause: B11
#[test]
fn storing_what_no_redactor_saw_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
